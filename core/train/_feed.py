"""What a chunk of steps reads: arrays on the device, or batches loaded from the host while the device works."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import equinox as eqx
from jaxtyping import PyTree

from sciax.core.train._batches import BatchSource, HostBatches


class Feed:
    """The data argument of each chunk.

    Args:
        capacity: longest chunk.
        put: moves arrays to where a plan wants them.
    """

    def __init__(self, source: BatchSource | HostBatches, capacity: int, put: Callable[[PyTree], PyTree]):
        self._source, self._capacity, self._put = source, capacity, put
        self._pool = ThreadPoolExecutor(1) if isinstance(source, HostBatches) else None
        self._device = put(eqx.filter(source, eqx.is_array)) if self._pool is None else None
        self._ahead: tuple[tuple[int, int], Future] | None = None

    def data(self, now: int, count: int, after: int) -> PyTree:
        """For steps `now` to `now + count - 1`; the `after` steps behind them are loaded in the background."""
        if self._pool is None:
            return self._device
        assert isinstance(self._source, HostBatches)
        if self._ahead is not None and self._ahead[0] == (now, count):
            ready = self._ahead[1].result()
        else:
            ready = self._source.stack(now, count, self._capacity)
        self._ahead = None
        if after:
            following = now + count, after
            self._ahead = following, self._pool.submit(self._source.stack, *following, self._capacity)
        return self._put(ready)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

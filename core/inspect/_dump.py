"""Selective dump of intermediate values, by operation name, scope and step, with a cap on the bytes kept."""

import fnmatch
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sciax.core.errors import InputError
from sciax.core.inspect._interpret import Op, with_hooks


@dataclass(frozen=True)
class Record:
    """One dumped array.

    Attributes:
        step: number of the call.
        op: the operation that made it.
        output: which of its outputs.
        value: the array.
    """

    step: int
    op: Op
    output: int
    value: np.ndarray

    @property
    def summary(self) -> str:
        a = self.value
        if a.size == 0 or a.dtype.kind not in "fiu":
            return f"{a.dtype}{list(a.shape)}"
        nan = int(np.isnan(a).sum()) if a.dtype.kind == "f" else 0
        return f"{a.dtype}{list(a.shape)} mean {a.mean():.4g} min {a.min():.4g} max {a.max():.4g} nan {nan}"


class Dump:
    """`dump(function, ...)`: called like the function, keeps what its operations computed.

    Attributes:
        records: what was kept, in order of arrival.
        dropped: arrays not kept because of the cap.
        kept_bytes: of the records.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        names: Iterable[str] = ("*",),
        *,
        scope: str = "*",
        steps: Iterable[int] | None = None,
        max_bytes: int = 64 << 20,
    ):
        names = (names,) if isinstance(names, str) else tuple(names)
        if not names:
            raise InputError(
                "dump needs at least one operation name", expected="primitive names or patterns, as 'dot_*'"
            )
        if max_bytes <= 0:
            raise InputError("max_bytes must be positive", got=max_bytes)
        self.names, self.scope, self.max_bytes = names, scope, int(max_bytes)
        self.steps = None if steps is None else frozenset(int(s) for s in steps)
        self.records: list[Record] = []
        self.dropped = self.kept_bytes = self.step = self.matched = 0
        self._lock = threading.Lock()
        self._plain = jax.jit(function)
        self._hooked = jax.jit(with_hooks(function, self._hook))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result. Steps that are not selected run the plain program, at full speed."""
        if self.steps is not None and self.step not in self.steps:
            result = self._plain(*args, **kwargs)
        else:
            result = self._hooked(*args, **kwargs)
            jax.block_until_ready(result)
            jax.effects_barrier()
            if self.matched == 0:
                raise InputError(
                    f"no operation matches {', '.join(self.names)} in scope {self.scope!r}",
                    remedy="names are those of primitives (dot_general, tanh, add): see trace(f)(*args).text()",
                )
        self.step += 1
        return result

    def _hook(self, op: Op, inputs: Any, run: Any) -> Any:
        outputs = run(*inputs)
        if any(fnmatch.fnmatchcase(op.name, n) for n in self.names) and fnmatch.fnmatchcase(op.scope, self.scope):
            self.matched += 1
            for k, value in enumerate(outputs):
                jax.debug.callback(lambda v, op=op, k=k: self._keep(op, k, v), value)
        return outputs

    def _keep(self, op: Op, output: int, value: Any) -> None:
        array = np.array(value)
        with self._lock:
            if self.kept_bytes + array.nbytes > self.max_bytes:
                self.dropped += 1
                return
            self.kept_bytes += array.nbytes
            self.records.append(Record(self.step, op, output, array))

    def table(self) -> str:
        """One line a record."""
        lines = [f"step {r.step:>4} {r.op}: {r.summary}" for r in self.records]
        if self.dropped:
            lines.append(f"{self.dropped} arrays were not kept: the cap of {self.max_bytes} bytes was reached")
        return "\n".join(lines) or "nothing dumped yet"

    def save(self, file: str | Path) -> Path:
        """All records in one `.npz`, as `step_index_name_output`."""
        path = Path(file).with_suffix(".npz")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **{f"s{r.step}_{i:05d}_{r.op.name}_{r.output}": r.value for i, r in enumerate(self.records)})  # type: ignore[arg-type]
        return path


def dump(function: Callable[..., Any], names: Iterable[str] = ("*",), **options: Any) -> Dump:
    """`function`, keeping the results of the operations whose primitive name matches `names`.

    Args:
        names: patterns of primitive names ("dot_general", "exp*").
        scope: pattern of the name stack ("*layer2*").
        steps: the calls to dump (counted from 0); others run the plain program. Default all.
        max_bytes: cap on what is kept; later arrays are counted in `dropped`.
    """
    if not callable(function):
        raise InputError("dump needs a function", got=type(function).__name__)
    return Dump(function, names, **options)

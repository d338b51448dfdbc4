"""Rolling a model forward in jitted chunks, with a restart file after each."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import FileFormatError, InputError
from sciax.earth.models import Model


@dataclass(frozen=True)
class Ensemble:
    """How members differ when the source has none of its own.

    Attributes:
        kind: "perturbed" adds smooth random fields to the analysis (member 0 is unperturbed, then pairs of opposite sign);
            "lagged" starts member k from the analysis k steps earlier.
        amplitude: of the perturbation, as a fraction of each channel's spatial standard deviation.
        smoothing: its correlation length in grid steps.
    """

    kind: Literal["perturbed", "lagged"] = "perturbed"
    amplitude: float = 0.02
    smoothing: float = 4.0

    def __post_init__(self) -> None:
        if self.kind not in ("perturbed", "lagged"):
            raise InputError(f"unknown kind of ensemble {self.kind!r}", expected="'perturbed' or 'lagged'")
        if self.amplitude < 0 or self.smoothing <= 0:
            raise InputError("amplitude must be >= 0 and smoothing > 0", got=(self.amplitude, self.smoothing))

    def perturb(self, fields: np.ndarray, members: int, seed: int, periodic: bool) -> np.ndarray:
        """(members, channel, lat, lon) from one analysis (channel, lat, lon)."""
        from scipy.ndimage import gaussian_filter

        rng = np.random.default_rng(seed)
        out = np.repeat(fields[None], members, axis=0)
        noise = np.zeros_like(fields)
        modes: Any = ("nearest", "wrap" if periodic else "nearest")
        for k in range(1, members):
            if k % 2:  # a fresh pattern, then its mirror image
                noise = np.stack(
                    [
                        gaussian_filter(
                            rng.standard_normal(f.shape),
                            self.smoothing,
                            mode=modes,
                        )
                        for f in fields
                    ]
                )
                scale = self.amplitude * np.nanstd(fields, axis=(-2, -1), keepdims=True)
                noise = noise / noise.std(axis=(-2, -1), keepdims=True) * scale
            out[k] = (fields + (noise if k % 2 else -noise)).astype(fields.dtype)
        return out


@eqx.filter_jit
def advance(model: Model, state, whens):
    """Scan `model.step` over the valid times `whens` (steps, 2); fields come stacked by step."""

    def body(carry, when):
        return model.step(carry, when)

    return jax.lax.scan(body, state, whens)


@eqx.filter_jit
def start(model: Model, fields, when):
    """The model's state for initial fields."""
    return model.init(fields, when)


def roll(model: Model, state, whens: np.ndarray, chunk: int) -> Iterator[tuple[int, np.ndarray, object]]:
    """(first step, fields of the chunk, state after it); chunks all have one length, so that one program serves them.

    Memory holds one chunk, however many steps there are.
    """
    steps = len(whens)
    for first in range(0, steps, chunk):
        part = whens[first : first + chunk]
        short = chunk - len(part)
        padded = np.concatenate([part, np.repeat(part[-1:], short, axis=0)]) if short else part
        state, fields = advance(model, state, jnp.asarray(padded))
        yield first, np.asarray(fields)[: len(part)], state


def fingerprint(**settings) -> str:
    """A hash of what makes two runs the same run."""
    text = json.dumps({k: str(v) for k, v in sorted(settings.items())})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def save_restart(path: Path, state, done: int, mark: str) -> None:
    """Write the state after `done` steps; the file is replaced at once, so an interruption leaves the older one."""
    leaves = jax.tree.leaves(eqx.filter(state, eqx.is_array))
    temporary = path.with_suffix(".tmp.npz")
    arrays: dict[str, Any] = {f"leaf{i}": np.asarray(x) for i, x in enumerate(leaves)}
    np.savez(temporary, done=np.int64(done), mark=np.array(mark), **arrays)
    os.replace(temporary, path)


def load_restart(path: Path, like, mark: str):
    """(state, steps done), or None when the file belongs to another run.

    Raises:
        FileFormatError: a damaged file.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            if str(archive["mark"]) != mark:
                return None
            dynamic, static = eqx.partition(like, eqx.is_array)
            leaves, treedef = jax.tree.flatten(dynamic)
            fresh = [jnp.asarray(archive[f"leaf{i}"]) for i in range(len(leaves))]
            done = int(archive["done"])
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise FileFormatError(
            f"cannot read the restart file {path}", got=str(error), remedy="delete it and start again"
        ) from error
    return eqx.combine(jax.tree.unflatten(treedef, fresh), static), done

"""Checkpoints of a run: fields, running spectra and signals so far, with a fingerprint of what is being run."""

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import FileFormatError


def fingerprint(plan: Any, prepared: Any) -> str:
    """Hash of everything a step multiplies by, of the sources' tables and of the monitors' frequencies."""
    digest = hashlib.sha256(f"{plan.steps} {plan.scene.dt!r}".encode())
    for leaf in jax.tree.leaves(prepared):
        a = np.ascontiguousarray(leaf)
        digest.update(f"{a.shape} {a.dtype}".encode())
        digest.update(a.tobytes())
    for key, blocks in plan.blocks():
        digest.update(f"{key} {sorted(blocks.lo.items())} {sorted(blocks.hi.items())}".encode())
        digest.update(np.ascontiguousarray(blocks.frequencies).tobytes())
    return digest.hexdigest()


def save(path: Path, done: int, carry: Any, parts: list, mark: str) -> None:
    """Write to a file beside and rename: a killed run leaves the last whole checkpoint."""
    leaves = jax.tree.leaves(carry)
    signals = jax.tree.map(lambda *v: jnp.concatenate(v), *parts)
    arrays = {f"c{i}": np.asarray(v) for i, v in enumerate(leaves)}
    arrays |= {f"s.{name}.{c}": np.asarray(v) for name, group in signals.items() for c, v in group.items()}
    part = path.with_name(path.name + ".part.npz")
    np.savez(part, allow_pickle=False, done=done, mark=np.array(mark), **arrays)
    part.replace(path)


def load(path: Path, carry: Any, steps: int, names, mark: str) -> tuple[int, Any, list]:
    """(steps done, carry, signals).

    Raises:
        FileFormatError: not a checkpoint, a damaged one, or one of another scene or other parameters.
    """
    leaves, tree = jax.tree.flatten(carry)
    try:
        with np.load(path, allow_pickle=False) as data:
            done, found_mark = int(data["done"]), str(data["mark"])
            found = [data[f"c{i}"] for i in range(len(leaves)) if f"c{i}" in data]
            signals: dict = {name: {} for name in names}
            for key in data.files:
                if key.startswith("s."):
                    _, name, component = key.split(".")
                    signals.setdefault(name, {})[component] = jnp.asarray(data[key])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(
            "the checkpoint cannot be read",
            got=f"{path.name}: {error}",
            remedy="delete it and run from the start",
        ) from error
    alike = len(found) == len(leaves) and all(a.shape == b.shape for a, b in zip(found, leaves))
    if found_mark != mark or not alike or done > steps:
        raise FileFormatError(
            "the checkpoint belongs to another scene or other parameters",
            got=path.name,
            remedy="give the scene it was made with, or delete it",
        )
    return done, jax.tree.unflatten(tree, [jnp.asarray(v) for v in found]), [signals]

"""Checkpoints of a training: Orbax writes them, atomically; this says when, how many, and reads the latest back."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from sciax.core.errors import FileFormatError, InputError, SciaxError, optional_import


class CheckpointError(SciaxError, OSError):
    """A checkpoint that could not be written; earlier ones are untouched."""

    def __str__(self) -> str:
        return self.args[0]


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often `fit` saves.

    Attributes:
        directory: folder of this training's checkpoints, made if need be.
        every: steps between two.
        keep: how many of the latest stay.
        keep_every: besides, one every so many steps stays for good.
    """

    directory: Path | str
    every: int = 1000
    keep: int = 3
    keep_every: int | None = None

    def __post_init__(self) -> None:
        if self.every < 1 or self.keep < 1:
            raise InputError(
                "checkpoints: `every` and `keep` are positive", got=f"every={self.every}, keep={self.keep}"
            )


def _plain(leaf: Any) -> Any:
    """Orbax takes arrays; typed keys travel as their data."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    return leaf


def _nameless(text: str) -> str:
    """Without the addresses of static functions (activations, say), which differ from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _structure(tree: PyTree) -> str:
    return _nameless(str(jax.tree.structure(tree)))


class CheckpointStore:
    """The checkpoints under one directory, by step.

    Every checkpoint is a folder that appears under its final name only when it is complete, so a process killed while saving
    leaves the one before as the latest.
    """

    def __init__(self, directory: Path | str, *, keep: int = 3, keep_every: int | None = None):
        self._ocp = optional_import("orbax.checkpoint", "train").v1
        policies = self._ocp.training.preservation_policies
        keepers = [policies.LatestN(keep)]
        if keep_every is not None:
            keepers.append(policies.EveryNSteps(keep_every))
        self.directory = Path(directory).absolute()
        self._policies = dict(
            save_decision_policy=self._ocp.training.save_decision_policies.FixedIntervalPolicy(1),
            preservation_policy=policies.AnyPreservationPolicy(keepers),
        )
        self._checkpointer = self._open()

    def _open(self, tries: int = 3) -> Any:
        """Open the folder and clear away what a killed process left half written.

        Orbax removes such folders from two threads at once, and the slower one fails when it finds nothing; then all is well.
        """
        try:
            return self._ocp.training.Checkpointer(self.directory, cleanup_tmp_directories=True, **self._policies)
        except FileNotFoundError:
            if tries == 1:
                raise
            return self._open(tries - 1)

    @property
    def steps(self) -> list[int]:
        return [entry.step for entry in self._checkpointer.checkpoints]

    @property
    def latest(self) -> int | None:
        entry = self._checkpointer.latest
        return None if entry is None else entry.step

    def save(self, step: int, state: PyTree, notes: dict[str, Any] | None = None) -> None:
        """Write `state` (arrays) and `notes` (JSON) as the checkpoint of `step`.

        Raises:
            CheckpointError: the disk is full, the folder cannot be written. The checkpoints before it are kept.
        """
        # Dictionaries of leaves by path: a checkpoint then needs no Python class to be read.
        leaves = {str(index): _plain(leaf) for index, leaf in enumerate(jax.tree.leaves(state))}
        notes = {"notes": json.dumps(notes or {}), "structure": _structure(state)}
        try:
            self._checkpointer.save(step, leaves, custom_metadata=notes, overwrite=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise CheckpointError(
                f"the checkpoint of step {step} could not be written to {self.directory}",
                got=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
                remedy=f"make room or choose another folder; the last good one is step {self.latest}",
            ) from error

    def load(self, like: PyTree, step: int | None = None) -> tuple[PyTree, dict[str, Any]]:
        """The checkpoint of `step` (default: the latest), with structure, dtypes and shardings of `like`; and its notes.

        Raises:
            InputError: no such checkpoint.
            FileFormatError: it holds another model, optimiser or dtype.
        """
        step = self.latest if step is None else step
        if step is None or step not in self.steps:
            raise InputError(f"no checkpoint of step {step} in {self.directory}", expected=f"one of {self.steps}")
        leaves, structure = jax.tree.flatten(like)
        shape = _structure(like)
        meta = self._checkpointer.metadata(step)
        saved = meta.metadata
        notes = meta.custom_metadata or {}
        wanted = {
            str(index): jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype, sharding=getattr(leaf, "sharding", None))
            for index, leaf in enumerate(map(_plain, leaves))
        }
        held = {name: (tuple(entry.shape), np.dtype(entry.dtype)) for name, entry in dict(saved).items()}
        asked = {name: (tuple(entry.shape), np.dtype(entry.dtype)) for name, entry in wanted.items()}
        if held != asked or _nameless(notes.get("structure", "")) != shape:
            differing = [name for name in sorted(held | asked) if held.get(name) != asked.get(name)]
            raise FileFormatError(
                f"the checkpoint of step {step} in {self.directory} is of another model or optimiser",
                got=f"{len(held)} arrays"
                + (f", {held.get(differing[0])} at number {differing[0]}" if differing else ""),
                expected=f"{len(asked)} arrays"
                + (f", {asked.get(differing[0])} there" if differing else ", another structure"),
                remedy="train into another folder, or load it with the model and optimiser it was saved with",
            )
        loaded = self._checkpointer.load(step, wanted)
        values = []
        for index, leaf in enumerate(leaves):
            value = loaded[str(index)]
            if _plain(leaf) is not leaf:
                value = jax.random.wrap_key_data(value, impl=jax.random.key_impl(leaf))
            values.append(value)
        return jax.tree.unflatten(structure, values), json.loads(notes.get("notes", "{}"))

    def close(self) -> None:
        self._checkpointer.close()

    def __enter__(self) -> "CheckpointStore":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

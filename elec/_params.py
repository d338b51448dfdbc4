"""Parameters by path: "disc.shape.radius", "pulse.amplitude", "slab.medium.poles.0.strength"."""

from collections.abc import Mapping
from copy import copy
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from sciax.core.errors import InputError, ShapeError, UnsupportedError, did_you_mean


def _describe(node: Any) -> list[str]:
    if is_dataclass(node):
        return [f.name for f in fields(node) if f.init]
    return [str(i) for i in range(len(node))] if isinstance(node, tuple) else []


def replace_at(node: Any, path: list[str], value: Any, full: str) -> Any:
    """A copy of `node` with the leaf at `path` replaced.

    Raises:
        InputError: no such path, naming the nearest; ShapeError: value of another shape.
    """
    if not path:
        if node is not None and np.shape(node) != np.shape(value):
            raise ShapeError(f"parameter {full!r} has another shape", got=np.shape(value), expected=np.shape(node))
        return value
    head, known = path[0], _describe(node)
    if head not in known:
        raise InputError(f"parameter {full!r}: no {head!r} in {type(node).__name__}", remedy=did_you_mean(head, known))
    if isinstance(node, tuple):
        i = int(head)
        return (*node[:i], replace_at(node[i], path[1:], value, full), *node[i + 1 :])
    return replace(node, **{head: replace_at(getattr(node, head), path[1:], value, full)})


def leaf_at(node: Any, path: list[str], full: str) -> Any:
    """The value at a path."""
    for head in path:
        known = _describe(node)
        if head not in known:
            raise InputError(
                f"parameter {full!r}: no {head!r} in {type(node).__name__}", remedy=did_you_mean(head, known)
            )
        node = node[int(head)] if isinstance(node, tuple) else getattr(node, head)
    return node


def _with(scene: Any, **changes: Any) -> Any:
    """A copy of a frozen scene without its checks, which traced values could not pass."""
    new = copy(scene)
    for name, value in changes.items():
        object.__setattr__(new, name, value)
    return new


def apply(scene: Any, params: Mapping[str, Any], checked: bool = False) -> Any:
    """The scene with parameters in place; the first part of a path names a structure, source, or "background"/"boundaries".

    `checked` repeats the checks of the scene, for concrete values.
    """
    new = _applied(scene, params)
    return replace(new) if checked and params else new


def _boundaries(boundaries: Any, path: list[str], value: Any, full: str) -> Any:
    """Boundaries with another Bloch wave number, "boundaries.y.wavenumber", which both faces share."""
    axis, *rest = path or [""]
    known = _describe(boundaries)
    if axis not in known:
        raise InputError(f"parameter {full!r}: no {axis!r} in Boundaries", remedy=did_you_mean(axis, known))
    faces = getattr(boundaries, axis)
    if rest != ["wavenumber"]:
        raise UnsupportedError(
            f"parameter {full!r}: absorbers and faces are fixed when the scene is built, Bloch wave numbers excepted",
            remedy=f'build another scene, or name "boundaries.{axis}.wavenumber" of a Bloch face',
        )
    if not hasattr(faces[0], "wavenumber"):
        raise InputError(f"parameter {full!r}: the faces along {axis} are not Bloch", got=faces)
    face = replace_at(faces[0], rest, value, full)
    # the same object twice: traced wave numbers cannot be compared
    new = copy(boundaries)
    object.__setattr__(new, axis, (face, face))
    return new


def _applied(scene: Any, params: Mapping[str, Any]) -> Any:
    for full, value in params.items():
        head, *rest = full.split(".")
        if head == "boundaries":
            scene = _with(scene, boundaries=_boundaries(scene.boundaries, rest, value, full))
            continue
        if head == "background":
            scene = _with(scene, background=replace_at(scene.background, rest, value, full))
            continue
        for group in ("structures", "sources"):
            items = getattr(scene, group)
            names = [item.name for item in items]
            if head in names:
                i = names.index(head)
                new = replace_at(items[i], rest, value, full)
                scene = _with(scene, **{group: (*items[:i], new, *items[i + 1 :])})
                break
        else:
            if head in [m.name for m in scene.monitors]:
                raise UnsupportedError(
                    f"parameter {full!r}: monitors sit on lattice points and frequencies fixed when the scene is built",
                    remedy="move the structures or sources instead, or build another scene",
                )
            known = [s.name for s in (*scene.structures, *scene.sources)] + ["background", "boundaries"]
            raise InputError(f"parameter {full!r}: nothing is named {head!r}", remedy=did_you_mean(head, known))
    return scene

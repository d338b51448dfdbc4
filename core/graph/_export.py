"""Graphs as files: a zip of a description and jax's portable serialisation. Nothing in it is executed as Python or unpickled."""

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from sciax.core.errors import FileFormatError, InputError, MissingFileError, ShapeError, UnsupportedError, did_you_mean

if TYPE_CHECKING:
    from sciax.core.graph._graph import Graph

_FORMAT = 1


def save(graph: "Graph", file: str | Path, *, symbolic: dict[str, str], vjp_order: int) -> Path:
    import inspect

    from jax import export

    import sciax

    path = Path(file)
    signature = getattr(graph._function, "_signature", None) or inspect.signature(graph._function)
    bound = signature.bind(*graph._args, **graph._kwargs)
    for key in symbolic:
        if key not in bound.arguments:
            raise InputError(
                f"symbolic: {key!r} is no argument of {graph.name}", remedy=did_you_mean(key, bound.arguments)
            )
    scope = export.SymbolicScope()
    for key, value in bound.arguments.items():
        if key in symbolic:
            bound.arguments[key] = jax.tree.map(lambda x, s=symbolic[key]: _aval(x, s, scope, graph.name), value)
        else:
            bound.arguments[key] = jax.tree.map(lambda x: _aval(x, None, scope, graph.name), value)
    try:
        exported = export.export(jax.jit(graph._function))(*bound.args, **bound.kwargs)
        blob = exported.serialize(vjp_order=vjp_order)
    except (NotImplementedError, ValueError, TypeError) as error:
        if "callback" in str(error) or "effect" in str(error):
            raise UnsupportedError(
                f"{graph.name} checks or prints at run time, which a saved graph cannot",
                remedy="leave assert, raise and print on traced values out of what is exported",
            ) from error
        raise UnsupportedError(f"{graph.name} cannot be exported: {str(error).splitlines()[0]}") from error
    about = {
        "format": _FORMAT,
        "name": graph.name,
        "sciax": sciax.__version__,
        "jax": jax.__version__,
        "calling_convention": exported.calling_convention_version,
        "platforms": list(exported.platforms),
        "inputs": [str(a) for a in exported.in_avals],
        "outputs": [str(a) for a in exported.out_avals],
        "operations": graph.ops,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.json", json.dumps(about, indent=1))
        archive.writestr("graph.bin", bytes(blob))
    return path


def _aval(x: Any, shape: str | None, scope: Any, name: str) -> jax.ShapeDtypeStruct:
    from jax import export

    plain = jax.eval_shape(lambda v: v, x) if not isinstance(x, jax.ShapeDtypeStruct) else x
    if shape is None:
        return jax.ShapeDtypeStruct(plain.shape, plain.dtype)
    try:
        sizes = export.symbolic_shape(shape, scope=scope)
    except Exception as error:
        raise InputError(f"{name}: {shape!r} is not a shape", expected='"batch, 3"') from error
    if len(sizes) != len(plain.shape):
        raise ShapeError(f"{name}: the symbolic shape has another rank", got=shape, expected=f"rank {len(plain.shape)}")
    return jax.ShapeDtypeStruct(sizes, plain.dtype)


class LoadedGraph:
    """A program read from a file: called like the function it was made from.

    Attributes:
        about: what was recorded when it was saved (versions, shapes, operations).
    """

    def __init__(self, exported: Any, about: dict[str, Any]):
        self.about = about
        self._exported = exported
        self._call = jax.jit(exported.call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arrays = jax.tree.map(jax.numpy.asarray, (args, kwargs))
        try:
            return self._call(*arrays[0], **arrays[1])
        except (ValueError, TypeError) as error:
            if isinstance(error, InputError) or "vjp" in str(error).lower():
                raise
            raise InputError(
                f"{self.about.get('name', 'graph')} was saved for other arguments",
                got=str(error).splitlines()[0],
                expected=self.about.get("inputs"),
            ) from error

    def __repr__(self) -> str:
        return f"<graph {self.about.get('name')} {self.about.get('inputs')} -> {self.about.get('outputs')}>"


def load(file: str | Path) -> LoadedGraph:
    """Read a graph that `Graph.save` wrote.

    Raises:
        MissingFileError, FileFormatError.
    """
    from jax import export

    path = Path(file)
    if not path.is_file():
        raise MissingFileError(f"no graph at {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("about.json"))
            blob = archive.read("graph.bin")
        if about.get("format") != _FORMAT:
            raise FileFormatError(f"{path} has format {about.get('format')}, this sciax reads {_FORMAT}")
        return LoadedGraph(export.deserialize(bytearray(blob)), about)
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(f"{path} is not a saved graph: {error}") from error

"""The graph object: a traced program with its operations, costs, pictures, compile times and a file form."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from sciax.core._readable import prefixed
from sciax.core.errors import InputError
from sciax.core.graph import _count, _passes, _peak
from sciax.core.graph._function import GraphFunction, graph


@dataclass(frozen=True)
class CompileReport:
    """Where the time of a first call goes, and XLA's own view of the program.

    Attributes:
        trace, lower, compile: seconds for tracing Python, making StableHLO, and XLA.
        xla_flops: XLA's count (loop bodies once).
        xla_bytes: XLA's count of bytes accessed, after fusion.
        arguments, outputs, temporaries: bytes, from XLA's buffer assignment.
        passes: what the passes before XLA did.
    """

    trace: float
    lower: float
    compile: float
    xla_flops: float
    xla_bytes: float
    arguments: int
    outputs: int
    temporaries: int
    passes: tuple[_passes.Pass, ...]

    @property
    def peak(self) -> int:
        """Arguments, temporaries and outputs, in bytes."""
        return self.arguments + self.outputs + self.temporaries

    def __str__(self) -> str:
        lines = [
            f"trace {self.trace * 1e3:.1f} ms, lower {self.lower * 1e3:.1f} ms, compile {self.compile * 1e3:.1f} ms",
            f"XLA: {self.xla_flops:.4g} FLOP (loop bodies once), {self.xla_bytes:.4g} bytes accessed",
            f"memory: arguments {self.arguments}, temporaries {self.temporaries}, outputs {self.outputs} bytes",
            *map(str, self.passes),
        ]
        return "\n".join(lines)


@dataclass
class Graph:
    """A traced program; made by `trace`.

    Attributes:
        name: of the function.
        jaxpr: the program (a jax ClosedJaxpr).
        cost: FLOPs, transcendentals and bytes, loops multiplied out.
        peak: bytes of arguments, results and live temporaries (an estimate before compiling).
        ops: primitive -> number of times it stands in the program.
        trace_seconds: time that tracing took.
        report: compile times and XLA's figures, after `compile()`.
    """

    name: str
    jaxpr: Any
    _function: Callable[..., Any] = field(repr=False)
    _args: tuple = field(repr=False)
    _kwargs: dict = field(repr=False)
    _out_tree: Any = field(repr=False)
    trace_seconds: float = 0.0
    report: CompileReport | None = None
    _compiled: Any = field(default=None, repr=False)
    _tables: list[Any] = field(default_factory=list, repr=False)

    @property
    def cost(self) -> _count.Cost:
        return _count.count(self.jaxpr)

    @property
    def peak(self) -> int:
        return _peak.peak_bytes(self.jaxpr)

    @property
    def ops(self) -> dict[str, int]:
        return _count.operation_counts(self.jaxpr)

    @property
    def intensity(self) -> float:
        """FLOPs per byte of arguments and results: the most a fused program can reach."""
        jaxpr = self.jaxpr.jaxpr
        moved = sum(
            _count.nbytes(v.aval) for v in (*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars) if hasattr(v, "aval")
        )
        return self.cost.flops / moved if moved else 0.0

    def compile(self) -> CompileReport:
        """Compile for the traced arguments; the passes before XLA run first."""
        run, tables, passes = _passes.prepare(self.jaxpr)
        avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self.jaxpr.in_avals]
        shapes = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in tables]
        start = time.perf_counter()
        lowered = jax.jit(run).lower(shapes, avals)
        middle = time.perf_counter()
        compiled = lowered.compile()
        end = time.perf_counter()
        analysis = compiled.cost_analysis() or {}
        analysis = analysis[0] if isinstance(analysis, list) else analysis
        memory = compiled.memory_analysis()
        self._compiled, self._tables = compiled, tables
        self.report = CompileReport(
            trace=self.trace_seconds,
            lower=middle - start,
            compile=end - middle,
            xla_flops=float(analysis.get("flops", 0.0)),
            xla_bytes=float(analysis.get("bytes accessed", 0.0)),
            arguments=int(getattr(memory, "argument_size_in_bytes", 0)),
            outputs=int(getattr(memory, "output_size_in_bytes", 0)),
            temporaries=int(getattr(memory, "temp_size_in_bytes", 0)),
            passes=tuple(passes),
        )
        return self.report

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled program on arguments of the traced shapes."""
        if self._compiled is None:
            self.compile()
        assert self._compiled is not None
        leaves = jax.tree.leaves((args, kwargs))
        expected = self.jaxpr.in_avals
        arrays = [jax.numpy.asarray(x, a.dtype) for x, a in zip(leaves, expected)]
        if len(leaves) != len(expected) or any(x.shape != a.shape for x, a in zip(arrays, expected)):
            raise InputError(
                f"{self.name} was traced for other arguments",
                got=[jax.numpy.shape(x) for x in leaves],
                expected=[a.shape for a in expected],
                remedy="trace it again, or export it with symbolic sizes",
            )
        return jax.tree.unflatten(self._out_tree, self._compiled(self._tables, arrays))

    def text(self, *, costs: bool = True, limit: int = 400) -> str:
        """The program as text, one operation a line, bodies indented, each with its FLOPs."""
        from sciax.core.graph._pictures import text

        return text(self, costs=costs, limit=limit)

    def dot(self) -> str:
        """The program in Graphviz's language."""
        from sciax.core.graph._pictures import dot

        return dot(self)

    def svg(self, file: str | Path | None = None, *, limit: int = 150) -> str:
        """The program as a picture; written to `file` if one is given."""
        from sciax.core.graph._pictures import svg

        picture = svg(self, limit=limit)
        if file is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(picture)
        return picture

    def save(self, file: str | Path, *, symbolic: dict[str, str] | None = None, vjp_order: int = 0) -> Path:
        """Write the program to a file that `load` reads without the source.

        Args:
            symbolic: argument name -> shape with named sizes, as `{"x": "batch, 3"}`.
            vjp_order: how often the loaded program can be differentiated in reverse mode.
        """
        from sciax.core.graph._export import save

        return save(self, file, symbolic=symbolic or {}, vjp_order=vjp_order)

    def __str__(self) -> str:
        cost = self.cost
        about = "" if cost.exact else " (loops of unknown length counted once, bounded ones to their bound)"
        return (
            f"{self.name}: {sum(self.ops.values())} operations, {prefixed(cost.flops, 'FLOP')}, "
            f"{prefixed(cost.transcendentals)} transcendental, {prefixed(cost.bytes, 'B')} unfused, "
            f"peak {prefixed(self.peak, 'B')}{about}"
        )


def trace(function: Callable[..., Any]) -> Callable[..., Graph]:
    """`trace(f)(*args)`: the graph of `f` for these arguments (arrays or `jax.ShapeDtypeStruct`s).

    A plain function is converted as by `@graph`.
    """
    if not callable(function):
        raise InputError("trace needs a function", got=type(function).__name__)
    target = function if isinstance(function, GraphFunction) or hasattr(function, "lower") else graph(function)

    def traced(*args: Any, **kwargs: Any) -> Graph:
        start = time.perf_counter()
        closed, shapes = jax.make_jaxpr(target, return_shape=True)(*args, **kwargs)
        seconds = time.perf_counter() - start
        closed = _unwrap(closed)
        name = getattr(function, "__name__", type(function).__name__)
        return Graph(name, closed, target, args, kwargs, jax.tree.structure(shapes), seconds)

    return traced


def _unwrap(closed: Any) -> Any:
    """The program inside a lone outer `jit`."""
    while len(closed.jaxpr.eqns) == 1 and closed.jaxpr.eqns[0].primitive.name in ("jit", "pjit"):
        eqn = closed.jaxpr.eqns[0]
        inner = eqn.params["jaxpr"]
        if list(eqn.invars) != list(closed.jaxpr.invars) or list(closed.jaxpr.outvars) != list(eqn.outvars):
            break
        closed = inner
    return closed

"""Search for a plan: the cheapest placement of every array of loss and gradient, with a bound on how far from the best it is."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import PyTree

from sciax.core._mixed import LossScale, Policy
from sciax.core.errors import InputError
from sciax.core.parallel._hlo import Collective, communication
from sciax.core.parallel._machine import CPU_CORE, Machine
from sciax.core.parallel._mesh import make_mesh
from sciax.core.parallel._plan import Placement, Plan, array_paths, is_parameter, literal_pattern, named
from sciax.core.parallel.search._emit import Inside, emit, sent
from sciax.core.parallel.search._graph import Choice, Graph, _edge, _groups, build
from sciax.core.parallel.search._layout import Grid, layouts, resharding
from sciax.core.parallel.search._memory import Held, held
from sciax.core.parallel.search._program import Value, trace
from sciax.core.parallel.search._solve import Solution, solve
from sciax.core.train._step import make_gradient

UPDATE_FLOPS = 6
"""Operations of an optimiser's step for each entry of its moments: about Adam's twelve for two."""


@dataclass(frozen=True)
class Search:
    """What `Plan.auto` found; print it.

    Attributes:
        seconds: predicted for loss, gradient and the optimiser's share, on `machine`.
        gap: (seconds - lower bound) / seconds, proved by the solver. With `tied` among plans that treat equal layers alike.
        collectives: predicted, each with its bytes and how often.
        bytes_per_device: at the fullest moment.
        operations, variables: size of the program and of the linear program.
        search_seconds: to trace, build and solve.
        params, batch, state: path -> placement.
    """

    seconds: float
    compute_seconds: float
    communication_seconds: float
    gap: float
    tied: bool
    collectives: list[Collective]
    bytes_per_device: int
    memory: float
    operations: int
    variables: int
    search_seconds: float
    machine: Machine
    mesh: dict[str, int]
    params: dict[str, PartitionSpec]
    batch: dict[str, PartitionSpec]
    state: dict[str, PartitionSpec]
    inside: Inside

    def __str__(self) -> str:
        rows = [(f"model: {path}", spec, self.state.get(path)) for path, spec in self.params.items()]
        rows += [(f"batch: {path}", spec, None) for path, spec in self.batch.items()]
        width = max([len(row[0]) for row in rows] + [5])
        kinds = Counter[str]()
        for item in self.collectives:
            kinds[item.kind] += item.bytes * item.times
        lines = [
            f"mesh {' x '.join(f'{name}={size}' for name, size in self.mesh.items())}, machine: {self.machine.name}",
            *(
                f"{path:<{width}}  {_short(spec)}"
                + (f", optimiser {_short(state)}" if state not in (None, spec) else "")
                for path, spec, state in rows
            ),
            "sends: " + (", ".join(f"{kind} {size:,} B" for kind, size in sorted(kinds.items())) or "nothing"),
            f"predicted {1e3 * self.seconds:.3g} ms a step: compute {1e3 * self.compute_seconds:.3g} ms, communication "
            f"{1e3 * self.communication_seconds:.3g} ms; {self.bytes_per_device:,} B a device of {self.memory:,.0f}",
            f"within {100 * self.gap:.2g} % of the best"
            + (" plan that treats equal layers alike" if self.tied else "")
            + f" (proved); {self.operations} operations, {self.variables} variables, {self.search_seconds:.2g} s",
        ]
        return "\n".join(lines)


def _short(spec: PartitionSpec | None) -> str:
    return "whole" if spec is None or not any(spec) else f"{tuple(spec)}"


def auto(
    model: PyTree,
    loss: Callable[..., Any],
    batch: PyTree,
    optimizer: Any = None,
    mesh: Mesh | None = None,
    *,
    machine: Machine = CPU_CORE,
    memory: float | None = None,
    params: Mapping[str, Placement] | None = None,
    data: Mapping[str, Placement] | None = None,
    precision: Policy | str | None = None,
    key: Any = None,
    tie: bool | None = None,
    gap: float = 1e-4,
    limit: float = 60.0,
) -> Plan:
    """`Plan.auto`."""
    start = time.perf_counter()
    mesh = make_mesh({"devices": -1}) if mesh is None else mesh
    memory = machine.memory if memory is None else memory
    if not memory > 0:
        raise InputError("the memory of a device is a positive number of bytes", got=memory)
    grid = Grid.of(mesh)
    key = jax.random.key(0) if key is None else key
    policy = Policy.named(precision) if isinstance(precision, str) else precision
    arrays, static = eqx.partition(model, is_parameter)
    factor = LossScale.start().scale if policy is not None and policy.needs_scaling else None
    program, _ = trace(make_gradient(static, loss, policy), arrays, batch, key, factor)
    own, given = array_paths(arrays), array_paths(batch)
    ins = program.block.ins
    parameters = dict(zip(own, ins, strict=False))
    inputs = dict(zip(given, ins[len(own) :], strict=False))
    gradients = dict(zip(own, program.block.outs[len(program.block.outs) - len(own) :], strict=True))

    wanted = Plan(mesh, params or {}, data or {})
    fixed = {parameters[p]: grid.layout(s) for p, s in wanted.param_specs(arrays).items() if named(p, wanted.params)}
    fixed |= {inputs[p]: grid.layout(s) for p, s in wanted.batch_specs(batch).items() if named(p, data or {})}
    roles = dict.fromkeys(parameters.values(), "parameter") | dict.fromkeys(inputs.values(), "batch")
    graph = build(program, grid, machine, fixed, roles)
    moments = _moments(optimizer, arrays)
    states = _update(graph, parameters, gradients, moments)
    standing = {states[path]: float(size) for path, size in moments.items() if size}
    moments_held = held(graph, program.block, standing)
    rows = [(row, memory) for row in moments_held] if _whole_bytes(moments_held) > memory else []
    solution = solve(graph, rows, tie=tie, gap=gap, limit=limit)
    if solution is None:
        least = max(sum(float(np.min(sizes)) for sizes in row.values()) for row in moments_held)
        raise InputError(
            "no plan fits in the memory of a device",
            got=f"{memory:,.0f} bytes a device on {mesh.size} devices",
            expected=f"at least {least:,.0f}, with everything split as far as it goes",
            remedy="more devices, a smaller batch, or rematerialisation (jax.checkpoint)",
        )
    found = _result(graph, program, solution, moments_held, memory, mesh, parameters, inputs, states, start)
    return Plan(
        mesh,
        {literal_pattern(path): spec for path, spec in found.params.items()},
        {literal_pattern(path): spec for path, spec in found.batch.items()},
        state={literal_pattern(path): spec for path, spec in found.state.items()},
        search=found,
    )


def _moments(optimizer: Any, params: PyTree) -> dict[str, int]:
    """Bytes of the optimiser's state that belongs to each parameter."""
    own = array_paths(params)
    found = dict.fromkeys(own, 0)
    if optimizer is None:
        return found
    for path, leaf in array_paths(jax.eval_shape(optimizer.init, params)).items():
        for name, param in own.items():
            if (path == name or path.endswith("/" + name)) and tuple(leaf.shape) == tuple(param.shape):
                found[name] += int(np.prod(leaf.shape)) * np.dtype(leaf.dtype).itemsize
                break
    return found


def _update(
    graph: Graph, parameters: Mapping[str, Value], gradients: Mapping[str, Any], moments: Mapping[str, int]
) -> dict[str, Choice]:
    """The optimiser's step: gradients go to where its state is, new parameters from there to their own place."""
    grid, states = graph.grid, {}
    for path, value in parameters.items():
        gradient, own, shape = gradients[path], graph.cluster[value], value.shape
        if moments[path] and shape:
            options = own.options if len(own.options) == 1 else list(layouts(shape, grid))
            flops = UPDATE_FLOPS * moments[path] / value.itemsize
            cost = np.array([flops / grid.parts(option) / graph.machine.flops for option in options])
            state = Choice(options, cost, ("state", shape, value.itemsize), shape, value.itemsize)
            graph.choices.append(state)
            states[path] = state
        else:
            states[path] = own

        def change(s, t, shape=shape):
            return resharding(shape, s, t, grid)

        ends: list[tuple[Choice, Choice, str, Value | None]] = [(states[path], own, "new parameter", None)]
        if isinstance(gradient, Value):
            ends.append((graph.cluster[gradient], states[path], "gradient", gradient))
        for left, right, label, shared in ends:
            if shape and left is not right:
                rows, columns = _groups(left.options), _groups(right.options)
                _edge(graph, left, right, rows, columns, change, value.itemsize, 1, label, shared)
    return states


def _whole_bytes(rows: list[Held]) -> float:
    """Bytes of the fullest moment if nothing were split."""
    return max(sum(float(np.max(sizes)) for sizes in row.values()) for row in rows)


def _result(
    graph: Graph,
    program: Any,
    solution: Solution,
    rows: list[Held],
    memory: float,
    mesh: Mesh,
    parameters: Mapping[str, Value],
    inputs: Mapping[str, Value],
    states: Mapping[str, Choice],
    start: float,
) -> Search:
    grid, chosen = graph.grid, solution.chosen

    def spec(choice: Choice) -> PartitionSpec:
        return grid.spec(choice.options[chosen[choice]], len(choice.shape))

    traffic = sent(graph, chosen)
    moved = communication(traffic, graph.machine, mesh.size)
    return Search(
        seconds=solution.objective,
        compute_seconds=max(solution.objective - moved, 0.0),
        communication_seconds=moved,
        gap=solution.gap,
        tied=solution.tied,
        collectives=traffic,
        bytes_per_device=int(max(sum(float(sizes[chosen[c]]) for c, sizes in row.items()) for row in rows)),
        memory=memory,
        operations=len(program.ops),
        variables=solution.variables,
        search_seconds=time.perf_counter() - start,
        machine=graph.machine,
        mesh=dict(mesh.shape),
        params={path: spec(graph.cluster[value]) for path, value in parameters.items()},
        batch={path: spec(graph.cluster[value]) for path, value in inputs.items()},
        state={path: spec(choice) for path, choice in states.items()},
        inside=emit(graph, program, chosen),
    )

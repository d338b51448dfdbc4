"""`while` and `for` on traced values, lowered to `lax.while_loop`, `lax.scan` or equinox's checkpointed loop."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from malt.operators.variables import UndefinedReturnValue

from sciax.core.graph import _mutation
from sciax.core.graph._branch import if_stmt, truth
from sciax.core.graph._checks import check
from sciax.core.graph._errors import GraphError, LoopBoundError, StagedRaise
from sciax.core.graph._iterables import Columns, TracedRange
from sciax.core.graph._location import user_location
from sciax.core.graph._no_reverse import no_reverse
from sciax.core.graph._stage import Staged, stage
from sciax.core.graph._state import STATE, current_trace, region
from sciax.core.graph._values import (
    Poisoned,
    as_aval,
    aval,
    copy_containers,
    describe,
    flatten,
    is_dynamic,
    is_tracer,
    is_undefined,
    join,
    unflatten,
    zeros,
)

UNROLL = 8
"""A Python range with a traced `break` is unrolled up to this length and becomes a scan beyond it."""

_ROUNDS = 5


class _Carry:
    """The loop variables as a list of arrays of fixed avals, and back.

    A variable that does not exist before the loop starts as zeros: the body assigns it before it is read (else reading it
    would have failed), and after the loop it is only let through if the loop ran.
    """

    def __init__(self, names: Sequence[str], state: Sequence[Any], where: tuple[str, int] | None):
        self.names, self.where, self.state = names, where, list(state)
        self.structures: list[Any] = []
        self.leaves: list[list[Any]] = []  # aval for an array, ("static", value) otherwise
        self.absent = [is_undefined(v) or isinstance(v, UndefinedReturnValue) for v in state]
        self.dropped = [False] * len(self.state)  # absent before, and still no value after the body
        self.init: list[list[Any]] = []
        self.kept: list[set[Any]] = [set() for _ in state]
        for value in state:
            leaves, structure = flatten(value)
            self.structures.append(structure)
            self.leaves.append([aval(v) if is_dynamic(v) else ("static", v) for v in leaves])
            self.init.append(leaves)

    def arrays(self) -> list[Any]:
        """The initial values."""
        return [
            as_aval(v, target) if not isinstance(v, jax.ShapeDtypeStruct) else zeros(target)
            for vs, targets in zip(self.init, self.leaves)
            for v, target in zip(vs, targets)
            if isinstance(target, jax.ShapeDtypeStruct)
        ]

    def avals(self) -> list[jax.ShapeDtypeStruct]:
        return [t for targets in self.leaves for t in targets if isinstance(t, jax.ShapeDtypeStruct)]

    def values(self, arrays: Sequence[Any]) -> list[Any]:
        """Variables from arrays."""
        stream = iter(arrays)
        return [
            unflatten(s, [next(stream) if isinstance(t, jax.ShapeDtypeStruct) else t[1] for t in targets])
            for s, targets in zip(self.structures, self.leaves)
        ]

    def widen(self, staged: Staged) -> bool:
        """Take in what one run of the body made of the variables; True if the body must be traced again."""
        again = False
        for i, variable in enumerate(staged.variables):
            after = unflatten(variable.structure, variable.leaves)
            symbol = self.names[i]
            if self.absent[i]:
                if is_undefined(after) or isinstance(after, UndefinedReturnValue):
                    self.structures[i], self.leaves[i], self.init[i] = flatten(0)[1], [("static", after)], [after]
                    continue
                if self.leaves[i] and isinstance(self.leaves[i][0], tuple) and self.leaves[i][0][1] is self.state[i]:
                    self.structures[i] = variable.structure
                    self.leaves[i] = [
                        ("static", v) if s is None else aval(staged.avals[s])
                        for v, s in zip(variable.leaves, variable.slots)
                    ]
                    self.init[i] = list(self.leaves[i])
                    again = True
                    continue
            elif isinstance(after, Poisoned):
                after.read()
            elif is_undefined(after):
                raise self.error(symbol, f"loop variable {symbol!r} is deleted in the loop")
            if variable.structure != self.structures[i]:
                raise self.error(
                    symbol,
                    f"loop variable {symbol!r} changes its structure from one step to the next",
                    got=describe(_with_avals(variable, staged)),
                    expected=describe(
                        unflatten(self.structures[i], [t if not isinstance(t, tuple) else t[1] for t in self.leaves[i]])
                    ),
                    remedy="carry arrays of fixed size and set their items (a[i] = v)",
                )
            for k, (leaf, slot) in enumerate(zip(variable.leaves, variable.slots)):
                current = self.leaves[i][k]
                if isinstance(current, tuple):
                    if slot is not None or not (leaf is current[1] or _same(leaf, current[1])):
                        raise self.error(
                            symbol,
                            f"loop variable {symbol!r} changes from {describe(current[1])} to {describe(leaf)}",
                            remedy="a traced loop can carry numbers and arrays only",
                        )
                    continue
                if slot is None:
                    raise self.error(
                        symbol,
                        f"loop variable {symbol!r} changes from {describe(current)} to {describe(leaf)} in the loop",
                        remedy="give it one kind of value on every path",
                    )
                target = join(current, staged.avals[slot])
                if target is None:
                    raise self.error(
                        symbol,
                        f"loop variable {symbol!r} changes its shape from one step to the next",
                        got=describe(staged.avals[slot]),
                        expected=describe(current),
                        remedy="a traced loop needs a fixed shape: allocate the final size before the loop and fill it",
                    )
                if target.dtype != current.dtype or target.weak_type != current.weak_type:
                    self.leaves[i][k] = target
                    again = again or target.dtype != current.dtype
        return again

    def error(self, symbol: str, message: str, **details: Any) -> GraphError:
        return GraphError(message, variable=symbol, where=self.where, **details)

    def after(self, arrays: Sequence[Any]) -> list[Any]:
        """Variables after the loop; those the body left untouched are what they were."""
        result = []
        for i, value in enumerate(self.values(arrays)):
            result.append(_mutation.keep_identity(self.state[i], value, self.kept[i]))
        return result

    def late(self) -> list[str]:
        """User variables that exist after the loop only if it ran."""
        unused = STATE.frames[-1].unused_after if STATE.frames else set()
        return [
            n
            for n, gone, t in zip(self.names, self.absent, self.leaves)
            if gone and n not in unused and not n.startswith(_INTERNAL) and _has_value(t)
        ]


_INTERNAL = ("retval_", "do_return", "break_", "continue_", "ag__")


def _has_value(leaves: list[Any]) -> bool:
    return not any(
        isinstance(t, tuple) and (is_undefined(t[1]) or isinstance(t[1], UndefinedReturnValue)) for t in leaves
    )


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(type(a) is type(b) and a == b)
    except Exception:
        return False


def _with_avals(variable, staged: Staged) -> Any:
    return unflatten(
        variable.structure, [v if s is None else staged.avals[s] for v, s in zip(variable.leaves, variable.slots)]
    )


class _Body:
    """A loop body staged for a carry: traced once, again only where a dtype had to widen."""

    def __init__(self, body, names, get_state, set_state, outer, *, test=None, extra: Sequence[Any] = ()):
        where = user_location()
        state = get_state()
        self.get_state, self.set_state = get_state, set_state
        self.carry = carry = _Carry(names, state, where)

        def run(arrays):
            n = len(carry.avals())
            arrays, inputs = arrays[:n], arrays[n:]
            values = [copy_containers(v) for v in carry.values(arrays)]
            start = [_mutation.containers(v) for v in values]
            set_state(tuple(values))
            condition: Any = (
                (lambda: self.evaluate(lambda: truth(jnp.asarray(test(*inputs)), "loop"), arrays))  # type: ignore[misc]
                if test is not None
                else _nothing
            )
            with region(names, outer, condition):
                body(*inputs)
            final = get_state()
            carry.kept = [_mutation.kept_paths(a, _mutation.containers(b)) for a, b in zip(start, final)]
            return final

        try:
            for _ in range(_ROUNDS):
                self.staged = stage(run, [*carry.avals(), *extra])
                if not carry.widen(self.staged):
                    break
            else:
                raise GraphError(
                    f"the dtypes of the loop variables {', '.join(names)} do not settle",
                    where=where,
                    remedy="give them their final dtype before the loop",
                )
        finally:
            set_state(tuple(state))

    def step(self, arrays: Sequence[Any], *extra: Any) -> list[Any]:
        """One step on arrays."""
        outputs = self.staged.run(*arrays, *extra)
        targets, result = self.carry.avals(), []
        wanted = [
            slot
            for variable, leaves in zip(self.staged.variables, self.carry.leaves)
            for slot, t in zip(variable.slots, leaves)
            if isinstance(t, jax.ShapeDtypeStruct)
        ]
        for slot, target in zip(wanted, targets):
            assert slot is not None
            result.append(as_aval(outputs[slot], target))
        return result

    def evaluate(self, thunk: Callable[[], Any], arrays: Sequence[Any]) -> Any:
        """A test of the loop on given arrays; the Python variables are left as they were."""
        saved = self.get_state()
        self.set_state(tuple(self.carry.values(arrays)))
        try:
            return thunk()
        finally:
            self.set_state(saved)


def _finish(body: _Body, arrays: Sequence[Any], ran: Any, implied: Sequence[str]) -> None:
    """Put the loop's results into the variables."""
    late = body.carry.late()
    if late and ran is not _always:
        where = body.carry.where
        text = ", ".join(late)
        check(
            jnp.logical_not(ran()),
            lambda: UnboundLocalError(
                f"{where[0] if where else '?'}:{where[1] if where else 0}: {text}: the loop that assigns it did not run"
            ),
        )
    values = body.carry.after(arrays)
    for i, symbol in enumerate(body.carry.names):
        if symbol in implied:
            values[i] = True
    body.set_state(tuple(values))


def _steps_bound(where) -> Callable[[], BaseException]:
    bound = current_trace().options.max_steps
    place = f"{where[0]}:{where[1]}: " if where else ""
    return lambda: LoopBoundError(
        f"{place}the loop had not finished after max_steps={bound} steps",
        remedy="raise max_steps, or make the loop converge sooner",
    )


def _while(test: Callable[[Any], Any], step: Callable[[Any], Any], init: Any, where) -> Any:
    options = current_trace().options
    if options.max_steps is None:
        return no_reverse(jax.lax.while_loop(test, step, init), where)
    import equinox.internal as eqxi

    final = eqxi.while_loop(test, step, init, max_steps=options.max_steps, kind=options.reverse)  # type: ignore[arg-type]
    check(test(final), _steps_bound(where))
    return final


def _nothing() -> None:
    return None


def _always() -> bool:
    return True


def _becomes_traced(test, body, get_state, set_state, names) -> bool:
    """Whether a loop whose test is still a Python value depends on a traced one after a step (`while True: ... break`)."""
    state = get_state()
    answer = []

    def run(_):
        set_state(tuple(copy_containers(v) for v in state))
        with region(names, _mutation.visible(body, test), _nothing):
            body()
        answer.append(is_tracer(test()))
        return ()

    try:
        stage(run, ())
    except (Exception, StagedRaise):  # whatever it is will show again when the loop is run for good
        return False
    finally:
        set_state(tuple(state))
    return answer[-1]


def while_stmt(test, body, get_state, set_state, names, opts) -> None:
    """`while test(): body()`."""
    where = user_location()
    first = test()
    if not is_tracer(first):
        if not first:
            return
        flagged = any(n.startswith(("break_", "do_return")) for n in names)
        if not (flagged and _becomes_traced(test, body, get_state, set_state, names)):
            steps = 0
            while not is_tracer(first) and first:
                body()
                first = test()
                steps += 1
                warn_unrolled(steps, where)
            if not is_tracer(first):
                return
    outer = _mutation.visible(body, test)
    try:
        loop = _Body(body, names, get_state, set_state, outer, test=test)
    except StagedRaise as signal:
        error = signal.error
        check(truth(jnp.asarray(first), "while"), lambda: error)
        return
    implied: list[str] = []

    def continues(arrays):
        values = loop.carry.values(arrays)
        saved = get_state()
        set_state(tuple(values))
        try:
            result = test()
        finally:
            set_state(saved)
        negated = current_trace().negations.get(id(result))
        if negated is not None:  # the loop ends only by returning
            implied.extend(n for n, v in zip(names, values) if n.startswith("do_return") and v is negated[1])
        return truth(jnp.asarray(result), "while")

    init = loop.carry.arrays()
    ran = (lambda: truth(first, "while")) if is_tracer(first) else _always
    final = _while(continues, loop.step, init, loop.carry.where)
    _finish(loop, final, ran, implied)


def for_stmt(iterated, extra, body, get_state, set_state, names, opts) -> None:
    """`for item in iterated: body(item)`, ending early where `extra()` is false."""
    if is_undefined(iterated):
        iterated.read()
    if isinstance(iterated, TracedRange):
        return _over_range(iterated, extra, body, get_state, set_state, names)
    if isinstance(iterated, jax.Array):
        if iterated.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        iterated = Columns([iterated], lambda leaves: leaves[0])
    if isinstance(iterated, Columns):
        return _over_columns(iterated, extra, body, get_state, set_state, names)
    _over_python(iterated, extra, body, get_state, set_state, names)


def _over_columns(columns: Columns, extra, body, get_state, set_state, names) -> None:
    """A static number of traced items: a scan, so that the body is compiled once."""
    if columns.length == 0:
        return
    first = extra() if extra is not None else True
    if not is_tracer(first) and not first:
        return
    outer = _mutation.visible(body, extra)
    test = (lambda *_: extra()) if extra is not None else None
    rows = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype, weak_type=aval(x).weak_type) for x in columns.leaves]
    try:
        loop = _Body(lambda *row: body(columns.item(row)), names, get_state, set_state, outer, test=test, extra=rows)
    except StagedRaise as signal:
        error = signal.error
        check(jnp.asarray(first), lambda: error)
        return

    def step(arrays, row):
        if extra is None:
            return loop.step(arrays, *row), None
        goes_on = truth(jnp.asarray(loop.evaluate(extra, arrays)), "for")
        return jax.lax.cond(goes_on, lambda a: loop.step(a, *row), lambda a: list(a), list(arrays)), None

    final, _ = jax.lax.scan(step, loop.carry.arrays(), list(columns.leaves))
    _finish(loop, final, _always if not is_tracer(first) else lambda: truth(first, "for"), ())


def _over_range(items: TracedRange, extra, body, get_state, set_state, names) -> None:
    """A traced number of steps: a while loop with a counter."""
    first = extra() if extra is not None else True
    if not is_tracer(first) and not first:
        return
    outer = _mutation.visible(body, extra)
    length = items.length()

    def alive(i):
        inside = i < length
        return inside if extra is None else jnp.logical_and(inside, extra())

    index = jax.ShapeDtypeStruct((), length.dtype)
    try:
        loop = _Body(lambda i: body(items.item(i)), names, get_state, set_state, outer, test=alive, extra=[index])
    except StagedRaise as signal:
        error = signal.error
        check(jnp.logical_and(length > 0, first), lambda: error)
        return

    def continues(state):
        i, arrays = state
        return truth(jnp.asarray(loop.evaluate(lambda: alive(i), arrays)), "for")

    def step(state):
        i, arrays = state
        return i + 1, loop.step(arrays, i)

    init = (jnp.zeros((), length.dtype), loop.carry.arrays())
    _, final = _while(continues, step, init, loop.carry.where)
    _finish(loop, final, lambda: jnp.logical_and(length > 0, first), ())


def _over_python(items, extra, body, get_state, set_state, names) -> None:
    """An ordinary Python iterable: unrolled; a traced `break` turns the rest into conditionals, or a scan for a long range."""
    where = user_location()
    if extra is None:
        for step, item in enumerate(items):
            warn_unrolled(step, where)
            body(item)
        return
    if isinstance(items, range) and len(items) > UNROLL and _try_scan(items, extra, body, get_state, set_state, names):
        return
    steps = 0
    for item in items:
        goes_on = extra()
        if not is_tracer(goes_on):
            if not goes_on:
                return
            body(item)
        else:
            steps += 1
            if steps > _MOST_CONDITIONALS:
                raise GraphError(
                    "a loop over a Python iterable with a traced `break` is too long to unroll",
                    where=where,
                    remedy="loop over an array (`for x in jnp.asarray(items)`) or a range",
                )
            if_stmt(goes_on, lambda item=item: body(item), lambda: None, get_state, set_state, names, len(names))


_MOST_CONDITIONALS = 1000
_WARN_AT = 512


def _try_scan(items: range, extra, body, get_state, set_state, names) -> bool:
    """Scan a long range; False where the body needs the index as a Python number, and everything is as before."""
    state = get_state()
    columns = Columns([jnp.arange(items.start, items.stop, items.step)], lambda leaves: leaves[0])
    try:
        _over_columns(columns, extra, body, get_state, set_state, names)
    except (GraphError, jax.errors.JAXTypeError, jax.errors.JAXIndexError, TypeError, IndexError, ValueError):
        set_state(tuple(state))
        return False
    return True


def warn_unrolled(steps: int, where: tuple[str, int] | None) -> None:
    """Say once that a long Python loop is being written out, which makes the first call slow."""
    if steps == _WARN_AT:
        import warnings

        place = f"{where[0]}:{where[1]}: " if where else ""
        warnings.warn(
            f"{place}a Python loop of more than {_WARN_AT} steps is unrolled into the graph, which makes the first call slow; "
            "loop over an array (`for i in jnp.arange(n)`) to have its body compiled once",
            stacklevel=3,
        )

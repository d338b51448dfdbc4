"""`if`, the conditional expression and the boolean operators on traced values."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from malt.operators.variables import UndefinedReturnValue

from sciax.core.graph import _mutation
from sciax.core.graph._checks import check
from sciax.core.graph._errors import GraphError, StagedRaise
from sciax.core.graph._location import user_location
from sciax.core.graph._stage import Staged, Variable, stage
from sciax.core.graph._state import current_trace, region
from sciax.core.graph._values import (
    Poisoned,
    as_aval,
    copy_containers,
    describe,
    is_tracer,
    is_undefined,
    join,
    unflatten,
    zeros,
)

_RETURN, _RETURNED = "retval_", "do_return"


def truth(value: Any, what: str) -> Any:
    """A traced condition as a boolean scalar.

    Raises:
        GraphError: more than one element.
    """
    if value.size != 1:
        raise GraphError(
            f"`{what}` needs one truth value",
            got=f"an array of shape {tuple(value.shape)}",
            expected="a scalar",
            remedy="use jnp.where to choose element by element, or .any() / .all()",
        )
    if value.shape:
        value = jnp.reshape(value, ())
    return value if value.dtype == bool else value != 0


def not_(value: Any) -> Any:
    if not is_tracer(value):
        return not value
    result = jnp.logical_not(truth(value, "not"))
    # Remembered, so that `if not do_return:` is known to leave do_return true on its other side.
    current_trace().negations[id(result)] = (result, value)
    return result


def _logical(first: Any, second: Callable[[], Any], combine: Callable[..., Any], word: str) -> Any:
    left = truth(first, word)
    # The right side is only evaluated in Python, not at run time: it may divide by zero, but cannot have side effects.
    right = second()
    if is_tracer(right):
        right = truth(right, word)
        return combine(left, right)
    if not isinstance(right, (bool, int, float)) and not hasattr(right, "dtype"):
        raise GraphError(
            f"`{word}` with a traced value on its left gives a truth value, and {describe(right)} is none",
            got=describe(right),
            remedy=f"write an if/else instead of `x {word} default`",
        )
    return combine(left, bool(right))


def _value_operand(a: Any, word: str) -> None:
    if jnp.asarray(a).dtype != bool:
        raise GraphError(
            f"`{word}` returns one of its operands in Python; on a traced {describe(a)} that cannot be decided while tracing",
            remedy=f"compare explicitly (`x != 0 {word} ...`), or use jnp.where / an if statement",
        )


def and_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    first = a()
    if not is_tracer(first):
        return first and b()
    _value_operand(first, "and")
    right = b()
    if right is True:
        return first
    return _logical(first, lambda: right, jnp.logical_and, "and")


def or_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    first = a()
    if not is_tracer(first):
        return first or b()
    _value_operand(first, "or")
    right = b()
    if right is False:
        return first
    return _logical(first, lambda: right, jnp.logical_or, "or")


class _Branch:
    """One side of a traced `if`: its staged form, or the exception that it ends in."""

    def __init__(self, body, names, state, get_state, set_state, condition, outer):
        self.raised: BaseException | None = None
        self.staged: Staged | None = None
        self.kept: list[set[Any]] = []

        def run(_):
            copies = [copy_containers(v) for v in state]
            start = [_mutation.containers(v) for v in copies]
            set_state(tuple(copies))
            body()
            final = get_state()
            self.kept = [_mutation.kept_paths(a, _mutation.containers(b)) for a, b in zip(start, final)]
            return final

        try:
            with region(names, outer, condition):
                self.staged = stage(run, ())
        except StagedRaise as signal:
            self.raised = signal.error
        except Exception as error:
            if not getattr(error, "_sciax_user_raise", False):
                raise
            self.raised = error
        finally:
            set_state(tuple(state))


def if_stmt(condition, body, orelse, get_state, set_state, names, nouts) -> None:
    """`if condition: body() else: orelse()`, the variables `names` read and written through get_state and set_state."""
    if is_undefined(condition):
        condition = condition.read()
    if not is_tracer(condition):
        return body() if condition else orelse()
    predicate = truth(condition, "if")
    where = user_location()
    state = get_state()
    outer = _mutation.visible(body, orelse)
    then = _Branch(body, names, state, get_state, set_state, lambda: predicate, outer)
    other = _Branch(orelse, names, state, get_state, set_state, lambda: jnp.logical_not(predicate), outer)

    if then.raised is not None:
        error = then.raised
        check(predicate, lambda: error)
    if other.raised is not None:
        error2 = other.raised
        check(jnp.logical_not(predicate), lambda: error2)
    if then.staged is None and other.staged is None:
        raise StagedRaise(then.raised)  # type: ignore[arg-type]
    if then.staged is None or other.staged is None:
        alone = then.staged or other.staged
        assert alone is not None
        then_vars = other_vars = alone.variables
    else:
        then_vars, other_vars = then.staged.variables, other.staged.variables

    plans: list[_Plan] = []
    for i, symbol in enumerate(names):
        known = _known_return(symbol, condition, state[i], then_vars[i], other_vars[i])
        if known is not None:
            plans.append(_Plan(constant=known))
        else:
            plans.append(_merge(symbol, then_vars[i], other_vars[i], then, other, live=i < nouts, where=where))

    outputs = _run(predicate, then.staged, other.staged, plans)
    new = []
    for i, plan in enumerate(plans):
        kept = set.intersection(*[branch.kept[i] for branch in (then, other) if branch.staged is not None])
        new.append(_mutation.keep_identity(state[i], plan.value(outputs), kept))
    set_state(tuple(new))


def _known_return(symbol: str, condition: Any, before: Any, then: Variable, other: Variable) -> Any:
    """True where both sides are certain to have returned: one sets the flag, on the other it was set before."""
    if not symbol.startswith(_RETURNED) or len(then.leaves) != 1 or len(other.leaves) != 1:
        return None
    negated = current_trace().negations.get(id(condition))
    if negated is None or negated[1] is not before:
        return None
    if then.leaves[0] is True and other.leaves[0] is before:
        return _TRUE
    return None


_TRUE = (True,)


class _Plan:
    """How one variable is made after the `if`."""

    def __init__(self, constant: tuple[Any, ...] | None = None, structure: Any = None, leaves: list[Any] | None = None):
        self.constant, self.structure, self.leaves = constant, structure, leaves or []

    # leaves: ("static", value) or ("array", then slot, other slot, aval, output number)
    def value(self, outputs: Sequence[Any]) -> Any:
        if self.constant is not None:
            return self.constant[0]
        leaves = [leaf[1] if leaf[0] == "static" else outputs[leaf[4]] for leaf in self.leaves]
        return unflatten(self.structure, leaves)


def _whole(variable: Variable) -> Any:
    return unflatten(variable.structure, variable.leaves)


def _merge(symbol: str, a: Variable, b: Variable, then: _Branch, other: _Branch, *, live: bool, where) -> _Plan:
    va, vb = _whole(a), _whole(b)
    lone_a = isinstance(va, UndefinedReturnValue) or then.staged is None
    lone_b = isinstance(vb, UndefinedReturnValue) or other.staged is None
    returned = symbol.startswith(_RETURN)

    def differ(message: str) -> _Plan:
        if returned:
            raise GraphError(
                f"the two sides of this `if` return different things: {message}",
                variable="return value",
                where=where,
                got=f"{describe(_shapes(a, then))} and {describe(_shapes(b, other))}",
                expected="one structure, shape and kind on every path",
                remedy="return values of one form, or select with jnp.where",
            )
        if not live:
            return _Plan(constant=(Poisoned(symbol, message, where),))
        place = f" in the `if` at {where[0]}:{where[1]}" if where else ""
        return _Plan(
            constant=(
                Poisoned(
                    symbol, f"{message} ({describe(_shapes(a, then))} and {describe(_shapes(b, other))}){place}", where
                ),
            )
        )

    if va is vb and (is_undefined(va) or isinstance(va, UndefinedReturnValue)):
        return _Plan(constant=(va,))
    if lone_a and lone_b:
        return _Plan(constant=(va,))
    if lone_a or lone_b:
        source, branch = (b, other) if lone_a else (a, then)
        if is_undefined(_whole(source)):
            return _Plan(constant=(_whole(source),))
        leaves: list[Any] = []
        for leaf, slot in zip(source.leaves, source.slots):
            if slot is None:
                leaves.append(("static", leaf))
            else:
                assert branch.staged is not None
                pair = (None, slot) if lone_a else (slot, None)
                leaves.append(["array", *pair, branch.staged.avals[slot], None])
        return _Plan(structure=source.structure, leaves=leaves)
    if is_undefined(va) or is_undefined(vb):
        if is_undefined(va) and is_undefined(vb):
            return _Plan(constant=(va if isinstance(va, Poisoned) else vb,))
        side = "else" if is_undefined(va) else "if"
        if isinstance(va, Poisoned) or isinstance(vb, Poisoned):
            return _Plan(constant=(va if isinstance(va, Poisoned) else vb,))
        return differ(f"is assigned only on the {side} side of a traced condition")
    if a.structure != b.structure:
        return differ("has a different structure on the two sides of a traced condition")
    leaves = []
    for la, lb, sa, sb in zip(a.leaves, b.leaves, a.slots, b.slots):
        if sa is None or sb is None:
            if sa is None and sb is None and _equal(la, lb):
                leaves.append(("static", la))
                continue
            return differ("is something that cannot be chosen at run time")
        if la is lb or (
            type(la) is type(lb) and isinstance(la, (bool, int, float, complex)) and la == lb and str(la) == str(lb)
        ):
            leaves.append(("static", la))
            continue
        assert then.staged is not None and other.staged is not None
        target = join(then.staged.avals[sa], other.staged.avals[sb])
        if target is None:
            return differ("has a different shape on the two sides of a traced condition")
        leaves.append(["array", sa, sb, target, None])
    return _Plan(structure=a.structure, leaves=leaves)


def _shapes(variable: Variable, branch: _Branch) -> Any:
    """The variable with avals for leaves, for messages (its own leaves are dead tracers)."""
    if branch.staged is None:
        return _whole(variable)
    leaves = [v if s is None else branch.staged.avals[s] for v, s in zip(variable.leaves, variable.slots)]
    return unflatten(variable.structure, leaves)


def _equal(a: Any, b: Any) -> bool:
    try:
        return a is b or bool(type(a) is type(b) and a == b)
    except Exception:
        return False


def _run(predicate: Any, then: Staged | None, other: Staged | None, plans: list[_Plan]) -> list[Any]:
    """Emit the `cond`; only what differs between the sides is an output."""
    wanted: list[Any] = []
    for plan in plans:
        for leaf in plan.leaves:
            if leaf[0] == "array":
                leaf[4] = len(wanted)
                wanted.append(leaf)
    effects = bool((then and then.effects) or (other and other.effects))
    if not wanted and not effects:
        return []

    def side(staged: Staged | None, position: int):
        def branch():
            outputs = staged.run() if staged is not None else []
            return [
                as_aval(outputs[leaf[position]], leaf[3]) if leaf[position] is not None else zeros(leaf[3])
                for leaf in wanted
            ]

        return branch

    return list(jax.lax.cond(predicate, side(then, 1), side(other, 2)))


def if_exp(condition, then, other, text) -> Any:
    """`then() if condition else other()`."""
    if is_undefined(condition):
        condition = condition.read()
    if not is_tracer(condition):
        return then() if condition else other()
    box: list[Any] = [None]

    def put(thunk):
        def run():
            box[0] = thunk()

        return run

    if_stmt(
        condition,
        put(then),
        put(other),
        lambda: (box[0],),
        lambda state: box.__setitem__(0, state[0]),
        (f"{text} ? :",),
        1,
    )
    if is_undefined(box[0]):
        box[0].read()
    return box[0]

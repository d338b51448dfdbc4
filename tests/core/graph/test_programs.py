"""Every program of the table: value and gradient compiled equal those line by line; refusals name line, variable and a way out."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import programs_branches  # noqa: F401
import programs_loops  # noqa: F401
import programs_refused
from table import PROGRAMS, REFUSED

from sciax.core.graph import GraphError, eager, graph

sys.path.pop(0)


def as_arrays(args, static_positions=()):
    return tuple(
        a if isinstance(a, (str, bool)) or i in static_positions else jnp.asarray(a) for i, a in enumerate(args)
    )


def assert_same(got, expected):
    got_leaves, got_tree = jax.tree.flatten(got)
    want_leaves, want_tree = jax.tree.flatten(expected)
    assert got_tree == want_tree
    for g, w in zip(got_leaves, want_leaves):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-6, atol=2e-6)


def total(value):
    return sum(jnp.sum(jnp.asarray(v, jnp.float32) * (i + 1)) for i, v in enumerate(jax.tree.leaves(value)))


def with_total(function):
    def call(*args):
        result = function(*args)
        return total(result), result

    return call


def float_positions(args):
    return tuple(i for i, a in enumerate(args) if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jnp.floating))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_value_and_gradient(program):
    compiled = graph(program.function, max_steps=program.max_steps, static=program.static)
    reference = program.instead or compiled
    names = list(compiled._signature.parameters)
    for number, call in enumerate(program.calls):
        args = as_arrays(call, [names.index(s) for s in program.static])
        if program.grad and number == len(program.calls) - 1:
            where = float_positions(args)
            assert where, "a program without float arguments is registered with grad=False"
            (_, got), got_gradient = jax.value_and_grad(with_total(compiled), where, has_aux=True)(*args)
            with eager():
                (_, expected), gradient = jax.value_and_grad(with_total(reference), where, has_aux=True)(*args)
            assert_same(got_gradient, gradient)
        else:
            got = compiled(*args)
            with eager():
                expected = reference(*args)
        assert_same(got, expected)


def test_there_are_at_least_120_programs():
    assert len(PROGRAMS) >= 120
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c.function.__name__)
def test_refused_by_name(case):
    with pytest.raises(GraphError) as caught:
        function = graph(case.function)
        if case.function.__name__ == "unbounded_reverse":
            jax.grad(function)(*case.args)
        else:
            function(*as_arrays(case.args) if not isinstance(case.args[0], dict) else case.args)
    error = caught.value
    assert Path(error.file).name == "programs_refused.py"
    for word in case.words:
        assert word in str(error)
    assert error.remedy
    assert error.line == case.line, str(error)


def test_refused_programs_left_no_trace():
    assert programs_refused.LOG == [] and programs_refused.CACHE == {} and programs_refused.TOTAL == 0.0
    assert programs_refused.HOLDER.count == 0 and programs_refused.HOLDER.items == []

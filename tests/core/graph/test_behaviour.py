"""Graph mode beyond the table: run-time errors, printing, eager stepping, recompiles, reverse mode, isolation."""

import contextlib
import functools
import linecache
import subprocess
import sys
import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError
from sciax.core.graph import (
    GraphError,
    LoopBoundError,
    MissingReturnError,
    UnboundedLoopError,
    eager,
    graph,
    loop_bound,
)


@graph
def checked(x):
    if x < 0:
        raise ValueError("negative input")
    return jnp.sqrt(x)


@graph
def halving(x):
    n = 0
    while x > 1:
        x = x / 2
        n += 1
    return x * n


def test_raise_on_a_traced_condition_has_the_users_type_and_message():
    assert checked(4.0) == 2.0
    for context in (eager(), contextlib.nullcontext()):
        with context, pytest.raises(ValueError, match=r"^negative input$"):
            checked(-1.0)
    assert checked(9.0) == 3.0


def test_assert_in_a_loop_stops_an_endless_one():
    @graph
    def runaway(x):
        while x > 0:
            assert x < 1e6, "diverges"
            x = x * 2
        return x

    with pytest.raises(AssertionError, match="diverges"):
        runaway(1.0)


def test_check_under_vmap_looks_at_each_lane_only_where_it_is_reached():
    @graph
    def lanes(x):
        if x > 0:
            if abs(x) > 10:
                raise OverflowError("too large")
            x = x * 2
        return x

    assert list(jax.vmap(lanes)(jnp.array([-50.0, 1.0, 3.0]))) == [-50.0, 2.0, 6.0]
    with pytest.raises(OverflowError):
        jax.vmap(lanes)(jnp.array([1.0, 11.0]))


def test_missing_return_is_an_error_not_a_zero():
    @graph
    def sometimes(x):
        if x > 0:
            return x
        x = x + 1
        while x < 0:
            x = x + 1
            if x > 5:
                return x

    assert sometimes(2.0) == 2.0
    with pytest.raises((MissingReturnError, GraphError)):
        sometimes(-3.0)


def test_variable_of_a_loop_that_did_not_run():
    @graph
    def late(n):
        for i in range(n):
            y = i * 2
        return y

    assert late(3) == 4
    with pytest.raises(UnboundLocalError, match="y"):
        late(0)


def test_print_runs_at_run_time(capfd):
    @graph
    def talk(n):
        for i in range(n):
            print(f"step {i} of {n:03d}", i * 2)
        return n

    talk(2)
    talk(3)
    assert capfd.readouterr().out.splitlines() == [
        "step 0 of 002 0", "step 1 of 002 2", "step 0 of 003 0", "step 1 of 003 2", "step 2 of 003 4",
    ]  # fmt: skip


def test_implicit_gradient_of_a_newton_iteration():
    def newton(a):
        x = a
        err = 1.0
        while err > 1e-6:
            xn = 0.5 * (x + a / x)
            err = abs(xn - x)
            x = xn
        return x

    exact = 1 / (2 * np.sqrt(2.0))  # implicit differentiation of x^2 = a
    assert jax.grad(graph(newton, max_steps=30))(2.0) == pytest.approx(exact, rel=1e-6)
    assert jax.jvp(graph(newton), (2.0,), (1.0,))[1] == pytest.approx(exact, rel=1e-6)
    bounded = graph(newton, max_steps=30, reverse="bounded")
    assert jax.hessian(bounded)(2.0) == pytest.approx(-0.25 * 2.0**-1.5, rel=1e-4)
    for call in (jax.grad(graph(newton)), jax.jit(jax.grad(graph(newton)))):
        with pytest.raises(UnboundedLoopError, match=r"test_behaviour.py:\d+.*\n.*max_steps"):
            call(2.0)


def test_loop_bound_is_enforced():
    @graph
    def bounded(x):
        with loop_bound(3):
            while x > 1:
                x = x / 2
        return x

    assert bounded(6.0) == 0.75
    assert jax.grad(bounded)(6.0) == pytest.approx(1 / 8)
    with pytest.raises(LoopBoundError, match="max_steps=3"):
        bounded(100.0)
    with pytest.raises(InputError), loop_bound(0):
        pass


def test_eager_runs_line_by_line():
    seen = []

    def tracer(frame, event, arg):
        if event == "line" and frame.f_code.co_name == "halving":
            seen.append(frame.f_lineno)
        return tracer

    sys.settrace(tracer)
    try:
        with eager():
            result = halving(jnp.float32(5.0))
    finally:
        sys.settrace(None)
    assert float(result) == float(halving(5.0)) == 0.625 * 3
    first = halving.function.__code__.co_firstlineno
    assert seen[:3] == [first + 2, first + 3, first + 4]  # what pdb would stop at


def fill(a, k):
    a[k] = k * 2.0
    return a


def test_eager_helpers_may_assign_items():
    @graph
    def filled(x):
        a = jnp.zeros(3) + x
        for k in range(3):
            a = fill(a, k)
        return a

    with eager():
        assert list(filled(1.0)) == [0.0, 2.0, 4.0]
    assert list(filled(1.0)) == [0.0, 2.0, 4.0]


def test_eager_matches_in_float64(x64):
    with eager():
        expected = halving(jnp.float64(5.3))
    assert float(halving(jnp.float64(5.3))) == pytest.approx(float(expected), rel=1e-13)


def test_every_recompile_is_explained():
    @graph
    def f(x, n=2):
        return x * n

    f(jnp.ones(3))
    f(jnp.ones(3))
    assert len(f.compilations) == 1
    f(jnp.ones(4))
    assert f.compilations[-1].reasons == ("argument x changed from float32[3] to float32[4]",)
    f(jnp.ones(4, jnp.int32))
    assert f.compilations[-1].reasons == ("argument x changed from float32[4] to int32[4]",)
    assert "f #2: argument x changed" in f.explain()


SCALE = 2.0


def test_a_changed_global_or_attribute_compiles_again():
    @graph
    def scaled(x):
        return x * SCALE

    class Model:
        def __init__(self):
            self.w = 3.0

        @graph
        def run(self, x):
            return x * self.w

    global SCALE
    assert scaled(1.0) == 2.0
    try:
        SCALE = 5.0
        assert scaled(1.0) == 5.0
    finally:
        SCALE = 2.0
    assert "global 'SCALE' changed from 2.0 to 5.0" in scaled.explain()
    model = Model()
    assert model.run(2.0) == 6.0
    model.w = 4.0
    assert model.run(2.0) == 8.0


def test_no_source_falls_back_to_tracing():
    assert graph(lambda x: x * 2)(3.0) == 6.0
    with pytest.raises(GraphError, match="not converted"):
        graph(lambda x: x if x > 0 else -x)(3.0)
    scope: dict = {}
    exec("def double(x):\n    return x * 2\ndef branch(x):\n    return x if x > 0 else -x", scope)
    assert graph(scope["double"])(3.0) == 6.0
    with pytest.raises(GraphError, match="not converted"):
        graph(scope["branch"])(3.0)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args) + 1.0

    return wrapper


@graph
@decorated
def under_a_decorator(this):
    if this > 0:
        return this
    return -this


def test_decorators_and_argument_names_do_not_matter():
    assert under_a_decorator(3.0) == 4.0 and under_a_decorator(-3.0) == 4.0


class Affine(eqx.Module):
    w: jax.Array

    @graph
    def __call__(s, x):
        if x > 0:
            return x * s.w
        return x


def test_equinox_module_is_differentiated():
    model = Affine(jnp.array(3.0))
    assert model(2.0) == 6.0
    gradient = jax.grad(lambda m: m(2.0))(model)
    assert gradient.w == 2.0


def test_nested_graph_functions_and_jit():
    @graph
    def outer(x):
        return halving(x) + halving(x + 1)

    assert outer(5.0) == halving(5.0) + halving(6.0)
    assert jax.jit(outer)(5.0) == outer(5.0)

    @graph
    def inline(x):
        @graph
        def inner(y):
            return y if y > 0 else -y

        return inner(x)

    assert inline(-2.0) == 2.0


def test_inner_definition_under_jit_of_grad():
    @jax.jit
    def value_and_grad(x):
        return jax.value_and_grad(graph(lambda v: v * v))(x)

    assert value_and_grad(3.0) == (9.0, 6.0)


def test_malt_is_left_alone():
    from malt.core import config
    from malt.impl import api
    from malt.operators import py_builtins

    before = api._TRANSPILER, config.CONVERSION_RULES, dict(py_builtins.BUILTIN_FUNCTIONS_MAP)

    @graph
    def fresh(x):
        for i in range(3):
            if x > i:
                x = x + 1
        return x

    fresh(1.0)
    assert (api._TRANSPILER, config.CONVERSION_RULES, dict(py_builtins.BUILTIN_FUNCTIONS_MAP)) == before


def test_structured_loop_has_few_operations():
    """One equation for the loop: bodies are staged, not unrolled or traced twice."""
    jaxpr = jax.make_jaxpr(halving)(5.0)
    (outer,) = jaxpr.jaxpr.eqns
    names = [e.primitive.name for e in outer.params["jaxpr"].jaxpr.eqns]
    assert names.count("while") == 1 and len(names) <= 5


def test_nested_branches_are_traced_once_each():
    depth = 6
    body = "    x = leaf(x)\n"
    for k in reversed(range(depth)):
        body = f"    if x > {k}:\n" + textwrap.indent(body, "    ") + f"    else:\n        x = x + {k}\n"

    def leaf(x):
        return x * 2

    source = "def deep(x):\n" + body + "    return x\n"
    name = "<deep-program>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = {"leaf": leaf}
    exec(compile(source, name, "exec"), scope)
    compiled = graph(scope["deep"])
    assert compiled(10.0) == 20.0
    text = str(jax.make_jaxpr(compiled)(10.0))
    assert text.count("cond[") == depth


@pytest.mark.slow
def test_second_process_starts_fast(tmp_path):
    script = textwrap.dedent(
        """
        import sys, time
        import jax, jax.numpy as jnp
        from sciax.core.graph import persistent_cache, graph
        persistent_cache(sys.argv[1])
        def net(p, x):
            for w in p: x = jnp.tanh(x @ w)
            return x
        loss = graph(lambda p, x: jnp.mean(net(p, x)**2))
        p = [jnp.full((64, 64), 0.1)] * 6
        step = jax.jit(jax.value_and_grad(lambda p, x: jnp.mean(net(p, x)**2)))
        start = time.perf_counter()
        jax.block_until_ready(step(p, jnp.ones((32, 64))))
        print(time.perf_counter() - start)
        """
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(2)
    ]
    assert times[1] <= 0.5 * times[0]


@pytest.mark.parametrize(
    "options", [{"max_steps": 0}, {"max_steps": 2.5}, {"reverse": "unrolled"}, {"static": "nothing"}, {"static": 7}]
)
def test_bad_options(options):
    with pytest.raises(InputError):
        graph(**options)(lambda x: x)


def test_not_a_function():
    with pytest.raises(InputError):
        graph(3)

"""Hooks, dumps, the locator of NaNs and the profiler."""

import csv

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import FileFormatError, InputError, MissingFileError
from sciax.core.graph import graph
from sciax.core.inspect import dump, locate_nonfinite, profile, read_ops, with_hooks

X = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)


def net(x):
    with jax.named_scope("head"):
        h = jnp.tanh(x @ jnp.ones((4, 4)))
    total, _ = jax.lax.scan(lambda c, row: (c + jnp.sin(row).sum(), None), 0.0, h)
    total = jax.lax.cond(total > 0, lambda t: t * 2, lambda t: -t, total)
    return jax.lax.while_loop(lambda t: t > 1, lambda t: t / 2, total) + jnp.sum(jax.nn.relu(h))


def forward_only(x):
    h = jnp.tanh(x @ jnp.ones((4, 4)))
    total, _ = jax.lax.scan(lambda c, row: (c + jnp.sin(row).sum(), None), 0.0, h)
    return total + jnp.sum(jax.nn.relu(h)) * 0.5


def test_hooks_see_every_operation_eager_jitted_and_differentiated():
    seen = []

    def hook(op, inputs, run):
        seen.append(op)
        return run(*inputs)

    hooked = with_hooks(net, hook)
    np.testing.assert_allclose(hooked(X), net(X), rtol=1e-6)
    names = [op.name for op in seen]
    assert {"dot_general", "tanh", "sin", "mul", "div"} <= set(names)
    head = next(op for op in seen if op.name == "tanh")
    assert head.scope.endswith("head") and head.source[0].endswith("test_inspection.py")
    assert next(op for op in seen if op.name == "sin").scope == "scan"
    np.testing.assert_allclose(jax.jit(hooked)(X), net(X), rtol=1e-6)
    plain = with_hooks(forward_only, hook)
    np.testing.assert_allclose(jax.grad(plain)(X), jax.grad(forward_only)(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(plain))(X), jax.grad(forward_only)(X), rtol=1e-6)


def test_a_hook_can_replace_a_result_but_not_its_shape():
    double = with_hooks(
        lambda x: jnp.tanh(x) + 1, lambda op, i, run: [2 * run(*i)[0]] if op.name == "tanh" else run(*i)
    )
    np.testing.assert_allclose(double(X), 2 * jnp.tanh(X) + 1)
    with pytest.raises(InputError, match="changed the outputs of tanh"):
        with_hooks(jnp.tanh, lambda op, i, run: [jnp.zeros(2)])(X)


def test_custom_derivative_stays_in_force():
    @jax.custom_jvp
    def f(x):
        return x * x

    f.defjvps(lambda t, ans, x: 7.0 * t)
    assert jax.grad(with_hooks(f, lambda op, i, run: run(*i)))(3.0) == 7.0


def test_dump_selects_by_name_and_step_and_caps_bytes(tmp_path):
    d = dump(net, "sin", steps=[1, 2], max_bytes=200)
    for _ in range(4):
        np.testing.assert_allclose(d(X), net(X), rtol=1e-6)
    # 3 rows of 4 float32 a step = 48 bytes; four rows fit twelve times 16 bytes
    assert {r.step for r in d.records} == {1, 2} and len(d.records) == 6 and d.kept_bytes == 96 and d.dropped == 0
    h = np.tanh(np.asarray(X) @ np.ones((4, 4)))
    np.testing.assert_allclose(
        np.sort(np.stack([r.value for r in d.records[:3]]), axis=None), np.sort(np.sin(h), axis=None), atol=1e-6
    )
    with np.load(d.save(tmp_path / "dump")) as saved:
        assert len(saved.files) == 6
    capped = dump(net, "*", max_bytes=100)
    capped(X)
    assert capped.kept_bytes <= 100 and capped.dropped > 0 and "were not kept" in capped.table()
    with pytest.raises(InputError, match="no operation matches"):
        dump(net, "dot_generl")(X)


def test_nan_is_located_with_operation_line_and_step():
    def decay(x):
        def step(c, k):
            return jnp.sqrt(c - 1.0), c  # the square root goes bad in the third step

        return jax.lax.scan(step, x, jnp.arange(5))[1]

    report = locate_nonfinite(decay, 6.0)
    assert report is not None and report.kind == "nan" and report.op.name == "sqrt"
    line = decay.__code__.co_firstlineno + 2
    assert report.op.source == (__file__, line)
    values, c = [], 6.0
    while c - 1 >= 0:
        c = np.sqrt(c - 1)
        values.append(c)
    assert report.iteration == (len(values),)
    assert str(line) in str(report)


def test_overflow_and_masks():
    assert locate_nonfinite(lambda x: jnp.exp(x).sum(), jnp.array([1.0, 100.0])).kind == "overflow"
    masked = lambda x: jax.nn.softmax(jnp.where(x > 0, x, -jnp.inf))  # noqa: E731
    assert locate_nonfinite(masked, jnp.array([1.0, -1.0])) is None
    assert locate_nonfinite(net, X) is None


def test_nan_of_a_gradient_and_inside_a_graph_function():
    @graph
    def norm(x):
        if x[0] >= 0:
            return jnp.sqrt(jnp.sum(x * x))
        return jnp.sum(x)

    assert locate_nonfinite(norm, jnp.zeros(3)) is None
    report = locate_nonfinite(jax.grad(norm), jnp.zeros(3))
    assert report is not None and report.op.source is not None
    assert report.op.source[1] == norm.function.__code__.co_firstlineno + 3


def test_profile_gives_a_table_and_files(tmp_path, capsys):
    step = jax.jit(lambda x: jnp.tanh(x @ x).sum())
    x = jnp.ones((128, 128))
    jax.block_until_ready(step(x))
    with profile(tmp_path / "run", show=True) as result:
        for _ in range(5):
            jax.block_until_ready(step(x))
    assert result.ops and result.wall > 0
    assert max(op.count for op in result.ops) == 5
    assert any("lambda" in op.module for op in result.ops)
    assert "program / operation" in capsys.readouterr().out
    with (tmp_path / "run" / "ops.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(result.ops) and float(rows[0]["total_s"]) == pytest.approx(result.ops[0].total, abs=1e-8)
    assert list((tmp_path / "run").rglob("*.trace.json.gz"))


def test_profile_refuses_to_nest_and_bad_files(tmp_path):
    with profile(tmp_path / "a"), pytest.raises(InputError, match="already"), profile(tmp_path / "b"):
        pass
    (tmp_path / "file").write_text("no profile")
    with pytest.raises(InputError, match="directory"), profile(tmp_path / "file"):
        pass
    with pytest.raises(FileFormatError):
        read_ops(tmp_path / "file")
    with pytest.raises(MissingFileError):
        read_ops(tmp_path / "nothing")


@pytest.mark.parametrize(
    "call", [lambda: with_hooks(1, 2), lambda: dump(1), lambda: locate_nonfinite(1), lambda: dump(net, ())]
)
def test_bad_input(call):
    with pytest.raises(InputError):
        call()

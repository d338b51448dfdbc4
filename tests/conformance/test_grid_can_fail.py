"""Operators with one deliberate fault each: the grid must fail in just the cells where that fault shows."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core import x64
from sciax.core.errors import InputError, UnsupportedError
from sciax.core.ops import CELLS, Operator, Sample, _registry, operator
from sciax.core.ops.conformance import ConformanceError, check, check_registration, tolerance
from sciax.core.ops.conformance._compare import same


def _samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.uniform(0.5, 1.5, 6)
    return [
        Sample("ordinary", (x,)),
        Sample("size one", (x[:1],)),
        Sample("badly scaled", (x * 10.0 ** np.arange(-3, 3),)),
    ]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Operator]:
    """Registers a function in a registry that is thrown away after the test."""
    monkeypatch.setattr(_registry, "_REGISTRY", {})

    def make(function: Callable[..., Any], **options: Any) -> Operator:
        options = {"oracle": lambda x: x**2, "samples": _samples, "flops": lambda x: x.size, **options}
        operator("test.subject", **options)(function)
        return _registry._REGISTRY["test.subject"]

    return make


def _failing(subject: Operator) -> set[str]:
    failed = set()
    for cell in CELLS:
        try:
            check(subject, cell)
        except ConformanceError as error:
            assert "test.subject" in str(error)
            failed.add(cell)
    return failed


VALUE = {"eager", "jit", "float32", "float64", "complex"}


def test_a_right_operator_passes(register: Callable[..., Operator]) -> None:
    def square(x: Any) -> Any:
        """out = x^2, elementwise, any shape, any floating dtype."""
        return x * x

    subject = register(square)
    assert _failing(subject) == set()
    check_registration(subject)


def test_wrong_value(register: Callable[..., Operator]) -> None:
    assert _failing(register(lambda x: x * x * (1 + 3e-5))) == VALUE


def test_value_wrong_in_one_dtype_only(register: Callable[..., Operator]) -> None:
    assert _failing(register(lambda x: x * x * (1 + 3e-5 * (x.dtype == np.float64)))) == {"float64"}


def test_wrong_derivative(register: Callable[..., Operator]) -> None:
    @jax.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    square.defjvp(lambda p, t: (p[0] * p[0], 2.0001 * p[0] * t[0]))
    assert _failing(register(square)) == {"jvp", "vjp", "complex"}


def test_wrong_transpose(register: Callable[..., Operator]) -> None:
    @jax.custom_vjp
    def mix(x: Any) -> Any:
        return jnp.cumsum(x)

    mix.defvjp(lambda x: (jnp.cumsum(x), None), lambda _, w: (jnp.cumsum(w),))  # the transpose sums from the other end
    refusal = {"jvp": "only reverse mode", "complex": "only real numbers", "second_order": "only first order"}
    subject = register(mix, oracle=np.cumsum, unsupported=refusal)
    with pytest.raises(ConformanceError, match="vjp against central differences"):
        check(subject, "vjp")
    with pytest.raises(ConformanceError, match="TypeError instead of a SciaxError"):
        check(subject, "jvp")
    with pytest.raises(ConformanceError, match=r"registered as unsupported .* but runs"):
        check(subject, "complex")


def test_wrong_second_order(register: Callable[..., Operator]) -> None:
    @jax.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    square.defjvp(lambda p, t: (p[0] * p[0], 2 * jax.lax.stop_gradient(p[0]) * t[0]))
    assert _failing(register(square)) == {"second_order"}


def test_wrong_batching(register: Callable[..., Operator]) -> None:
    @jax.custom_batching.custom_vmap
    def square(x: Any) -> Any:
        return x * x

    square.def_vmap(lambda size, batched, x: (x * x[:1], True))
    subject = register(square)
    check(subject, "jit")
    with pytest.raises(ConformanceError, match="vmap against a loop"):
        check(subject, "vmap")


def test_wrong_on_several_devices(register: Callable[..., Operator]) -> None:
    fault = {"factor": 1.0}
    subject = register(lambda x: x * x * fault["factor"])
    check(subject, "vmap")
    fault["factor"] = 1.001
    with pytest.raises(ConformanceError, match="8 devices against one"):
        check(subject, "sharded")


def test_dtype_that_does_not_follow(register: Callable[..., Operator]) -> None:
    assert _failing(register(lambda x: x * x + jnp.zeros(x.shape, float))) == {"float32"}  # float64 where x64 is on


def test_nan_gradient_at_a_kink(register: Callable[..., Operator]) -> None:
    kink = lambda rng: [Sample("ordinary: at the kink", (np.zeros(3),), smooth=False)]  # noqa: E731
    subject = register(lambda x: jnp.sqrt(x * x), oracle=np.abs, samples=kink)
    assert _failing(subject) == {"jvp", "vjp", "second_order", "complex"}


def test_implementations_are_held_to_the_oracle(register: Callable[..., Operator]) -> None:
    def absent(x: Any) -> Any:
        raise UnsupportedError("not on this machine")

    good = {"absent": absent, "other": lambda x: x**2}
    check(register(lambda x: x * x, implementations=good), "float32")
    bad = register(lambda x: x * x, implementations={"fast": lambda x: x * x * 1.01})
    with pytest.raises(ConformanceError, match="implementation 'fast'"):
        check(bad, "float32")


def test_leading_axis_sharding_needs_a_sample_that_splits(register: Callable[..., Operator]) -> None:
    long = lambda rng: [Sample("ordinary", (rng.standard_normal((16, 2)),))]  # noqa: E731
    check(register(lambda x: x * x, sharding="leading", samples=long), "sharded")
    with pytest.raises(ConformanceError, match="multiple of 8"):
        check(register(lambda x: x * x, sharding="leading"), "sharded")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"samples": lambda rng: []}, "ordinary"),
        ({"samples": lambda rng: [Sample("ordinary", (np.ones(2),))]}, "no edge sample"),
        ({"samples": lambda rng: _samples(rng)[:2]}, "badly scaled"),
        ({"samples": lambda rng: [*_samples(rng), _samples(rng)[0]]}, "repeat"),
        ({"flops": lambda x: -1.0}, "cost"),
        ({}, "docstring"),
    ],
)
def test_incomplete_registrations(register: Callable[..., Operator], options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConformanceError, match=complaint):
        check_registration(register(lambda x: x * x, **options))


def test_a_refusal_needs_a_reason(register: Callable[..., Operator]) -> None:
    def square(x: Any) -> Any:
        """out = x^2, elementwise, any shape, any floating dtype."""
        return x * x

    with pytest.raises(ConformanceError, match="why"):
        check_registration(register(square, unsupported={"complex": "no"}))


def test_orders_and_dtypes_must_agree_with_unsupported(register: Callable[..., Operator]) -> None:
    with pytest.raises(ConformanceError, match="orders=1"):
        check(register(lambda x: x * x, orders=1), "second_order")
    with pytest.raises(ConformanceError, match="not in dtypes"):
        check(register(lambda x: x * x, dtypes=("float64",)), "float32")


def test_registration_refuses_wrong_names(register: Callable[..., Operator]) -> None:
    for options in ({"unsupported": {"vmaps": "a mistyped cell"}}, {"sharding": "batches"}):
        with pytest.raises(InputError, match="did you mean"):
            register(lambda x: x, **options)
    with pytest.raises(InputError, match=r"kind\.name"):
        operator("nokind", oracle=abs, samples=_samples, flops=abs)
    subject = register(lambda x: x)
    with pytest.raises(InputError, match="registered twice"):
        register(len)
    with pytest.raises(InputError, match="without a reason"):
        Sample("ordinary", (), tolerance=10.0)
    with pytest.raises(InputError, match="did you mean"):
        check(subject, "eagre")


def test_comparison() -> None:
    assert tolerance("eager", "float32", 10.0) == pytest.approx(1e-4)
    same({"a": np.array([np.inf, 1.0])}, {"a": np.array([np.inf, 1.0])}, 1e-9, "equal")
    for got, want in (
        (np.array([np.nan]), np.array([1.0])),
        (np.array([np.inf]), np.array([-np.inf])),
        (np.ones(3), np.ones((3, 1))),
        (np.array([1, 2]), np.array([1, 3])),
        ((np.ones(1),), (np.ones(1), np.ones(1))),
        (np.array([1.0, 1 + 1e-8]), np.array([1.0, 1.0])),
    ):
        with pytest.raises(ConformanceError):
            same(got, want, 1e-9, "different")
    with x64():
        same(jnp.asarray([1.0 + 1e-12]), np.array([1.0]), 1e-9, "near")

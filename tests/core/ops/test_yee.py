"""The Yee lattice: oracles, exact eigenmodes of the discrete equations, energy, symmetry of the tensor, exact undoing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import DTypeError, InputError, ShapeError, UnsupportedError
from sciax.core.ops._registry import _REGISTRY
from sciax.core.ops.yee import (
    Coefficients,
    Points,
    Records,
    Slab,
    advance_e,
    advance_h,
    cpml_profile,
    curl_e,
    curl_h,
    initial_state,
    leapfrog_native,
    native_available,
    pole_coefficients,
    retreat_e,
    retreat_h,
    tensor_offdiagonal,
)

NAMES = sorted(n for n in _REGISTRY if n.startswith("yee."))
NONE = (None, None, None)


@pytest.mark.parametrize("name", NAMES)
def test_oracle(name, x64):
    op = _REGISTRY[name]
    for sample in op.samples(np.random.default_rng(0)):
        got = op.function(
            *map(lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a, sample.args), **sample.kwargs
        )
        want = op.oracle(*sample.args, **sample.kwargs)
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
            np.testing.assert_allclose(
                g, w, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(w).max(initial=0.0)), err_msg=sample.label
            )


def closed(shape, spacing, dt, wrap=NONE):
    """Vacuum, conducting or wrapping faces."""
    masks = []
    for c in range(3):
        m = np.ones(shape)
        for a in range(3):
            if a != c and wrap[a] is None:
                m[(slice(None),) * a + (0,)] = 0.0
        masks.append(jnp.asarray(dt * m))
    inverse = tuple(jnp.asarray(1.0 / d) for d in spacing)
    return Coefficients(NONE, tuple(masks), NONE, (jnp.asarray(dt),) * 3, inverse, inverse, wrap, (), NONE)


@jax.jit
def march(state, k, steps):
    return jax.lax.fori_loop(0, steps, lambda _, s: advance_e(advance_h(s, k), k), state)


def with_fields(shape, e, h):
    s = initial_state(shape, jnp.float64, (True,) * 3, (True,) * 3, (), 0)
    return type(s)(tuple(map(jnp.asarray, e)), tuple(map(jnp.asarray, h)), s.psi_e, s.psi_h, s.poles)


@pytest.mark.parametrize("mode", [(1, 1, 0), (1, 2, 3), (0, 1, 1)])
def test_cavity_mode_obeys_the_discrete_dispersion_relation(mode, x64):
    """Exact solution of the difference equations in a conducting box: cos in time at the Yee frequency, to 1e-12."""
    shape, d = (6, 7, 8), (0.9, 1.0, 1.1)
    dt = 0.95 / np.sqrt(sum(1 / s**2 for s in d))
    k = [np.pi * m / (n * s) for m, n, s in zip(mode, shape, d)]
    khat = np.array([2 / s * np.sin(q * s / 2) for q, s in zip(k, d)])
    w = 2 / dt * np.arcsin(dt / 2 * np.linalg.norm(khat))
    # E across khat, with zeros where a zero wave number leaves no room
    amplitude = np.cross(khat, [0.3, -0.5, 0.8])
    for a in range(3):
        if mode[a] == 0:
            amplitude = np.array([0.0, 0.0, 0.0])
            amplitude[a] = 1.0
    x = [np.arange(n)[:, None, None].swapaxes(0, i) * s for i, (n, s) in enumerate(zip(shape, d))]
    half = [p + s / 2 for p, s in zip(x, d)]

    def pattern(c, electric):
        out = 1.0
        for a in range(3):
            on_half = (a == c) == electric
            p = half[a] if on_half else x[a]
            cosine = (a == c) == electric  # E_c ~ cos along c, sin across; H_c the other way
            out = out * (np.cos(k[a] * p) if cosine else np.sin(k[a] * p))
        return out

    e0 = [np.broadcast_to(amplitude[c] * pattern(c, True), shape) for c in range(3)]
    curl = curl_e(*map(jnp.asarray, e0), *(1 / s for s in d))
    # dH/dt = -curl E with E = E0 cos(w t): H^{n+1/2} = -curl E0 dt sin(w (n+1/2) dt) / (2 sin(w dt/2))
    ratio = dt / (2 * np.sin(w * dt / 2))
    h_start = [c * ratio * np.sin(w * dt / 2) for c in curl]  # at -1/2
    steps = 200
    out = march(with_fields(shape, e0, h_start), closed(shape, d, dt), steps)
    for c in range(3):
        np.testing.assert_allclose(out.e[c], e0[c] * np.cos(w * steps * dt), atol=1e-12)
        np.testing.assert_allclose(out.h[c], -curl[c] * ratio * np.sin(w * (steps - 0.5) * dt), atol=1e-12)


def test_periodic_wave_obeys_the_discrete_dispersion_relation(x64):
    shape, d = (8, 6, 5), (1.0, 1.2, 0.8)
    dt = 0.9 / np.sqrt(sum(1 / s**2 for s in d))
    k = [2 * np.pi * m / (n * s) for m, n, s in zip((1, 2, 1), shape, d)]
    khat = np.array([2 / s * np.sin(q * s / 2) for q, s in zip(k, d)])
    w = 2 / dt * np.arcsin(dt / 2 * np.linalg.norm(khat))
    amplitude = np.cross(khat, [1.0, 0.2, -0.4])
    grids = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")

    def wave(shifts, phase):
        return np.cos(sum(k[a] * d[a] * (grids[a] + shifts[a]) for a in range(3)) - phase)

    e = lambda t: [amplitude[c] * wave([0.5 * (a == c) for a in range(3)], w * t) for c in range(3)]  # noqa: E731
    magnetic = np.cross(khat, amplitude) / (2 / dt * np.sin(w * dt / 2))
    h = lambda t: [magnetic[c] * wave([0.5 * (a != c) for a in range(3)], w * t) for c in range(3)]  # noqa: E731
    steps = 150
    out = march(with_fields(shape, e(0.0), h(-dt / 2)), closed(shape, d, dt, (1.0, 1.0, 1.0)), steps)
    for c in range(3):
        np.testing.assert_allclose(out.e[c], e(steps * dt)[c], atol=2e-12)
        np.testing.assert_allclose(out.h[c], h((steps - 0.5) * dt)[c], atol=2e-12)


def test_energy_is_conserved_to_rounding(x64):
    """W = 1/2 (E^n . E^n + H^{n-1/2} . H^{n+1/2}) is exact invariant of leapfrog; 10 000 steps from noise."""
    shape, rng = (7, 6, 5), np.random.default_rng(1)
    k = closed(shape, (1.0, 1.0, 1.0), 0.99 / np.sqrt(3))
    e = [rng.standard_normal(shape) * (np.asarray(b) > 0) for b in k.cb]
    s = with_fields(shape, e, [rng.standard_normal(shape) for _ in range(3)])

    def energy(s):
        after = advance_h(s, k)
        return sum(float(jnp.sum(a * a)) for a in s.e) + sum(float(jnp.sum(a * b)) for a, b in zip(s.h, after.h))

    before, after = energy(s), energy(march(s, k, 10_000))
    assert abs(after / before - 1) < 1e-12


def test_divergence_of_d_stays_zero(x64):
    shape, rng = (6, 6, 6), np.random.default_rng(2)
    k = closed(shape, (1.0,) * 3, 0.5, (1.0,) * 3)
    s = with_fields(shape, [np.zeros(shape)] * 3, [rng.standard_normal(shape) for _ in range(3)])
    e = march(s, k, 500).e
    div = sum(f - jnp.roll(f, 1, a) for a, f in enumerate(e))
    assert float(jnp.abs(div).max()) < 1e-12 * 500**0.5 * float(jnp.abs(e[0]).max() + 1)


def test_a_step_is_undone_to_rounding(x64):
    shape, rng = (5, 6, 7), np.random.default_rng(3)
    k = closed(shape, (1.0, 1.1, 0.9), 0.5)
    s = with_fields(
        shape, [rng.standard_normal(shape) for _ in range(3)], [rng.standard_normal(shape) for _ in range(3)]
    )
    back = retreat_h(retreat_e(advance_e(advance_h(s, k), k), k), k)
    for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(s)):
        np.testing.assert_allclose(a, b, atol=1e-13)


def test_tensor_part_is_symmetric(x64):
    """f . T g = g . T f, with wrapping axes too: the condition for a conserved energy."""
    shape, rng = (4, 5, 3), np.random.default_rng(4)
    t = [jnp.asarray(rng.standard_normal(shape)) for _ in range(3)]
    f, g = ([jnp.asarray(rng.standard_normal(shape)) for _ in range(3)] for _ in range(2))
    for wrap in (NONE, (1.0, None, 1.0)):
        left = sum(jnp.sum(a * b) for a, b in zip(f, tensor_offdiagonal(*g, *t, wrap=wrap)))
        right = sum(jnp.sum(a * b) for a, b in zip(g, tensor_offdiagonal(*f, *t, wrap=wrap)))
        np.testing.assert_allclose(left, right, rtol=1e-12)


def test_bloch_phase_multiplies_the_wrapped_plane(x64):
    phase = np.exp(0.7j)
    n, q = 8, 0.7 / 8
    f = jnp.asarray(np.exp(1j * q * np.arange(n)).reshape(n, 1, 1))
    zero = jnp.zeros_like(f)
    _, _, z = curl_e(zero, f, zero, 1.0, None, None, wrap=(phase, None, None))
    np.testing.assert_allclose(z, f * (np.exp(1j * q) - 1), atol=1e-14)
    _, _, z = curl_h(zero, f, zero, 1.0, None, None, wrap=(phase, None, None))
    np.testing.assert_allclose(z, f * (1 - np.exp(-1j * q)), atol=1e-14)


def test_absorber_profile_is_neutral_at_the_interface():
    kappa, b, c = cpml_profile(np.array([-1.0, 0.0, 5.0, 10.0]), 10.0, 0.5, spacing=1.0)
    assert kappa[0] == kappa[1] == 1 and c[0] == c[1] == 0
    assert np.all((b > 0) & (b <= 1)) and np.all(c <= 0) and kappa[3] == 5.0


@pytest.mark.parametrize("terms", [(1.0, 0.3, 2.0, 1.5), (1.0, 0.2, 0.0, 3.0), (0, 1.7, 1.0, 0.8)])
def test_pole_recursion_converges_to_its_susceptibility(terms, x64):
    """Driven by exp(-i w t) the recursion gives s / (a0 - i w a1 - w^2 a2) to second order in dt."""
    a2, a1, a0, s = terms
    w, errors = 1.3, []
    exact = s / (a0 - 1j * w * a1 - w**2 * a2)
    for dt in (0.02, 0.01):
        p, q, old, new = pole_coefficients(*terms, dt)
        z = np.exp(-1j * w * dt)
        errors.append(abs((old + new * z) / (z - p - q / z) / exact - 1))
    assert errors[1] < 1e-3 and np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


def test_errors_name_the_argument():
    f = jnp.zeros((3, 3, 3))
    with pytest.raises(ShapeError, match="inverse spacing of axis 1"):
        curl_e(f, f, f, 1.0, jnp.ones(4), 1.0)
    with pytest.raises(ShapeError, match="one shape"):
        curl_h(f, f, jnp.zeros((3, 3, 2)), 1.0, 1.0, 1.0)
    with pytest.raises(DTypeError):
        curl_e(f.astype(int), f, f, 1.0, 1.0, 1.0)
    with pytest.raises(InputError, match="periodic but has no spacing"):
        curl_e(f, f, f, 1.0, None, 1.0, wrap=(None, 1.0, None))


native = pytest.mark.skipif(not native_available(), reason="the compiled kernel is not built here")


@native
@pytest.mark.parametrize("name", ["ordinary", "odd", "empty", "size one", "badly scaled"])
def test_native_leapfrog_equals_the_oracle(name, x64):
    op = _REGISTRY["yee.leapfrog"]
    sample = next(s for s in op.samples(np.random.default_rng(0)) if s.label == name)
    for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 1e-6)):
        args = [jnp.asarray(a, dtype) for a in sample.args]
        got = jax.jit(lambda *a: op.implementations["native"](*a, **sample.kwargs))(*args)
        for g, w in zip(got, op.oracle(*sample.args, **sample.kwargs)):
            assert g.dtype == dtype
            np.testing.assert_allclose(g, w, atol=tolerance * np.abs(w).max(initial=1.0) * 4)


def absorbing(shape, uniform):
    """Slabs on all six faces, graded spacings, a conducting box or gains that vary from cell to cell."""
    rng = np.random.default_rng(3)
    slabs = []
    for a in range(3):
        for start in (0, shape[a] - 3):
            b = rng.uniform(0.5, 1.0, (2, 3))
            c = -rng.uniform(0.0, 0.5, (2, 3))
            slabs.append(Slab(a, start, 3, *map(jnp.asarray, (b[0], c[0], b[1], c[1]))))
    inverse = [tuple(jnp.asarray(rng.uniform(0.8, 1.2, n)) for n in shape) for _ in range(2)]
    gains = []
    for c in range(3):
        g = np.full(shape, 0.3) if uniform else rng.uniform(0.1, 0.3, shape)
        for a in range(3):
            if a != c:
                g[(slice(None),) * a + (0,)] = 0.0
        gains.append(jnp.asarray(g))
    return Coefficients(NONE, tuple(gains), NONE, (jnp.asarray(0.35),) * 3, *inverse, NONE, tuple(slabs), NONE)


@native
@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(("levels", "threads"), [(1, 1), (4, 1), (2, 2), (3, 3)])
def test_native_steps_equal_xla_with_absorbers_currents_and_records(uniform, levels, threads, x64):
    shape, steps, rng = (9, 8, 10), 11, np.random.default_rng(8)
    k = absorbing(shape, uniform)
    start = initial_state(shape, jnp.float64, (True,) * 3, (True,) * 3, k.slabs, 0)
    mask = [(np.asarray(g) > 0) for g in k.cb]
    start = eqx.tree_at(
        lambda s: (s.e, s.h),
        start,
        (
            tuple(jnp.asarray(rng.standard_normal(shape) * m) for m in mask),
            tuple(jnp.asarray(rng.standard_normal(shape)) for _ in range(3)),
        ),
    )
    cells = [(4, 4, 5), (2, 5, 7), (8, 1, 1)]
    index = np.array([np.ravel_multi_index(c, shape) for c in cells], np.int32)
    component, patch = np.array([2, 4, 0], np.int32), np.array([0, 1, 1], np.int32)
    value, table = jnp.asarray(rng.standard_normal(3)), jnp.asarray(rng.standard_normal((steps, 2)))
    records = Records(index[[1, 0]], np.array([1, 5], np.int32))
    walls = (0.3, (True, True, True)) if uniform else None
    got, read = jax.jit(
        lambda s: leapfrog_native(
            s,
            k,
            steps,
            points=Points(index, component, patch, value, table),
            records=records,
            levels=levels,
            threads=threads,
            uniform=walls,
        )
    )(start)
    s, seen = start, []
    for n in range(steps):
        s = advance_h(s, k)
        s = eqx.tree_at(lambda v: v.h[1], s, s.h[1].at[cells[1]].add(value[1] * table[n, 1]))
        s = advance_e(s, k)
        e = (s.e[0].at[cells[2]].add(value[2] * table[n, 1]), s.e[1], s.e[2].at[cells[0]].add(value[0] * table[n, 0]))
        s = eqx.tree_at(lambda v: v.e, s, e)
        seen.append((s.e[1][cells[1]], s.h[2][cells[0]]))
    # memories of components that lie on a conductor are used by nobody; the kernel leaves them out with one gain
    same = (got.e, got.h) if uniform else got
    for g, w in zip(jax.tree.leaves(same), jax.tree.leaves((s.e, s.h) if uniform else s)):
        np.testing.assert_allclose(g, w, atol=1e-12 * float(jnp.abs(w).max() + 1))
    np.testing.assert_allclose(read, np.array(seen), atol=1e-11)


@native
def test_native_says_what_it_cannot_do():
    k = absorbing((9, 8, 10), True)
    state = initial_state((9, 8, 10), jnp.float32, (True,) * 3, (True,) * 3, k.slabs, 0)
    with pytest.raises(UnsupportedError, match="periodic"):
        leapfrog_native(state, eqx.tree_at(lambda v: v.wrap, k, (1.0, None, None), is_leaf=lambda v: v is None), 1)

"""Spherical-harmonic transforms against dinosaur (FFT variant) and ducc0, same process, float64 round trip.

    python benchmarks/earth_sphere.py

Prints milliseconds per field (synthesis + analysis), the ratio to each peer and the round-trip errors.
"""

import importlib.util
import time

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.ops import sphere


def best(function, repeats=9):
    function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def ours(truncation, nlat, batch, rng):
    tables = sphere.sphere_tables(sphere.SphereGrid("gauss", nlat, 2 * nlat), truncation)
    c = np.triu(
        rng.standard_normal((batch, *tables.spectral_shape)) + 1j * rng.standard_normal((batch, *tables.spectral_shape))
    )
    c[:, 0] = c[:, 0].real
    c[..., -1] = 0
    c = jnp.asarray(c)
    trip = jax.jit(lambda c, t: sphere.analysis(sphere.synthesis(c, t), t))
    begin = time.perf_counter()
    error = float(jnp.abs(trip(c, tables) - c).max())
    compile_s = time.perf_counter() - begin
    return best(lambda: jax.block_until_ready(trip(c, tables))) / batch, error, compile_s, c, tables


def dinosaur(truncation, batch, rng):
    from dinosaur import spherical_harmonic as sh

    grid = getattr(sh.Grid, f"T{truncation}")(spherical_harmonics_impl=sh.FastSphericalHarmonics)
    c = np.asarray(grid.mask) * rng.standard_normal((batch, *grid.modal_shape))
    c = grid.clip_wavenumbers(jnp.asarray(c))
    trip = jax.jit(lambda c: grid.to_modal(grid.to_nodal(c)))
    begin = time.perf_counter()
    error = float(jnp.abs(trip(c) - c).max())
    compile_s = time.perf_counter() - begin
    return best(lambda: jax.block_until_ready(trip(c))) / batch, error, compile_s


def ducc(c, tables, batch):
    import ducc0

    # ducc's packed order: m-major, l from m; orthonormal, with the Condon-Shortley sign
    mmax, lmax = tables.truncation, tables.lmax
    index = np.concatenate([m * (lmax + 1) + np.arange(m, lmax + 1) for m in range(mmax + 1)])
    sign = np.concatenate([np.full(lmax + 1 - m, (-1.0) ** m) for m in range(mmax + 1)])
    alm = np.asarray(c).reshape(batch, -1)[:, index] * sign * np.sqrt(4 * np.pi)
    options = {
        "ntheta": tables.grid.nlat,
        "nphi": tables.grid.nlon,
        "spin": 0,
        "lmax": lmax,
        "geometry": "GL",
        "nthreads": 2,
    }

    def trip():
        for k in range(batch):
            values = ducc0.sht.synthesis_2d(alm=alm[k : k + 1], mmax=mmax, **options)
            back = ducc0.sht.analysis_2d(map=values, lmax=lmax, mmax=mmax, spin=0, geometry="GL", nthreads=2)
        return values, back

    values, back = trip()
    # their rings run from north to south
    mine = np.asarray(jax.jit(sphere.synthesis)(c, tables))[-1, ::-1]
    difference = np.abs(values[0] - mine).max() / np.abs(mine).max()
    return best(trip, 5) / batch, np.abs(back - alm[-1:]).max() / np.sqrt(4 * np.pi), difference


def main():
    jax.config.update("jax_enable_x64", True)
    have = {name: importlib.util.find_spec(name) is not None for name in ("dinosaur", "ducc0")}
    for name, there in have.items():
        if not there:
            print(f"{name} is not installed: its column is left out")
    for truncation, nlat, batch in ((42, 64, 8), (85, 128, 8), (170, 256, 4)):
        rng = np.random.default_rng(0)
        mine, error, compile_s, c, tables = ours(truncation, nlat, batch, rng)
        line = f"T{truncation}: sciax {mine:.3f} ms/field, error {error:.1e}, first call {compile_s:.1f} s"
        if have["dinosaur"]:
            peer, peer_error, peer_compile = dinosaur(truncation, batch, rng)
            line += f" | dinosaur {peer:.3f} ms, error {peer_error:.1e}, first call {peer_compile:.1f} s, ratio {mine / peer:.2f}"
        if have["ducc0"]:
            peer, peer_error, difference = ducc(c, tables, batch)
            line += f" | ducc0 {peer:.3f} ms, error {peer_error:.1e}, ratio {mine / peer:.2f}"
            line += f", values differ by {difference:.1e} of the largest"
        print(line, flush=True)


if __name__ == "__main__":
    main()

"""Inverse design: filters, projection, sizes, optimiser, and the jobs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import ConvergenceError, InputError, ShapeError
from sciax.elec import design


def test_filter_keeps_constants_and_means():
    np.testing.assert_allclose(design.conic_filter(jnp.full((9, 7), 0.3), 3.0), 0.3, rtol=1e-6)
    spot = jnp.zeros((15, 15)).at[7, 7].set(1.0)
    got = np.asarray(design.conic_filter(spot, 3.0))
    x = np.arange(15) - 7
    cone = np.maximum(3.0 - np.hypot(x[:, None], x[None]), 0)
    np.testing.assert_allclose(got, cone / cone.sum(), atol=1e-6)
    with pytest.raises(ShapeError):
        design.conic_filter(jnp.zeros(4), 2.0)


def test_projection_and_symmetry():
    x = jnp.array([[0.0, 0.5], [0.8, 1.0]])
    p = design.project(x, 50.0)
    np.testing.assert_allclose(p, [[0.0, 0.5], [1.0, 1.0]], atol=1e-6)
    assert design.binarisation(np.array([[0.0, 1.0]])) == 1.0
    assert design.binarisation(np.full((2, 2), 0.5)) == 0.0
    np.testing.assert_allclose(design.mirror(x, "diagonal"), design.mirror(x, "diagonal").T)
    with pytest.raises(InputError):
        design.mirror(jnp.zeros((2, 3)), "diagonal")


@pytest.mark.parametrize("width", [4, 7, 10])
def test_feature_size_of_bars_and_discs(width):
    bar = np.zeros((40, 40))
    bar[:, 15 : 15 + width] = 1
    solid, void = design.feature_size(bar, 10e-9)
    assert solid == pytest.approx(width * 10e-9, abs=10.1e-9)
    assert void >= 14 * 10e-9
    solid, void = design.feature_size(1 - bar, 10e-9)
    assert void == pytest.approx(width * 10e-9, abs=10.1e-9)


def test_published_designs_measure_as_their_authors_say(shared_data):
    """Minimum lengths (nm) of the designs' own table: 102, 143; ours to one and a half pixels of 10 nm."""
    for name, nm in (("circle_10_x47530832_w43_s590", 102), ("circle_14_x47530832_w21_s956", 143)):
        rho = np.loadtxt(shared_data / "elec" / "designs" / f"converter_generator_{name}.csv", delimiter=",")
        assert min(design.feature_size(rho, 10e-9)) * 1e9 == pytest.approx(nm, abs=25)


def test_optimiser_finds_the_corner_of_a_box():
    target = np.random.default_rng(0).uniform(-0.5, 1.5, 12)
    f = jax.jit(jax.value_and_grad(lambda x: -jnp.sum((x - target) ** 2)))
    best, history = design.maximise(lambda x, beta: f(x), np.full(12, 0.5), betas=(1.0,), iterations=40)
    np.testing.assert_allclose(best, np.clip(target, 0, 1), atol=0.02)
    assert history[-1].value >= history[0].value
    with pytest.raises(InputError):
        design.maximise(lambda x, beta: f(x), np.full(12, 2.0))
    with pytest.raises(ConvergenceError, match="not finite"):
        design.maximise(lambda x, beta: (np.nan, np.zeros(12)), np.full(12, 0.5))


def test_job_fdtd_agrees_with_the_series(tmp_path):
    from sciax.core.jobs import run_job

    record = run_job("elec.fdtd", {"cells": 12, "points": 5}, out=tmp_path / "run")
    outcome = record.outcome
    assert outcome["value"] == pytest.approx(outcome["reference"], rel=0.03)
    assert (tmp_path / "run" / "outputs" / "scattering.png").stat().st_size > 20_000
    assert (tmp_path / "run" / "outputs" / "fields.nc").is_file()


@pytest.mark.slow
def test_job_design_reaches_the_goals_of_the_bend(tmp_path):
    from sciax.core.jobs import run_job

    record = run_job("elec.design", {}, out=tmp_path / "run")
    assert record.outcome["value"] > 10 ** (-0.05)  # -0.5 dB
    rho = np.loadtxt(tmp_path / "run" / "outputs" / "design.csv", delimiter=",")
    assert min(design.feature_size(rho, 40e-9)) >= 100e-9


@pytest.mark.slow
def test_job_design_improves_the_bend(tmp_path):
    from sciax.core.jobs import run_job

    run_job("elec.design", {"pixels": 20, "iterations": 4, "betas": [6.0]}, out=tmp_path / "run")
    import json

    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    values = [line["objective"] for line in lines if "objective" in line]
    assert max(values) > 1.5 * values[0]

"""Verification scores against closed forms and plain NumPy, with masks, missing members, chunks and reordered input."""

import numpy as np
import pytest
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth import verify
from sciax.earth._grid import area_weights, cell_edges

LAT = np.linspace(-90, 90, 19)
LON = np.arange(36) * 10.0


def field(values, dims=("lat", "lon"), **coords):
    known = {"lat": LAT, "lon": LON}
    return xr.DataArray(values, dims=dims, coords={d: known[d] for d in dims if d in known} | coords)


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    time = np.arange("2020-01", "2020-02", dtype="datetime64[D]").astype("datetime64[ns]")[:12]
    f = field(rng.standard_normal((12, 5, 19, 36)), ("time", "member", "lat", "lon"), time=time, member=np.arange(5))
    o = field(rng.standard_normal((12, 19, 36)), ("time", "lat", "lon"), time=time)
    return f, o


def test_area_weights():
    assert abs(area_weights(LAT).mean() - 1) < 1e-15
    np.testing.assert_allclose(np.abs(np.diff(np.sin(np.radians(cell_edges(LAT))))).sum(), 2.0, rtol=1e-15)
    # a pole has a quarter of the band next to it, not nothing
    assert 0 < area_weights(LAT)[0] < area_weights(LAT)[1]
    np.testing.assert_allclose(area_weights(LAT[::-1]), area_weights(LAT)[::-1], rtol=1e-12)
    # regional cells do not reach for the poles
    assert cell_edges(np.array([20.0, 21.0, 22.0]))[0] == 19.5


@pytest.mark.parametrize("size", [(19, 36), (10, 8), (181, 4)])
def test_constant_error_is_itself_on_every_grid(size):
    o = xr.DataArray(
        np.zeros(size), dims=("lat", "lon"), coords={"lat": np.linspace(-90, 90, size[0]), "lon": np.arange(size[1])}
    )
    for score in (verify.rmse, verify.mae, verify.bias):
        np.testing.assert_allclose(score(o + 3, o), 3.0, rtol=1e-14)


def test_scores_match_numpy(pair):
    f, o = pair
    f = f.isel(member=0, drop=True)
    w = area_weights(LAT)[:, None]
    e = f.values - o.values

    def mean(x):
        return (x * w).sum((-2, -1)) / (w.sum() * 36)

    np.testing.assert_allclose(verify.rmse(f, o), np.sqrt(mean(e**2)), rtol=1e-12)
    np.testing.assert_allclose(verify.mae(f, o), mean(np.abs(e)), rtol=1e-12)
    np.testing.assert_allclose(verify.bias(f, o), mean(e), rtol=1e-10, atol=1e-14)
    cos = np.cos(np.radians(LAT))[:, None]
    want = np.sqrt((e**2 * cos).sum((-2, -1)) / (cos.sum() * 36))
    np.testing.assert_allclose(verify.rmse(f, o, weights="cos"), want, rtol=1e-12)
    c = 0.3
    a, b = f.values - c, o.values - c
    np.testing.assert_allclose(verify.acc(f, o, c), mean(a * b) / np.sqrt(mean(a * a) * mean(b * b)), rtol=1e-12)
    np.testing.assert_allclose(verify.wind_vector_rmse(f, f, o, o), np.sqrt(2) * verify.rmse(f, o), rtol=1e-12)
    # maps: a score at every point
    np.testing.assert_allclose(verify.rmse(f, o, over=("time",)), np.sqrt((e**2).mean(0)), rtol=1e-12)


def test_missing_values_and_masks(pair):
    f, o = pair
    f = f.isel(member=0, drop=True)
    mask = field(np.add.outer(LAT, 0 * LON) > 0)
    want = verify.rmse(f.sel(lat=LAT[LAT > 0]), o.sel(lat=LAT[LAT > 0]), weights="none")
    np.testing.assert_allclose(verify.rmse(f, o, weights="none", mask=mask), want, rtol=1e-12)
    np.testing.assert_allclose(verify.rmse(f.where(mask), o, weights="none"), want, rtol=1e-12)
    np.testing.assert_allclose(verify.rmse(f, o.where(mask), weights="none"), want, rtol=1e-12)
    assert np.isnan(verify.rmse(f.where(False), o)).all()


def test_different_grids_are_refused(pair):
    f, o = pair
    with pytest.raises(InputError, match="different lat"):
        verify.rmse(f, o.assign_coords(lat=LAT * 0.9))
    with pytest.raises(InputError, match="in common"):
        verify.rmse(f, o.assign_coords(time=o["time"].values + np.timedelta64(400, "D")))
    with pytest.raises(InputError, match="members of its own"):
        verify.crps(f, f)


def test_crps_closed_cases():
    f = xr.DataArray([1.0, 3.0], dims="member")
    o = xr.DataArray(2.0)
    assert float(verify.crps(f, o, fair=False)) == 0.5
    assert float(verify.crps(f, o, fair=True)) == 0.0
    # one member missing: spread 2 (variance of 1 and 3), fair CRPS 0
    f = xr.DataArray([1.0, 3.0, np.nan], dims="member")
    assert float(verify.crps(f, o, fair=True)) == 0.0
    assert float(verify.crps(f, o, fair=False)) == 0.5
    assert float(verify.variance(f)) == 2.0
    assert float(verify.crps(xr.DataArray([5.0], dims="member"), o)) == 3.0
    assert np.isnan(verify.crps(xr.DataArray([np.nan, np.nan], dims="member"), o))
    # the standard normal at 0: (sqrt(2) - 1) / sqrt(pi) = 0.233695
    from scipy.stats import norm

    quantiles = norm.ppf((np.arange(20000) + 0.5) / 20000)
    got = float(verify.crps(xr.DataArray(quantiles, dims="member"), xr.DataArray(0.0), fair=False))
    assert abs(got - 0.233695) < 2e-5


def test_crps_matches_the_double_sum(pair):
    f, o = pair
    x, y = f.values, o.values[:, None]
    pairs = np.abs(x[:, :, None] - x[:, None]).sum((1, 2)) / 2
    skill = np.abs(x - y).mean(1)
    np.testing.assert_allclose(verify.crps(f, o, fair=True), skill - pairs / 20, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(verify.crps(f, o, fair=False), skill - pairs / 25, rtol=1e-11, atol=1e-13)
    holes = f.where(np.random.default_rng(1).random(f.shape) > 0.3)
    got = verify.crps(holes, o, fair=True).values
    for i in ((0, 0, 0), (3, 7, 9), (11, 18, 35)):
        m = holes.values[i[0], :, i[1], i[2]]
        m = m[np.isfinite(m)]
        want = np.abs(m - o.values[i]).mean()
        if m.size > 1:
            want -= np.abs(m[:, None] - m).sum() / (2 * m.size * (m.size - 1))
        np.testing.assert_allclose(got[i], want, rtol=1e-11, atol=1e-13)


def test_exchangeable_ensemble_is_calibrated():
    rng = np.random.default_rng(3)
    base = rng.standard_normal((400, 1, 19, 36)) * 3
    x = base + rng.standard_normal((400, 6, 19, 36))
    f = field(x[:, :5], ("time", "member", "lat", "lon"))
    o = field(x[:, 5], ("time", "lat", "lon"))
    assert abs(float(verify.spread_skill_ratio(f, o, over=("time", "lat", "lon"))) - 1) < 0.01
    counts = verify.rank_histogram(f, o)
    assert abs(float(counts.sum()) - o.size) < 1e-6 * o.size
    assert np.abs(counts.values / o.size * 6 - 1).max() < 0.02
    table = verify.reliability(f, o, 1.0, bins=5)
    assert np.nanmax(np.abs(table["forecast"] - table["observed"])) < 0.12
    # the fair Brier score is what a large ensemble would get, the plain one is larger
    fair, plain = (float(verify.brier(f, o, 1.0, over=("time", "lat", "lon"), fair=k)) for k in (True, False))
    assert fair < plain


def test_spread_is_the_root_of_the_mean_variance():
    f = xr.DataArray([[1.0, 3.0], [0.0, 10.0]], dims=("lat", "member"), coords={"lat": [-10.0, 10.0]})
    assert abs(float(verify.spread(f, over=("lat",))) - np.sqrt((2 + 50) / 2)) < 1e-12


def test_ties_in_the_rank_histogram():
    f = xr.DataArray(np.zeros((3000, 4)), dims=("time", "member"))
    counts = verify.rank_histogram(f, xr.DataArray(np.zeros(3000), dims="time"))
    np.testing.assert_allclose(counts, 600)  # no rain on both sides fills all ranks alike
    f = xr.DataArray([[0.0, 1.0, 1.0, 2.0]], dims=("time", "member"))
    np.testing.assert_allclose(verify.rank_histogram(f, xr.DataArray([1.0], dims="time")), [0, 1 / 3, 1 / 3, 1 / 3, 0])


def test_contingency():
    f = field(np.where(np.add.outer(LAT, LON) > 100, 2.0, 0.0))
    o = field(np.where(np.add.outer(LAT, 0 * LON) > 0, 2.0, 0.0))
    table = verify.contingency(f, o, 1.0, weights="none")
    a, b = f.values >= 1, o.values >= 1
    h, fa, m = (a & b).mean(), (a & ~b).mean(), (~a & b).mean()
    np.testing.assert_allclose(verify.csi(table), h / (h + fa + m), rtol=1e-13)
    chance = (h + m) * (h + fa)
    np.testing.assert_allclose(verify.ets(table), (h - chance) / (h + fa + m - chance), rtol=1e-12)
    np.testing.assert_allclose(verify.pod(table), h / (h + m), rtol=1e-13)
    np.testing.assert_allclose(verify.far(table), fa / (h + fa), rtol=1e-13)
    assert np.isnan(verify.csi(verify.contingency(f * 0, o * 0, 1.0)))


def test_fss():
    rng = np.random.default_rng(5)
    f, o = field(rng.random((19, 36))), field(rng.random((19, 36)))
    assert float(verify.fss(f, f, 0.7, 3)) == 1.0
    a, b = f.values >= 0.7, o.values >= 0.7
    want = 1 - (a != b).sum() / (a.sum() + b.sum())
    np.testing.assert_allclose(verify.fss(f, o, 0.7, 1), want, rtol=1e-12)
    # by loops, with the window cut at the edges
    from itertools import product

    top = bottom = 0.0
    for i, j in product(range(19), range(36)):
        s = (slice(max(i - 2, 0), i + 3), slice(max(j - 2, 0), j + 3))
        pa, pb = a[s].mean(), b[s].mean()
        top, bottom = top + (pa - pb) ** 2, bottom + pa**2 + pb**2
    np.testing.assert_allclose(verify.fss(f, o, 0.7, 5, periodic=False), 1 - top / bottom, rtol=1e-12)
    # a shift of one column is forgiven more by a wider window; round the globe it is one shift everywhere
    moved = f.roll(lon=1, roll_coords=False)
    narrow, wide = (float(verify.fss(moved, f, 0.7, n, periodic=True)) for n in (1, 9))
    assert narrow < 0.5 < wide
    assert float(verify.fss(f * 0, o * 0, 0.7, 3)) == 1.0
    with pytest.raises(InputError, match="odd"):
        verify.fss(f, o, 0.5, 4)


def test_spectrum_sums_to_the_variance(pair):
    _, o = pair
    power = verify.zonal_power_spectrum(o)
    zonal = ((o - o.mean("lon")) ** 2).mean("lon")
    np.testing.assert_allclose(
        power.isel(wavenumber=slice(1, None)).sum("wavenumber"), verify.weighted_mean(zonal, ("lat",)), rtol=1e-12
    )


def test_bootstrap_coverage_and_refusals():
    """AR(1) errors: the interval covers the truth about as often as it says, and a real difference is found."""
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(60):
        e = rng.standard_normal((2, 400))
        for k in range(1, 400):
            e[:, k] += 0.6 * e[:, k - 1]
        d = verify.block_bootstrap(e[0] ** 2, e[1] ** 2, block=10, samples=200, seed=trial)
        hits += int(not d.significant)
    assert 50 <= hits <= 60
    a = rng.standard_normal(500)
    d = verify.block_bootstrap((1.5 * a) ** 2, a**2, block=5)
    assert d.significant and d.low > 0
    np.testing.assert_allclose(d.value, 0.5 * np.sqrt((a**2).mean()), rtol=1e-12)
    with pytest.raises(InputError, match="paired"):
        verify.block_bootstrap(a, a[:10], block=2)
    with pytest.raises(InputError, match="two blocks"):
        verify.block_bootstrap(a, a, block=400)


def test_against_xskillscore(pair):
    xs = pytest.importorskip("xskillscore")
    f, o = pair
    np.testing.assert_allclose(
        verify.crps(f, o, fair=False), xs.crps_ensemble(o, f, member_dim="member", dim=[]), rtol=1e-10, atol=1e-12
    )
    w = xr.DataArray(area_weights(LAT), dims="lat", coords={"lat": LAT}).broadcast_like(o.isel(time=0))
    g = f.isel(member=0, drop=True)
    np.testing.assert_allclose(verify.rmse(g, o), xs.rmse(g, o, dim=["lat", "lon"], weights=w), rtol=1e-10)
    np.testing.assert_allclose(verify.mae(g, o), xs.mae(g, o, dim=["lat", "lon"], weights=w), rtol=1e-10)


def test_against_scores(pair):
    """The package of the Bureau of Meteorology."""
    continuous = pytest.importorskip("scores.continuous")
    from scores.categorical import ThresholdEventOperator
    from scores.probability import brier_score_for_ensemble, crps_for_ensemble
    from scores.spatial import fss_2d_single_field

    f, o = pair
    for fair, method in ((False, "ecdf"), (True, "fair")):
        want = crps_for_ensemble(f, o, ensemble_member_dim="member", method=method, preserve_dims="all")
        np.testing.assert_allclose(verify.crps(f, o, fair=fair).transpose(*want.dims), want, rtol=1e-10, atol=1e-12)
    w = xr.DataArray(area_weights(LAT), dims="lat", coords={"lat": LAT}).broadcast_like(o)
    g = f.isel(member=0, drop=True)
    options = {"preserve_dims": ["time"], "weights": w}
    np.testing.assert_allclose(verify.rmse(g, o), continuous.rmse(g, o, **options), rtol=1e-10)
    np.testing.assert_allclose(verify.mae(g, o), continuous.mae(g, o, **options), rtol=1e-10)
    np.testing.assert_allclose(verify.bias(g, o), continuous.additive_bias(g, o, **options), rtol=1e-9, atol=1e-12)
    for fair in (False, True):
        want = brier_score_for_ensemble(
            f, o, "member", 0.5, preserve_dims=["time"], weights=w, fair_correction=fair
        ).isel(threshold=0)
        np.testing.assert_allclose(verify.brier(f, o, 0.5, fair=fair), want, rtol=1e-10)
    a, b = g.isel(time=0, drop=True), o.isel(time=0, drop=True)
    table = ThresholdEventOperator(default_event_threshold=0.5).make_contingency_manager(a, b).transform()
    mine = verify.contingency(a, b, 0.5, weights="none")
    for ours, theirs in (
        ("csi", "threat_score"),
        ("ets", "equitable_threat_score"),
        ("pod", "probability_of_detection"),
    ):
        np.testing.assert_allclose(getattr(verify, ours)(mine), getattr(table, theirs)(), rtol=1e-10)
    np.testing.assert_allclose(verify.far(mine), table.false_alarm_ratio(), rtol=1e-10)
    # its windows stay inside the domain, ours are cut at the edges: equal for one cell
    want = fss_2d_single_field(a.values, b.values, event_threshold=0.5, window_size=(1, 1))
    np.testing.assert_allclose(verify.fss(a, b, 0.5, 1), want, rtol=1e-10)

"""Forecasts of station or index series: seasonal ridge autoregression with an optional smooth nonlinear part."""

from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth.data import day_of_year, time_step
from sciax.earth.models._climatology import harmonics


@dataclass(frozen=True)
class SeriesModel:
    """Direct forecasts of every lead from lagged values, running means, their seasonal modulation and random features.

    x(t + L) = climatology + W_L f(x(t), x(t - 1), ..., running means, season). The random features are cosines of random
    projections, whose ridge regression approximates Gaussian-kernel regression (Rahimi and Recht 2007). The ridge and the
    length scale are chosen by blocked cross-validation inside the training period; nothing else is seen.

    Attributes:
        leads: leads to fit, in time steps.
        lags: lagged values among the predictors.
        means: running means (steps) among the predictors: the slow background.
        seasonal: annual harmonics that modulate the first `modulated` lags.
        random: number of random features; 0 for a linear model.
        annual: harmonics of the climatology.
    """

    leads: tuple[int, ...]
    lags: tuple[int, ...] = (0, 1, 2, 4, 7)
    means: tuple[int, ...] = (15, 40, 120)
    seasonal: int = 3
    modulated: int = 3
    random: int = 800
    annual: int = 3
    ridges: tuple[float, ...] = (3.0, 10.0, 30.0, 100.0)
    lengths: tuple[float, ...] = (4.0, 8.0)
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.leads or min(self.leads) < 1:
            raise InputError("leads are positive numbers of steps", got=self.leads)

    @property
    def memory(self) -> int:
        """Steps of the past that a forecast needs."""
        return max([*self.lags, *(m - 1 for m in self.means)], default=0)

    def fit(self, series: xr.DataArray, train_until) -> "FittedSeries":
        """Fit to the part of (time, variable) `series` up to and including `train_until`.

        Raises:
            InputError: gaps in time, more than 1 % missing values, or too short a training period.
        """
        values, times = _values(series)
        train = np.asarray(series["time"].values <= _stamp(series, train_until))
        longest = max(self.leads)
        usable = int(train.sum()) - self.memory - longest
        if usable < 200:
            raise InputError(
                "too few training steps", got=int(train.sum()), expected=f"{200 + self.memory + longest} or more"
            )
        basis = harmonics(times, self.annual)
        clim = np.linalg.lstsq(basis[train], values[train], rcond=None)[0]
        anomaly = values - basis @ clim
        scale = anomaly[train].std(0)
        z = anomaly / scale
        plain, rich = self._linear(z, times)
        spread = rich[self.memory :][train[self.memory :]].std(0)
        rich = rich / np.where(spread > 0, spread, 1)
        rng = np.random.default_rng(self.seed)
        directions = rng.standard_normal((rich.shape[1], self.random))
        phases = rng.uniform(0, 2 * np.pi, self.random)
        # Rows whose targets at every lead still lie in the training period.
        last = int(np.flatnonzero(train)[-1])
        rows = np.arange(self.memory, last - longest + 1)
        target = np.stack([z[rows + lead] for lead in self.leads], axis=1).reshape(len(rows), -1)
        best = None
        for length in self.lengths if self.random else (1.0,):
            m = np.concatenate([plain, _cosines(rich, directions / length, phases)], axis=1)[rows]
            for ridge, weights, loss in self._validate(m, target, plain.shape[1]):
                if best is None or loss < best[0]:
                    best = (loss, length, ridge, weights)
        assert best is not None
        loss, length, ridge, weights = best
        shaped = weights.reshape(-1, len(self.leads), z.shape[1])
        return FittedSeries(
            self,
            clim,
            scale,
            spread,
            directions / length,
            phases,
            shaped,
            str(series["time"].values[last])[:19],
            (length, ridge),
        )

    def _validate(self, m: np.ndarray, target: np.ndarray, linear: int, folds: int = 5):
        """(ridge, weights on all rows, cross-validated mean square) for every ridge; Gram matrices add up over blocks."""
        from scipy.linalg import cho_factor, cho_solve

        gap = max(self.leads)
        blocks = np.array_split(np.arange(len(m)), folds)
        grams = [(m[b].T @ m[b], m[b].T @ target[b]) for b in blocks]
        total = [sum(g[k] for g in grams) for k in range(2)]
        for ridge in self.ridges:
            # the linear part is cheap in parameters: a light ridge of its own
            penalty = np.concatenate([np.full(linear, 5.0), np.full(m.shape[1] - linear, ridge)])
            loss = 0.0
            for b, (gram, right) in zip(blocks, grams):
                w = cho_solve(cho_factor(total[0] - gram + np.diag(penalty)), total[1] - right)
                inner = b[gap:-gap]  # neighbours of the other blocks are left out: they share targets
                loss += float(((m[inner] @ w - target[inner]) ** 2).sum())
            yield ridge, cho_solve(cho_factor(total[0] + np.diag(penalty)), total[1]), loss

    def _linear(self, z: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(linear predictors with season, the inputs of the random features); rows before `memory` are not to be used."""
        lagged = [np.roll(z, k, axis=0) for k in self.lags]
        sums = np.concatenate([np.zeros((1, z.shape[1])), np.cumsum(z, axis=0)])
        means = []
        for w in self.means:
            mean = np.zeros_like(z)
            mean[w - 1 :] = (sums[w:] - sums[:-w]) / w
            means.append(mean)
        x = np.concatenate([*lagged, *means], axis=1)
        season = harmonics(times, self.seasonal)[:, 1:]
        first = np.concatenate(lagged[: self.modulated], axis=1)
        modulated = [first * season[:, [k]] for k in range(season.shape[1])]
        plain = np.concatenate([np.ones((len(z), 1)), x, *modulated, season], axis=1)
        return plain, np.concatenate([x, harmonics(times, 1)[:, 1:]], axis=1)


@dataclass(frozen=True)
class FittedSeries:
    """A fitted `SeriesModel`; `trained_until` is the last time it has seen, `chosen` its (length scale, ridge)."""

    model: SeriesModel
    climatology: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    spread: np.ndarray = field(repr=False)
    directions: np.ndarray = field(repr=False)
    phases: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    trained_until: str
    chosen: tuple[float, float]

    def predict(self, series: xr.DataArray) -> xr.DataArray:
        """(lead, time, variable): the forecast started at each time; missing where the past is too short."""
        values, times = _values(series)
        z = (values - harmonics(times, self.model.annual) @ self.climatology) / self.scale
        plain, rich = self.model._linear(z, times)
        rich = rich / np.where(self.spread > 0, self.spread, 1)
        m = np.concatenate([plain, _cosines(rich, self.directions, self.phases)], axis=1)
        out = np.tensordot(m, self.weights, 1) * self.scale  # (time, lead, variable)
        step = time_step(series.to_dataset(name="x")) * 3600
        for k, lead in enumerate(self.model.leads):
            ahead = series["time"].values + np.timedelta64(round(lead * step), "s")
            out[:, k] += harmonics(day_of_year(ahead).astype(float), self.model.annual) @ self.climatology
        out[: self.model.memory] = np.nan
        return xr.DataArray(
            out.transpose(1, 0, 2),
            dims=("lead", "time", "variable"),
            coords={"lead": list(self.model.leads), "time": series["time"], "variable": series["variable"]},
        )


def series_baselines(
    series: xr.DataArray, leads: tuple[int, ...], train_until, annual: int = 3
) -> dict[str, xr.DataArray]:
    """Persistence, climatology and damped persistence of a (time, variable) series, fitted to the training period."""
    values, times = _values(series)
    train = np.asarray(series["time"].values <= _stamp(series, train_until))
    basis = harmonics(times, annual)
    clim = np.linalg.lstsq(basis[train], values[train], rcond=None)[0]
    anomaly = values - basis @ clim
    step = time_step(series.to_dataset(name="x")) * 3600
    out = {"persistence": [], "climatology": [], "damped_persistence": []}
    for lead in leads:
        ahead = (
            harmonics(
                day_of_year(series["time"].values + np.timedelta64(round(lead * step), "s")).astype(float), annual
            )
            @ clim
        )
        a, b = anomaly[:-lead][train[lead:]], anomaly[lead:][train[lead:]]
        rho = (a * b).sum(0) / (a * a).sum(0)
        out["persistence"].append(values)
        out["climatology"].append(ahead)
        out["damped_persistence"].append(ahead + rho * anomaly)
    coords = {"lead": list(leads), "time": series["time"], "variable": series["variable"]}
    return {n: xr.DataArray(np.stack(v), dims=("lead", "time", "variable"), coords=coords) for n, v in out.items()}


def squared_errors(forecast: xr.DataArray, series: xr.DataArray, after) -> xr.DataArray:
    """Squared errors (lead, time, variable) of forecasts started after a time; missing where the truth is, or is not yet."""
    truth = series.transpose("time", "variable").values
    errors = np.full(forecast.shape, np.nan)
    for k, lead in enumerate(forecast["lead"].values):
        errors[k, : -int(lead)] = (forecast.values[k, : -int(lead)] - truth[int(lead) :]) ** 2
    out = forecast.copy(data=errors)
    return out.isel(time=np.flatnonzero(series["time"].values > _stamp(series, after)))


def _cosines(x: np.ndarray, directions: np.ndarray, phases: np.ndarray) -> np.ndarray:
    return np.cos(x @ directions + phases) * np.sqrt(2 / max(phases.size, 1))


def _stamp(series: xr.DataArray, time):
    return np.datetime64(time, "ns") if series["time"].dtype.kind == "M" else time


def _values(series: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    if set(series.dims) != {"time", "variable"}:
        raise InputError("a series has dims (time, variable)", got=series.dims)
    time_step(series.to_dataset(name="x"))
    series = series.transpose("time", "variable")
    values = series.values.astype(np.float64)
    missing = ~np.isfinite(values)
    if missing.mean() > 0.01:
        raise InputError("more than 1 % of the series is missing", got=f"{100 * missing.mean():.1f} %")
    if missing.any():  # a predictor needs a value; targets that are missing are never scored
        index = np.arange(len(values))
        for j in range(values.shape[1]):
            bad = missing[:, j]
            values[bad, j] = np.interp(index[bad], index[~bad], values[~bad, j])
    return values, day_of_year(series["time"].values).astype(float)

"""Statistical post-processing of ensemble hindcasts: mean from model and statistics together, spread calibrated."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth.data import day_of_year
from sciax.earth.models._climatology import harmonics


@dataclass(frozen=True)
class Postprocessor:
    """Combines an ensemble, a statistical forecast and the state at the start into a calibrated ensemble.

    For every lead, ridge regression of (truth - statistical forecast) on the ensemble mean at and around the lead, its error
    at the first days (against the statistical forecast, which is sharp there), the observed state and the season. The
    variance is a + b * (ensemble variance), fitted to the residuals. Members keep their ranks: deviations are rescaled.

    Attributes:
        ridge: in units of standardised predictors.
        gap_days: starts this close to the verified group are left out of its training.
    """

    ridge: float = 5.0
    gap_days: float = 45.0

    def cross_validate(
        self,
        ensemble: xr.DataArray,
        statistical: xr.DataArray,
        state: xr.DataArray,
        truth: xr.DataArray,
    ) -> xr.DataArray:
        """Calibrated members (start, lead, member); every calendar year is forecast by a fit to the other years.

        Args:
            ensemble: (start, lead, member) hindcasts.
            statistical: (start, lead) forecast that has not seen any of the starts.
            state: (start, predictor) observed just before the start.
            truth: (start, lead), NaN where unknown.

        Raises:
            InputError: dimensions that do not match, or fewer than two years.
        """
        for name, da, dims in (
            ("ensemble", ensemble, {"start", "lead", "member"}),
            ("statistical", statistical, {"start", "lead"}),
            ("state", state, {"start", "predictor"}),
            ("truth", truth, {"start", "lead"}),
        ):
            if set(da.dims) != dims:
                raise InputError(f"{name} has the wrong dimensions", got=da.dims, expected=tuple(sorted(dims)))
        starts = ensemble["start"].values
        year = starts.astype("datetime64[Y]").astype(int)
        if np.unique(year).size < 2:
            raise InputError("cross-validation by year needs at least two years", got=np.unique(year).size)
        x = ensemble.transpose("start", "lead", "member").values.astype(np.float64)
        ar = statistical.transpose("start", "lead").values
        now = state.transpose("start", "predictor").values
        y = truth.transpose("start", "lead").values
        mean, var = x.mean(-1), x.var(-1, ddof=1)
        season = harmonics(day_of_year(starts).astype(float), 1)[:, 1:]
        deviation = x - mean[..., None]
        out = np.full_like(x, np.nan)
        day = starts.astype("datetime64[D]").astype(float)
        leads = x.shape[1]
        for k in range(leads):
            near = mean[:, max(k - 2, 0) : min(k + 3, leads)].mean(1)
            early = [mean[:, j] - ar[:, j] for j in sorted({0, min(4, leads - 1)})]
            columns = [ar[:, k], mean[:, k], near, *early, *now.T]
            m = np.column_stack([*columns, *(mean[:, [k]] * season).T, *season.T, np.ones(len(year))])
            m = _standard(m)
            target = y[:, k] - ar[:, k]
            for group in np.unique(year):
                test = year == group
                apart = np.abs(day[:, None] - day[test][None]).min(1) > self.gap_days
                train = apart & np.isfinite(target) & np.isfinite(m).all(1)
                gram = m[train].T @ m[train] + self.ridge * np.eye(m.shape[1])
                w = np.linalg.solve(gram, m[train].T @ target[train])
                residual = (target - m @ w)[train]
                # the fit's own freedom makes its residuals too small
                residual = residual * np.sqrt(train.sum() / max(train.sum() - m.shape[1], 1))
                a, b = _variance_fit(residual**2, var[train, k])
                centre = ar[test, k] + m[test] @ w
                sigma2 = a + b * var[test, k]
                members = x.shape[-1]
                # With a mean that is not the members' own sample mean, M / (M + 1) of the variance is what makes the
                # ratio of spread (with its (M + 1) / M) to error one.
                factor = np.sqrt(sigma2 * members / (members + 1) / np.maximum(var[test, k], 1e-12))
                out[test, k] = centre[:, None] + factor[:, None] * deviation[test, k]
        return ensemble.transpose("start", "lead", "member").copy(data=out)


def _standard(m: np.ndarray) -> np.ndarray:
    spread = m.std(0)
    return m / np.where(spread > 1e-12, spread, 1)


def _variance_fit(squares: np.ndarray, var: np.ndarray) -> tuple[float, float]:
    """Non-negative a, b of E[residual^2] = a + b var."""
    from scipy.optimize import nnls

    (a, b), _ = nnls(np.column_stack([np.ones_like(var), var]), squares)
    # least squares of squares is noisy: keep the mean exact
    total = a + b * var.mean()
    return (a * squares.mean() / total, b * squares.mean() / total) if total > 0 else (float(squares.mean()), 0.0)

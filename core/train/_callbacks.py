"""What may watch a training and stop it: metrics to the run, early stop, alerts, MLflow."""

import math
import os
import statistics
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from sciax.core.errors import InputError, optional_import

if TYPE_CHECKING:
    from sciax.core.jobs import Run
    from sciax.core.train._fit import Progress


class TrainingAlert(UserWarning):
    """Something unusual in a training that goes on."""


class Callback:
    """Called between compiled chunks of steps, never inside one.

    A callback with memory returns it from `state()` as JSON values and takes it back in `restore`: a checkpoint carries it, so that
    a resumed training behaves as the uninterrupted one.
    """

    def on_start(self, progress: "Progress") -> None: ...

    def on_chunk(self, progress: "Progress", steps: np.ndarray, metrics: dict[str, np.ndarray]) -> None:
        """After a chunk: `steps` (k,) numbers of the steps taken, `metrics` name -> (k,)."""

    def on_evaluation(self, progress: "Progress", values: dict[str, float]) -> None:
        """After an evaluation."""

    def on_end(self, progress: "Progress") -> None: ...

    def state(self) -> Any:
        return None

    def restore(self, state: Any) -> None: ...


class LogTo(Callback):
    """Write metrics to the run directory (metrics.jsonl), every `every` steps."""

    def __init__(self, run: "Run", every: int = 10):
        self.run, self.every = run, every

    def state(self):
        """How much of the file there was; of another run's file it says nothing."""
        path = self.run.directory / "metrics.jsonl"
        return [self.run.directory.name, path.stat().st_size if path.exists() else 0]

    def restore(self, state):
        """Cut off the lines of steps that will be taken once more."""
        name, size = state
        path = self.run.directory / "metrics.jsonl"
        if name == self.run.directory.name and path.exists() and path.stat().st_size > size:
            os.truncate(path, size)  # what appends to it goes on at the new end

    def on_chunk(self, progress, steps, metrics):
        for i in np.flatnonzero(steps % self.every == 0):
            self.run.metric(step=int(steps[i]), **{name: float(values[i]) for name, values in metrics.items()})

    def on_evaluation(self, progress, values):
        self.run.metric(step=progress.step, **{f"eval_{name}": value for name, value in values.items()})


class EarlyStop(Callback):
    """Stop when an evaluated metric has not improved by `min_delta` in `patience` evaluations."""

    def __init__(self, metric: str = "loss", patience: int = 5, min_delta: float = 0.0, maximize: bool = False):
        if patience < 1:
            raise InputError("patience counts evaluations", got=patience, expected=">= 1")
        self.metric, self.patience, self.min_delta = metric, patience, min_delta
        self.sign = -1.0 if maximize else 1.0
        self.best, self.waited = math.inf, 0

    def on_evaluation(self, progress, values):
        if self.metric not in values:
            raise InputError(
                f"early stop watches {self.metric!r}, which the evaluation does not give", got=sorted(values)
            )
        value = self.sign * values[self.metric]
        if value < self.best - self.min_delta:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
            if self.waited >= self.patience:
                progress.stop(f"{self.metric} has not improved for {self.patience} evaluations")

    def state(self):
        return [self.best if math.isfinite(self.best) else None, self.waited]

    def restore(self, state):
        self.best, self.waited = math.inf if state[0] is None else state[0], state[1]


class Alerts(Callback):
    """Warn (`TrainingAlert`) of a loss spike and of a drop in speed.

    Args:
        spike: a loss above `spike` times the median of the last `window` steps.
        slowdown: a chunk slower than 1/`slowdown` of the median of earlier chunks.
    """

    def __init__(self, spike: float = 10.0, slowdown: float = 2.0, window: int = 200):
        self.spike, self.slowdown = spike, slowdown
        self.losses: deque[float] = deque(maxlen=window)
        self.rates: deque[float] = deque(maxlen=20)

    def on_chunk(self, progress, steps, metrics):
        for step, loss in zip(steps, metrics["loss"]):
            if len(self.losses) >= 20 and loss > self.spike * (median := statistics.median(self.losses)) > 0:
                self._alert(progress, f"loss spike at step {step}: {loss:.3g}, median before {median:.3g}")
            self.losses.append(float(loss))
        rate = progress.steps_per_second
        # The first chunks hold the compilation and the choice of the chunk's length.
        if len(self.rates) >= 5 and rate * self.slowdown < (median := statistics.median(self.rates)):
            self._alert(progress, f"speed fell at step {steps[-1]}: {rate:.3g} steps/s, median before {median:.3g}")
        self.rates.append(rate)

    def _alert(self, progress, text):
        progress.alerts.append(text)
        warnings.warn(text, TrainingAlert, stacklevel=2)


class MLflow(Callback):
    """Log metrics to MLflow (extra `track`): `MLflow("burgers", uri="sqlite:///mlflow.db")`."""

    def __init__(self, experiment: str, uri: str | None = None, every: int = 10):
        self.mlflow = optional_import("mlflow", "track")
        self.experiment, self.uri, self.every = experiment, uri, every

    def on_start(self, progress):
        if self.uri is not None:
            self.mlflow.set_tracking_uri(self.uri)
        self.mlflow.set_experiment(self.experiment)
        self.mlflow.start_run()

    def on_chunk(self, progress, steps, metrics):
        for i in np.flatnonzero(steps % self.every == 0):
            self.mlflow.log_metrics({name: float(values[i]) for name, values in metrics.items()}, step=int(steps[i]))

    def on_evaluation(self, progress, values):
        self.mlflow.log_metrics({f"eval_{name}": value for name, value in values.items()}, step=progress.step)

    def on_end(self, progress):
        if progress.error is None:
            self.mlflow.end_run()
        else:
            self.mlflow.end_run("FAILED" if isinstance(progress.error, Exception) else "KILLED")

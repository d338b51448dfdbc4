"""Charts of a run's metrics: one small picture a metric, in a light and a dark version."""

import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEPS = ("step", "epoch", "iteration", "t")
"""Keys that are an axis rather than a metric, in order of preference."""

_MOST_CHARTS = 12
_MOST_POINTS = 1500
_COLOURS = {"light": ("#1f5fbf", "#1a1f27", "#c9d0d9"), "dark": ("#8ab4f8", "#e6e9ee", "#48515e")}


@dataclass
class Series:
    """One metric over the run; points that are not finite are counted, not drawn."""

    name: str
    axis: str
    x: list[float]
    y: list[float]
    broken: int = 0


def read_metrics(directory: Path) -> list[Series]:
    """Every numeric metric of metrics.jsonl. A last line cut short by a kill is passed over."""
    path = directory / "metrics.jsonl"
    found: dict[str, Series] = {}
    if not path.is_file():
        return []
    for place, text in enumerate(path.read_text(encoding="utf-8").splitlines()):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        axis = next((key for key in STEPS if isinstance(line.get(key), int | float)), "")
        for key, value in line.items():
            if key in STEPS or key == "time" or isinstance(value, bool):
                continue
            if value in ("nan", "inf", "-inf"):
                value = math.nan
            if not isinstance(value, int | float):
                continue
            series = found.setdefault(key, Series(key, axis or "line", [], []))
            if math.isnan(value):
                series.broken += 1
            else:
                series.x.append(float(line[axis]) if axis else float(place))
                series.y.append(float(value))
    return list(found.values())


def chartable(series: list[Series]) -> list[Series]:
    """Those with at least two points, the first dozen."""
    return [s for s in series if len(s.x) > 1][:_MOST_CHARTS]


def draw(series: Series, scheme: str) -> bytes:
    """PNG of one metric on a transparent ground, for a "light" or "dark" page."""
    import matplotlib
    from matplotlib.figure import Figure

    colour, ink, line = _COLOURS[scheme]
    stride = max(1, len(series.x) // _MOST_POINTS)
    x, y = series.x[::stride] + series.x[-1:], series.y[::stride] + series.y[-1:]
    style: Any = {"font.size": 8.5, "text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(3.6, 2.2), layout="constrained", facecolor="none")
        axes = figure.subplots()
        axes.set_facecolor("none")
        axes.plot(x, y, color=colour, linewidth=1.6, marker="o" if len(x) < 13 else "", markersize=3.5)
        if min(y) > 0 and max(y) / min(y) > 100:
            axes.set_yscale("log")
        axes.set_title(series.name, loc="left", fontsize=9.5, fontweight="bold")
        axes.set_title(f"last {series.y[-1]:.4g}", loc="right", fontsize=8.5)
        axes.set_xlabel(series.axis)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(line)
        axes.tick_params(color=line, which="both")
        axes.grid(axis="y", color=line, linewidth=0.5, alpha=0.6)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=180, transparent=True)
    return stream.getvalue()

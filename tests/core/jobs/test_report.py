"""report.html is one file with everything in it."""

import html.parser
import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from sciax.core._readable import prefixed
from sciax.core.jobs import _charts, run_job


class Checker(html.parser.HTMLParser):
    """Tags that balance, and what the page refers to."""

    VOID = frozenset({"meta", "img", "source", "br", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(path: Path) -> Checker:
    checker = Checker()
    checker.feed(path.read_text())
    assert checker.open == []
    return checker


def test_it_is_self_contained_and_complete(toy: ModuleType, tmp_path: Path) -> None:
    run_job("toy.root", {"steps": 6, "label": '<b>&"two"'}, out=tmp_path, seed=11)
    page = checked(tmp_path / "report.html")
    pictures = [link for link in page.links if link.startswith("data:image/png;base64,")]
    assert len(pictures) == 1 + 2 * 2  # the job's figure; x and error, light and dark
    others = [link for link in page.links if not link.startswith("data:")]
    assert others and all((tmp_path / link).exists() for link in others)
    text = (tmp_path / "report.html").read_text()
    assert "<b>&" not in text and "&lt;b&gt;&amp;" in text
    for words in (
        "square root of two (1)",
        "1.41421356",
        "math.sqrt",
        "seed 11",
        "iterations",
        "doubles the digits",
        "jaxlib",
    ):
        assert words in text, words
    assert re.search(r"changed[^>]*>6<", text)  # a setting that is not the default is marked


def test_failed_and_empty_runs_have_a_page_too(toy: ModuleType, tmp_path: Path) -> None:
    run_job("toy.root", {"steps": 1}, out=tmp_path / "a", throw=False)
    checked(tmp_path / "a" / "report.html")
    assert "the iteration did not converge" in (tmp_path / "a" / "report.html").read_text()
    run_job("toy.trouble", {"kind": "none"}, out=tmp_path / "b")
    checked(tmp_path / "b" / "report.html")


def test_metrics_that_are_broken_or_not_numbers(tmp_path: Path) -> None:
    rows = [{"time": 0.1, "step": s, "loss": v, "who": "me", "ok": True} for s, v in enumerate([3.0, "nan", 1.0])]
    text = "\n".join(map(json.dumps, [*rows, {"alone": 2}]))
    (tmp_path / "metrics.jsonl").write_text(text + '\n{"step": 3, "lo')  # the last line was cut by a kill
    found = {series.name: series for series in _charts.read_metrics(tmp_path)}
    assert set(found) == {"loss", "alone"}
    assert (found["loss"].x, found["loss"].y, found["loss"].broken) == ([0.0, 2.0], [3.0, 1.0], 1)
    assert [s.name for s in _charts.chartable(list(found.values()))] == ["loss"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_chart_is_a_picture_also_of_many_points(scheme: str) -> None:
    x = np.arange(10000.0)
    png = _charts.draw(_charts.Series("loss", "step", list(x), list(np.exp(-x / 1000))), scheme)
    assert png.startswith(b"\x89PNG") and len(png) < 60_000


def test_sizes() -> None:
    assert [prefixed(n, "B") for n in (0, 999, 1500, 999_900, 2.5e6, 3e12)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "1 MB",
        "2.5 MB",
        "3 TB",
    ]
    assert prefixed(2e6) == "2 M"

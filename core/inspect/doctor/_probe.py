"""What a probe is: one small function that computes something whose answer is known, and says both."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Measured:
    """What a probe found: `got` beside `expected`.

    Attributes:
        got, expected: arrays (or numbers) of the same shape.
        tolerance: bound on max|got - expected| / max|expected|; 0 asks for equality.
        detail: words for the table.
    """

    got: Any
    expected: Any
    tolerance: float = 0.0
    detail: str = ""

    @property
    def error(self) -> float:
        """max|got - expected| / max|expected|; infinite where shapes differ or a value is not finite."""
        got, expected = np.asarray(self.got), np.asarray(self.expected)
        if got.shape != expected.shape:
            return float("inf")
        if got.dtype.kind not in "biufc" or expected.dtype.kind not in "biufc":
            return 0.0 if np.array_equal(got, expected) else float("inf")
        if got.size == 0:
            return 0.0
        got, expected = (a.astype(complex if a.dtype.kind == "c" else float) for a in (got, expected))
        if not np.isfinite(got).all():
            return float("inf")
        scale = float(np.abs(expected).max())
        return float(np.abs(got - expected).max()) / (scale or 1.0)


@dataclass(frozen=True)
class Probe:
    """One line of the doctor's table.

    Attributes:
        name: short name.
        claim: what is compared with what.
        check: computes with the subject and returns what it found.
        subject: the thing under test; a test replaces it by a faulty one.
        remedy: what to do when it fails.
        informative: reported, and only fails where the thing is there and broken.
    """

    name: str
    claim: str
    check: Callable[[Any], Measured]
    subject: Any
    remedy: str
    informative: bool = False


@dataclass(frozen=True)
class Finding:
    """How one probe went. `error` is relative; `message` says what an exception said."""

    name: str
    claim: str
    passed: bool
    error: float | None
    tolerance: float | None
    seconds: float
    detail: str
    message: str
    remedy: str
    informative: bool


PROBES: dict[str, Probe] = {}

_REINSTALL = "install matching jax and jaxlib: pip install --force-reinstall 'jax>=0.11'"


def probe(
    name: str, claim: str, *, subject: Any, remedy: str = _REINSTALL, informative: bool = False
) -> Callable[[Callable[[Any], Measured]], Callable[[Any], Measured]]:
    """Put the decorated function into the table of probes."""

    def register(check: Callable[[Any], Measured]) -> Callable[[Any], Measured]:
        PROBES[name] = Probe(name, claim, check, subject, remedy, informative)
        return check

    return register


def examine(probe: Probe) -> Finding:
    """Run one probe. Whatever it raises is a failure of that probe, not of the doctor."""
    start = time.perf_counter()
    error: float | None = None
    tolerance: float | None = None
    detail = message = ""
    try:
        found = probe.check(probe.subject)
        error, tolerance, detail = found.error, found.tolerance, found.detail
        passed = error <= tolerance
        if not passed:
            message = f"off by {error:.3g} relative, allowed {tolerance:.3g}"
    except Exception as raised:
        passed = False
        message = "".join(traceback.format_exception_only(raised)).strip()
    seconds = round(time.perf_counter() - start, 3)
    remedy = "" if passed else probe.remedy
    return Finding(
        probe.name, probe.claim, passed, error, tolerance, seconds, detail, message, remedy, probe.informative
    )

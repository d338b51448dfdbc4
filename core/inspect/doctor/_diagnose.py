"""All probes, and how they are shown."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from sciax.core.inspect.doctor._numbers import MISCOMPILE
from sciax.core.inspect.doctor._probe import PROBES, Finding, Probe, examine

_ALONGSIDE = ("two processes",)
"""Probes that mostly wait for other processes: they run beside the rest."""


@dataclass(frozen=True)
class Diagnosis:
    """What the doctor found."""

    findings: tuple[Finding, ...]
    versions: dict[str, str]
    platform: dict[str, Any]

    @property
    def ok(self) -> bool:
        return all(finding.passed for finding in self.findings)

    @property
    def usable(self) -> bool:
        """False where jax itself computes wrong numbers."""
        return all(finding.passed for finding in self.findings if finding.name == MISCOMPILE)

    def as_json(self) -> dict[str, Any]:
        """Plain values; errors that are infinite become None."""
        findings = []
        for finding in self.findings:
            values = asdict(finding)
            if values["error"] is not None and values["error"] == float("inf"):
                values["error"] = None
            findings.append(values)
        return {
            "ok": self.ok,
            "usable": self.usable,
            "versions": self.versions,
            "platform": self.platform,
            "probes": findings,
        }


def diagnose(
    probes: Iterable[Probe] | None = None, seen: Callable[[Finding], None] = lambda finding: None
) -> Diagnosis:
    """Run the probes (all of them by default); `seen` is called after each."""
    from sciax.core.jobs._record import machine, versions

    chosen = list(PROBES.values()) if probes is None else list(probes)
    found: dict[str, Finding] = {}
    with ThreadPoolExecutor(max_workers=len(_ALONGSIDE)) as pool:
        waiting = {p.name: pool.submit(examine, p) for p in chosen if p.name in _ALONGSIDE}
        for each in chosen:
            if each.name not in waiting:
                found[each.name] = examine(each)
                seen(found[each.name])
        for name, future in waiting.items():
            found[name] = future.result()
            seen(found[name])
    return Diagnosis(tuple(found[p.name] for p in chosen), versions(), machine())

"""The registry of jobs.

Core knows no domain: packages name a module under the entry-point group `sciax.jobs`, and importing that module registers its
jobs. A package whose module fails to import is remembered with its error, and the others keep working.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from sciax.core.errors import ConfigError, InputError, MissingDependencyError, did_you_mean
from sciax.core.jobs._config import JobConfig, default_of
from sciax.core.jobs._outcome import Outcome

if TYPE_CHECKING:
    from sciax.core.jobs._run import Run

GROUP = "sciax.jobs"

C = TypeVar("C", bound=JobConfig)
JobFunction = Callable[[C, "Run"], Outcome | None]


@dataclass(frozen=True)
class Job:
    """One registered job; see `job` for the fields."""

    name: str
    config: type[JobConfig]
    function: Callable[[Any, "Run"], Outcome | None]
    summary: str
    tour: bool
    x64: bool

    @property
    def domain(self) -> str:
        return self.name.partition(".")[0]


_JOBS: dict[str, Job] = {}
_FAILURES: dict[str, Exception] = {}
_LOADED: set[str] = set()


def job(
    name: str, config: type[C], *, summary: str, tour: bool = False, x64: bool = True
) -> Callable[[JobFunction[C]], JobFunction[C]]:
    """Register the decorated function as job `name` ("domain.job") and return it unchanged.

    Args:
        config: the job's config class; every field has a default, so that the job runs with no arguments.
        summary: one line for `sciax list`.
        tour: part of `sciax tour`, on its defaults; under about 20 seconds.
        x64: 64-bit arrays switched on while it runs.

    Raises:
        InputError: a name not of the form "domain.job" or used twice; a config field without a default, or one that may be
            None and has another default.
    """
    domain, dot, short = name.partition(".")
    if not (domain and dot and short):
        raise InputError(f"job name {name!r} is not of the form 'domain.job'")
    _check_fields(name, config)

    def register(function: JobFunction[C]) -> JobFunction[C]:
        known = _JOBS.get(name)
        # A module that is reloaded registers the same function again; two different functions may not share a name.
        if known is not None and (known.function.__module__, known.function.__qualname__) != (
            function.__module__,
            function.__qualname__,
        ):
            raise InputError(f"job {name!r} is registered twice", got=function, expected=known.function)
        _JOBS[name] = Job(name=name, config=config, function=function, summary=summary, tour=tour, x64=x64)
        return function

    return register


def _check_fields(name: str, config: type[JobConfig]) -> None:
    if not (isinstance(config, type) and issubclass(config, JobConfig)):
        raise InputError(f"job {name!r}: the config is not a JobConfig class", got=config)
    for key, field in config.model_fields.items():
        if field.is_required():
            raise InputError(
                f"job {name!r}: config field {key!r} has no default", remedy="a job runs with no arguments: give it one"
            )
        default = default_of(field)
        if default is not None and type(None) in getattr(field.annotation, "__args__", ()):
            raise InputError(
                f"job {name!r}: config field {key!r} may be None but has another default",
                got=default,
                expected="None, or a type without None",
                remedy="TOML has no null, so a recorded None would come back as the default",
            )


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _load(entry: EntryPoint) -> None:
    if entry.name in _LOADED:
        return
    _LOADED.add(entry.name)
    try:
        entry.load()
    except Exception as error:  # whatever a domain raises on import must not take the others with it
        _FAILURES[entry.name] = error


def registry() -> dict[str, Job]:
    """All registered jobs: domains in the order of their entry points, a domain's jobs in the order they are written."""
    entries = _entries()
    for entry in entries.values():
        _load(entry)
    order = {domain: place for place, domain in enumerate(entries)}
    return {job.name: job for job in sorted(_JOBS.values(), key=lambda job: order.get(job.domain, len(order)))}


def loaded() -> dict[str, Job]:
    """The jobs registered so far, loading none."""
    return dict(_JOBS)


def failures() -> dict[str, Exception]:
    """Domains whose jobs could not be loaded, with the error of each."""
    return dict(_FAILURES)


def find(name: str) -> Job:
    """The job of that name. Loads only its own domain where the name says which that is.

    Raises:
        MissingDependencyError: its domain does not import.
        ConfigError: no such job; the message names the nearest.
    """
    if name not in _JOBS and (entry := _entries().get(name.partition(".")[0])) is not None:
        _load(entry)
    if name in _JOBS:
        return _JOBS[name]
    known = registry()
    if name in known:
        return known[name]
    domain = name.partition(".")[0]
    if domain in _FAILURES:
        error = _FAILURES[domain]
        raise MissingDependencyError(
            f"the jobs of {domain!r} cannot be loaded",
            got=f"{type(error).__name__}: {error}",
            expected=f"an importable module {_entries()[domain].value}",
        ) from error
    raise ConfigError(f"no job is named {name!r}", got=name, remedy=did_you_mean(name, known))

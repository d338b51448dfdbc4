"""Jobs: typed configs, the registry, run directories, reports, the command line.

A job is a config class and a function, registered by name:

    class VqeConfig(JobConfig):
        steps: int = Field(60, gt=0, description="optimiser steps")

    @job("quantum.vqe", VqeConfig, summary="Ground state of a molecule", tour=True)
    def vqe(config: VqeConfig, run: Run) -> Outcome: ...

`sciax run quantum.vqe --set steps=20` runs it into a directory of its own; `run_job("quantum.vqe", {"steps": 20}, out=folder)`
does the same from Python.

The names below load on first use: the command line lives in this package, and `sciax --help` need not wait for pydantic.
"""

from typing import TYPE_CHECKING

from sciax.core._lazy import attach

if TYPE_CHECKING:
    from sciax.core.jobs._config import InputFile as InputFile
    from sciax.core.jobs._config import JobConfig as JobConfig
    from sciax.core.jobs._execute import run_job as run_job
    from sciax.core.jobs._outcome import Outcome as Outcome
    from sciax.core.jobs._record import Record as Record
    from sciax.core.jobs._registry import Job as Job
    from sciax.core.jobs._registry import job as job
    from sciax.core.jobs._registry import registry as registry
    from sciax.core.jobs._run import Run as Run

__getattr__, __dir__ = attach(
    __name__,
    {
        "InputFile": "_config",
        "Job": "_registry",
        "JobConfig": "_config",
        "Outcome": "_outcome",
        "Record": "_record",
        "Run": "_run",
        "job": "_registry",
        "registry": "_registry",
        "run_job": "_execute",
    },
)

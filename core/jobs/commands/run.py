"""`sciax run`."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer


def runs_root() -> Path:
    """Where run directories are made: $SCIAX_RUNS, else ./runs."""
    return Path(os.environ.get("SCIAX_RUNS") or "runs")


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    target: Annotated[
        str, typer.Argument(metavar="JOB|FILE.toml", help="A job's name (`sciax list`) or a config file.")
    ],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: --set solver.tol=1e-9.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the config and what would be done; write nothing.")
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the run; else the file's, else 0.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Run directory; else a new one in $SCIAX_RUNS or runs/.")
    ] = None,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Time every operation: a table here, ops.csv and a trace in the run directory."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the unfinished run in --out DIR, if there is one.")
    ] = False,
    help_config: Annotated[bool, typer.Option("--help-config", help="Show the job's settings and exit.")] = False,
) -> None:
    """Run a job into a directory of its own: config, metrics, outputs, report."""
    from sciax.core.jobs._console import console
    from sciax.core.jobs._execute import Stopped, new_directory, run_job
    from sciax.core.jobs._resolve import resolve

    if help_config and not target.endswith(".toml"):
        from sciax.core.jobs.commands.list import list_jobs

        list_jobs(target)
        return
    request = resolve(target, settings or (), seed)
    if dry_run:
        _plan(request, out)
        return
    directory = _own_directory(out or new_directory(runs_root(), request.job.name))
    try:
        record = run_job(
            request.job,
            request.config,
            out=directory,
            seed=request.seed,
            console=console(stderr=True),
            profile=profile,
            throw=False,
            command=["sciax", *sys.argv[1:]],
            resume=resume,
        )
    except Stopped:  # before the job began
        raise typer.Exit(130) from None
    raise typer.Exit(show(record, directory))


def _own_directory(directory: Path) -> Path:
    """Join the other processes where a launcher started several; all but the first write beside its run directory."""
    from sciax.core.parallel._environment import detect

    rank = detect().rank
    if detect().size > 1:
        from sciax.core.parallel._initialize import initialize

        initialize()
    return directory if rank == 0 else directory.with_name(f"{directory.name}.rank{rank}")


def show(record: Any, directory: Path) -> int:
    """Print how a run ended; returns the exit code."""
    from sciax.core.jobs._console import console, error_panel, near, number

    out = console()
    if not out.is_terminal:
        for line in record.progress:
            if not line.startswith(f"{record.job}:"):
                print(line)
    table = directory / "profile" / "ops.txt"
    if table.is_file():
        print(table.read_text(encoding="utf-8"))
    outcome = record.outcome
    if outcome is not None:
        line = f"{outcome['quantity']} = {number(outcome['value'], 9)}"
        if outcome["reference"] is not None:
            line += f", reference {number(outcome['reference'], 9)}"
        if outcome["error"] is not None:
            line += f", error {number(outcome['error'], 3)}"
        if outcome["source"]:
            line += f" ({outcome['source']})"
        print(line)
    if record.status == "failed":
        details = dict(record.error)
        if details["type"] != "Tolerance" and details["got"] is None and details["remedy"] is None:
            details["remedy"] = f"the traceback is in {near(directory / 'log.txt')}"
        error_panel(details["type"], details)
    print(f"{record.status} in {record.seconds:.1f} s: {near(directory / 'report.html')}")
    return exit_code(record)


def exit_code(record: Any) -> int:
    """0 completed, 1 failed, 128 + signal where it was stopped by one, as shells count."""
    if record.status == "interrupted":
        return 128 + getattr(signal, record.error["type"])
    return 0 if record.status == "completed" else 1


def _plan(request: Any, out: Path | None) -> None:
    """What a run would do. The config has been checked by now, files that it names among the rest."""
    from sciax.core.jobs import _toml
    from sciax.core.jobs._console import near
    from sciax.core.jobs._execute import check_free

    if out is not None:
        check_free(out)
    plain = request.config.model_dump(mode="json")
    print(_toml.dumps({"job": request.job.name, "seed": request.seed, "config": plain}))
    print(f"would run    {request.job.name}: {request.job.summary}")
    for name, path in _paths(request.config):
        print(f"would use    {name} = {path} ({'there' if path.exists() else 'not there yet'})")
    where = near(out) if out is not None else f"{runs_root()}{os.sep}{request.job.name}-<time>-<id>"
    print(f"would write  {where}{os.sep}: config.toml, run.json, metrics.jsonl, log.txt, outputs/, report.html")
    print(f"64-bit       {'on' if request.job.x64 else 'off'}")
    print("nothing has been written")


def _paths(config: Any, prefix: str = "") -> Iterator[tuple[str, Path]]:
    for name, value in config:
        if isinstance(value, Path):
            yield prefix + name, value
        elif hasattr(value, "model_fields_set"):
            yield from _paths(value, f"{prefix}{name}.")

"""`sciax submit`."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("submit")(submit)


def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="A job file, as for `sciax run`.")],
    nodes: Annotated[int, typer.Option(min=1)] = 1,
    time: Annotated[str, typer.Option(metavar="HH:MM:SS", help="Time limit.")] = "01:00:00",
    tasks_per_node: Annotated[int, typer.Option(min=1, help="Processes on each node.")] = 1,
    cpus_per_task: Annotated[int | None, typer.Option(min=1)] = None,
    gpus_per_node: Annotated[int | None, typer.Option(min=1)] = None,
    mem: Annotated[str | None, typer.Option(help="Memory a node, 64G say.")] = None,
    partition: Annotated[str | None, typer.Option()] = None,
    account: Annotated[str | None, typer.Option()] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="KEY=V1,V2,...",
            help="Values of a setting; several make a job array of all combinations.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of all runs.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of script and runs; else submitted/NAME.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and print the script; write nothing.")] = False,
) -> None:
    """Write a Slurm batch script for a job file and submit it. A preempted run saves, requeues and resumes."""
    from sciax.core.errors import ConfigError
    from sciax.core.parallel._submit import Resources
    from sciax.core.parallel._submit import submit as hand_in

    values: dict[str, list[str]] = {}
    for item in sweep or ():
        key, equals, text = item.partition("=")
        if not (key and equals and text):
            raise ConfigError("--sweep takes KEY=V1,V2,...", got=f"--sweep {item}", expected="--sweep order=1,2")
        values[key] = [value for value in text.split(",") if value]
    resources = Resources(nodes, time, tasks_per_node, cpus_per_task, gpus_per_node, mem, partition, account)
    submission = hand_in(file, resources=resources, sweep=values, settings=settings or (), folder=out, dry_run=dry_run)
    if dry_run:
        print(submission.script, end="")
        return
    runs = f"{len(submission.cases)} runs" if len(submission.cases) > 1 else "1 run"
    print(f"submitted batch job {submission.number}: {runs}, script and results in {submission.folder}")

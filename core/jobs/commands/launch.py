"""`sciax launch`."""

from pathlib import Path
from typing import Annotated

import typer

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
"""What stands after the script belongs to the script."""


def register(app: typer.Typer) -> None:
    app.command("launch", context_settings=_PASS_ON)(launch)


def launch(
    context: typer.Context,
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT.py|-m MODULE", help="What each process runs; its arguments follow.")
    ],
    processes: Annotated[int, typer.Option("-n", "--processes", min=1, help="Processes on this host.")] = 2,
    logs: Annotated[Path, typer.Option("--logs", metavar="DIR", help="Folder of the logs, one a rank.")] = Path("logs"),
    hosts: Annotated[int, typer.Option(min=1, help="Hosts; run the same command on each.")] = 1,
    host_rank: Annotated[int, typer.Option(min=0, help="Number of this host.")] = 0,
    coordinator: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address on host 0; needed with --hosts.")
    ] = None,
    stall: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="End all when a rank's training stands still so long.")
    ] = None,
    devices: Annotated[int | None, typer.Option(min=1, help="Virtual CPU devices in each process.")] = None,
) -> None:
    """Start a script as several processes that JAX's distributed runtime joins (call sciax.core.parallel.initialize())."""
    from sciax.core.jobs._console import error_panel
    from sciax.core.parallel._launch import launch as start

    result = start(
        [script, *context.args],
        processes,
        logs=logs,
        hosts=hosts,
        host_rank=host_rank,
        coordinator=coordinator,
        stall=stall,
        devices=devices,
    )
    if result.code:
        details = {"message": result.reason, "got": None, "expected": None, "remedy": f"logs in {logs}/"}
        if result.tail:
            details["message"] += "\n\n" + result.tail
        error_panel("LaunchError", details)
    raise typer.Exit(result.code)

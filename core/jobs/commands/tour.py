"""`sciax tour`."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("tour")(run_tour)


def run_tour(
    only: Annotated[
        str, typer.Option("--only", metavar="A,B", help="Only these domains or jobs: science,quantum.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder; else a new one in $SCIAX_RUNS or runs/.")
    ] = None,
) -> None:
    """Run the main job of each domain on its built-in input, and show what came of it."""
    from rich.table import Table
    from rich.text import Text

    from sciax.core.errors import ConfigError
    from sciax.core.jobs import _registry
    from sciax.core.jobs._console import console, near
    from sciax.core.jobs._execute import claim, new_directory
    from sciax.core.jobs._tour import COLUMNS, choose, row, tour
    from sciax.core.jobs.commands.list import show_failures
    from sciax.core.jobs.commands.run import exit_code, runs_root

    wanted = [name.strip() for name in only.split(",")] if only else []
    jobs = choose(wanted)
    missing = [name for name in _registry.failures() if not wanted or name in wanted]
    if not jobs and not missing:
        raise ConfigError("no job of the tour is installed", remedy="`sciax list` shows what there is")
    directory = claim(out or new_directory(runs_root(), "tour"))
    screen, err = console(), console(stderr=True)
    table = Table(title="sciax tour", title_justify="left")
    for place, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if place < 2 else "right", no_wrap=place not in (1,), overflow="fold")
    records = []
    for job, record in tour(jobs, directory, err):
        records.append(record)
        mark = "[green]done[/]" if record.status == "completed" else f"[red]{record.status}[/]"
        screen.print(f"{mark} {job.name} in {record.seconds:.1f} s", soft_wrap=True)
        style = "" if record.status == "completed" else "red"
        table.add_row(*(Text(cell, style=style) for cell in row(record)))
    for name in missing:
        table.add_row(*(Text(cell, style="red") for cell in (name, "could not be loaded", "", "", "", "")))
    if screen.is_terminal:
        screen.print()
    screen.print(table)
    show_failures(screen)
    print(f"report: {near(directory / 'index.html')}")
    if any(record.status == "interrupted" for record in records):
        raise typer.Exit(exit_code(records[-1]))
    raise typer.Exit(1 if missing or any(record.status != "completed" for record in records) else 0)

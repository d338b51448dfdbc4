"""`sciax list`."""

from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    app.command("list")(list_jobs)


def list_jobs(
    job: Annotated[str | None, typer.Argument(help="Show this job's settings in full.")] = None,
) -> None:
    """The jobs that are installed; with a name, the settings of that one."""
    from sciax.core.jobs import _registry
    from sciax.core.jobs._console import console
    from sciax.core.jobs._describe import fields_table, jobs_table

    out = console()
    if job is not None:
        found = _registry.find(job)
        out.print(f"[bold]{found.name}[/]  {found.summary}")
        out.print(fields_table(found.config))
        out.print(f"[dim]sciax run {found.name} --set KEY=VALUE[/]")
        return
    out.print(jobs_table(_registry.registry().values()))
    show_failures(out)


def show_failures(out: Any) -> None:
    """Name the domains that could not be loaded."""
    from sciax.core.jobs import _registry

    for domain, error in _registry.failures().items():
        first = str(error).splitlines()[0] if str(error) else ""
        out.print(f"[yellow]not loaded:[/] {domain}: {type(error).__name__}: {first}", soft_wrap=True)

"""`sciax runs list | show | compare | rerun`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

Root = Annotated[
    Path, typer.Option("--runs", metavar="DIR", envvar="SCIAX_RUNS", help="Folder of the runs.", show_default=True)
]
Name = Annotated[str, typer.Argument(metavar="RUN", help='A run: path, name, start or end of the name, or "last".')]

runs = typer.Typer(no_args_is_help=True, help="Look at former runs: list, show, compare, rerun.")


def register(app: typer.Typer) -> None:
    app.add_typer(runs, name="runs")


def _table(*columns: str) -> Any:
    from rich.table import Table

    return Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="bold")


@runs.command("list")
def list_runs(root: Root = Path("runs"), job: Annotated[str, typer.Option(help="Only runs of this job.")] = "") -> None:
    """The runs, newest last."""
    from rich.text import Text

    from sciax.core.jobs._compare import find_runs
    from sciax.core.jobs._console import console, number

    colours = {"completed": "green", "failed": "red", "died": "red"}
    table = _table("run", "status", "started (UTC)", "seconds", "quantity", "value", "error")
    found = [run for run in find_runs(root) if not job or run.record.job == job]
    for run in found:
        record, outcome = run.record, run.record.outcome or {}
        status = record.shown_status
        table.add_row(
            str(run.directory.relative_to(root)),
            Text(status, style=colours.get(status, "yellow")),
            record.started[:19].replace("T", " "),
            f"{record.seconds:.1f}",
            outcome.get("quantity", ""),
            number(outcome.get("value"), 8),
            number(outcome.get("error"), 3),
        )
    console().print(table if found else f"no runs in {root}")


@runs.command("show")
def show_run(name: Name, root: Root = Path("runs")) -> None:
    """Everything recorded about one run."""
    from sciax.core.jobs._compare import locate
    from sciax.core.jobs._console import console, near, number
    from sciax.core.jobs._report import flat

    run = locate(root, name)
    record, out = run.record, console()
    out.print(f"[bold]{record.job}[/]  {record.summary}")
    table = _table("", "")
    rows: list[tuple[str, Any]] = [
        ("status", record.shown_status),
        ("started", record.started),
        ("seconds", f"{record.seconds:.1f}"),
        ("seed", record.seed),
    ]
    if record.outcome:
        rows += [
            (key, number(v, 12) if isinstance(v, float) else v) for key, v in record.outcome.items() if v is not None
        ]
    if record.error:
        rows += [(f"error {key}", value) for key, value in record.error.items() if value is not None]
    rows += [(f"config {key}", value) for key, value in flat(record.config)]
    rows += [("input", f"{item['path']} sha256 {item['sha256'][:16]}") for item in record.inputs]
    rows += [("output", near(run.directory / item["path"])) for item in record.outputs]
    if record.git:
        rows.append(("git", record.git["commit"][:12] + (" with uncommitted changes" if record.git["dirty"] else "")))
    rows += [
        ("version", f"{key} {value}") for key, value in record.versions.items() if key in ("sciax", "python", "jax")
    ]
    rows.append(("report", near(run.directory / "report.html")))
    for key, value in rows:
        table.add_row(f"[dim]{key}[/]", _plain(value))
    out.print(table)


def _plain(value: Any) -> Any:
    from rich.text import Text

    return Text("-" if value is None else str(value))


@runs.command("compare")
def compare_runs(first: Name, second: Name, root: Root = Path("runs")) -> None:
    """What differs between two runs: settings, seed, outcome, inputs, versions."""
    from sciax.core.jobs._compare import differences, locate
    from sciax.core.jobs._console import console

    a, b = locate(root, first), locate(root, second)
    out = console()
    table = _table("", *(f"{run.directory.parent.name}/{run.directory.name}" for run in (a, b)))
    count = 0
    for title, left, right in _aspects(a.record, b.record):
        for name, x, y in differences(left, right):
            table.add_row(f"[dim]{title}[/] {name}", _plain(x), _plain(y))
            count += 1
    out.print(table if count else "the two runs do not differ in settings, seed, outcome, inputs or versions")
    _say_agreement(a.record, b.record)


def _aspects(a: Any, b: Any) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    return [
        ("", {"job": a.job, "seed": a.seed, "status": a.status}, {"job": b.job, "seed": b.seed, "status": b.status}),
        ("config", a.config, b.config),
        ("outcome", a.outcome or {}, b.outcome or {}),
        ("input", {i["path"]: i["sha256"][:16] for i in a.inputs}, {i["path"]: i["sha256"][:16] for i in b.inputs}),
        ("version", a.versions, b.versions),
        ("git", a.git or {}, b.git or {}),
    ]


def _say_agreement(a: Any, b: Any, rtol: float = 0.0) -> bool:
    from sciax.core.jobs._compare import agreement

    found = agreement(a, b)
    if found is None:
        print("the outcomes cannot be compared")
        return False
    if found.identical:
        print("outcome: identical")
    else:
        print(
            f"outcome: differs by {found.relative:.3g} relative"
            + (f", within {rtol:g}" if found.relative <= rtol else "")
        )
    return found.relative <= rtol


@runs.command("rerun")
def rerun(
    name: Name,
    root: Root = Path("runs"),
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Run directory; else a new one.")] = None,
    rtol: Annotated[
        float, typer.Option(help="Relative difference of the outcome that still counts as reproduced.")
    ] = 0.0,
) -> None:
    """Run again from the recorded config and seed, and say whether the outcome is the same (exit code 1 where not)."""
    from sciax.core.jobs import _record
    from sciax.core.jobs._compare import differences, locate
    from sciax.core.jobs._console import console
    from sciax.core.jobs._execute import new_directory, run_job
    from sciax.core.jobs._resolve import resolve
    from sciax.core.jobs.commands.run import show

    former = locate(root, name)
    request = resolve(str(former.directory / "config.toml"))
    for item in former.record.inputs:
        path = Path(item["path"])
        if path.exists() and _record.hash_path(path)[0] != item["sha256"]:
            print(f"note: the input {path} has changed since that run", file=sys.stderr)
    directory = out or new_directory(root, request.job.name)
    record = run_job(
        request.job,
        request.config,
        out=directory,
        seed=request.seed,
        console=console(stderr=True),
        throw=False,
        command=["sciax", *sys.argv[1:]],
    )
    code = show(record, directory)
    if code:
        raise typer.Exit(code)
    same = _say_agreement(former.record, record, rtol)
    if not same:
        for key, x, y in differences(former.record.versions, record.versions):
            print(f"  version of {key}: {x} then, {y} now")
    raise typer.Exit(0 if same else 1)

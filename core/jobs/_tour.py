"""The tour: the main job of each domain, one after the other, on its defaults."""

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sciax.core.errors import ConfigError, did_you_mean
from sciax.core.jobs import _registry
from sciax.core.jobs._console import number
from sciax.core.jobs._execute import run_job
from sciax.core.jobs._record import Record
from sciax.core.jobs._registry import Job
from sciax.core.jobs._report import error_section, page, pictures_section

COLUMNS = ("job", "quantity", "value", "reference", "error", "seconds")


def choose(only: Iterable[str] = ()) -> list[Job]:
    """The jobs of the tour, or those of the domains (or names) in `only`.

    Raises:
        ConfigError: a name that is neither a domain nor a job of the tour.
    """
    jobs = [job for job in _registry.registry().values() if job.tour]
    wanted = [name for name in only if name]
    if not wanted:
        return jobs
    known = {job.domain for job in jobs} | {job.name for job in jobs} | set(_registry.failures())
    for name in wanted:
        if name not in known:
            raise ConfigError(f"the tour has nothing named {name!r}", got=name, remedy=did_you_mean(name, known))
    return [job for job in jobs if job.domain in wanted or job.name in wanted]


def tour(jobs: Iterable[Job], directory: Path, console: Any = None) -> Iterator[tuple[Job, Record]]:
    """Run each job into `directory/NAME`, going on when one fails; stops after one that was interrupted."""
    done: list[Record] = []
    for job in jobs:
        record = run_job(job, out=directory / job.name, console=console, throw=False, command=["sciax", "tour"])
        done.append(record)
        write_index(directory, done)
        yield job, record
        if record.status == "interrupted":
            return


def row(record: Record) -> list[str]:
    """A record as a row of the final table."""
    seconds = f"{record.seconds:.1f}"
    if record.outcome is None:
        words = record.status
        if record.error is not None and record.status == "failed":
            words += f": {record.error['type']}: {record.error['message'].partition(chr(10))[0]}"
        return [record.job, words, "", "", "", seconds]
    outcome = record.outcome
    numbers = [number(outcome["value"], 8), number(outcome["reference"], 8), number(outcome["error"], 3)]
    return [record.job, outcome["quantity"], *numbers, seconds]


def write_index(directory: Path, records: list[Record]) -> Path:
    """index.html: the table, and each job's pictures with a link to its report."""
    head = "".join(f"<th{'' if n < 2 else ' class=n'}>{name}</th>" for n, name in enumerate(COLUMNS))
    rows, sections = [], []
    for record in records:
        link = f"{quote(record.id)}/report.html"
        cells = row(record)
        first = f'<td class="name"><a href="{link}">{escape(cells[0])}</a></td><td>{escape(cells[1])}</td>'
        rest = "".join(f'<td class="n">{escape(cell)}</td>' for cell in cells[2:])
        rows.append(f"<tr>{first}{rest}</tr>")
        pictures = (
            pictures_section(directory / record.id, record, f"{record.id}/")
            .removeprefix("<section>")
            .removesuffix("</section>")
        )
        problem = error_section(record).removeprefix("<section>").removesuffix("</section>")
        sections.append(
            f'<section><h2><a href="{link}">{escape(record.job)}</a><small>{escape(record.summary)}</small> '
            f'<span class="pill {record.status}">{record.status}</span></h2>{problem}{pictures}</section>'
        )
    total = sum(record.seconds for record in records)
    good = sum(record.status == "completed" for record in records)
    started = records[0].started.replace("T", " ").replace("+00:00", " UTC") if records else ""
    facts = [f"{good} of {len(records)} completed", started, f"{total:.1f} s", f"sciax {records[0].versions['sciax']}"]
    body = (
        '<header><h1>sciax tour</h1><p class="lead">The main job of each domain, on its built-in input.</p>'
        f'<div class="facts">{"".join(f"<span>{escape(fact)}</span>" for fact in facts)}</div></header>'
        f'<section><div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div></section>{"".join(sections)}'
    )
    path = directory / "index.html"
    path.write_text(page("sciax tour", body), encoding="utf-8")
    return path

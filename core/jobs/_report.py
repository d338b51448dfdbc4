"""report.html: one file that a person can read, with everything in it."""

import base64
import struct
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sciax.core._readable import prefixed
from sciax.core.jobs import _charts, _registry
from sciax.core.jobs._console import number
from sciax.core.jobs._describe import fields
from sciax.core.jobs._record import Record
from sciax.core.jobs._style import CSS

_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".svg": "image/svg+xml",
    ".gif": "image/gif",
}


def write_report(directory: Path, record: Record) -> Path:
    """Write report.html of a run directory and return its path."""
    parts = [
        _header(record),
        error_section(record),
        outcome_section(record),
        pictures_section(directory, record),
        _metrics(directory),
        _notes(record),
        _config(record),
        _files(directory, record),
        _surroundings(record),
    ]
    path = directory / "report.html"
    path.write_text(page(f"{record.job}: {record.summary}", "\n".join(parts)), encoding="utf-8")
    return path


def page(title: str, body: str) -> str:
    """A whole page around a body."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{CSS}</style></head>
<body><main>
{body}
<footer>written by sciax</footer>
</main></body></html>
"""


def _header(record: Record) -> str:
    facts = [
        f'<span class="pill {record.status}">{record.status}</span>',
        f"<span>{escape(record.started.replace('T', ' ').replace('+00:00', ' UTC'))}</span>",
        f"<span>{record.seconds:.1f} s</span>",
        f"<span>seed {record.seed}</span>",
        f"<span>{'64' if record.x64 else '32'}-bit</span>",
    ]
    return (
        f'<header><h1>{escape(record.job)}</h1><p class="lead">{escape(record.summary)}</p>'
        f'<div class="facts">{"".join(facts)}</div></header>'
    )


def outcome_section(record: Record) -> str:
    """The outcome as a row of numbers."""
    outcome = record.outcome
    if outcome is None:
        return ""
    cells = [(outcome["quantity"], number(outcome["value"], 9), "")]
    if outcome["reference"] is not None:
        cells.append(("reference", number(outcome["reference"], 9), ""))
    if outcome["error"] is not None:
        cells.append(("error", number(outcome["error"], 3), ""))
    if outcome["tolerance"] is not None:
        cells.append(("tolerance", number(outcome["tolerance"], 3), ""))
    if outcome["source"]:
        cells.append(("source of the reference", outcome["source"], "words"))
    rows = "".join(f'<div><dt>{escape(k)}</dt><dd class="{c}">{escape(v)}</dd></div>' for k, v, c in cells)
    return f'<section><dl class="numbers">{rows}</dl></section>'


def error_section(record: Record) -> str:
    """What went wrong, where something did."""
    error = record.error
    if error is None:
        return ""
    rows = "".join(
        f'<tr><td class="soft">{name}</td><td class="mono">{escape(str(error[name]))}</td></tr>'
        for name in ("got", "expected", "remedy")
        if error.get(name) is not None
    )
    table = f'<div class="scroll"><table>{rows}</table></div>' if rows else ""
    return f"<section><h2>{escape(error['type'])}</h2><pre>{escape(error['message'])}</pre>{table}</section>"


def pictures_section(directory: Path, record: Record, prefix: str = "") -> str:
    """The pictures among the outputs, embedded; each links to its file (below `prefix`) in full size."""
    figures = []
    for output in record.outputs:
        path = directory / output["path"]
        if output["kind"] != "picture" or not path.is_file():
            continue
        content, caption = path.read_bytes(), escape(output["caption"] or path.stem)
        picture = f'<img src="{data_uri(content, _TYPES[path.suffix.lower()])}" alt="{caption}">'
        wide = ' class="wide"' if _is_wide(content) else ""
        link = f'<a href="{quote(prefix + output["path"])}">{picture}</a>'
        figures.append(f"<figure{wide}>{link}<figcaption>{caption}</figcaption></figure>")
    return f'<section><div class="pictures">{"".join(figures)}</div></section>' if figures else ""


def _is_wide(content: bytes) -> bool:
    """A PNG of panels side by side, which wants the whole width of the page. Its size stands at the head of the file."""
    if not content.startswith(b"\x89PNG"):
        return False
    width, height = struct.unpack(">II", content[16:24])
    return width > 2 * height


def data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _metrics(directory: Path) -> str:
    series = _charts.read_metrics(directory)
    if not series:
        return ""
    drawn = _charts.chartable(series)
    charts = []
    for each in drawn:
        light, dark = (data_uri(_charts.draw(each, scheme), "image/png") for scheme in ("light", "dark"))
        broken = f"<figcaption>{each.broken} values were not finite</figcaption>" if each.broken else ""
        charts.append(
            f'<figure><picture><source srcset="{dark}" media="(prefers-color-scheme: dark)">'
            f'<img src="{light}" alt="{escape(each.name)} over {escape(each.axis)}"></picture>{broken}</figure>'
        )
    rest = [each for each in series if each not in drawn]
    numbers = "".join(
        f"<div><dt>{escape(each.name)}</dt><dd>{number(each.y[-1]) if each.y else 'not finite'}</dd></div>"
        for each in rest
    )
    body = f'<div class="charts">{"".join(charts)}</div>' if charts else ""
    body += f'<dl class="numbers">{numbers}</dl>' if numbers else ""
    return f"<section><h2>Metrics</h2>{body}</section>"


def _notes(record: Record) -> str:
    if not record.notes:
        return ""
    return f"<section><h2>Notes</h2>{''.join(f'<p>{escape(note)}</p>' for note in record.notes)}</section>"


def flat(config: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and values of a nested config."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _config(record: Record) -> str:
    known = _registry.loaded().get(record.job)
    details, defaults = {}, {}
    if known is not None:
        details = {name: text for name, _, _, _, text in fields(known.config)}
        defaults = dict(flat(known.config().model_dump(mode="json")))
    rows = []
    for name, value in flat(record.config):
        changed = name in defaults and defaults[name] != value
        mark = ' class="mono changed" title="not the default"' if changed else ' class="mono"'
        rows.append(
            f'<tr><td class="mono name">{escape(name)}</td><td{mark}>{escape(_shown(value))}</td>'
            f'<td class="soft">{escape(details.get(name, ""))}</td></tr>'
        )
    if not rows:
        return ""
    head = "<tr><th>setting</th><th>value</th><th></th></tr>"
    again = '<p class="soft">Again: <code>sciax run config.toml</code></p>'
    return f'<section><h2>Config</h2><div class="scroll"><table>{head}{"".join(rows)}</table></div>{again}</section>'


def _shown(value: Any) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _files(directory: Path, record: Record) -> str:
    rows = []
    for output in record.outputs:
        path = directory / output["path"]
        length = sum(p.stat().st_size for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file())
        rows.append(
            f'<tr><td class="mono name"><a href="{escape(output["path"])}">{escape(output["path"])}</a></td>'
            f'<td>{escape(output["caption"])}</td><td class="n">{prefixed(length, "B")}</td></tr>'
        )
    for name in ("config.toml", "run.json", "metrics.jsonl", "log.txt"):
        if (path := directory / name).is_file():
            link = f'<td class="mono name"><a href="{name}">{name}</a></td>'
            rows.append(f'<tr>{link}<td></td><td class="n">{prefixed(path.stat().st_size, "B")}</td></tr>')
    html = f'<section><h2>Files</h2><div class="scroll"><table>{"".join(rows)}</table></div>'
    if record.inputs:
        inputs = "".join(
            f'<tr><td class="mono">{escape(i["path"])}</td><td class="mono soft">{i["sha256"]}</td>'
            f'<td class="n">{prefixed(i["bytes"], "B")}</td></tr>'
            for i in record.inputs
        )
        head = '<tr><th>input</th><th>SHA-256</th><th class="n">size</th></tr>'
        html += f'<div class="scroll"><table>{head}{inputs}</table></div>'
    return html + "</section>"


def _surroundings(record: Record) -> str:
    facts = [f"{k}: {', '.join(v) if isinstance(v, list) else v}" for k, v in record.platform.items()]
    if record.git:
        state = "with uncommitted changes" if record.git["dirty"] else "clean"
        facts.append(f"git: {record.git['commit'][:12]} on {record.git['branch']}, {state}")
    if record.command:
        facts.append("command: " + " ".join(record.command))
    lines = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    versions = "".join(f"<li><span>{escape(k)}</span><span>{escape(v)}</span></li>" for k, v in record.versions.items())
    return (
        f"<section><details><summary>Machine and versions</summary><ul>{lines}</ul>"
        f'<ul class="columns">{versions}</ul></details></section>'
    )

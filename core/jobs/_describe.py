"""Tables of jobs and their settings."""

import types
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.table import Table
from rich.text import Text

from sciax.core.jobs._config import default_of
from sciax.core.jobs._registry import Job


def jobs_table(jobs: Iterable[Job]) -> Table:
    """Name, summary and settings with their defaults; a star marks the jobs of the tour."""
    table = Table("job", "what it does", "settings and defaults", box=None, padding=(0, 2, 0, 0), header_style="bold")
    for job in jobs:
        defaults = ", ".join(f"{name}={shown(value)}" for name, _, _, value, _ in fields(job.config))
        table.add_row(
            Text(job.name + (" *" if job.tour else ""), style="cyan"), job.summary, Text(defaults, style="dim")
        )
    return table


def fields_table(config: type[BaseModel]) -> Table:
    """Every setting: dotted name, type, limits, default, description."""
    table = Table("setting", "type", "default", "description", box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name, kind, limits, default, description in fields(config):
        words = kind + (f" {limits}" if limits else "")
        table.add_row(Text(name, style="cyan"), Text(words), Text(shown(default)), Text(description))
    return table


def fields(config: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str, Any, str]]:
    """(dotted name, type, limits, default, description) of every setting; nested tables are opened."""
    for name, field in config.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from fields(inner, f"{prefix}{name}.")
            continue
        yield f"{prefix}{name}", kind(inner), _limits(field), default_of(field), field.description or ""


def kind(annotation: Any) -> str:
    """A type as a user would say it."""
    if annotation is None or annotation is type(None):
        return "none"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind(arguments[0])
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin in (Union, types.UnionType):
        return " | ".join(kind(a) for a in arguments if a is not type(None))
    if origin is not None:
        inner = ", ".join("..." if a is Ellipsis else kind(a) for a in arguments)
        return f"{getattr(origin, '__name__', origin)}[{inner}]"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " | ".join(str(item.value) for item in annotation)
    return {"str": "text", "int": "integer", "float": "number", "bool": "true/false", "Path": "path"}.get(
        getattr(annotation, "__name__", str(annotation)), getattr(annotation, "__name__", str(annotation))
    )


def shown(value: Any) -> str:
    """A default as it would be typed."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return str(list(value))
    return str(value)


def _limits(field: FieldInfo) -> str:
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "multiple_of": "multiple of", "pattern": "like"}
    words = []
    for item in field.metadata:
        for attribute, sign in signs.items():
            if (bound := getattr(item, attribute, None)) is not None:
                words.append(f"{sign} {bound}")
    return ", ".join(words)

"""From a job's name or a TOML file, and `--set` options, to a checked config."""

import copy
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from sciax.core.errors import ConfigError, did_you_mean
from sciax.core.jobs import _registry, _toml
from sciax.core.jobs._config import JobConfig
from sciax.core.jobs._registry import Job
from sciax.core.jobs._toml import Keys

_TOP = ("job", "seed", "config")


@dataclass(frozen=True)
class Request:
    """A job with its checked config, ready to run."""

    job: Job
    config: JobConfig
    seed: int


def resolve(target: str, settings: Iterable[str] = (), seed: int | None = None) -> Request:
    """What `sciax run TARGET --set ... --seed ...` asks for.

    Args:
        target: a job's name, or a TOML file with `job = "..."`, optionally `seed = N`, and a table `[config]`.
        settings: `key=value` options over the file; the key may be dotted, the value is TOML or else a plain string.
        seed: over the file's.

    Raises:
        ConfigError: unknown job or key, wrong value: names the key, the nearest right spelling, and the line or option.
        MissingFileError, FileFormatError: the file is not there, or not TOML.
    """
    values: dict[str, Any] = {}
    lines: dict[Keys, int] = {}
    path: Path | None = None
    if target.endswith(".toml") or "/" in target or Path(target).is_file():
        path = Path(target)
        values, lines = _toml.read(path)
        for key in values:
            if key not in _TOP:
                raise ConfigError(
                    f"{path}, line {lines.get((key,), '?')}: unknown key {key!r}",
                    got=key,
                    expected=f"at the top level: {', '.join(_TOP)}",
                    remedy=did_you_mean(key, _TOP) + "; the job's own settings go under [config]",
                )
        if not isinstance(values.get("job"), str):
            raise ConfigError(
                f"{path} does not name its job",
                got=values.get("job"),
                expected='a line job = "domain.job"',
                remedy="`sciax list` names them",
            )
        target = values["job"]
    try:
        job = _registry.find(target)
    except ConfigError as error:
        if path is None:
            raise
        where = f"{path}, line {lines.get(('job',), '?')}: "
        raise ConfigError(where + error.message, got=error.got, expected=error.expected, remedy=error.remedy) from None
    if seed is None:
        seed = values.get("seed", 0)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ConfigError(
                f"{path}, line {lines.get(('seed',), '?')}: seed", got=repr(seed), expected="an integer from 0"
            )
    table = values.get("config", {})
    if not isinstance(table, dict):
        raise ConfigError(
            f"{path}, line {lines.get(('config',), '?')}: config", got=table, expected="a table: [config]"
        )
    if path is not None:
        table = _anchored(job.config, table, path.parent)
    config = build(
        job.config, table, settings, lines={k[1:]: v for k, v in lines.items() if k[:1] == ("config",)}, file=path
    )
    return Request(job, config, seed)


def build(
    model: type[JobConfig],
    table: Mapping[str, Any],
    settings: Iterable[str] = (),
    *,
    lines: Mapping[Keys, int] | None = None,
    file: Path | None = None,
) -> JobConfig:
    """A config from a table and `key=value` settings; errors name the line of the file or the option."""
    values = copy.deepcopy(dict(table))
    options: dict[Keys, tuple[str, str]] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        keys = tuple(name.strip().split("."))
        if not equals or not all(keys):
            raise ConfigError(
                "--set takes key=value", got=f"--set {setting}", expected="--set steps=40 or --set solver.tol=1e-9"
            )
        options[keys] = (setting, text.strip())
        _put(values, keys, _literal(text.strip()), setting)
    where = _Where(file, dict(lines or {}), options)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        # `--set name=123` for a text field: the parser saw a number, the user meant the word.
        changed = False
        for problem in error.errors(include_url=False):
            keys = problem["loc"]
            if keys in options and problem["type"] in ("string_type", "path_type"):
                _put(values, keys, options[keys][1], options[keys][0])
                changed = True
        if not changed:
            raise _explain(model, error, where) from None
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _explain(model, error, where) from None


def _literal(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _put(values: dict[str, Any], keys: Keys, value: Any, setting: str) -> None:
    node: dict[Any, Any] = values
    for key in keys[:-1]:
        node = node.setdefault(key, {})
        if not isinstance(node, dict):
            raise ConfigError(f"--set {setting}: {key!r} is a value, not a table", got=setting)
    node[keys[-1]] = value


def _anchored(model: type[BaseModel], table: dict[str, Any], base: Path) -> dict[str, Any]:
    """Relative paths in a file count from the file's folder."""
    changed = dict(table)
    for key, value in table.items():
        field = model.model_fields.get(key)
        if field is None:
            continue
        kinds = {field.annotation, *get_args(field.annotation)}
        if isinstance(value, str) and Path in {k for kind in kinds for k in (kind, *get_args(kind))}:
            if not Path(value).expanduser().is_absolute():
                changed[key] = str(base.absolute() / value)
        elif isinstance(value, dict):
            for kind in kinds:
                if isinstance(kind, type) and issubclass(kind, BaseModel):
                    changed[key] = _anchored(kind, value, base)
    return changed


@dataclass(frozen=True)
class _Where:
    file: Path | None
    lines: dict[Keys, int]
    options: dict[Keys, tuple[str, str]]

    def __call__(self, keys: Keys) -> str:
        """Where the key (or the nearest table above it) was given."""
        for length in range(len(keys), 0, -1):
            if keys[:length] in self.options:
                return f"--set {self.options[keys[:length]][0]}: "
            if keys[:length] in self.lines:
                return f"{self.file}, line {self.lines[keys[:length]]}: "
        return f"{self.file}: " if self.file else ""


def _explain(model: type[BaseModel], error: ValidationError, where: _Where) -> ConfigError:
    problems = [_problem(model, item, where) for item in error.errors(include_url=False)]
    first = problems[0]
    message = first.message
    for other in problems[1:]:
        message += f"\n  also: {other.message}" + (f", got {other.got}" if other.got is not None else "")
    return ConfigError(message, got=first.got, expected=first.expected, remedy=first.remedy)


def _problem(model: type[BaseModel], item: Mapping[str, Any], where: _Where) -> ConfigError:
    keys, name = item["loc"], ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        known = _fields_at(model, keys[:-1])
        return ConfigError(
            f"{where(keys)}unknown key {name!r}", got=str(keys[-1]), remedy=did_you_mean(str(keys[-1]), known)
        )
    expected = item["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if not keys:
        return ConfigError(f"{where(keys)}the settings do not fit together", expected=expected)
    remedy = None
    if item["type"] in ("literal_error", "enum") and isinstance(item["input"], str):
        known = str(item.get("ctx", {}).get("expected", "")).replace(" or ", ", ").replace("'", "").split(", ")
        remedy = did_you_mean(item["input"], known)
    return ConfigError(
        f"{where(keys)}wrong value for {name!r}", got=repr(item["input"]), expected=expected, remedy=remedy
    )


def _fields_at(model: type[BaseModel], keys: Keys) -> list[str]:
    """The field names of the (nested) model at a location."""
    models = [model]
    for key in keys:
        inner = []
        for each in models:
            field = each.model_fields.get(str(key))
            if field is not None:
                inner += _models_in(field.annotation)
        models = inner or models
    return [name for each in models for name in each.model_fields]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]

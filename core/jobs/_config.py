"""Typed configs of jobs."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, PydanticUndefined


class JobConfig(BaseModel):
    """Base of every job's config, and of the tables nested in one.

    Frozen, and unknown keys are errors, so that a mistyped key never runs the default in silence. Every field has a default
    (the job runs with no arguments) and a description (`sciax list JOB` shows it). A field that may be None defaults to None,
    because TOML, in which runs are recorded, has no word for it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, arbitrary_types_allowed=False)


def _existing_file(path: Path) -> Path:
    path = path.expanduser()
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise PydanticCustomError(
            "missing_file", "a file that exists; {path} {reason}", {"path": str(path), "reason": reason}
        )
    return path.absolute()


InputFile = Annotated[Path, AfterValidator(_existing_file)]
"""A path that must name a file when the config is built: `mesh: InputFile | None = Field(None, description=...)`.

It is made absolute, so that the recorded config runs from any folder. In a TOML file a relative path counts from the file's
own folder, on the command line from the current one.
"""


def default_of(field: FieldInfo) -> Any:
    """The default of a config field; None where it has none."""
    value = field.default_factory() if field.default_factory is not None else field.default  # type: ignore[call-arg]
    return None if value is PydanticUndefined else value

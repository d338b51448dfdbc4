"""The `sciax` command. Each file of `commands/` adds its own: a module with `register(app)`.

Nothing here or at the top of those files imports jax or a domain: `sciax --help` must be quick.
"""

import importlib
import pkgutil
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sciax.core.errors import ConfigError, FileFormatError, MissingFileError, SciaxError
from sciax.core.jobs import commands


class _Group(TyperGroup):
    """Shows a SciaxError as a panel, not a traceback. Exit code 2 for what the user typed, 1 for the rest."""

    def invoke(self, ctx: Any):
        from sciax.core.jobs._console import error_panel

        try:
            return super().invoke(ctx)
        except SciaxError as error:
            error_panel(
                "error",
                {"message": error.message, "got": error.got, "expected": error.expected, "remedy": error.remedy},
            )
            ctx.exit(2 if isinstance(error, ConfigError | MissingFileError | FileFormatError) else 1)


app = typer.Typer(
    name="sciax",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        import sciax

        typer.echo(f"sciax {sciax.__version__}")
        raise typer.Exit


@app.callback()
def sciax(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Scientific computing and AI for science on one differentiable core."""
    from sciax.core.jobs._cache import switch_on

    switch_on()


for _module in sorted(pkgutil.iter_modules(commands.__path__), key=lambda m: m.name):
    importlib.import_module(f"{commands.__name__}.{_module.name}").register(app)

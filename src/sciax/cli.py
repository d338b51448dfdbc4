"""The `sciax` command; its parts are in sciax.core.jobs."""


def main() -> None:
    """Entry point of the `sciax` script and of `python -m sciax`."""
    from sciax.core.jobs.cli import app

    app(prog_name="sciax")

"""The `sciax` command."""


def main() -> None:
    from sciax.core.jobs.cli import app

    app()

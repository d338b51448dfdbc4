"""One file a command of `sciax`; each has `register(app: typer.Typer)`. Adding a command is adding a file."""

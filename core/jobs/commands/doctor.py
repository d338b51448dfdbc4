"""`sciax doctor`."""

from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Check that this installation computes the right numbers. Exit code 1 when a probe fails."""
    import json

    from sciax.core.jobs._console import console

    screen, err = console(), console(stderr=True)
    status = err.status("importing jax") if err.is_terminal else None
    if status is not None:
        status.start()
    try:
        from sciax.core.inspect.doctor import diagnose

        def seen(finding: Any) -> None:
            if status is not None:
                status.update(f"{finding.name} done")

        diagnosis = diagnose(seen=seen)
    finally:
        if status is not None:
            status.stop()
    if as_json:
        print(json.dumps(diagnosis.as_json(), indent=2))
    else:
        _show(diagnosis, screen)
    raise typer.Exit(0 if diagnosis.ok else 1)


def _show(diagnosis: Any, screen: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "probe", "what is compared", box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("error", "allowed", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for finding in diagnosis.findings:
        mark = Text("ok", style="green") if finding.passed else Text("FAIL", style="bold red")
        claim = Text(finding.claim)
        if finding.detail:
            claim.append(f"\n{finding.detail}", style="dim")
        if not finding.passed:
            claim.append(f"\n{finding.message}\n{finding.remedy}", style="red")
        error, allowed = (("" if v is None else f"{v:.1e}") for v in (finding.error, finding.tolerance))
        table.add_row(mark, finding.name, claim, error, allowed, f"{finding.seconds:.1f}")
    screen.print(table)
    versions, platform = diagnosis.versions, diagnosis.platform
    devices = ", ".join(sorted(set(platform.get("devices", []))))
    print(
        f"sciax {versions['sciax']}, Python {versions['python']}, jax {versions.get('jax')}, jaxlib {versions.get('jaxlib')}, "
        f"{len(platform.get('devices', []))} x {devices}, {platform['cpus']} CPUs"
    )
    bad = [finding.name for finding in diagnosis.findings if not finding.passed]
    if not diagnosis.usable:
        print(f"Do not use this jax: {versions.get('jaxlib')} computes wrong numbers. pip install 'jax>=0.11'")
    elif bad:
        print(f"{len(bad)} of {len(diagnosis.findings)} probes failed: {', '.join(bad)}")
    else:
        print(f"all {len(diagnosis.findings)} probes passed")

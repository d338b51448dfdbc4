"""Imports go one way: core <- datasets <- science <- {earth, elec, quantum, chem}; nothing is imported by its folder's name."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOMAINS = ("earth", "elec", "quantum", "chem")
ALLOWED = {
    "core": {"core"},
    "datasets": {"core", "datasets"},
    "science": {"core", "datasets", "science"},
    **{domain: {"core", "datasets", "science", domain} for domain in DOMAINS},
}


def imported_modules(source: str) -> set[str]:
    """Every module named in an import statement, at any depth (a lazy import crosses a layer just the same)."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer: write sciax.x.y"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def violations(layer: str, source: str) -> list[str]:
    bad = []
    for name in sorted(imported_modules(source)):
        head, _, rest = name.partition(".")
        if head in ALLOWED and head != "datasets":  # `datasets` alone is somebody else's well-known package
            bad.append(f"{name}: import sciax.{name}")
        elif head == "sciax" and rest.partition(".")[0] in set(ALLOWED) - ALLOWED[layer]:
            bad.append(f"{name}: {layer} may only import {sorted(ALLOWED[layer])}")
    return bad


@pytest.mark.parametrize("layer", ALLOWED)
def test_imports_go_one_way(layer):
    found = {
        str(path.relative_to(ROOT)): bad
        for path in sorted((ROOT / layer).rglob("*.py"))
        if (bad := violations(layer, path.read_text()))
    }
    assert not found


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("core", "import sciax.science"),
        ("core", "def f():\n    from sciax import earth"),
        ("earth", "from sciax.elec.jobs import x"),
        ("science", "import core.ops"),
    ],
)
def test_a_violation_is_found(layer, line):
    assert violations(layer, line)


def test_import_is_instant_and_configures_nothing():
    """`import sciax` loads no heavy package and leaves no folder of the repository importable under its bare name."""
    code = (
        "import sys, sciax; loaded = set(sys.modules);"
        "heavy = loaded & {'jax', 'numpy', 'scipy', 'xarray', 'pydantic', 'typer', 'matplotlib'};"
        "bare = loaded & {'core', 'science', 'earth', 'elec', 'quantum', 'chem'};"
        "assert not heavy, heavy; assert not bare, bare"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT.parent)

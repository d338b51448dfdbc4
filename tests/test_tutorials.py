"""Every notebook pairs with its percent script, holds no outputs, and runs."""

from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

TUTORIALS = Path(__file__).parent.parent / "tutorials"
SCRIPTS = sorted(TUTORIALS.glob("*.py"))


def cells(notebook) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def test_every_notebook_has_a_script():
    assert SCRIPTS
    assert {path.stem for path in SCRIPTS} == {path.stem for path in TUTORIALS.glob("*.ipynb")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_pair_agrees_and_holds_no_outputs(script):
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    assert cells(notebook) == cells(jupytext.read(script)), f"jupytext --sync tutorials/{script.name}"
    assert all(not cell.get("outputs") for cell in notebook.cells)


LONG = ("chem_property", "earth_emulator", "elec_bend_design")
"""Half a minute of training and more; each domain has another tutorial that always runs."""


@pytest.mark.parametrize(
    "script",
    [pytest.param(path, marks=pytest.mark.slow) if path.stem in LONG else path for path in SCRIPTS],
    ids=lambda path: path.stem,
)
def test_tutorial_runs_and_shows_a_picture(script, tmp_path, monkeypatch):
    # The inline back end of the kernel, whatever the test process draws with.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    # Two workers with two OpenMP threads each would spin for each other's cores.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = {kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert "image/png" in kinds

"""Every registered operator against every cell of the grid (sciax.core.ops.conformance). Nothing to edit for a new operator.

SCIAX_GRID=segment,stencil restricts the grid to these modules of core/ops (while working on one, with others half written).
"""

import importlib
import os

import pytest

from sciax.core.ops import CELLS, _registry, registry
from sciax.core.ops.conformance import check, check_registration

KINDS = [kind for kind in os.environ.get("SCIAX_GRID", "").split(",") if kind]
if KINDS:
    for kind in KINDS:
        importlib.import_module(f"sciax.core.ops.{kind}")
    OPERATORS = {
        name: op for name, op in sorted(_registry._REGISTRY.items()) if op.function.__module__.split(".")[3] in KINDS
    }
else:
    OPERATORS = registry()
GRID = [(name, cell) for name in OPERATORS for cell in CELLS]


@pytest.mark.parametrize(("name", "cell"), GRID, ids=[f"{name}-{cell}" for name, cell in GRID])
def test_cell(name: str, cell: str) -> None:
    check(OPERATORS[name], cell)


@pytest.mark.parametrize("name", OPERATORS)
def test_registration_is_complete(name: str) -> None:
    check_registration(OPERATORS[name])


def test_no_cell_is_missing() -> None:
    assert len(set(GRID)) == len(OPERATORS) * len(CELLS)
    assert {name for name, _ in GRID} == set(OPERATORS)
    if not KINDS:
        assert set(OPERATORS) == set(registry())

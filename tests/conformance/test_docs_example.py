"""The operator that docs/ops.md writes down as an example passes the grid as it stands there."""

import re
from pathlib import Path

import pytest

from sciax.core.ops import CELLS, _registry
from sciax.core.ops.conformance import check, check_registration

GUIDE = Path(__file__).parents[2] / "docs" / "ops.md"


def test_the_example_of_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_registry, "_REGISTRY", {})
    (source,) = (block for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S) if "@operator" in block)
    exec(compile(source, str(GUIDE), "exec"), {"__name__": "wave"})
    (example,) = _registry._REGISTRY.values()
    check_registration(example)
    for cell in CELLS:
        check(example, cell)

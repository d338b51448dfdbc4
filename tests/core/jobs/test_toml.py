"""TOML in and out."""

import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sciax.core.errors import FileFormatError, MissingFileError
from sciax.core.jobs import _toml

TEXT = '''# a comment
job = "toy.root"

seed = 3
[config]
steps = 5
solver.tolerance = 1e-9
"quoted key" = [
    1,
    2,  # with a comment ]
]
words = """
[not a table]
steps = 7
"""
inline = {a = 1, b.c = 2}

[config.deep.er]
x = 1
[[config.parts]]
name = "first"
[config.parts.size]
w = 1
[[config.parts]]
name = "second"
'''


def test_every_key_has_its_line() -> None:
    lines = _toml.key_lines(TEXT)
    wanted = {
        ("job",): 2,
        ("seed",): 4,
        ("config",): 5,
        ("config", "steps"): 6,
        ("config", "solver", "tolerance"): 7,
        ("config", "quoted key"): 8,
        ("config", "words"): 12,
        ("config", "inline", "b", "c"): 16,
        ("config", "deep", "er"): 18,
        ("config", "deep", "er", "x"): 19,
        ("config", "parts", 0, "name"): 21,
        ("config", "parts", 0, "size", "w"): 23,
        ("config", "parts", 1, "name"): 25,
    }
    assert {keys: lines.get(keys) for keys in wanted} == wanted


def test_syntax_error_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('job = "toy.root"\n[config]\nsteps = = 3\n')
    with pytest.raises(FileFormatError, match="line 3") as caught:
        _toml.read(path)
    assert caught.value.got == "steps = = 3"


def test_error_at_the_end_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('job = "toy.root"\nname = ')
    with pytest.raises(FileFormatError, match="line 2"):
        _toml.read(path)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        _toml.read(tmp_path / "none.toml")
    path = tmp_path / "b.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="UTF-8"):
        _toml.read(path)


SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_round_trip(values: dict) -> None:
    assert tomllib.loads(_toml.dumps(values)) == values


def test_not_finite_and_none() -> None:
    found = tomllib.loads(_toml.dumps({"a": math.inf, "b": -math.inf, "c": math.nan, "d": None, "e": {"f": None}}))
    assert found["a"] == math.inf and found["b"] == -math.inf and math.isnan(found["c"])
    assert "d" not in found and found["e"] == {}

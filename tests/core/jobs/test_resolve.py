"""Configs from files and options: what is accepted, and what an error says."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sciax.core.errors import ConfigError, MissingDependencyError, MissingFileError
from sciax.core.jobs._resolve import resolve


def write(folder: Path, text: str) -> str:
    path = folder / "my.toml"
    path.write_text(text)
    return str(path)


def test_defaults(toy: ModuleType) -> None:
    request = resolve("toy.root")
    assert request.config == toy.ToyConfig() and request.seed == 0


def test_file_then_options(toy: ModuleType, tmp_path: Path) -> None:
    path = write(tmp_path, 'job = "toy.root"\nseed = 4\n[config]\nsteps = 3\nsolver.tolerance = 1e-6\nstart = 2.0\n')
    request = resolve(path, ["start=1.5", "solver.method=secant", "weights=[3, 4.5]"])
    config: Any = request.config
    assert (config.steps, config.start, config.solver.tolerance, config.solver.method) == (3, 1.5, 1e-6, "secant")
    assert config.weights == [3.0, 4.5]
    assert request.seed == 4
    assert resolve(path, seed=9).seed == 9


@pytest.mark.parametrize(
    ("text", "label"), [("123", "123"), ("true", "true"), ("a = b", "a = b"), ('"1e3"', "1e3"), ("", "")]
)
def test_options_for_text_fields_need_no_quotes(toy: ModuleType, text: str, label: str) -> None:
    config: Any = resolve("toy.root", [f"label={text}"]).config
    assert config.label == label


CASES = [
    ("stesp = 3", "line 4: unknown key 'stesp'", "did you mean 'steps'"),
    ("steps = 3\n\nsolver.tolerence = 1", "line 6: unknown key 'solver.tolerence'", "did you mean 'tolerance'"),
    ("[config.solver]\nmethodd = 'newton'", "line 5: unknown key 'solver.methodd'", "did you mean 'method'"),
    ("[config.solvr]\ntolerance = 1.0", "line 4: unknown key 'solvr'", "did you mean 'solver'"),
    ("solver = {tolerence = 1}", "line 4: unknown key 'solver.tolerence'", "did you mean 'tolerance'"),
    ("steps = 'many'", "line 4: wrong value for 'steps'", "expected: a valid integer"),
    ("steps = 0", "line 4: wrong value for 'steps'", "expected: greater than or equal to 1"),
    ("steps = 2.5", "line 4: wrong value for 'steps'", "got:      2.5"),
    ("solver.method = 'newtn'", "line 4: wrong value for 'solver.method'", "did you mean 'newton'"),
    ("weights = [1.0,\n'x']", "line 4: wrong value for 'weights.1'", "a valid number"),
    ("label = 3", "line 4: wrong value for 'label'", "expected: a valid string"),
    ("data = 'nowhere.msh'", "line 4: wrong value for 'data'", "does not exist"),
    ("steps = 0\nstart = 'a'", "line 4: wrong value for 'steps'", "also: "),
]


@pytest.mark.parametrize(("body", "where", "remedy"), CASES, ids=[case[0].split("\n")[-1] for case in CASES])
def test_wrong_key_or_value_in_a_file(toy: ModuleType, tmp_path: Path, body: str, where: str, remedy: str) -> None:
    path = write(tmp_path, f'# mine\njob = "toy.root"\n[config]\n{body}\n')
    with pytest.raises(ConfigError) as caught:
        resolve(path)
    assert f"{path}, {where}" in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("stesp=3", "--set stesp=3: unknown key 'stesp'"),
        ("solver.tol=1", "--set solver.tol=1: unknown key 'solver.tol'"),
        ("steps=-1", "--set steps=-1: wrong value for 'steps'"),
        ("steps", "--set takes key=value"),
        ("=3", "--set takes key=value"),
        ("steps.x=3", "wrong value for 'steps'"),
        ("solver=3", "wrong value for 'solver'"),
    ],
)
def test_wrong_option(toy: ModuleType, option: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve("toy.root", [option])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('jobb = "toy.root"', "line 1: unknown key 'jobb'"),
        ("seed = 1", "does not name its job"),
        ('\njob = "toy.rot"', "line 2: no job is named 'toy.rot'"),
        ('job = "toy.root"\nseed = "x"', "line 2: seed"),
        ('job = "toy.root"\nseed = -1', "line 2: seed"),
        ('job = "toy.root"\nconfig = 3', "line 2: config"),
        ('job = "toy.root"\nsteps = 3', "line 2: unknown key 'steps'"),
    ],
)
def test_wrong_top_level(toy: ModuleType, tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(write(tmp_path, text))
    assert words in str(caught.value)


def test_unknown_job_names_the_nearest(toy: ModuleType) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'toy\.root'"):
        resolve("toy.rooot")


def test_missing_file(toy: ModuleType) -> None:
    with pytest.raises(MissingFileError):
        resolve("nowhere/my.toml")


def test_job_of_a_domain_that_does_not_import(toy: ModuleType, broken_domain: None) -> None:
    with pytest.raises(MissingDependencyError, match="pyscf"):
        resolve("badland.job")
    assert resolve("toy.root").job.name == "toy.root"


def test_relative_paths_in_a_file_count_from_the_file(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mesh.msh").write_text("mesh")
    path = tmp_path / "sub" / "my.toml"
    path.write_text('job = "toy.root"\nconfig.data = "mesh.msh"\n')
    monkeypatch.chdir(tmp_path)
    configs: list[Any] = [resolve(str(path)).config, resolve("toy.root", ["data=sub/mesh.msh"]).config]
    for config in configs:
        assert config.data == tmp_path / "sub" / "mesh.msh"


def test_settings_that_do_not_fit_together(empty: dict[str, Any]) -> None:
    from pydantic import model_validator

    from sciax.core.jobs import JobConfig, job

    class Range(JobConfig):
        low: float = 0.0
        high: float = 1.0

        @model_validator(mode="after")
        def _ordered(self) -> "Range":
            if self.low >= self.high:
                raise ValueError("low below high")
            return self

    job("toy.range", Range, summary="A range")(lambda config, run: None)
    with pytest.raises(ConfigError, match="do not fit together") as caught:
        resolve("toy.range", ["low=2"])
    assert caught.value.expected == "low below high"


def test_an_inline_table_as_an_option(toy: ModuleType) -> None:
    config: Any = resolve("toy.root", ['solver={method="secant"}']).config
    assert config.solver.method == "secant"
    with pytest.raises(ConfigError, match=r"unknown key 'solver\.methd'") as caught:
        resolve("toy.root", ['solver={methd="secant"}'])
    assert caught.value.message.startswith("--set solver=")

"""Registration, and domains that do not load."""

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from sciax.core.errors import InputError
from sciax.core.jobs import JobConfig, Outcome, Run, _registry, job, registry


class Plain(JobConfig):
    steps: int = 1


def nothing(config: Plain, run: Run) -> Outcome | None:
    return None


def test_the_function_stays_a_plain_function(empty: dict[str, Any]) -> None:
    assert job("a.b", Plain, summary="s")(nothing) is nothing
    assert registry()["a.b"].function is nothing


def test_a_name_is_used_once(empty: dict[str, Any]) -> None:
    job("a.b", Plain, summary="s")(nothing)
    job("a.b", Plain, summary="s")(nothing)  # the same again: a reload
    with pytest.raises(InputError, match="registered twice"):
        job("a.b", Plain, summary="s")(lambda config, run: None)


class NoDefault(JobConfig):
    steps: int


class NoneIsNotDefault(JobConfig):
    steps: int | None = 3


class NotOurs(BaseModel):
    steps: int = 1


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("ab", Plain, "'domain.job'"),
        ("a.", Plain, "'domain.job'"),
        ("a.b", NoDefault, "has no default"),
        ("a.b", NoneIsNotDefault, "may be None"),
        ("a.b", NotOurs, "not a JobConfig"),
    ],
)
def test_refused(empty: dict[str, Any], name: str, config: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        job(name, config, summary="s")(nothing)


def test_entry_points_give_the_order_and_load_once(empty: dict[str, Any]) -> None:
    loads: list[str] = []

    def entry(domain: str) -> Any:
        def load() -> None:
            loads.append(domain)
            job(f"{domain}.x", Plain, summary=domain)(nothing)

        return SimpleNamespace(name=domain, value=f"{domain}.jobs", load=load)

    empty |= {"zeta": entry("zeta"), "alpha": entry("alpha")}
    assert _registry.find("alpha.x").domain == "alpha"
    assert loads == ["alpha"]  # only the domain that was asked for
    assert list(registry()) == ["zeta.x", "alpha.x"]
    assert sorted(loads) == ["alpha", "zeta"]


def test_a_broken_domain_is_named_and_the_others_work(toy: ModuleType, broken_domain: None) -> None:
    assert set(registry()) == {"toy.root", "toy.trouble"}
    assert "pyscf" in str(_registry.failures()["badland"])


def test_config_is_frozen_and_strict() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Plain().steps = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="Extra inputs"):
        Plain(stesp=3)  # type: ignore[call-arg]

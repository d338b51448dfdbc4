"""What every installed domain's jobs keep to. New jobs are covered by registering."""

import tomllib

import pytest

from sciax.core.jobs import _registry, _toml, registry
from sciax.core.jobs._describe import fields, jobs_table

JOBS = registry()


def test_every_domain_loads() -> None:
    assert _registry.failures() == {}


@pytest.mark.parametrize("name", JOBS)
def test_job_is_complete(name: str) -> None:
    job = JOBS[name]
    assert job.summary and not job.summary.endswith(".")
    undescribed = [field for field, _, _, _, text in fields(job.config) if not text]
    assert not undescribed, f"{name}: config fields without a description: {undescribed}"


@pytest.mark.parametrize("name", JOBS)
def test_defaults_survive_the_recorded_toml(name: str) -> None:
    config = JOBS[name].config()
    text = _toml.dumps(config.model_dump(mode="json"))
    assert JOBS[name].config.model_validate(tomllib.loads(text)) == config


def test_list_shows_them_all() -> None:
    assert jobs_table(JOBS.values()).row_count == len(JOBS)

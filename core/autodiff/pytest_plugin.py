"""pytest fixture `check_gradients`: `pytest_plugins = ["sciax.core.autodiff.pytest_plugin"]` in a conftest.py."""

import pytest


@pytest.fixture(name="check_gradients")
def check_gradients_fixture():
    """The function `sciax.core.autodiff.check_gradients`, run in float64."""
    from sciax.core.autodiff import check_gradients
    from sciax.core.precision import x64

    with x64():
        yield check_gradients

"""Shared set-up of the test suite."""

import os
from pathlib import Path

# Set before anything imports jax: eight virtual CPU devices, and compiled programs kept between runs.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.fixture
def x64():
    """64-bit arrays for the test."""
    from sciax.core import x64 as scope

    with scope():
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real files that is laid beside a checkout; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs the real data files beside the checkout (../shared/data)")
    return SHARED

"""Builds the optional native kernels: one extension for each core/ops/native/*.cc.

A machine without a compiler installs all the same; the operators then run on XLA.
"""

from pathlib import Path

from jaxlib import __path__ as jaxlib_path
from setuptools import Extension, setup

NATIVE = Path("src/sciax/core/ops/native")

setup(
    ext_modules=[
        Extension(
            f"sciax.core.ops.native._{source.stem}",
            [source.as_posix()],
            depends=[header.as_posix() for header in sorted(NATIVE.glob("*.h"))],
            include_dirs=[jaxlib_path[0] + "/include"],
            extra_compile_args=["-O3", "-std=c++17", "-fopenmp"],
            extra_link_args=["-fopenmp"],
            optional=True,
        )
        for source in sorted(NATIVE.glob("*.cc"))
    ]
)

"""Compiled kernels behind jax.ffi: one optional extension module `_NAME` for each `NAME.cc` (see setup.py)."""

"""The persistent compile cache: what one process compiled, the next one reads."""

import os
from pathlib import Path

import jax

from sciax.core.errors import InputError


def persistent_cache(directory: str | Path | None = None, *, min_seconds: float = 0.05) -> Path:
    """Keep compiled programs in `directory` for later processes; called by the `sciax` command at its start.

    Args:
        directory: default `$SCIAX_CACHE`, else `$XDG_CACHE_HOME/sciax/xla`, else `~/.cache/sciax/xla`. A directory already
            set in JAX (`JAX_COMPILATION_CACHE_DIR`) is left as it is when this is None.
        min_seconds: programs that compile faster are not kept.

    Returns:
        The directory in use.

    Raises:
        InputError: the directory cannot be written.
    """
    if directory is None and jax.config.jax_compilation_cache_dir:
        return Path(jax.config.jax_compilation_cache_dir)
    if directory is None:
        base = os.environ.get("SCIAX_CACHE")
        directory = (
            Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sciax" / "xla"
        )
    path = Path(directory)
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"the compile cache {path} cannot be written: {error}", remedy="set SCIAX_CACHE to a writable folder"
        ) from error
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", min_seconds)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return path

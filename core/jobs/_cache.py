"""The persistent compile cache of the command.

The first call of a jitted function compiles; with a cache on disk only the first run ever does. The command switches it on;
importing sciax never does.
"""

import hashlib
import os
import sys
from pathlib import Path

_SWITCH = "SCIAX_COMPILE_CACHE"
_JAX = "JAX_COMPILATION_CACHE_DIR"


def cache_directory() -> Path:
    """Where compiled programs are kept: a folder of the user's cache for this kind of processor.

    Home directories are often shared between machines, and a program compiled for one processor may not run on another, so the
    processor's features are part of the name.
    """
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "sciax" / f"xla-{_processor()}"


def _processor() -> str:
    import platform

    features = platform.machine() + platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(errors="replace").splitlines()
        features += "".join(sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))}))
    return hashlib.sha256(features.encode()).hexdigest()[:10]


def switch_on() -> Path | None:
    """Turn the cache on for this process and its children; returns its folder.

    JAX_COMPILATION_CACHE_DIR, where set, wins; SCIAX_COMPILE_CACHE=off leaves everything as it is, SCIAX_COMPILE_CACHE=FOLDER
    names another folder.
    """
    if _JAX in os.environ:
        return Path(os.environ[_JAX]) if os.environ[_JAX] else None
    choice = os.environ.get(_SWITCH, "")
    if choice.lower() in ("off", "0", "no", "false"):
        return None
    folder = Path(choice) if choice else cache_directory()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: compile every time
        return None
    os.environ[_JAX] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
    jax = sys.modules.get("jax")
    if jax is not None and jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    return folder

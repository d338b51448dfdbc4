"""Python's own logging and warnings into a run's log.txt."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Records of level WARNING (INFO for sciax's own loggers), and warnings, are appended to the file."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S"))
    root, own = logging.getLogger(), logging.getLogger("sciax")
    level = own.level
    own.setLevel(logging.INFO)
    root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)
        own.setLevel(level)
        handler.close()

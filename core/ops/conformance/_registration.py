"""What a registration must bring for the grid to mean something."""

import math

import numpy as np

from sciax.core.ops._registry import Operator
from sciax.core.ops.conformance._case import generator
from sciax.core.ops.conformance._compare import ConformanceError

_EDGES = ("empty", "one", "single", "smallest", "minimal", "degenerate", "odd", "zero", "edge")


def check_registration(operator: Operator) -> None:
    """Samples, cost and texts of `operator`.

    Raises:
        ConformanceError: no ordinary, edge or badly scaled sample; two samples of one label; samples that differ from call
            to call; a cost that is no number >= 0; no docstring; a refusal without a reason.
    """
    name = operator.name
    samples, again = (list(operator.samples(generator(operator))) for _ in range(2))
    labels = [sample.label for sample in samples]
    if not labels or not labels[0].startswith("ordinary"):
        raise ConformanceError(f"{name}: the first sample is labelled 'ordinary...', not {labels[:1]}")
    if len(set(labels)) != len(labels):
        raise ConformanceError(f"{name}: labels of samples repeat: {labels}")
    if labels != [sample.label for sample in again]:
        raise ConformanceError(f"{name}: samples differ from call to call; draw from the generator that is passed")
    if not any(word in label for label in labels for word in _EDGES):
        raise ConformanceError(f"{name}: no edge sample; label one with any of {', '.join(_EDGES)}: {labels}")
    if not any("scaled" in label for label in labels):
        raise ConformanceError(f"{name}: no sample labelled 'badly scaled': {labels}")
    for sample in samples:
        for cost in (operator.flops, operator.bytes):
            value = 0.0 if cost is None else float(np.asarray(cost(*sample.args, **sample.kwargs)))
            if not (math.isfinite(value) and value >= 0):
                raise ConformanceError(f"{name}, sample {sample.label!r}: cost {value}")
    if len((operator.function.__doc__ or "").strip()) < 40:
        raise ConformanceError(f"{name}: the function needs a docstring: equation, shapes, errors, source")
    for cell, reason in operator.unsupported.items():
        if len(reason) < 8:
            raise ConformanceError(f"{name}: why is {cell!r} unsupported? got {reason!r}")

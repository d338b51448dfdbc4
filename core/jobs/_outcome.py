"""What a job came to: one number beside the number it should be."""

import math
from dataclasses import dataclass
from typing import Any

from sciax.core.errors import InputError


@dataclass(frozen=True)
class Outcome:
    """The headline result of a job.

    Attributes:
        quantity: what it is, with its unit: "energy (Ha)".
        value: what the job computed. Any scalar, also a 0-d array; kept as a float.
        reference: what it should be, or None where nothing is known.
        error: how far it is off, in the sense that `quantity` or `source` states; by default |value - reference|.
        source: where the reference comes from: "FCI (pyscf)", "closed form", "Williamson et al. (1992)".
        tolerance: where given, an error above it makes the run fail.

    Raises:
        InputError: a number that is not finite. NaN is no answer.
    """

    quantity: str
    value: Any
    reference: Any = None
    error: Any = None
    source: str = ""
    tolerance: float | None = None

    def __post_init__(self) -> None:
        for name in ("value", "reference", "error", "tolerance"):
            given: Any = getattr(self, name)
            if given is None and name != "value":
                continue
            try:
                number = float(given)  # pyright: ignore[reportArgumentType]
            except (TypeError, ValueError):
                raise InputError(
                    f"outcome {self.quantity!r}: {name} is not a number", got=repr(given), expected="a scalar"
                ) from None
            if not math.isfinite(number):
                raise InputError(
                    f"outcome {self.quantity!r}: {name} is not finite",
                    got=number,
                    expected="a finite number",
                    remedy="raise a ConvergenceError that says what went wrong",
                )
            object.__setattr__(self, name, number)
        if self.error is None and self.reference is not None:
            object.__setattr__(self, "error", abs(self.value - self.reference))

    @property
    def ok(self) -> bool:
        """False when a tolerance is stated and the error is above it."""
        return self.tolerance is None or self.error is None or abs(self.error) <= self.tolerance

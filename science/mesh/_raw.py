"""What a reader hands over before it is made a `Mesh`."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Block:
    """Cells of one type, with the names of the groups each belongs to."""

    type: str
    cells: np.ndarray
    groups: dict[str, np.ndarray] = field(default_factory=dict)  # name -> rows of cells
    data: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass
class Raw:
    points: np.ndarray
    blocks: list[Block]
    point_data: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

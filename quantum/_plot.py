"""Pictures."""

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

CHEMICAL_ACCURACY = 1.594e-3  # 1 kcal/mol in Hartree


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


def convergence(history: Sequence[float], hf: float, exact: float, title: str):
    """Energy and error against iteration, as a matplotlib Figure."""
    figure = Picture(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    energies = np.array([hf, *history])
    steps = np.arange(len(energies))
    left.plot(steps, energies, color="#1f5fa8", marker="o", markersize=3, label="circuit")
    left.axhline(exact, color="#222222", linewidth=1, label="exact (FCI)")
    left.axhline(hf, color="#b5561c", linewidth=1, linestyle=":", label="Hartree-Fock")
    left.set(xlabel="iteration", ylabel="energy (Ha)", title=title)
    left.legend(frameon=False)
    right.semilogy(steps, np.maximum(np.abs(energies - exact), 1e-16), color="#1f5fa8", marker="o", markersize=3)
    right.axhline(CHEMICAL_ACCURACY, color="#777777", linestyle="--", linewidth=1, label="chemical accuracy")
    right.set(xlabel="iteration", ylabel="error (Ha)", title="error against full CI")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.25)
    return figure

"""Drawings of circuits: text and matplotlib. Qubit 0 is the top wire."""

from typing import Any

import numpy as np

from sciax.quantum._circuit import Circuit
from sciax.quantum._gate import Gate
from sciax.quantum._kinds import KINDS

_MAX_COLUMNS = 400


def _number(value: float) -> str:
    """A number with multiples of pi told apart."""
    for denominator in (1, 2, 3, 4, 6, 8):
        top = value * denominator / np.pi
        if abs(value) > 1e-12 and abs(top - round(top)) < 1e-9 and abs(round(top)) <= 16:
            sign = "-" if top < 0 else ""
            count = "" if abs(round(top)) == 1 else str(abs(round(top)))
            return f"{sign}{count}π" + (f"/{denominator}" if denominator > 1 else "")
    return f"{value:.3g}"


def _angle(expression, values) -> str:
    constant = expression.constant
    parts = []
    for key, c in expression.terms:
        if isinstance(key, int):
            try:
                constant += c * float(values[key])
            except TypeError:  # a traced number has no value yet
                parts.append("?")
        else:
            parts.append(key if c == 1 else f"-{key}" if c == -1 else f"{c:.3g}{key}")
    if constant or not parts:
        parts.append(_number(constant))
    return "+".join(parts).replace("+-", "-")


def _label(gate: Gate, values) -> str:
    names = {"measure": "M", "reset": "|0⟩", "unitary": "U", "custom": "f"}
    kind = KINDS.get(gate.kind)
    name = names.get(gate.kind) or (kind.label if kind else gate.kind)
    if gate.kind == "channel":
        name = gate.extra.name
    if gate.kind == "rp":
        name = f"R{gate.extra.lower()}"
    if gate.angles:
        name += "(" + ",".join(_angle(a, values) for a in gate.angles) + ")"
    if gate.bits:
        name += f"→c{gate.bits[0]}"
    if gate.condition:
        bits, value = gate.condition
        name += f" if {','.join(f'c{b}' for b in bits)}={value}"
    return name


def _columns(circuit: Circuit) -> list[list[Gate]]:
    """Gates packed to the left; two share a column when the spans of wires that they cross are disjoint."""
    free = [0] * max(circuit.num_qubits, 1)
    ready: dict[int, int] = {}  # classical bit -> first column in which it may be read or written
    columns: list[list[Gate]] = []
    for gate in circuit.gates:
        qubits = gate.qubits or (0,)
        if not circuit.num_qubits:
            continue
        span = range(min(qubits), max(qubits) + 1)
        bits = gate.bits + (gate.condition[0] if gate.condition else ())
        at = max([free[q] for q in span] + [ready.get(b, 0) for b in bits])
        if at >= _MAX_COLUMNS:
            break
        while len(columns) <= at:
            columns.append([])
        columns[at].append(gate)
        for q in span:
            free[q] = at + 1
        for b in bits:
            ready[b] = at + 1
    return columns


def _symbols(gate: Gate, label: str) -> dict[int, str]:
    """What stands on each wire that the gate touches."""
    if gate.kind == "barrier":
        return dict.fromkeys(gate.targets, "░")
    if gate.kind == "swap":
        marks = dict.fromkeys(gate.targets, "x")
    elif gate.kind == "x" and gate.controls and gate.condition is None:
        marks = {gate.targets[0]: "⊕"}
    elif gate.kind == "z" and gate.controls and gate.condition is None:
        marks = {gate.targets[0]: "●"}
    elif len(gate.targets) > 1:
        marks = {q: f"[{label}:{k}]" for k, q in enumerate(gate.targets)}
    elif not gate.targets:  # a global phase: shown on its first control, or on wire 0
        first = gate.controls[0][0] if gate.controls else 0
        return {**{q: "●" if v else "○" for q, v in gate.controls}, first: f"[{label}]"}
    else:
        marks = {gate.targets[0]: f"[{label}]"}
    return {**marks, **{q: "●" if v else "○" for q, v in gate.controls}}


def text(circuit: Circuit) -> str:
    """The circuit as lines of text."""
    n, columns = circuit.num_qubits, _columns(circuit)
    head = [f"q{q}: " for q in range(n)]
    width = max(map(len, head), default=0)
    wires = [h.rjust(width) for h in head]
    links = [" " * width for _ in range(n)]
    for column in columns:
        cells, between = [""] * n, [False] * n  # between[q]: a line from wire q to wire q + 1
        for gate in column:
            symbols = _symbols(gate, _label(gate, circuit.values))
            low, high = min(symbols), max(symbols)
            for q in range(low, high + 1):
                cells[q] = symbols.get(q, "░" if gate.kind == "barrier" else "┼")
                between[q] = q < high and gate.kind != "barrier"
        size = max([len(c) for c in cells] + [1]) + 2
        for q in range(n):
            wires[q] += cells[q].center(size, "─")
            links[q] += ("│" if between[q] else " ").center(size)
    if len(columns) >= _MAX_COLUMNS:
        wires = [w + " ..." for w in wires]
    lines = []
    for q in range(n):
        lines.append(wires[q] + "─")
        if q < n - 1:
            lines.append(links[q].rstrip())
    return "\n".join(lines)


def draw(circuit: Circuit) -> Any:
    """The circuit as a matplotlib Figure."""
    from matplotlib.patches import Circle, FancyBboxPatch

    from sciax.quantum._plot import Picture

    n, columns = max(circuit.num_qubits, 1), _columns(circuit)
    labels = [[_label(g, circuit.values) for g in column] for column in columns]
    widths = []
    for column, names in zip(columns, labels):
        boxes = [len(m) - 2 for g, name in zip(column, names) for m in _symbols(g, name).values() if m[0] == "["]
        widths.append(max([0.8, *(0.15 * size + 0.6 for size in boxes)]))
    centres = np.cumsum(widths) - np.array(widths) / 2 if widths else np.zeros(0)
    total = float(sum(widths)) + 1
    figure = Picture(figsize=(max(2.0, 0.62 * total), 0.62 * n + 0.3), layout="constrained")
    axes = figure.subplots()
    ink, fill = "#1d2b3a", "#dbe8f5"
    for q in range(n):
        axes.plot([-0.3, total - 0.7], [-q, -q], color=ink, linewidth=0.9, zorder=0)
        axes.text(-0.45, -q, f"$q_{{{q}}}$", ha="right", va="center", fontsize=10)
    for column, names, x in zip(columns, labels, centres):
        for gate, name in zip(column, names):
            symbols = _symbols(gate, name)
            if gate.kind == "barrier":
                for q in symbols:
                    axes.plot([x, x], [-q - 0.45, -q + 0.45], color="#888888", linestyle=":", linewidth=1.4)
                continue
            if len(symbols) > 1:
                axes.plot([x, x], [-min(symbols), -max(symbols)], color=ink, linewidth=1.1, zorder=1)
            for q, mark in symbols.items():
                if mark == "●" or mark == "○":
                    axes.add_patch(
                        Circle((x, -q), 0.1, facecolor=ink if mark == "●" else "white", edgecolor=ink, zorder=3)
                    )
                elif mark == "⊕":
                    axes.add_patch(Circle((x, -q), 0.2, facecolor="white", edgecolor=ink, zorder=2))
                    axes.plot([x - 0.2, x + 0.2], [-q, -q], color=ink, linewidth=1.1, zorder=3)
                    axes.plot([x, x], [-q - 0.2, -q + 0.2], color=ink, linewidth=1.1, zorder=3)
                elif mark == "x":
                    for s in (-1, 1):
                        axes.plot(
                            [x - 0.13, x + 0.13], [-q - 0.13 * s, -q + 0.13 * s], color=ink, linewidth=1.4, zorder=3
                        )
                else:
                    shown = mark.strip("[]")
                    half = 0.075 * len(shown) + 0.15
                    box = FancyBboxPatch(
                        (x - half, -q - 0.26),
                        2 * half,
                        0.52,
                        boxstyle="round,pad=0.02",
                        facecolor=fill,
                        edgecolor=ink,
                        zorder=2,
                    )
                    axes.add_patch(box)
                    axes.text(x, -q, shown, ha="center", va="center", fontsize=8.5, zorder=4)
    axes.set(xlim=(-1, total - 0.5), ylim=(-n + 0.4, 0.6), aspect="equal")
    axes.axis("off")
    return figure

"""OpenQASM 2: the real files, the grammar, errors with their places, and export as the inverse of import."""

import numpy as np
import pytest

from sciax.core.errors import MissingFileError, UnsupportedError
from sciax.quantum import Circuit, statevector, unitary
from sciax.quantum.qasm import QasmError, from_qasm, read_qasm, to_qasm

HEAD = 'OPENQASM 2.0;\ninclude "qelib1.inc";\n'
INVALID = {"vqe_uccsd_n4.qasm", "vqe_uccsd_n6.qasm", "vqe_uccsd_n8.qasm"}  # measure a register that they never declare


def test_all_benchmark_files(shared_data):
    files = sorted((shared_data / "quantum" / "qasmbench").rglob("*.qasm"))
    assert files
    for path in files:
        if path.name in INVALID:
            with pytest.raises(QasmError, match=r"line \d+, column \d+: no register 'q' is declared"):
                read_qasm(path)
        else:
            circuit = read_qasm(path)
            assert len(circuit) > 0, path.name


def test_small_files_survive_export(shared_data):
    for path in sorted((shared_data / "quantum" / "qasmbench" / "small").glob("*.qasm")):
        if path.name in INVALID:
            continue
        circuit = read_qasm(path)
        again = from_qasm(to_qasm(circuit))
        if any(g.condition or g.kind == "reset" for g in circuit.gates) or circuit.num_qubits > 6 or len(circuit) > 400:
            assert [g.kind for g in again.gates] == [g.kind for g in circuit.gates], path.name
            continue
        strip = [g for g in circuit.gates if g.kind not in ("measure", "barrier")]
        bare = Circuit.from_gates(circuit.num_qubits, strip, circuit.values)
        back = Circuit.from_gates(
            again.num_qubits, [g for g in again.gates if g.kind not in ("measure", "barrier")], again.values
        )
        np.testing.assert_allclose(statevector(bare), statevector(back), atol=1e-12, err_msg=path.name)


def test_grammar(tmp_path):
    (tmp_path / "mine.inc").write_text("gate shift(a, b) q { rz(-a/2) q; u1(b^2*sin(pi/2)) q; }\n")
    text = (
        HEAD
        + """include "mine.inc";
    qreg a[2]; qreg b[2]; creg c[2];   // two statements on one line
    gate pair(t) x, y { h x; cx x, y; shift(t + 2, -t) y; barrier x, y; }
    gate twice(t) x, y { pair(t/2) x,y; pair(ln(exp(t))) y,x; }
    h a;
    cx a, b;
    twice(0.5) a[0], b[1];
    cu3(0.1, .2, 3e-1) a[1], b;
    U(pi/2, 0, pi) b[0]; CX b[0], a[0];
    barrier a, b[0];
    measure a -> c;
    if (c == 3) x b;
    reset a;
    measure b[0] -> c[0];
    """
    )
    circuit = from_qasm(text, folder=tmp_path)
    assert circuit.num_qubits == 4 and circuit.num_bits == 2
    kinds = [g.kind for g in circuit.gates]
    assert kinds.count("measure") == 3 and kinds.count("reset") == 2
    conditioned = [g for g in circuit.gates if g.condition]
    assert [g.targets for g in conditioned] == [(2,), (3,)] and conditioned[0].condition == ((0, 1), 3)
    # the same circuit by hand, up to the measurement
    by_hand = Circuit(4).h(0).h(1).cx(0, 2).cx(1, 3)
    for t, x, y in ((0.25, 0, 3), (0.5, 3, 0)):
        by_hand = by_hand.h(x).cx(x, y).rz(-(t + 2) / 2, y).p(t**2, y)
    by_hand = (
        by_hand.u3(0.1, 0.2, 0.3, 2, controls=1).u3(0.1, 0.2, 0.3, 3, controls=1).u3(np.pi / 2, 0, np.pi, 2).cx(2, 0)
    )
    stop = next(k for k, g in enumerate(circuit.gates) if g.kind == "measure")
    head = Circuit.from_gates(4, circuit.gates[:stop], circuit.values)
    np.testing.assert_allclose(unitary(head), unitary(by_hand), atol=1e-13)
    again = from_qasm(to_qasm(circuit))
    assert [(g.kind, g.targets, g.condition) for g in again.gates if g.kind != "barrier"] == [
        (g.kind, g.targets, g.condition) for g in circuit.gates if g.kind != "barrier"
    ]


@pytest.mark.parametrize(
    "expression, value",
    [
        ("-2^2", -4),
        ("2^3^2", 512),
        ("1 - 2 - 3", -4),
        ("8/2/2", 2),
        ("2*(3+4)", 14),
        ("-pi/-2", np.pi / 2),
        ("sqrt(16) + ln(exp(1))", 5),
        ("tan(pi/4)", 1),
        ("2^-1", 0.5),
        ("cos(0)*1.5e1", 15),
    ],
)
def test_expressions(expression, value):
    circuit = from_qasm(HEAD + f"qreg q[1]; rz({expression}) q[0];")
    assert abs(circuit.values[0] - value) < 1e-12


@pytest.mark.parametrize(
    "text, line, column, words",
    [
        ("qreg q[1];", 1, 1, "starts with"),
        ("OPENQASM 3.0;", 1, 10, "not supported"),
        (HEAD + "qreg q[2];\nh q[2];", 4, 3, "out of range for register 'q'"),
        (HEAD + "qreg q[2];\n  cx q[0] q[1];", 4, 11, "expected ';'"),
        (HEAD + "qreg q[2];\ncx q[0],q[0];", 4, 1, "used twice"),
        (HEAD + "qreg q[2];\nhh q[0];", 4, 1, "'hh' is not defined"),
        (HEAD + "qreg q[2]; qreg q[3];", 3, 17, "declared twice"),
        (HEAD + "qreg q[1];\nrx q[0];", 4, 1, "wrong number of parameters"),
        (HEAD + "qreg q[1];\nrx(1/0) q[0];", 4, 1, "cannot be computed"),
        (HEAD + "qreg q[1];\nrx(theta) q[0];", 4, 4, "no parameter 'theta'"),
        (HEAD + "qreg q[1];\nmeasure q -> r;", 4, 14, "no register 'r'"),
        (HEAD + "qreg q[2]; creg c[1];\nmeasure q -> c;", 4, 1, "different size"),
        (HEAD + "qreg q[2]; qreg r[3];\ncx q, r;", 4, 1, "different size"),
        (HEAD + "qreg q[1]; creg c[1];\nif (q == 1) x q;", 4, 5, "not a classical"),
        (HEAD + "gate g a { x b; }", 3, 14, "no qubit argument 'b'"),
        (HEAD + "gate g a { g a; }", 3, 12, "'g' is not defined"),
        (HEAD + "gate g a { }\ngate g a { }", 4, 6, "defined twice"),
        (HEAD + "opaque o a;\nqreg q[1];\no q[0];", 5, 1, "opaque"),
        (HEAD + "qreg q[1]\nh q;", 4, 1, "expected ';'"),
        (HEAD + "qreg q[1]; h q", 3, 15, "end of the file"),
        (HEAD + "qreg q[1]; h @q;", 3, 14, "unexpected character"),
        ("OPENQASM 2.0;\nqreg q[1];\nh q[0];", 3, 1, "is not defined"),
        (HEAD + 'include "../../etc/passwd";', 3, 9, "cannot include"),
    ],
)
def test_errors_name_the_place(text, line, column, words):
    with pytest.raises(QasmError, match=words) as error:
        from_qasm(text)
    assert (error.value.line, error.value.column) == (line, column)


def test_includes_stay_in_their_folder(tmp_path):
    with pytest.raises(QasmError, match="outside the program's folder"):
        from_qasm(HEAD + 'include "../x.inc";', folder=tmp_path)
    (tmp_path / "self.inc").write_text('include "self.inc";')
    with pytest.raises(QasmError, match="includes itself"):
        from_qasm(HEAD + 'include "self.inc";', folder=tmp_path)
    with pytest.raises(MissingFileError):
        read_qasm(tmp_path / "absent.qasm")


def _everything(rng_unitary):
    c = (
        Circuit(5)
        .h(0)
        .gphase(0.3)
        .u3(0.3, -0.4, 1.9, 1)
        .u2(0.5, 0.2, 2)
        .rn(0.3, 0.4, -0.2, 3)
        .sx(4)
        .sxdg(0)
        .iswap(0, 3)
    )
    c = c.x(4, controls=(0, 1, 2, 3)).x(3, controls=(0, 1), negative=(2,)).s(0, controls=2).t(1, negative=0)
    c = (
        c.ry(0.7, 2, controls=(0, 4))
        .sx(1, controls=(0, 2, 3))
        .y(0, controls=(2, 3), negative=4)
        .rn(0.1, 0.2, 0.3, 0, controls=1)
    )
    c = c.swapalpha(0.4, 0, 2).fsim(0.4, 0.9, 1, 4).givens(-0.6, 3, 0).fsim(0.2, 0.1, 0, 1, controls=3, negative=2)
    c = (
        c.swap(1, 2, controls=(0, 3))
        .iswap(4, 1, controls=0)
        .gphase(0.8, controls=(1, 2))
        .rxy(0.3, 0, 1)
        .ryz(0.2, 3, 4)
        .rxz(0.9, 1, 0)
    )
    c = (
        c.rp(0.35, "XYZY", (0, 1, 2, 4))
        .rp(0.4, "ZX", (3, 1), controls=(0, 2))
        .excitation(0.3, (0, 4), (1, 2))
        .excitation(0.2, (4,), (0,))
    )
    c = c.excitation(0.4, (3,), (1,), controls=0).unitary(rng_unitary(4), (3, 1)).unitary(rng_unitary(8), (4, 0, 2))
    return (
        c.unitary(rng_unitary(2), 1, controls=(0, 3))
        .unitary(rng_unitary(4), (0, 4), controls=2)
        .rzz(0.4, 0, 1, controls=2)
    )


def test_export_of_every_gate_keeps_the_unitary_and_its_phase(rng_unitary):
    circuit = _everything(rng_unitary)
    np.testing.assert_allclose(unitary(from_qasm(to_qasm(circuit))), unitary(circuit), atol=1e-12)


def test_library_gates():
    from sciax.quantum.qasm._library import GATES

    params = (0.3, -0.7, 1.1, 0.4)
    for name, (count, width, _) in GATES.items():
        inside = f"({','.join(map(str, params[:count]))})" if count else ""
        text = HEAD + f"qreg q[{width}]; {name}{inside} {','.join(f'q[{k}]' for k in range(width))};"
        circuit = from_qasm(text)
        again = from_qasm(to_qasm(circuit))
        np.testing.assert_allclose(unitary(again), unitary(circuit), atol=1e-13, err_msg=name)
    # relative-phase Toffolis are Toffolis up to phases
    np.testing.assert_allclose(
        np.abs(unitary(from_qasm(HEAD + "qreg q[3]; rccx q[0],q[1],q[2];"))),
        np.abs(unitary(Circuit(3).ccx(0, 1, 2))),
        atol=1e-14,
    )
    np.testing.assert_allclose(
        np.abs(unitary(from_qasm(HEAD + "qreg q[4]; rc3x q[0],q[1],q[2],q[3];"))),
        np.abs(unitary(Circuit(4).x(3, controls=(0, 1, 2)))),
        atol=1e-14,
    )


def test_export_refuses_what_the_language_lacks():
    with pytest.raises(UnsupportedError, match="free parameters"):
        to_qasm(Circuit(1).rx("a", 0))
    with pytest.raises(UnsupportedError, match="overlap"):
        to_qasm(Circuit(1, 2).measure(0, 0).when((0,), 1, Circuit(1, 2).x(0)).when((0, 1), 1, Circuit(1, 2).x(0)))

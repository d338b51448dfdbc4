"""State vectors and gradients against other simulators on this machine: prints times and our ratio to the best peer.

    python benchmarks/quantum_peers.py                       ours alone, and every peer that can be imported here
    python benchmarks/quantum_peers.py --peers PYTHON        peers run by another interpreter that has them installed
    python benchmarks/quantum_peers.py --threads 2 --only gradient --clock cpu

Peers: qulacs, PennyLane Lightning, qsim, Qiskit Aer, MindQuantum, each in its best setting, those that are not installed named
as absent. Same circuits, one thread each unless --threads says otherwise. Wall time, or CPU time of the process: best of several
rounds, in each of which ours and the peers take turns, over loops long enough to be timed. A peer's circuit is built outside the
timed region where it can be; qsim's per-call conversion is inside, as its interface has it.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np


def ladder(n, depth=10, seed=1):
    """Layers of a random RX, RY or RZ on every qubit and a CX chain."""
    rng, gates = np.random.default_rng(seed), []
    for _ in range(depth):
        gates += [(("rx", "ry", "rz")[rng.integers(3)], (q,), float(rng.uniform(0, 2 * np.pi))) for q in range(n)]
        gates += [("cx", (q, q + 1), None) for q in range(n - 1)]
    return gates


def qft(n):
    gates = []
    for i in range(n - 1, -1, -1):
        gates.append(("h", (i,), None))
        gates += [("cp", (j, i), float(np.pi / 2 ** (i - j))) for j in range(i - 1, -1, -1)]
    return gates + [("swap", (i, n - 1 - i), None) for i in range(n // 2)]


def hea(n, layers):
    gates, k = [], 0
    theta = np.random.default_rng(0).uniform(0, 6, 2 * n * layers)
    for _ in range(layers):
        for q in range(n):
            gates += [("ry", (q,), theta[k]), ("rz", (q,), theta[k + 1])]
            k += 2
        gates += [("cx", (q, q + 1), None) for q in range(n - 1)]
    return gates, theta


CASES = {
    "ladder 10": ("state", lambda: ladder(10)),
    "ladder 16": ("state", lambda: ladder(16)),
    "ladder 20": ("state", lambda: ladder(20)),
    "ladder 22": ("state", lambda: ladder(22)),
    "qft 20": ("state", lambda: qft(20)),
    "gradient 12": ("gradient", lambda: hea(12, 6)),
    "gradient 16": ("gradient", lambda: hea(16, 5)),
    "gradient 20": ("gradient", lambda: hea(20, 5)),
    "batch 1000x6": ("batch", lambda: hea(6, 3)),
}


def qubits_of(name):
    return int(name.split()[1].split("x")[-1])


# -- the systems: each returns a function to call and whether it computes in complex64 or complex128 --------------------------


def ours(kind, gates, n, dtype, backend):
    import jax
    import jax.numpy as jnp

    from sciax.quantum import Circuit, expectation, pauli, statevector, tfim
    from sciax.quantum._circuit import GateList

    real = jnp.float64 if dtype == "c128" else jnp.float32
    if kind == "state":
        c, theta = GateList(n), []
        for name, q, angle in gates:
            if name == "cx":
                c.cx(*q)
            elif name == "cp":
                c.gate("p", q[1], (angle,), controls=q[0])
            elif angle is None:
                c.gate(name, q)
            else:
                c.gate(name, q, (f"t{len(theta)}",))
                theta.append(angle)
        circuit, x = c.circuit(), jnp.asarray(np.array(theta), real)
        if circuit.names:
            f = jax.jit(lambda p: statevector(circuit, p, backend=backend))
            return lambda: f(x).block_until_ready()
        wide = np.complex128 if dtype == "c128" else np.complex64
        f = jax.jit(lambda: statevector(circuit, dtype=wide, backend=backend))
        return lambda: f().block_until_ready()
    moves, theta = gates
    c, k = GateList(n), 0
    for name, q, _angle in moves:
        if name == "cx":
            c.cx(*q)
        else:
            c.gate(name, q, (f"t{k}",))
            k += 1
    ansatz = c.circuit()
    x = jnp.asarray(theta, real)
    if kind == "gradient":
        f = jax.jit(jax.value_and_grad(lambda p: expectation(ansatz, tfim(n), p, backend=backend)))
        return lambda: jax.block_until_ready(f(x))
    encoder = Circuit(n)
    for q in range(n):
        encoder = encoder.ry(f"x{q}", q)
    whole = encoder + ansatz
    rng = np.random.default_rng(0)
    data, weights = jnp.asarray(rng.uniform(0, 6, (1000, n)), real), jnp.asarray(rng.uniform(0, 6, len(theta)), real)
    one = jax.value_and_grad(
        lambda d, w: expectation(whole, pauli("Z0"), jnp.concatenate([d, w]), backend=backend), (0, 1)
    )
    f = jax.jit(jax.vmap(one, (0, None)))
    return lambda: jax.block_until_ready(f(data, weights))


def peer_qulacs(kind, gates, n, dtype, threads):
    import qulacs as ql

    if kind == "batch":
        raise NotImplementedError
    moves = gates if kind == "state" else gates[0]
    circuit = ql.ParametricQuantumCircuit(n) if kind == "gradient" else ql.QuantumCircuit(n)
    for name, q, angle in moves:
        if name == "cx":
            circuit.add_CNOT_gate(*q)
        elif name == "h":
            circuit.add_H_gate(q[0])
        elif name == "swap":
            circuit.add_SWAP_gate(*q)
        elif name == "cp":
            m = ql.gate.U1(q[1], angle)
            m = ql.gate.to_matrix_gate(m)
            m.add_control_qubit(q[0], 1)
            circuit.add_gate(m)
        elif kind == "gradient":
            # qulacs rotates by +angle/2
            getattr(circuit, f"add_parametric_{name.upper()}_gate")(q[0], -angle)
        else:
            getattr(circuit, f"add_{name.upper()}_gate")(q[0], -angle)
    if kind == "state":
        state = ql.QuantumState(n)

        def run():
            state.set_zero_state()
            circuit.update_quantum_state(state)

        return run, "c128"
    h = ql.Observable(n)
    for q in range(n - 1):
        h.add_operator(-1.0, f"Z {q} Z {q + 1}")
    for q in range(n):
        h.add_operator(-1.0, f"X {q}")
    state = ql.QuantumState(n)

    def gradient():
        state.set_zero_state()
        circuit.update_quantum_state(state)
        h.get_expectation_value(state)
        circuit.backprop(h)

    return gradient, "c128"


def peer_lightning(kind, gates, n, dtype, threads):
    import pennylane as qml

    if kind == "batch":
        raise NotImplementedError
    device = qml.device("lightning.qubit", wires=n, c_dtype=np.complex64 if dtype == "c64" else np.complex128)
    moves = gates if kind == "state" else gates[0]
    table = {"rx": qml.RX, "ry": qml.RY, "rz": qml.RZ}
    ops = []
    for name, q, angle in moves:
        wires = [n - 1 - w for w in q]  # wire 0 is its most significant qubit
        if name == "cx":
            ops.append(qml.CNOT(wires))
        elif name == "h":
            ops.append(qml.Hadamard(wires))
        elif name == "swap":
            ops.append(qml.SWAP(wires))
        elif name == "cp":
            ops.append(qml.ControlledPhaseShift(angle, wires))
        else:
            ops.append(table[name](angle, wires))
    if kind == "state":
        tape = qml.tape.QuantumScript(ops, [qml.state()])
        return (lambda: device.execute(tape)), dtype
    h = qml.Hamiltonian(
        [-1.0] * (2 * n - 1), [qml.Z(q) @ qml.Z(q + 1) for q in range(n - 1)] + [qml.X(q) for q in range(n)]
    )
    tape = qml.tape.QuantumScript(ops, [qml.expval(h)], trainable_params=list(range(len(gates[1]))))
    config = qml.devices.ExecutionConfig(gradient_method="adjoint")
    return (lambda: device.execute_and_compute_derivatives(tape, config)), dtype


def peer_qsim(kind, gates, n, dtype, threads):
    import cirq
    import qsimcirq

    if kind != "state" or dtype != "c64":
        raise NotImplementedError
    line = cirq.LineQubit.range(n)
    table = {"rx": cirq.rx, "ry": cirq.ry, "rz": cirq.rz}
    circuit = cirq.Circuit()
    for name, q, angle in gates:
        wires = [line[w] for w in q]
        if name == "cx":
            circuit.append(cirq.CNOT(*wires))
        elif name == "h":
            circuit.append(cirq.H(*wires))
        elif name == "swap":
            circuit.append(cirq.SWAP(*wires))
        elif name == "cp":
            circuit.append(cirq.CZPowGate(exponent=angle / np.pi)(*wires))
        else:
            circuit.append(table[name](angle)(*wires))
    simulators = [
        qsimcirq.QSimSimulator(qsimcirq.QSimOptions(cpu_threads=threads, max_fused_gate_size=f)) for f in (2, 3, 4)
    ]
    best = min(simulators, key=lambda s: min(_once(lambda: s.simulate(circuit)) for _ in range(2)))
    return (lambda: best.simulate(circuit)), "c64"


def peer_aer(kind, gates, n, dtype, threads):
    from qiskit import QuantumCircuit
    from qiskit_aer import AerSimulator

    if kind != "state":
        raise NotImplementedError
    circuit = QuantumCircuit(n)
    for name, q, angle in gates:
        getattr(circuit, name)(*([] if angle is None else [angle]), *q)
    circuit.save_statevector()
    best = None
    for fusion in (False, True):
        simulator = AerSimulator(
            method="statevector",
            precision="single" if dtype == "c64" else "double",
            fusion_enable=fusion,
            max_parallel_threads=threads,
        )
        run = lambda s=simulator: s.run(circuit).result().get_statevector()  # noqa: E731
        t = min(_once(run) for _ in range(2))
        best = min(best, (t, fusion, run)) if best else (t, fusion, run)
    return best[2], dtype


def peer_mindquantum(kind, gates, n, dtype, threads):
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import mindquantum as mq
    from mindquantum.core.circuit import Circuit
    from mindquantum.core.gates import RX, RY, RZ, SWAP, H, PhaseShift, X
    from mindquantum.core.operators import Hamiltonian, QubitOperator
    from mindquantum.simulator import Simulator

    kind_of = mq.complex64 if dtype == "c64" else mq.complex128
    table = {"rx": RX, "ry": RY, "rz": RZ}
    moves = gates if kind == "state" else gates[0]
    circuit, k = Circuit(), 0
    if kind == "batch":
        encoder = Circuit()
        for q in range(n):
            encoder += RY(f"x{q}").on(q)
        circuit += encoder.as_encoder()
    body = Circuit()
    for name, q, angle in moves:
        if name == "cx":
            body += X.on(q[1], q[0])
        elif name == "h":
            body += H.on(q[0])
        elif name == "swap":
            body += SWAP.on(list(q))
        elif name == "cp":
            body += PhaseShift(angle).on(q[1], q[0])
        elif kind == "state":
            body += table[name](angle).on(q[0])
        else:
            body += table[name](f"t{k}").on(q[0])
            k += 1
    circuit += body
    simulator = Simulator("mqvector", n, dtype=kind_of)
    if kind == "state":

        def run():
            simulator.reset()
            simulator.apply_circuit(circuit)

        return run, dtype
    text = (
        {f"Z{q} Z{q + 1}": -1.0 for q in range(n - 1)} | {f"X{q}": -1.0 for q in range(n)}
        if kind == "gradient"
        else {"Z0": 1.0}
    )
    operator = QubitOperator()
    for term, c in text.items():
        operator += QubitOperator(term, c)
    h = Hamiltonian(operator).astype(kind_of)
    f = simulator.get_expectation_with_grad(h, circuit, parallel_worker=threads)
    if kind == "gradient":
        return (lambda: f(gates[1])), dtype
    rng = np.random.default_rng(0)
    data, weights = rng.uniform(0, 6, (1000, n)), rng.uniform(0, 6, len(gates[1]))
    return (lambda: f(data, weights)), dtype


PEERS = {
    "qulacs": peer_qulacs,
    "lightning": peer_lightning,
    "qsim": peer_qsim,
    "aer": peer_aer,
    "mindquantum": peer_mindquantum,
}


CLOCK = time.perf_counter


def _once(call):
    t = CLOCK()
    call()
    return CLOCK() - t


def timed(call, seconds=0.5):
    """Mean wall time of a loop of at least 20 calls for short ones (fewer for long), best of five loops, in ms."""
    first = _once(call)
    first = min(first, _once(call))
    loops = int(max(1, min(50, seconds / 5 / max(first, 1e-6))))
    if first < 0.02:
        loops = max(loops, 20)
    best = float("inf")
    for _ in range(5 if first < 2 else 2):
        t = CLOCK()
        for _ in range(loops):
            call()
        best = min(best, (CLOCK() - t) / loops)
    return best * 1e3


def run_peer(name, case, dtype, threads):
    kind, make = CASES[case]
    call, actual = PEERS[name](kind, make(), qubits_of(case), dtype, threads)
    return timed(call), actual


def serve(threads):
    """The peers' side: answers requests, so that ours and theirs take turns."""
    for line in sys.stdin:
        name, case, dtype = json.loads(line)
        try:
            answer = run_peer(name, case, dtype, threads)
        except NotImplementedError:
            answer = "not offered"
        except ImportError as error:
            answer = f"absent ({error.name})"
        except Exception as error:  # a peer's failure is a result, too
            answer = f"failed ({type(error).__name__}: {str(error)[:60]})"
        print(json.dumps(answer), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=sys.executable, help="an interpreter with the peers installed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument(
        "--among", default=",".join(PEERS), help="only these peers, for a machine where all take too long"
    )
    parser.add_argument("--dtype", default="c64,c128")
    parser.add_argument("--backends", default="cpu,xla")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: for a machine that others use, too"
    )
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for key in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[key] = str(args.threads)
    if args.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if args.clock == "cpu":
        global CLOCK
        CLOCK = time.process_time
    if args.serve:
        return serve(args.threads)
    import jax

    jax.config.update("jax_enable_x64", True)
    server = None
    if not args.no_peers:
        command = [args.peers, __file__, "--serve", "--threads", str(args.threads), "--clock", args.clock]
        # on Linux "taskset" could pin; both sides run one after the other, never together
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    print(f"{args.threads} thread(s); ms; ratio = ours / best peer of the same dtype")
    for case, (kind, make) in CASES.items():
        if args.only not in case:
            continue
        for dtype in args.dtype.split(","):
            mine = {}
            for backend in args.backends.split(","):
                if backend == "xla" and qubits_of(case) > 20:
                    continue
                call = ours(kind, make(), qubits_of(case), dtype, backend)
                mine[backend] = timed(call)
            theirs, notes = {}, []
            for name in args.among.split(",") if server else ():
                server.stdin.write(json.dumps([name, case, dtype]) + "\n")
                server.stdin.flush()
                answer = json.loads(server.stdout.readline())
                if isinstance(answer, str):
                    notes.append(f"{name}: {answer}")
                elif answer[1] == dtype or dtype == "c128":
                    theirs[name] = answer[0]
                else:
                    notes.append(f"{name}: {answer[0]:.3g} in {answer[1]} only")
            # ours once more, after the peers: the better of the two, as the peers have their best
            for backend in mine:
                mine[backend] = min(mine[backend], timed(ours(kind, make(), qubits_of(case), dtype, backend)))
            best = min(theirs, key=theirs.get) if theirs else None
            text = "  ".join(f"{k} {v:.3g}" for k, v in {**mine, **theirs}.items())
            ratio = "  ".join(f"{b}/{best} = {t / theirs[best]:.2f}" for b, t in mine.items()) if best else "no peer"
            print(f"{case:14s} {dtype:5s} {text}   {ratio}   {'; '.join(notes)}", flush=True)
    if server:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main()

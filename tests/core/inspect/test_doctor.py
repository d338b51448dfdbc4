"""The doctor: every probe passes here, and each one fails when its subject is faulty."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from sciax.core.inspect.doctor import PROBES, Measured, diagnose, examine
from sciax.core.inspect.doctor import _diagnose as diagnose_module
from sciax.core.inspect.doctor._processes import CHILD, run_pair
from sciax.core.jobs.cli import app

SLOW = {"two processes"}
QUICK = [name for name in PROBES if name not in SLOW]


def scaled(function: Callable[..., Any], factor: float = 1 + 1e-3) -> Callable[..., Any]:
    """`function` with its result a little off."""
    return lambda *a, **k: jax.tree.map(lambda leaf: leaf * factor, function(*a, **k))


def transform(make: Callable[..., Any]) -> Callable[..., Any]:
    """A transformation (jit, grad, ...) whose transformed functions are a little off."""
    return lambda *a, **k: scaled(make(*a, **k))


def rows_lost(jit: Any) -> Any:
    """The miscompilation the probe is for: rows past 16384 are wrong."""

    def broken(function: Any) -> Any:
        compiled = jit(function)

        def call(rows: Any) -> Any:
            out = compiled(rows)
            return out.at[16384:].multiply(0.5)

        return call

    return broken


def conjugated(grad: Any) -> Any:
    """The other complex convention."""
    return lambda f: lambda z: grad(f)(z).conj()


def constant_adjoint(solve: Any) -> Any:
    """Right values, wrong gradient."""

    @jax.custom_jvp
    def broken(a: Any, b: Any) -> Any:
        return solve(a, b)

    @broken.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return solve(*primals), solve(primals[0], tangents[1])

    return broken


def stale_carry(scan: Any) -> Any:
    return lambda f, init, xs, length: scan(f, init, xs, length=length - 1)


def other_bits(random: Any) -> Any:
    return SimpleNamespace(
        key=lambda seed: random.key(seed + 1), bits=random.bits, fold_in=random.fold_in, normal=random.normal
    )


def lossy(round_trip: Any) -> Any:
    """A file format that keeps single precision only."""
    return lambda ds: round_trip(ds).assign(t=lambda d: d.t.astype(np.float32).assign_attrs(units="K"))


def one_wrong(operators: Any) -> Any:
    def spot() -> list[Any]:
        first, *others = operators()
        return [replace(first, function=scaled(first.function)), *others]

    return spot


def broken_extension(modules: Any) -> Any:
    def load() -> Any:
        raise ImportError("_gates.so: undefined symbol")

    return load


FAULTS: dict[str, Callable[[Any], Any]] = {
    "jit": transform,
    "vmap": transform,
    "gradient": transform,
    "forward gradient": lambda jvp: lambda *a: (jvp(*a)[0], jvp(*a)[1] * 1.001),
    "second order": transform,
    "complex gradient": conjugated,
    "linear algebra": constant_adjoint,
    "eigenvalues": scaled,
    "FFT": lambda fft: lambda x: fft(x) / jnp.sqrt(x.size),
    "scan": stale_carry,
    "64-bit scope": lambda scope: lambda enabled: nullcontext(),
    "random numbers": other_bits,
    "small-matrix products": rows_lost,
    "NetCDF": lossy,
    "export": scaled,
    "operators": one_wrong,
    "native kernels": broken_extension,
}


def test_there_are_at_least_thirteen_probes_and_each_has_a_fault() -> None:
    assert len(PROBES) >= 13
    assert set(FAULTS) | SLOW == set(PROBES)


@pytest.mark.parametrize("name", QUICK)
def test_probe_passes_here(name: str) -> None:
    finding = examine(PROBES[name])
    assert finding.passed, finding
    assert finding.remedy == ""


@pytest.mark.parametrize("name", QUICK)
def test_probe_sees_a_fault_of_its_subject(name: str) -> None:
    probe = PROBES[name]
    finding = examine(replace(probe, subject=FAULTS[name](probe.subject)))
    assert not finding.passed
    assert finding.message
    assert finding.remedy == probe.remedy


def test_the_recorded_bits_are_those_of_the_published_cipher() -> None:
    from sciax.core.inspect.doctor._numbers import _RECORDED

    def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
        """Threefry-2x32, 20 rounds (Salmon et al., SC 2011, table 2 and algorithm 3)."""
        mask = 0xFFFFFFFF
        keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
        x, y = (counter[0] + keys[0]) & mask, (counter[1] + keys[1]) & mask
        rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
        for block in range(5):
            for r in rotations[block % 2]:
                x = (x + y) & mask
                y = ((y << r) | (y >> (32 - r))) & mask
                y ^= x
            x = (x + keys[(block + 1) % 3]) & mask
            y = (y + keys[(block + 2) % 3] + block + 1) & mask
        return x, y

    pairs = [threefry((0, 42), (0, place)) for place in range(3)]
    np.testing.assert_array_equal(_RECORDED[:3], [(x ^ y) / 2**32 for x, y in pairs])


@pytest.mark.multiprocess
def test_two_processes_pass_and_a_wrong_sum_is_seen(tmp_path: Path) -> None:
    probe = PROBES["two processes"]
    finding = examine(probe)
    assert finding.passed, finding
    broken = tmp_path / "child.py"
    broken.write_text(CHILD.read_text().replace("jnp.sum(v * v)", "jnp.sum(v)"))
    finding = examine(replace(probe, subject=broken))
    assert not finding.passed and "off by" in finding.message


def test_a_pair_that_hangs_is_given_up_and_ended(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import os, pathlib, sys, time\n"
        "pathlib.Path(__file__).with_name(f'pid{sys.argv[2]}').write_text(str(os.getpid()))\ntime.sleep(60)\n"
    )
    from sciax.core.errors import ConvergenceError

    with pytest.raises(ConvergenceError, match="did not answer"):
        run_pair(child, timeout=1.0)
    for path in tmp_path.glob("pid*"):
        assert not Path(f"/proc/{path.read_text()}").exists()


def test_a_child_that_fails_is_reported(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text("raise SystemExit('no such network')\n")
    finding = examine(replace(PROBES["two processes"], subject=child))
    assert not finding.passed and "no such network" in finding.message


@pytest.mark.parametrize(
    ("got", "expected"),
    [([1.0, np.nan], [1.0, 2.0]), ([1.0], [1.0, 2.0]), (["a"], ["b"]), ([1.0, 2.1], [1.0, 2.0])],
)
def test_measured_fails_on_nan_shape_text_and_value(got: Any, expected: Any) -> None:
    assert Measured(got, expected, 1e-3).error > 1e-3


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Only these probes in the doctor's table, with faults where asked."""

    def choose(names: list[str], faulty: str | None = None) -> None:
        chosen = {name: PROBES[name] for name in names}
        if faulty is not None:
            probe = PROBES[faulty]
            chosen[faulty] = replace(probe, subject=FAULTS[faulty](probe.subject))
        monkeypatch.setattr(diagnose_module, "PROBES", chosen)

    return choose


def test_command_in_good_health(few: Callable[..., None]) -> None:
    few(["jit", "gradient"])
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "all 2 probes passed" in result.output and "gradient" in result.output


def test_command_with_a_fault(few: Callable[..., None]) -> None:
    few(["jit", "gradient"], faulty="gradient")
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "1 of 2 probes failed: gradient" in result.output and "FAIL" in result.output


def test_json(few: Callable[..., None]) -> None:
    few(["jit", "gradient"], faulty="gradient")
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["ok"] is False and found["usable"] is True
    assert [probe["passed"] for probe in found["probes"]] == [True, False]
    assert found["versions"]["jax"] == jax.__version__


def test_a_jax_that_miscompiles_is_refused(few: Callable[..., None]) -> None:
    few(["small-matrix products"], faulty="small-matrix products")
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "Do not use this jax" in result.output and "pip install 'jax>=0.11'" in result.output


def test_diagnose_keeps_the_order_of_the_table() -> None:
    names = ["two processes", "jit"]
    quick = replace(PROBES["two processes"], check=lambda child: Measured(1, 1))
    diagnosis = diagnose([quick, PROBES["jit"]])
    assert [finding.name for finding in diagnosis.findings] == names

"""Touchstone and refractive-index files: round trips, real files, broken files."""

import numpy as np
import pytest

from sciax.core.errors import (
    ConvergenceError,
    FileFormatError,
    InputError,
    MissingFileError,
    SciaxError,
    UnsupportedError,
)
from sciax.elec.materials import fit_poles, read_index
from sciax.elec.touchstone import Network, read_touchstone, write_touchstone


def random_network(n, kind="s", equal=True):
    rng = np.random.default_rng(n)
    m = rng.standard_normal((7, n, n)) + 1j * rng.standard_normal((7, n, n))
    return Network(np.linspace(1e9, 3e9, 7), m, 50.0 if equal else 50.0 + np.arange(n), kind)


@pytest.mark.parametrize("ports", [1, 2, 3, 5, 9])
@pytest.mark.parametrize(("version", "kind"), [(1, "s"), (1, "z"), (1, "y"), (2, "s"), (2, "z")])
def test_round_trip(ports, version, kind, tmp_path):
    net = random_network(ports, kind, equal=version == 1)
    back = read_touchstone(write_touchstone(net, tmp_path / f"a.s{ports}p", version=version))
    np.testing.assert_allclose(back.matrix, net.matrix, rtol=1e-12)
    np.testing.assert_allclose(back.frequency, net.frequency, rtol=1e-15)
    np.testing.assert_allclose(back.impedance, net.impedance)
    assert back.kind == kind


@pytest.mark.parametrize("form", ["MA", "DB", "RI"])
def test_formats_orders_comments_and_noise(form, tmp_path):
    value = {"MA": "0.5 90", "DB": f"{20 * np.log10(0.5)} 90", "RI": "0 0.5"}[form]
    text = f"! head\n# MHz S {form} R 75\n# GHz S RI R 50 ! a second option line does not count\n"
    text += f"100 {value} {value} ! tail\n{value} {value}\n200 {value} {value} {value} {value}\n! noise\n50 1 2 3 4\n"
    (tmp_path / "a.s2p").write_text(text)
    net = read_touchstone(tmp_path / "a.s2p")
    np.testing.assert_allclose(net.matrix, 0.5j * np.ones((2, 2, 2)), atol=1e-15)
    np.testing.assert_allclose(net.frequency, [1e8, 2e8])
    assert net.impedance[0] == 75
    (tmp_path / "b.s2p").write_text("# GHz S RI\n1 11 0 21 0 12 0 22 0\n")
    np.testing.assert_allclose(read_touchstone(tmp_path / "b.s2p").matrix[0].real, [[11, 12], [21, 22]])
    head = "[Version] 2.0\n# GHz S RI\n[Number of Ports] 3\n[Matrix Format] Lower\n[Network Data]\n"
    (tmp_path / "c.ts").write_text(head + "1 1 0\n2 0 3 0\n4 0 5 0 6 0\n[End]\n")
    np.testing.assert_allclose(read_touchstone(tmp_path / "c.ts").matrix[0].real, [[1, 2, 4], [2, 3, 5], [4, 5, 6]])


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.s2p", "", "empty"),
        ("a.s2p", "1 2 3\n", "no option line"),
        ("a.s2p", "# GHz S RI\n1 2 3\n", "left over"),
        ("a.s1p", "# GHz S RI\n1 2 x\n", "not a number"),
        ("a.s3p", "# GHz S RI\n1 2 3\n", "do not divide"),
        ("a.txt", "# GHz S RI\n1 2 3\n", "by the name"),
        ("a.s1p", "# GHz Q RI\n1 2 3\n", "unknown word 'q'"),
        ("a.s1p", "# GHz S RI\n2 2 3\n1 2 3\n", "must increase"),
        ("a.ts", "[Version] 2.0\n# GHz S RI\n[Network Data]\n1 2 3\n", "number of ports"),
    ],
)
def test_broken_touchstone(name, text, says, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileFormatError, match=says):
        read_touchstone(tmp_path / name)


def test_wrong_networks(tmp_path):
    with pytest.raises(MissingFileError):
        read_touchstone(tmp_path / "none.s2p")
    with pytest.raises(InputError, match=r"ends in \.s3p"):
        write_touchstone(random_network(3), tmp_path / "a.s2p", version=1)
    with pytest.raises(InputError, match="one reference impedance"):
        write_touchstone(random_network(2, equal=False), tmp_path / "a.s2p", version=1)


def test_every_real_touchstone_file_loads_and_comes_back(shared_data, tmp_path):
    files = sorted(p for p in (shared_data / "elec" / "touchstone").iterdir() if p.suffix != ".txt")
    assert len(files) >= 10
    for path in files:
        net = read_touchstone(path)
        back = read_touchstone(write_touchstone(net, tmp_path / f"x.s{net.ports}p"))
        np.testing.assert_allclose(back.matrix, net.matrix, rtol=1e-9, err_msg=path.name)
        np.testing.assert_allclose(back.frequency, net.frequency, rtol=1e-9)
    assert read_touchstone(shared_data / "elec/touchstone/test_multiport.s9p").ports == 9
    ring = read_touchstone(shared_data / "elec/touchstone/ring_slot.s2p")
    assert ring.reciprocity() < 1e-9 and ring.passivity() < 1.0 + 1e-6
    assert ring.matrix[0, 0, 0] == pytest.approx(-0.503723180993 + 0.457844804761j)


def test_formulas_and_tables(tmp_path):
    (tmp_path / "silica.yml").write_text(
        "REFERENCES: |\n  - type: this is prose\nDATA:\n  - type: formula 1\n    wavelength_range: 0.21 6.7\n"
        "    coefficients: 0 0.6961663 0.0684043 0.4079426 0.1162414 0.8974794 9.896161\n"
    )
    silica = read_index(tmp_path / "silica.yml")
    assert silica(1.55e-6).real == pytest.approx(1.4440236, abs=1e-6)  # Malitson, J. Opt. Soc. Am. 55 (1965) 1205
    assert silica(0.5876e-6).real == pytest.approx(1.458461, abs=1e-5)
    with pytest.raises(InputError, match="not known there"):
        silica(9e-6)
    (tmp_path / "t.yml").write_text(
        "DATA:\n  - type: tabulated nk\n    data: |\n        0.5 1.0 0.2\n        1.0 2.0 0.4\n"
    )
    assert read_index(tmp_path / "t.yml")(0.75e-6) == pytest.approx(1.5 + 0.3j)
    (tmp_path / "bad.yml").write_text("DATA:\n  - type: formula 11\n    wavelength_range: 1 2\n    coefficients: 1\n")
    with pytest.raises(UnsupportedError, match="formula 11"):
        read_index(tmp_path / "bad.yml")
    (tmp_path / "no.yml").write_text("hello\n")
    with pytest.raises(FileFormatError, match="no DATA"):
        read_index(tmp_path / "no.yml")


def test_every_real_index_file_loads_or_says_why(shared_data):
    loaded, refused = 0, []
    for path in sorted((shared_data / "elec" / "nk").glob("*.yml")):
        try:
            index = read_index(path)
        except SciaxError as error:
            refused.append((path.name, str(error)))
            continue
        lo, hi = index.range
        n = index(np.linspace(lo, hi, 50))
        assert np.all(np.isfinite(n)) and np.all(n.real > 0), path.name
        loaded += 1
    assert loaded >= 29 and all("are not read" in why for _, why in refused), refused
    glass = read_index(shared_data / "elec/nk/N-BK7_schott.yml")
    assert glass(0.5875618e-6).real == pytest.approx(1.51680, abs=2e-5)  # Schott data sheet, n_d


def test_poles_fit_measured_gold_and_stay_passive(shared_data):
    gold = read_index(shared_data / "elec/nk/Au_Johnson.yml")
    band = (0.6e-6, 1.2e-6)
    medium, error = fit_poles(gold, band, poles=3, tolerance=0.05)
    wavelength = np.linspace(*band, 40)
    fitted = np.asarray(medium.epsilon(299792458.0 / wavelength))
    np.testing.assert_allclose(fitted, gold(wavelength) ** 2, rtol=0.06)
    assert error < 0.05
    assert np.all(np.asarray(medium.epsilon(np.geomspace(1e12, 1e16, 200))).imag >= 0)
    with pytest.raises(ConvergenceError, match="do not fit"):
        fit_poles(gold, (0.2e-6, 1.9e-6), poles=1, tolerance=1e-3)

"""Molecules: bad rows, invariance to writing, odd molecules, splits, fingerprints, D-MPNN, calibration."""

import numpy as np
import pytest

from sciax.chem.molecules import (
    FeatureOptions,
    PropertyConfig,
    conformer,
    descriptors,
    fingerprints,
    fit_blend,
    fit_process,
    fit_properties,
    molecule_graph,
    molecule_table,
    murcko_split,
    parse_smiles,
    random_split,
    read_sdf,
)
from sciax.chem.molecules._blend import _simplex
from sciax.chem.molecules._dmpnn import reverse_edges
from sciax.chem.molecules._process import minmax_kernel
from sciax.core.errors import FileFormatError, InputError, MissingFileError, ShapeError
from sciax.science.graph import BatchShape, batch_graphs

Chem = pytest.importorskip("rdkit.Chem")
SMILES = [
    "CCO",
    "c1ccccc1O",
    "C",
    "[Na+].[Cl-]",
    "CC(=O)O",
    "[13CH4]",
    "C[N+](C)(C)C",
    "F/C=C/F",
    "C[C@H](N)C(=O)O",
    "C1CCCCC1",
]


def test_bad_rows_are_named():
    """An invalid valence, no SMILES, and nothing: reported by row and reason, raised or skipped as asked."""
    rows = ["CCO", "CC1=CC=C[NH+2]([O-])C1", "not a smiles", "", "C(C)(C)(C)(C)C", "C |&1:0,r|"]
    with pytest.raises(InputError, match="row 1"):
        parse_smiles(rows)
    got = parse_smiles(rows, on_error="skip")
    assert got.rows.tolist()[0] == 0 and {f[0] for f in got.failures} >= {2, 3, 4}
    assert len(got) + len(got.failures) == len(rows)
    assert "valence" in next(f[2] for f in got.failures if f[0] == 4).lower()
    with pytest.raises(InputError, match="skip"):
        parse_smiles(rows, on_error="ignore")


def test_graphs_of_odd_molecules():
    """One atom, salts, charges, isotopes, radicals: all have a graph, and differ where they differ."""
    graphs = [molecule_graph(m) for m in parse_smiles(SMILES).mols]
    assert [g.n_nodes for g in graphs[2:4]] == [1, 2] and len(graphs[2].senders) == len(graphs[3].senders) == 0
    methane, heavy = graphs[2].nodes["x"], graphs[5].nodes["x"]
    assert not np.array_equal(methane, heavy)
    assert len({g.nodes["x"].shape[1] for g in graphs}) == 1 and all(g.edges["e"].shape[1] == 9 for g in graphs)


def canonical(graph):
    """Rows of atom features with their bonds, sorted: equal for equal molecules in any order."""
    x, e = graph.nodes["x"], graph.edges["e"]
    return sorted(
        (tuple(x[v]), tuple(sorted((*x[graph.senders[k]], *e[k]) for k in np.flatnonzero(graph.receivers == v))))
        for v in range(graph.n_nodes)
    )


@pytest.mark.parametrize("smiles", ["C[C@H](N)C(=O)O", "F/C=C/F", "C[C@@H]1CC[C@H](O)C1", "c1ccc2c(c1)cccc2N"])
def test_features_do_not_depend_on_how_a_molecule_is_written(smiles):
    mol = Chem.MolFromSmiles(smiles)
    expected = canonical(molecule_graph(mol))
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(mol.GetNumAtoms()).tolist()
        other = Chem.MolFromSmiles(Chem.MolToSmiles(Chem.RenumberAtoms(mol, order), canonical=False))
        assert canonical(molecule_graph(other)) == expected


def test_stereo_can_be_ignored():
    left, right = parse_smiles(["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"]).mols
    assert canonical(molecule_graph(left)) != canonical(molecule_graph(right))
    plain = FeatureOptions(stereo=False)
    assert canonical(molecule_graph(left, plain)) == canonical(molecule_graph(right, plain))


def test_fingerprints_and_descriptors():
    mols = parse_smiles(SMILES).mols
    for kind in ("morgan", "morgan-count", "atom-pair", "torsion", "maccs"):
        f = fingerprints(mols, kind, size=256)
        assert f.shape[0] == len(mols) and np.isfinite(f).all()
    values, names = descriptors(mols[:2])
    assert values[0, names.index("MolWt")] == pytest.approx(46.069, abs=1e-2)
    with pytest.raises(InputError, match="morgan"):
        fingerprints(mols, "morgn")


@pytest.mark.parametrize("split", [random_split, murcko_split])
def test_splits_are_whole_and_seeded(split):
    smiles = [
        "CCO",
        "OCC",
        *(f"C{'C' * k}c1ccccc1" for k in range(9)),
        "C1CCCC1C",
        "C1CCNC1",
        "c1ccncc1",
        "CCC",
        "CCCC",
        "C1CC1",
    ]
    mols = parse_smiles(smiles).mols
    a, b, c = split(mols, seed=1), split(mols, seed=1), split(mols, seed=2)
    assert all(np.array_equal(x, y) for x, y in zip(a, b)) and not all(np.array_equal(x, y) for x, y in zip(a, c))
    assert sorted(np.concatenate(a)) == list(range(len(mols))) and all(len(p) for p in a)
    assert sum({0, 1} <= set(p.tolist()) for p in a) == 1  # the same molecule written twice stays together


def test_a_part_is_never_empty():
    mols = parse_smiles(["CCO", "CCC", "c1ccccc1"] * 4).mols  # the acyclic ones share one scaffold
    assert all(len(p) for p in random_split(mols)) and [len(p) > 0 for p in murcko_split(mols, (0.5, 0.0, 0.5))] == [
        1,
        0,
        1,
    ]
    with pytest.raises(InputError, match="do not fill"):
        murcko_split(mols)
    with pytest.raises(InputError, match="shares of 1"):
        random_split(mols, (0.5, 0.1, 0.1))


def test_published_scaffold_sizes(shared_data):
    """Largest scaffolds first: ESOL 902/113/113."""
    import csv

    with open(shared_data / "chem" / "delaney-processed.csv") as handle:
        mols = parse_smiles(row["smiles"] for row in csv.DictReader(handle)).mols
    assert [len(p) for p in murcko_split(mols)] == [902, 113, 113]


def test_reverse_edges():
    graphs = [molecule_graph(m) for m in parse_smiles(SMILES).mols]
    b = batch_graphs(graphs, BatchShape(12, 80, 120))
    back = reverse_edges(b)
    real = np.flatnonzero(b.receivers < 80)
    assert (b.senders[back[real]] == b.receivers[real]).all() and (b.receivers[back[real]] == b.senders[real]).all()


def test_fit_with_missing_labels_and_calibrated_spread():
    """Two tasks, one half missing: number of carbons and of oxygens of short chains, learned to a fraction of their spread."""
    rng = np.random.default_rng(0)
    smiles = ["".join(rng.choice(["C", "C", "O"]) for _ in range(n)) + "C" for n in rng.integers(1, 9, 90)]
    mols = parse_smiles(smiles).mols
    y = np.array([[s.count("C"), s.count("O")] for s in smiles], float)
    y[::2, 1] = np.nan
    config = PropertyConfig(hidden=16, members=2, epochs=20, batch=20, use_descriptors=False, learning_rate=1e-2)
    model = fit_properties(mols[:60], y[:60], (mols[60:75], y[60:75]), config)
    mean, sigma = model.predict(mols[75:])
    truth = np.array([[s.count("C"), s.count("O")] for s in smiles[75:]], float)
    assert np.sqrt(((mean - truth) ** 2).mean(0)).max() < 0.6 * truth.std(0).max()
    assert (sigma > 0).all() and np.isfinite(sigma).all()
    one = parse_smiles(["C"]).mols
    assert np.isfinite(model.predict(one)[0]).all()
    np.testing.assert_allclose(
        model.predict(parse_smiles(["CCO", "OCC"]).mols)[0][0],
        model.predict(parse_smiles(["OCC"]).mols)[0][0],
        rtol=1e-4,
    )


def test_fit_refusals():
    mols = parse_smiles(["CCO", "CC"]).mols
    with pytest.raises(ShapeError):
        fit_properties(mols, np.zeros(3), (mols, np.zeros(2)))
    with pytest.raises(InputError, match="no label"):
        fit_properties(mols, np.full(2, np.nan), (mols, np.zeros(2)))
    with pytest.raises(InputError, match="infinite"):
        fit_properties(mols, np.array([1, np.inf]), (mols, np.zeros(2)))
    with pytest.raises(InputError):
        PropertyConfig(members=0)


def test_sdf_and_conformers(tmp_path):
    mol = Chem.MolFromSmiles("CCO")
    with Chem.SDWriter(str(tmp_path / "m.sdf")) as out:
        mol.SetProp("_Name", "ethanol")
        mol.SetProp("logS", "1.1")
        out.write(mol)
    got = read_sdf(tmp_path / "m.sdf")
    assert got.names == ["ethanol"] and got.properties[0]["logS"] == "1.1"
    s = conformer(mol, seed=1)
    assert len(s) == 9 and 1.4 < np.linalg.norm(s.positions[0] - s.positions[1]) < 1.6
    with pytest.raises(MissingFileError):
        read_sdf(tmp_path / "no.sdf")
    (tmp_path / "empty.sdf").write_text("")
    with pytest.raises(FileFormatError):
        read_sdf(tmp_path / "empty.sdf")


def test_minmax_kernel_is_the_ratio_of_minima_and_maxima():
    rng = np.random.default_rng(0)
    a, b = rng.poisson(0.7, (5, 40)), rng.poisson(0.7, (4, 40))
    a[2] = 0
    plain = np.array([[np.minimum(x, z).sum() / max(np.maximum(x, z).sum(), 1) for z in b] for x in a])
    np.testing.assert_allclose(minmax_kernel(a, b), plain, atol=1e-12)


def chains(count, seed=0):
    """Random chains of C, N and O, and their number of carbons plus twice the number of oxygens."""
    rng = np.random.default_rng(seed)
    smiles = ["".join(rng.choice(["C", "C", "O", "N"]) for _ in range(n)) + "C" for n in rng.integers(2, 12, count)]
    return parse_smiles(smiles).mols, np.array([s.count("C") + 2.0 * s.count("O") for s in smiles])


def test_held_out_residuals_of_the_process_are_those_of_a_refit():
    """The closed form against solving the system without the part, at the same parameters."""
    mols, y = chains(40)
    p = fit_process(molecule_table(mols), y)
    part, rest = np.arange(5, 15), np.r_[0:5, 15:40]
    residual, std = p.held_out([part])
    k = np.linalg.inv(p.inverse)
    t = (y - p.centre) / p.spread
    expected = k[np.ix_(part, rest)] @ np.linalg.solve(k[np.ix_(rest, rest)], t[rest])
    np.testing.assert_allclose(y[part] - residual[part], p.centre + p.spread * expected, rtol=1e-8)
    own = np.exp(p.parameters[0]) + np.exp(p.parameters[1])
    lost = np.einsum("ij,ji->i", k[np.ix_(part, rest)], np.linalg.solve(k[np.ix_(rest, rest)], k[np.ix_(rest, part)]))
    np.testing.assert_allclose(std[part], p.spread * np.sqrt(own - lost), rtol=1e-6)


def test_process_learns_and_knows_where_it_does_not():
    mols, y = chains(90)
    p = fit_process(molecule_table(mols[:60]), y[:60])
    mean, std = p.predict(molecule_table(mols[60:]))
    assert np.sqrt(np.mean((mean - y[60:]) ** 2)) < 0.3 * y.std()
    strange = p.predict(molecule_table(parse_smiles(["O=C(O)c1ccc(I)cc1S(=O)(=O)Cl"]).mols))[1]
    assert strange[0] > 1.5 * np.median(std)
    with pytest.raises(InputError):
        fit_process(molecule_table(mols[:3]), np.array([1.0, np.nan, 2.0]))


def test_blend_weighs_its_parts_on_held_out_folds():
    """Two tasks, one half missing and noise for trees to trip over; the blend is at least as good as its best part, nearly."""
    mols, y = chains(80)
    labels = np.column_stack([y, -y])
    labels[::2, 1] = np.nan
    m = fit_blend(mols[:60], labels[:60], folds=3, parts=("process", "trees"))
    assert m.parts == ("process", "trees") and m.weights.shape == (2, 2) and m.held_out.shape == (2, 3)
    np.testing.assert_allclose(m.weights.sum(1), 1)
    assert (m.weights >= 0).all() and (m.held_out[:, -1] <= m.held_out[:, :-1].min(1) + 0.02 * y.std()).all()
    mean, sigma = m.predict(mols[60:])
    assert np.sqrt(np.mean((mean[:, 0] - y[60:]) ** 2)) < 0.4 * y.std() and (sigma > 0).all()
    with pytest.raises(InputError, match="one part"):
        fit_blend(mols, y, parts=("forest",))
    with pytest.raises(InputError, match="folds"):
        fit_blend(mols[:2], y[:2], folds=3)


def test_simplex_weights():
    """One column is the truth: it gets nearly all; two equal columns share."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    w = _simplex(np.column_stack([y, y + rng.normal(size=200)]), y)
    assert w[0] > 0.9 and w.sum() == pytest.approx(1)
    noisy = y + rng.normal(size=200)
    np.testing.assert_allclose(_simplex(np.column_stack([noisy, noisy]), y), [0.5, 0.5], atol=1e-6)

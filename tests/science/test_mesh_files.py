"""Meshes that others made: every file loads, or fails with an error that names the cause."""

import numpy as np
import pytest

from sciax.core.errors import FileFormatError, InputError, MissingFileError, UnsupportedError
from sciax.science.mesh import box_mesh, read_mesh, write_mesh

# file -> (kind, facet groups with sizes, cell groups with sizes)
GROUPS = {
    "square.msh": ("triangle", {"left": 8, "right": 8, "top": 8}, {"all": 184}),
    "box.msh": ("tet", {"front": 104, "back": 104, "top": 104}, {"all": 1105}),
    "beams.msh": ("tet", {"fixed": 8}, {"all": 851}),
    "annulus.msh": ("triangle", {"inter": 7, "exter": 15}, {"all": 98}),
    "interface.msh": ("triangle", {"interfacee": 8}, {"both": 170}),
    "tagged_gmsh4.msh": ("triangle", {"tagged": 8, "test": 8}, {"all": 80}),
    "cube_oriented_sub.msh": ("tet", {"subdomif": 156}, {"subdom": 184}),
    "cuubat.msh": ("tet", {"boundary": 66, "interface": 66}, {"both": 1391}),
    "cylinder_stokes.msh": ("triangle", {"left": 14, "bottom": 5, "right": 10, "top": 7, "ball": 11}, {}),
    "quadratic_tri.msh": ("triangle", {}, {}),
    "quadratic_quad.msh": ("quad", {}, {}),
    "quadratic_sphere_tet.msh": ("tet", {}, {}),
    "quadraticsphere.msh": ("tet", {}, {}),
    "troublesome_mesh.vtk": ("triangle", {}, {}),
}
VOLUMES = {"square.msh": 1.0, "box.msh": 1.0, "cube_oriented_sub.msh": 0.125, "cuubat.msh": 2.0, "interface.msh": 1.0}
REFUSED = {
    "skfem/mixedtriquad.msh": (UnsupportedError, "split=True"),
    "trimesh/empty.stl": (FileFormatError, "no triangles"),
    "trimesh/stl_empty_ascii.stl": (FileFormatError, "no triangles"),
    "trimesh/stl_empty_bin.stl": (FileFormatError, "no triangles"),
}


@pytest.fixture(scope="module")
def meshes(shared_data):
    return shared_data / "pde" / "meshes"


@pytest.mark.parametrize("name", GROUPS)
def test_named_groups(name, meshes):
    mesh = read_mesh(meshes / "skfem" / name)
    kind, facets, cells = GROUPS[name]
    assert mesh.kind == kind
    assert {n: len(rows) for n, rows in mesh.facet_groups.items()} == facets
    assert {n: len(rows) for n, rows in mesh.cell_groups.items()} == cells
    assert (mesh.volumes > 0).all()
    if name in VOLUMES:
        assert mesh.volume == pytest.approx(VOLUMES[name], abs=1e-12)


def test_every_file_loads_or_names_the_cause(meshes, shared_data, capfd):
    files = [*sorted(meshes.glob("*/*")), shared_data / "pde" / "jaxpi2" / "flow.vtu"]
    assert len(files) >= 36
    for path in files:
        name = f"{path.parent.name}/{path.name}"
        if name in REFUSED:
            kind, text = REFUSED[name]
            with pytest.raises(kind, match=text):
                read_mesh(path)
            continue
        mesh = read_mesh(path)
        assert len(mesh.cells) > 0
        assert np.isfinite(mesh.points).all()
        assert np.unique(mesh.cells).size == len(mesh.points)
    out, err = capfd.readouterr()
    assert not out
    assert not err


def test_clean_solids_are_exact(meshes):
    cube = read_mesh(meshes / "trimesh" / "unit_cube.STL")
    assert cube.volume == pytest.approx(6.0, abs=1e-12)
    assert cube.enclosed == pytest.approx(1.0, abs=1e-12)
    sphere = read_mesh(meshes / "trimesh" / "unit_sphere.STL")
    assert sphere.enclosed == pytest.approx(4 / 3 * np.pi, rel=0.02)  # its tessellation is inscribed
    assert sphere.enclosed < 4 / 3 * np.pi
    box = read_mesh(meshes / "trimesh" / "negative_indices.obj")
    assert (box.volume, abs(box.enclosed)) == (pytest.approx(24.0, abs=1e-12), pytest.approx(8.0, abs=1e-12))


def test_solids_of_one_file_stay_apart(meshes):
    mesh = read_mesh(meshes / "trimesh" / "multibody.stl")
    assert {n: len(rows) for n, rows in mesh.cell_groups.items()} == {"bodyB": 12, "bodyA": 20}


def test_vtu_without_array_names(shared_data):
    mesh = read_mesh(shared_data / "pde" / "jaxpi2" / "flow.vtu")
    assert (len(mesh.points), len(mesh.cells), mesh.kind) == (31265, 30720, "quad")
    assert mesh.point_data["Velocity"].shape == (31265, 3)
    assert any("without a name" in note for note in mesh.notes)


def test_mixed_mesh_can_be_split(meshes):
    mesh = read_mesh(meshes / "skfem" / "mixedtriquad.msh", split=True)
    assert len(mesh.cells) == 16 + 2 * 36
    assert mesh.volume == pytest.approx(read_mesh(meshes / "skfem" / "mixedtriquad.msh", split=True).volumes.sum())
    assert set(mesh.facet_groups) == {"boundary"}
    assert len(mesh.facet_groups["boundary"]) == len(mesh.exterior)


@pytest.mark.parametrize("suffix", [".msh", ".vtu", ".vtk", ".xdmf", ".inp"])
def test_round_trip(suffix, tmp_path):
    for kind, dim in (("triangle", 2), ("quad", 2), ("tet", 3), ("hex", 3)):
        mesh = box_mesh([0] * dim, [1] * dim, 2, kind)
        back = read_mesh(write_mesh(tmp_path / f"m{suffix}", mesh))
        assert back.kind == kind
        assert back.volume == pytest.approx(1.0, abs=1e-12)
        if suffix == ".msh":
            assert {n: len(r) for n, r in back.facet_groups.items()} == {
                n: len(r) for n, r in mesh.facet_groups.items()
            }


def test_overlapping_groups_round_trip(tmp_path):
    mesh = box_mesh([0, 0], [1, 1], 3).with_boundaries(corner=lambda x: (x < 0.4).all(axis=1))
    mesh.cell_groups.update(low=np.arange(9), some=np.arange(5, 12))
    back = read_mesh(write_mesh(tmp_path / "m.msh", mesh))
    assert {n: len(r) for n, r in back.facet_groups.items()} == {n: len(r) for n, r in mesh.facet_groups.items()}
    for name in ("low", "some"):
        centres = {tuple(c) for c in np.round(mesh.centres[mesh.cell_groups[name]], 12)}
        assert {tuple(c) for c in np.round(back.centres[back.cell_groups[name]], 12)} == centres


def test_mending(tmp_path):
    # an unused point, a doubled point, and a cell the wrong way round
    text = "\n".join(
        ["OFF", "6 2 0", "0 0 0", "1 0 0", "1 1 0", "0 1 0", "9 9 0", "1 1 0", "3 0 1 2", "3 0 3 5"],
    )
    path = tmp_path / "m.off"
    path.write_text(text)
    mesh = read_mesh(path)
    assert len(mesh.points) == 4
    assert mesh.point_map is not None
    assert mesh.point_map.tolist()[4] == -1
    assert mesh.point_map[5] == mesh.point_map[2]
    assert mesh.volume == pytest.approx(1.0)
    assert len(mesh.exterior) == 4
    assert len(mesh.notes) == 3


def test_bad_files_are_named(tmp_path):
    square = box_mesh([0, 0], [1, 1], 2)
    write_mesh(tmp_path / "square.vtu", square)
    with pytest.raises(MissingFileError, match=r"did you mean 'square.vtu'"):
        read_mesh(tmp_path / "sqare.vtu")
    with pytest.raises(InputError, match="2-dimensional cells"):
        read_mesh(tmp_path / "square.vtu", dim=3)
    for name, content, cause in (
        ("a.msh", "$MeshFormat\nnonsense", "cannot be read"),
        ("b.vtu", "<VTKFile></VTKFile>", "not read|cannot be read"),
        ("c.xyzzy", "hello", "cannot be read"),
        ("d.stl", "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0\nendloop\nendfacet", "three vertices"),
        ("e.stl", "garbage", "neither ASCII nor binary"),
        ("f.obj", "v 0 0 0\nf 1 2 3\n", "not there"),
        ("g.off", "OFF\n3 1 0\n0 0 0", "ends before"),
        ("h.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 x\n3 0 1 2", "could not convert"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises((FileFormatError, UnsupportedError), match=cause):
            read_mesh(tmp_path / name)
    (tmp_path / "flat.off").write_text("OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n2 0 0\n3 0 1 2\n3 0 1 3")
    with pytest.raises(InputError, match="degenerate"):
        read_mesh(tmp_path / "flat.off", dim=2)


def test_unknown_group_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'left'"):
        box_mesh([0, 0], [1, 1], 2).boundary("lefft")

"""The job science.solve, on its embedded bracket and on meshes that others made."""

import numpy as np
import pytest

from sciax.core.errors import SciaxError
from sciax.core.jobs import run_job
from sciax.datasets.bracket import BLOCK, HOLE, SIDES, bracket, bracket_file, write_bracket
from sciax.science import Dirichlet, Domain, Field, Neumann, Problem, Robin, div, grad, read_mesh, solve
from sciax.science.jobs import BRACKET_MEAN


def test_bracket_is_what_its_generator_makes(tmp_path):
    assert write_bracket(tmp_path / "b.msh").read_text() == bracket_file().read_text()
    mesh = read_mesh(bracket_file())
    hole = SIDES / 2 * HOLE**2 * np.sin(2 * np.pi / SIDES)
    assert mesh.volume == pytest.approx(5 * BLOCK**2 * (1 - hole), rel=1e-12)
    assert sum(map(len, mesh.facet_groups.values())) == len(mesh.exterior)
    assert len(bracket(2).cells) == 4 * len(mesh.cells)


def test_default_run(tmp_path):
    run_job("science.solve", {}, out=tmp_path / "run")
    outputs = {p.name for p in (tmp_path / "run" / "outputs").iterdir()}
    assert {"solution.vtu", "solution.nc", "solution.png"} <= outputs
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000


def test_reference_value(tmp_path, x64):
    """Third-order elements, refined twice, are within the last step of the stored reference."""
    u = Field("u")
    problem = Problem(
        Domain.from_mesh(write_bracket(tmp_path / "b.msh", 2)),
        -div({"foot": 160.0, "arm": 50.0} * grad(u)) == 0,
        Dirichlet(u, 20.0, on=("hole1", "hole2")),
        Neumann(u, 2e4, on="hole4"),
        Neumann(u, 0.0, on=("hole0", "hole3")),
        Robin(u, 25.0, 500.0, on="outer"),
    )
    s = solve(problem, order=3)
    assert float(s.integrate(u)) / s.mesh.volume == pytest.approx(BRACKET_MEAN, abs=2e-3)


@pytest.mark.parametrize(
    "name", ["box.msh", *(pytest.param(n, marks=pytest.mark.slow) for n in ("square.msh", "annulus.msh"))]
)
def test_other_peoples_meshes(name, tmp_path, shared_data):
    mesh = shared_data / "pde" / "meshes" / "skfem" / name
    run_job("science.solve", {"mesh": str(mesh), "order": 1}, out=tmp_path / "run")
    assert (tmp_path / "run" / "outputs" / "solution.vtu").exists()


def test_conditions_on_named_groups(tmp_path, shared_data):
    mesh = str(shared_data / "pde" / "meshes" / "skfem" / "square.msh")
    config = {"mesh": mesh, "fixed": {"left": 0.0, "right": 1.0}, "order": 1}
    with pytest.raises(SciaxError, match="no condition on a part"):
        run_job("science.solve", config, out=tmp_path / "a")
    run_job("science.solve", {**config, "rest": "insulated"}, out=tmp_path / "b")
    with pytest.raises(SciaxError, match="did you mean 'left'"):
        run_job("science.solve", {**config, "fixed": {"leftt": 0.0}}, out=tmp_path / "c")

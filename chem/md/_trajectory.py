"""Trajectory files written as a simulation goes: extended XYZ, and NetCDF in the AMBER convention."""

from pathlib import Path

import numpy as np

from sciax.chem.md._run import Frame
from sciax.datasets.atoms import Structure, write_extxyz


class ExtxyzWriter:
    """Appends each frame to an extended XYZ file (opens in OVITO, ASE, VMD)."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._begun = False

    def __call__(self, frame: Frame) -> None:
        s = frame.system
        structure = Structure(
            np.asarray(s.numbers),
            frame.positions,
            np.asarray(s.cell),
            s.pbc,
            frame.potential,
            frame.forces,
            info={"step": frame.step, "time": f"{frame.time:.10g}"},
        )
        write_extxyz(self.path, structure, append=self._begun)
        self._begun = True


class NetcdfWriter:
    """AMBER NetCDF trajectory, convention 1.0: readable by VMD, MDAnalysis, ASE, cpptraj. Times in ps, lengths in Å.

    Use as a context manager, or call `close`. Only for systems in Å and fs.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._file = None

    def _begin(self, frame: Frame):
        import netCDF4

        f = netCDF4.Dataset(self.path, "w", format="NETCDF3_64BIT_OFFSET")
        f.Conventions, f.ConventionVersion, f.program = "AMBER", "1.0", "sciax"
        f.programVersion, f.title = "0.1", "molecular dynamics"
        for name, size in (
            ("frame", None),
            ("spatial", 3),
            ("atom", frame.system.atoms),
            ("cell_spatial", 3),
            ("cell_angular", 3),
            ("label", 5),
        ):
            f.createDimension(name, size)
        f.createVariable("spatial", "c", ("spatial",))[:] = list("xyz")
        f.createVariable("cell_spatial", "c", ("cell_spatial",))[:] = list("abc")
        angular = f.createVariable("cell_angular", "c", ("cell_angular", "label"))
        angular[:] = [list("alpha"), list("beta "), list("gamma")]
        for name, kind, dims, units in (
            ("time", "f4", ("frame",), "picosecond"),
            ("coordinates", "f4", ("frame", "atom", "spatial"), "angstrom"),
            ("velocities", "f4", ("frame", "atom", "spatial"), "angstrom/picosecond"),
            ("cell_lengths", "f8", ("frame", "cell_spatial"), "angstrom"),
            ("cell_angles", "f8", ("frame", "cell_angular"), "degree"),
        ):
            f.createVariable(name, kind, dims).units = units
        return f

    def __call__(self, frame: Frame) -> None:
        if self._file is None:
            self._file = self._begin(frame)
        f, k = self._file, len(self._file.dimensions["frame"])
        cell = np.asarray(frame.system.cell, np.float64)
        lengths = np.linalg.norm(cell, axis=1)
        f["time"][k] = frame.time * 1e-3
        f["coordinates"][k] = frame.positions
        f["velocities"][k] = frame.velocities * 1e3
        f["cell_lengths"][k] = lengths
        if (lengths > 0).all():
            cosine = [cell[a] @ cell[b] / (lengths[a] * lengths[b]) for a, b in ((1, 2), (0, 2), (0, 1))]
            f["cell_angles"][k] = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
        else:
            f["cell_angles"][k] = 90.0
        f.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

"""Molecular dynamics: systems, integrators, the compiled driver, trajectories and observables."""

from sciax.chem.md._integrators import NVE as NVE
from sciax.chem.md._integrators import Integrator as Integrator
from sciax.chem.md._integrators import Langevin as Langevin
from sciax.chem.md._integrators import NoseHoover as NoseHoover
from sciax.chem.md._lattice import fcc_lattice as fcc_lattice
from sciax.chem.md._observables import Rdf as Rdf
from sciax.chem.md._observables import Recorder as Recorder
from sciax.chem.md._observables import msd as msd
from sciax.chem.md._observables import vacf as vacf
from sciax.chem.md._run import Frame as Frame
from sciax.chem.md._run import MDResult as MDResult
from sciax.chem.md._run import Snapshot as Snapshot
from sciax.chem.md._run import simulate as simulate
from sciax.chem.md._system import ForceField as ForceField
from sciax.chem.md._system import System as System
from sciax.chem.md._system import freedoms as freedoms
from sciax.chem.md._system import from_structure as from_structure
from sciax.chem.md._system import kinetic_energy as kinetic_energy
from sciax.chem.md._system import make_system as make_system
from sciax.chem.md._system import maxwell_velocities as maxwell_velocities
from sciax.chem.md._trajectory import ExtxyzWriter as ExtxyzWriter
from sciax.chem.md._trajectory import NetcdfWriter as NetcdfWriter

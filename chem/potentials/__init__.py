"""Potentials: pair potentials and equivariant networks, with energies, forces and stress."""

from sciax.chem.potentials._lj import LennardJones as LennardJones
from sciax.chem.potentials._mace import Mace as Mace
from sciax.chem.potentials._nequip import NequIP as NequIP
from sciax.chem.potentials._painn import PaiNN as PaiNN
from sciax.chem.potentials._potential import ARCHITECTURES as ARCHITECTURES
from sciax.chem.potentials._potential import Ensemble as Ensemble
from sciax.chem.potentials._potential import Potential as Potential
from sciax.chem.potentials._potential import PotentialField as PotentialField
from sciax.chem.potentials._potential import Prediction as Prediction
from sciax.chem.potentials._potential import atomic_residuals as atomic_residuals
from sciax.chem.potentials._potential import energies_and_forces as energies_and_forces
from sciax.chem.potentials._potential import load_potential as load_potential
from sciax.chem.potentials._potential import make_graph as make_graph
from sciax.chem.potentials._potential import make_potential as make_potential
from sciax.chem.potentials._potential import predict as predict
from sciax.chem.potentials._potential import save_potential as save_potential
from sciax.chem.potentials._schnet import SchNet as SchNet

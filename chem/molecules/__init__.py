"""Molecules as graphs and numbers: SMILES and SDF in, features, fingerprints, splits, property prediction."""

from sciax.chem.molecules._blend import BlendedModel as BlendedModel
from sciax.chem.molecules._blend import boosted_trees as boosted_trees
from sciax.chem.molecules._blend import fit_blend as fit_blend
from sciax.chem.molecules._dmpnn import Dmpnn as Dmpnn
from sciax.chem.molecules._features import FeatureOptions as FeatureOptions
from sciax.chem.molecules._features import descriptors as descriptors
from sciax.chem.molecules._features import fingerprints as fingerprints
from sciax.chem.molecules._features import molecule_graph as molecule_graph
from sciax.chem.molecules._parse import Molecules as Molecules
from sciax.chem.molecules._parse import conformer as conformer
from sciax.chem.molecules._parse import parse_smiles as parse_smiles
from sciax.chem.molecules._parse import read_sdf as read_sdf
from sciax.chem.molecules._process import MoleculeProcess as MoleculeProcess
from sciax.chem.molecules._process import MoleculeTable as MoleculeTable
from sciax.chem.molecules._process import fit_process as fit_process
from sciax.chem.molecules._process import molecule_table as molecule_table
from sciax.chem.molecules._property import PropertyConfig as PropertyConfig
from sciax.chem.molecules._property import PropertyModel as PropertyModel
from sciax.chem.molecules._property import fit_properties as fit_properties
from sciax.chem.molecules._split import Split as Split
from sciax.chem.molecules._split import murcko_split as murcko_split
from sciax.chem.molecules._split import random_split as random_split

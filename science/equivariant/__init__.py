"""Networks that rotate with their input: irreps arrays, linear layers, gates, tensor products, radial bases."""

from sciax.core.ops.so3 import Irrep as Irrep
from sciax.core.ops.so3 import Irreps as Irreps
from sciax.science.equivariant._array import IrrepsArray as IrrepsArray
from sciax.science.equivariant._array import from_e3nn as from_e3nn
from sciax.science.equivariant._array import rotate as rotate
from sciax.science.equivariant._array import to_e3nn as to_e3nn
from sciax.science.equivariant._layers import Gate as Gate
from sciax.science.equivariant._layers import Linear as Linear
from sciax.science.equivariant._layers import Mlp as Mlp
from sciax.science.equivariant._layers import NormActivation as NormActivation
from sciax.science.equivariant._layers import component_rms as component_rms
from sciax.science.equivariant._products import ChannelwiseProduct as ChannelwiseProduct
from sciax.science.equivariant._products import FullyConnectedProduct as FullyConnectedProduct
from sciax.science.equivariant._products import SymmetricContraction as SymmetricContraction
from sciax.science.equivariant._products import tensor_product as tensor_product
from sciax.science.equivariant._radial import ENVELOPES as ENVELOPES
from sciax.science.equivariant._radial import RADIAL_BASES as RADIAL_BASES
from sciax.science.equivariant._radial import envelope as envelope
from sciax.science.equivariant._radial import radial_basis as radial_basis

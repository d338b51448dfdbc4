"""Networks that carry derivatives: plain values or a `Jet` in, the same out. Features first: [features, points]."""

from sciax.science.pinn.networks._build import NETWORKS as NETWORKS
from sciax.science.pinn.networks._build import build as build
from sciax.science.pinn.networks._embed import Embedding as Embedding
from sciax.science.pinn.networks._mlp import Mlp as Mlp
from sciax.science.pinn.networks._modified import ModifiedMlp as ModifiedMlp
from sciax.science.pinn.networks._pirate import PirateNet as PirateNet
from sciax.science.pinn.networks._siren import Siren as Siren

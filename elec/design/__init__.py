"""Inverse design of densities: filter, projection, symmetry, feature sizes measured and enforced, optimisers, layouts.

rho = project(conic_filter(x, radius), beta)      # x: free densities in [0, 1]
"""

from sciax.elec.design._filters import conic_filter as conic_filter
from sciax.elec.design._filters import mirror as mirror
from sciax.elec.design._filters import project as project
from sciax.elec.design._filters import with_border as with_border
from sciax.elec.design._lengths import erosion_threshold as erosion_threshold
from sciax.elec.design._lengths import length_bound as length_bound
from sciax.elec.design._lengths import length_violations as length_violations
from sciax.elec.design._optimise import Step as Step
from sciax.elec.design._optimise import maximise as maximise
from sciax.elec.design._sizes import binarisation as binarisation
from sciax.elec.design._sizes import feature_size as feature_size

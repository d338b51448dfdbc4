"""Minimisation of smooth functions of few thousand parameters to float64 accuracy.

Of any objective: `ssbroyden` (dense), `lbfgs` (limited memory). Of sums of squares: `levenberg_marquardt`, `natural_gradient`.
Under bounds and constraints, for functions that cost much: `mma`.
"""

from sciax.core.train.minimize._common import MinimizeResult as MinimizeResult
from sciax.core.train.minimize._lbfgs import LbfgsState as LbfgsState
from sciax.core.train.minimize._lbfgs import lbfgs as lbfgs
from sciax.core.train.minimize._levenberg import DenseJacobian as DenseJacobian
from sciax.core.train.minimize._levenberg import LevenbergState as LevenbergState
from sciax.core.train.minimize._levenberg import levenberg_marquardt as levenberg_marquardt
from sciax.core.train.minimize._line_search import strong_wolfe as strong_wolfe
from sciax.core.train.minimize._mma import MMAResult as MMAResult
from sciax.core.train.minimize._mma import MMAState as MMAState
from sciax.core.train.minimize._mma import mma as mma
from sciax.core.train.minimize._natural import NaturalState as NaturalState
from sciax.core.train.minimize._natural import natural_gradient as natural_gradient
from sciax.core.train.minimize._ssbroyden import BroydenState as BroydenState
from sciax.core.train.minimize._ssbroyden import ssbroyden as ssbroyden

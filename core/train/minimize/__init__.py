"""Minimisation of smooth functions of few thousand parameters to float64 accuracy."""

from sciax.core.train.minimize._line_search import strong_wolfe as strong_wolfe
from sciax.core.train.minimize._ssbroyden import BroydenResult as BroydenResult
from sciax.core.train.minimize._ssbroyden import BroydenState as BroydenState
from sciax.core.train.minimize._ssbroyden import ssbroyden as ssbroyden

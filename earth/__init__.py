"""Weather and climate: forecasts from file to verification, dynamics on the sphere, learned models."""

from sciax.earth._forecast import Forecast as Forecast
from sciax.earth._regrid import Regrid as Regrid
from sciax.earth._rollout import Ensemble as Ensemble
from sciax.earth.data import canonicalise as canonicalise
from sciax.earth.models import Barotropic as Barotropic
from sciax.earth.models import Climatology as Climatology
from sciax.earth.models import DampedPersistence as DampedPersistence
from sciax.earth.models import LinearInverse as LinearInverse
from sciax.earth.models import Persistence as Persistence
from sciax.earth.models import ShallowWaterFlow as ShallowWaterFlow

"""Forecast models: configs that build pytrees with a common interface."""

from sciax.earth.models._barotropic import Barotropic as Barotropic
from sciax.earth.models._barotropic import BarotropicModel as BarotropicModel
from sciax.earth.models._barotropic import helmholtz_from_depth as helmholtz_from_depth
from sciax.earth.models._base import Coords as Coords
from sciax.earth.models._base import Model as Model
from sciax.earth.models._base import ModelConfig as ModelConfig
from sciax.earth.models._climatology import Climatology as Climatology
from sciax.earth.models._climatology import ClimatologyFields as ClimatologyFields
from sciax.earth.models._climatology import ClimatologyModel as ClimatologyModel
from sciax.earth.models._climatology import calendar_of as calendar_of
from sciax.earth.models._persistence import DampedPersistence as DampedPersistence
from sciax.earth.models._persistence import DampedPersistenceModel as DampedPersistenceModel
from sciax.earth.models._persistence import Persistence as Persistence
from sciax.earth.models._persistence import PersistenceModel as PersistenceModel
from sciax.earth.models._postprocess import Postprocessor as Postprocessor
from sciax.earth.models._series import FittedSeries as FittedSeries
from sciax.earth.models._series import SeriesModel as SeriesModel
from sciax.earth.models._series import series_baselines as series_baselines
from sciax.earth.models._series import squared_errors as squared_errors

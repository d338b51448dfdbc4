"""Training: a compiled loop over any Equinox model and optax optimiser, resumable to the last bit."""

from sciax.core.train._batches import ArrayBatches as ArrayBatches
from sciax.core.train._batches import BatchSource as BatchSource
from sciax.core.train._batches import FullBatch as FullBatch
from sciax.core.train._batches import HostBatches as HostBatches
from sciax.core.train._batches import Sampled as Sampled
from sciax.core.train._callbacks import Alerts as Alerts
from sciax.core.train._callbacks import Callback as Callback
from sciax.core.train._callbacks import EarlyStop as EarlyStop
from sciax.core.train._callbacks import LogTo as LogTo
from sciax.core.train._callbacks import MLflow as MLflow
from sciax.core.train._callbacks import TrainingAlert as TrainingAlert
from sciax.core.train._checkpoint import CheckpointError as CheckpointError
from sciax.core.train._checkpoint import Checkpoints as Checkpoints
from sciax.core.train._checkpoint import CheckpointStore as CheckpointStore
from sciax.core.train._chunk import Placement as Placement
from sciax.core.train._evaluate import Evaluation as Evaluation
from sciax.core.train._fit import FitResult as FitResult
from sciax.core.train._fit import Progress as Progress
from sciax.core.train._fit import fit as fit
from sciax.core.train._soap import SoapState as SoapState
from sciax.core.train._soap import soap as soap
from sciax.core.train._step import TrainState as TrainState

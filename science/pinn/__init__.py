"""Networks as solutions: strong residuals, hard conditions, and training to float64 accuracy."""

from sciax.science.pinn._burgers import burgers_truth as burgers_truth
from sciax.science.pinn._burgers import report_figure as report_figure
from sciax.science.pinn._interface import Interface as Interface
from sciax.science.pinn._jets import Jet as Jet
from sciax.science.pinn._jets import jet_of as jet_of
from sciax.science.pinn._lifts import heat_flow as heat_flow
from sciax.science.pinn._method import Pinn as Pinn
from sciax.science.pinn._observations import Observations as Observations
from sciax.science.pinn._solution import PinnSolution as PinnSolution
from sciax.science.pinn._strong import Strong as Strong
from sciax.science.pinn._system import NetworkOptions as NetworkOptions
from sciax.science.pinn._system import System as System
from sciax.science.pinn._train import Trainer as Trainer
from sciax.science.pinn._train import TrainInfo as TrainInfo
from sciax.science.pinn._train import TrainOptions as TrainOptions
from sciax.science.pinn._windows import WindowedSolution as WindowedSolution
from sciax.science.pinn._windows import march as march

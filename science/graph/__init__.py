"""Graphs for networks: padded batches of few shapes, readouts that never see the padding."""

from sciax.science.graph._batch import BatchShape as BatchShape
from sciax.science.graph._batch import Graph as Graph
from sciax.science.graph._batch import PaddedGraph as PaddedGraph
from sciax.science.graph._batch import batch_graphs as batch_graphs
from sciax.science.graph._batch import bucket_shapes as bucket_shapes
from sciax.science.graph._readout import readout as readout
from sciax.science.graph._readout import sum_to_nodes as sum_to_nodes

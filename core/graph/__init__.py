"""Graph mode: ordinary Python, compiled. See docs/graph.md."""

from sciax.core.graph._cache import persistent_cache as persistent_cache
from sciax.core.graph._count import Cost as Cost
from sciax.core.graph._errors import GraphError as GraphError
from sciax.core.graph._errors import LoopBoundError as LoopBoundError
from sciax.core.graph._errors import MissingReturnError as MissingReturnError
from sciax.core.graph._errors import UnboundedLoopError as UnboundedLoopError
from sciax.core.graph._export import LoadedGraph as LoadedGraph
from sciax.core.graph._export import load as load
from sciax.core.graph._function import GraphFunction as GraphFunction
from sciax.core.graph._function import eager as eager
from sciax.core.graph._function import graph as graph
from sciax.core.graph._graph import CompileReport as CompileReport
from sciax.core.graph._graph import Graph as Graph
from sciax.core.graph._graph import trace as trace
from sciax.core.graph._signature import Compilation as Compilation
from sciax.core.graph._state import loop_bound as loop_bound

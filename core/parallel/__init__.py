"""One program on one to many devices and machines: JAX's runtime joins and moves, this chooses, checks and survives."""

from typing import TYPE_CHECKING

from sciax.core._lazy import attach

if TYPE_CHECKING:
    from sciax.core.parallel._environment import World as World
    from sciax.core.parallel._environment import detect as detect
    from sciax.core.parallel._explain import Explanation as Explanation
    from sciax.core.parallel._explain import explain as explain
    from sciax.core.parallel._halo import exchange_halo as exchange_halo
    from sciax.core.parallel._hlo import Collective as Collective
    from sciax.core.parallel._hlo import collectives as collectives
    from sciax.core.parallel._initialize import DistributedError as DistributedError
    from sciax.core.parallel._initialize import beat as beat
    from sciax.core.parallel._initialize import initialize as initialize
    from sciax.core.parallel._initialize import world as world
    from sciax.core.parallel._launch import LaunchResult as LaunchResult
    from sciax.core.parallel._launch import launch as launch
    from sciax.core.parallel._machine import CPU_CORE as CPU_CORE
    from sciax.core.parallel._machine import H100 as H100
    from sciax.core.parallel._machine import Machine as Machine
    from sciax.core.parallel._mesh import make_mesh as make_mesh
    from sciax.core.parallel._plan import Plan as Plan
    from sciax.core.parallel._plan import data_parallel as data_parallel
    from sciax.core.parallel._submit import Resources as Resources
    from sciax.core.parallel._submit import Submission as Submission
    from sciax.core.parallel._submit import submit as submit

__getattr__, __dir__ = attach(
    __name__,
    {
        "beat": "_initialize",
        "Collective": "_hlo",
        "collectives": "_hlo",
        "CPU_CORE": "_machine",
        "data_parallel": "_plan",
        "detect": "_environment",
        "DistributedError": "_initialize",
        "exchange_halo": "_halo",
        "explain": "_explain",
        "Explanation": "_explain",
        "H100": "_machine",
        "initialize": "_initialize",
        "launch": "_launch",
        "LaunchResult": "_launch",
        "Machine": "_machine",
        "make_mesh": "_mesh",
        "Plan": "_plan",
        "Resources": "_submit",
        "Submission": "_submit",
        "submit": "_submit",
        "World": "_environment",
        "world": "_initialize",
    },
)

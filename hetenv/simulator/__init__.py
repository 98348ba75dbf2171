"""Event-driven simulation of a workload on a cluster under any scheduler."""

from hetenv.simulator.core import Simulator
from hetenv.simulator.run import Result, simulate

__all__ = ["Result", "Simulator", "simulate"]

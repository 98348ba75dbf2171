"""hetenv: heterogeneous GPU clusters and their job queues as Gymnasium environments.

Importing this package registers ``hetenv/Placement-v0`` and ``hetenv/Market-v0``. The names below load on
first use, so that an import costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hetenv.envs import register_environments

if TYPE_CHECKING:
    from hetenv.cluster import Cluster, GPUType, NodeGroup
    from hetenv.config import Scenario, load_scenario
    from hetenv.errors import InputError, PlanError, StallError
    from hetenv.scheduler import Plan, Scheduler, Snapshot
    from hetenv.simulator import Result, Simulator, simulate
    from hetenv.traces import load_workload
    from hetenv.workload import Workload

_HOME = {
    "Cluster": "cluster",
    "GPUType": "cluster",
    "NodeGroup": "cluster",
    "Scenario": "config",
    "load_scenario": "config",
    "InputError": "errors",
    "PlanError": "errors",
    "StallError": "errors",
    "Plan": "scheduler",
    "Scheduler": "scheduler",
    "Snapshot": "scheduler",
    "Result": "simulator",
    "Simulator": "simulator",
    "simulate": "simulator",
    "load_workload": "traces",
    "Workload": "workload",
}
__all__ = [
    "Cluster",
    "GPUType",
    "InputError",
    "NodeGroup",
    "Plan",
    "PlanError",
    "Result",
    "Scenario",
    "Scheduler",
    "Simulator",
    "Snapshot",
    "StallError",
    "Workload",
    "load_scenario",
    "load_workload",
    "simulate",
]

register_environments()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"hetenv.{_HOME[name]}"), name)
    raise AttributeError(f"module 'hetenv' has no attribute {name!r}")

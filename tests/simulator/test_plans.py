"""What a plan may ask for, what it does, and what it is refused for."""

from __future__ import annotations

import numpy as np
import pytest

from hetenv.cluster import Cluster, NodeGroup
from hetenv.errors import InputError, PlanError
from hetenv.performance import MeasuredTable
from hetenv.scheduler import Plan
from hetenv.simulator import Simulator
from hetenv.workload import Workload
from tests.simulator.worlds import state_bytes

TYPES = ("a", "b")


def simulator(preemptive: bool = False, **columns) -> Simulator:
    """4 + 4 GPUs in nodes of 2; by default three rigid 2-GPU jobs of 100 iterations at 1/s on a, 2/s on b."""
    defaults = {"iterations": 100, "batch": 2, "min_gpus": 2, "restart_s": 10.0}
    n_jobs = max((len(value) for value in columns.values() if isinstance(value, list)), default=3)
    workload = Workload.build(TYPES, np.tile([1.0, 2.0], (n_jobs, 1)), np.zeros(n_jobs), **(defaults | columns))
    return Simulator(Cluster.from_counts({"a": 4, "b": 4}, 2), workload, preemptive=preemptive)


def plan(*rows: tuple[int, list[int]], nodes=None) -> Plan:
    return Plan(np.array([job for job, _ in rows]), np.array([counts for _, counts in rows]), nodes)


def finish(sim: Simulator) -> np.ndarray:
    while not sim.done:
        sim.advance()
    return sim.state.jobs["finish_s"]


def test_a_rate_is_that_of_the_allocation():
    sim = simulator(iterations=100)
    sim.apply(plan((0, [2, 0]), (1, [0, 2]), (2, [1, 1])))
    np.testing.assert_allclose(finish(sim), [100.0, 50.0, 200 / 3])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((7, [2, 0]), "job index 7 is not in the system"),
        ((-1, [2, 0]), "job index -1 is not in the system"),
        ((1, [3, 0]), "job 1 cannot have that many GPUs"),
        ((1, [-1, 3]), "job 1 cannot have that many GPUs"),
        ((0, [0, 0]), "job 0 runs, and running jobs may not be paused or moved"),
        ((0, [0, 2]), "job 0 runs, and running jobs may not be paused or moved"),
        ((1, [0, 2]), "needs more b GPUs"),
    ],
)
def test_an_impossible_plan_says_why_and_changes_nothing(row, words):
    sim = simulator()
    sim.apply(plan((0, [2, 0]), (2, [0, 2])))
    before = state_bytes(sim)
    with pytest.raises(PlanError, match=words):
        sim.apply(plan((1, [2, 0]), row) if row[0] != 1 else plan(row, (2, [0, 2])) if row[1] != [0, 2] else overfull())
    assert state_bytes(sim) == before


def overfull() -> Plan:
    return plan((1, [0, 3]), (2, [0, 2])) if False else Plan(np.array([1, 2]), np.array([[0, 2], [0, 2]]))

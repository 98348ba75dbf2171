"""The expected wait, by hand and against a plain reading of its definition."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.cluster import Cluster
from hetenv.errors import PlanError
from hetenv.scheduler import Plan, Snapshot
from hetenv.simulator import Simulator
from hetenv.workload import Workload
from tests.simulator.worlds import random_plan, simulators


def rigid(gpus: list[int], iterations: list[float], on: int) -> Simulator:
    """Jobs that arrive at 0 on ``on`` GPUs, one iteration a second whatever their size."""
    n_gpus = np.array(gpus)
    workload = Workload.build(
        ("a",),
        np.ones((len(gpus), 1)),
        np.zeros(len(gpus)),
        iterations=np.array(iterations),
        batch=n_gpus,
        min_gpus=n_gpus,
        max_gpus=n_gpus,
    )
    return Simulator(Cluster.from_counts({"a": on}, gpus_per_node=on), workload)


def test_the_queue_is_served_by_the_releases_in_order_of_arrival():
    sim = rigid([1, 2, 1, 2, 1, 1], [10, 20, 5, 5, 5, 5], on=4)
    assert sim.snapshot().expected_wait_s == np.inf  # nothing runs
    sim.apply(Plan(np.array([0, 1]), np.array([[1], [2]])))
    # Released: 1 GPU at 10 s, 3 at 20 s. Wanted in turn: 1, 3, 4, 5 GPUs, so 10, 20, 20 x 4/3, 20 x 5/3 s.
    assert sim.snapshot().expected_wait_s == pytest.approx((10 + 20 + 20 * 4 / 3 + 20 * 5 / 3) / 4)


def test_with_nobody_waiting_it_is_the_next_release():
    sim = rigid([1, 2], [10, 20], on=4)
    sim.apply(Plan(np.array([0, 1]), np.array([[1], [2]])))
    assert sim.snapshot().expected_wait_s == 10


def expected_wait_s(snapshot: Snapshot) -> float:
    runs = ~snapshot.waiting
    if not runs.any():
        return np.inf
    order = np.argsort(snapshot.finish_in_s[runs], kind="stable")
    finish_in_s = snapshot.finish_in_s[runs][order]
    if not snapshot.waiting.any():
        return float(finish_in_s[0])
    released = np.cumsum(snapshot.counts[runs].sum(axis=1)[order])
    waits = []
    for wanted in np.cumsum(snapshot.size_limits[0][snapshot.waiting]):
        enough = np.flatnonzero(released >= wanted)
        waits.append(finish_in_s[enough[0]] if len(enough) else finish_in_s[-1] * wanted / released[-1])
    return float(np.mean(waits))


@settings(deadline=None)
@given(simulators(), st.integers(0, 2**32 - 1))
def test_it_is_what_its_definition_says(simulator, seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        snapshot = simulator.snapshot()
        assert snapshot.expected_wait_s == pytest.approx(expected_wait_s(snapshot))
        with suppress(PlanError):  # a measured rate of 0, which the plan cannot foresee
            simulator.apply(random_plan(simulator, rng))
        if simulator.done or simulator.stalled:
            break
        simulator.advance()

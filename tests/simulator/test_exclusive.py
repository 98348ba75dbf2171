"""Fastest allocations against brute force over all categories."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.cluster import Cluster, GPUType, NodeGroup
from hetenv.performance import category_link, iteration_s
from hetenv.simulator import Simulator
from hetenv.workload import Workload
from tests.simulator.worlds import simulators


def categories(limit: np.ndarray, least: int, most: int):
    for counts in itertools.product(*(range(int(n) + 1) for n in limit)):
        if least <= sum(counts) <= most:
            yield np.array(counts, np.int64)


def node_counts(cluster: Cluster, counts: np.ndarray) -> list[int]:
    """1 and/or 2 (several): over how many nodes some placement of ``counts`` can lie."""
    used = np.flatnonzero(counts)
    if len(used) > 1:
        return [2]
    sizes = cluster.node_gpus[cluster.node_type == used[0]]
    return [1] * bool(counts.sum() <= sizes.max()) + [2] * bool(len(sizes) > 1 and counts.sum() > 1)


def best_by_hand(simulator: Simulator, job: int) -> float:
    cluster, workload = simulator.cluster, simulator.workload
    speed, row = workload.speed_on(cluster)[job], workload.measured_rows()[job]
    best_s = np.inf
    for counts in categories(cluster.total, workload.min_gpus[job], workload.max_gpus[job]):
        used = np.flatnonzero(counts)
        for n_nodes in node_counts(cluster, counts):
            if row >= 0:
                table = workload.measured.for_types(cluster.type_names)
                if len(used) > 1 or counts.sum() >= table.shape[2]:
                    continue
                rate = table[row, used[0], counts.sum(), n_nodes - 1]
                step_s = 1.0 / rate if rate > 0 else np.inf
            else:
                links = cluster.intra_bytes_per_s if n_nodes == 1 else cluster.nic_bytes_per_s
                step_s = iteration_s(
                    counts,
                    speed,
                    float(workload.batch[job]),
                    float(workload.grad_bytes[job]),
                    float(links[used].min()),
                    simulator.even_split,
                )
            best_s = min(best_s, workload.iterations[job] * step_s)
    return best_s


@settings(max_examples=40, deadline=None)
@given(simulators())
def test_exclusive_time_is_that_of_the_best_of_all_allocations(simulator):
    expected = [best_by_hand(simulator, job) for job in range(len(simulator.workload))]
    np.testing.assert_allclose(simulator.exclusive_s, expected, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(simulators(), st.integers(0, 2**32 - 1))
def test_a_draft_finds_the_fastest_free_allocation(simulator, seed):
    rng = np.random.default_rng(seed)
    draft, workload, cluster = simulator.snapshot().draft(), simulator.workload, simulator.cluster
    within = rng.integers(0, cluster.total + 1)
    for job in simulator.snapshot().queue().tolist():
        if workload.measured_rows()[job] >= 0:
            continue
        counts, run_s = draft.fastest(job, within)
        assert (counts <= within).all()
        expected = [
            workload.iterations[job]
            * iteration_s(
                option,
                workload.speed_on(cluster)[job],
                float(workload.batch[job]),
                float(workload.grad_bytes[job]),
                category_link(option, cluster.intra_bytes_per_s, cluster.nic_bytes_per_s, cluster.largest_node),
                simulator.even_split,
            )
            for option in categories(within, workload.min_gpus[job], workload.max_gpus[job])
        ]
        # one type inside a node may be slower than a mix over a faster network, and the search knows it
        assert run_s == pytest.approx(min(expected, default=np.inf), rel=1e-12)


def test_exclusive_time_counts_on_a_network_faster_than_the_link_in_a_node():
    slow_inside = GPUType("a", intra_bytes_per_s=1e9, nic_bytes_per_s=4e9)
    cluster = Cluster((slow_inside,), (NodeGroup("a", 2, 2),))
    workload = Workload.build(("a",), [[1.0]], [0.0], iterations=1, batch=2, grad_bytes=1e9, min_gpus=2)
    simulator = Simulator(cluster, workload)
    assert simulator.exclusive_s[0] == pytest.approx(1.0 + 0.25)  # spread: 2 / 2 of 1e9 bytes at 4e9/s
    simulator.apply(simulator.snapshot().draft().plan())
    draft = simulator.snapshot().draft()
    draft.fill(np.array([0]), skip=False)
    simulator.apply(draft.plan())
    assert simulator.advance().seconds == pytest.approx(1.0 + 1.0)  # the packing rule keeps it on one node

"""Gavel's shares and rounds on cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

import baselines
from baselines.shares import SharedCluster
from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.performance import MeasuredTable
from hetenv.simulator import simulate
from hetenv.workload import Workload

ONE_OF_EACH = np.array([1, 1])


def throughput(cluster: SharedCluster, shares: np.ndarray) -> np.ndarray:
    return (cluster.rate * shares).sum(axis=1)


def within_the_cluster(cluster: SharedCluster, shares: np.ndarray) -> bool:
    timed = (shares.sum(axis=1) <= 1 + 1e-9).all()
    held = (cluster.gpus @ shares <= cluster.total + 1e-9).all()
    return bool((shares >= 0).all() and timed and held)


def test_equal_jobs_share_both_types_equally():
    cluster = SharedCluster(np.array([[3.0, 1.0], [3.0, 1.0]]), np.array([1, 1]), ONE_OF_EACH)
    np.testing.assert_allclose(cluster.max_min(), 0.5)


def test_max_min_gives_the_fast_type_to_the_job_that_gains_by_it():
    # Relative to equal time on both GPUs (2 and 1 iterations/s), job 1 has at most 1, with all its time anywhere.
    cluster = SharedCluster(np.array([[3.0, 1.0], [1.0, 1.0]]), np.array([1, 1]), ONE_OF_EACH)
    shares = cluster.max_min()
    assert within_the_cluster(cluster, shares)
    relative = throughput(cluster, shares) / [2.0, 1.0]
    assert relative.min() == pytest.approx(1.0)


def test_max_min_counts_throughput_per_gpu():
    # x (2 GPUs) and y (1 GPU) with 2 x + y = 2: 2 x = y, so x = 1/2, y = 1.
    cluster = SharedCluster(np.ones((2, 1)), np.array([2, 1]), np.array([2]))
    np.testing.assert_allclose(cluster.max_min(), [[0.5], [1.0]])


def test_makespan_lets_all_finish_together():
    # 40 iterations at 3 + 1 iterations/s take 10 s, with job 0 on the fast type for all of it.
    cluster = SharedCluster(np.array([[3.0, 1.0], [3.0, 1.0]]), np.array([1, 1]), ONE_OF_EACH)
    np.testing.assert_allclose(cluster.makespan(np.array([30.0, 10.0])), [[1, 0], [0, 1]], atol=1e-9)


def test_makespan_survives_a_job_that_is_all_but_done():
    cluster = SharedCluster(np.array([[3.0, 1.0], [3.0, 1.0]]), np.array([1, 1]), ONE_OF_EACH)
    shares = cluster.makespan(np.array([30.0, 1e-9]))
    assert throughput(cluster, shares)[0] == pytest.approx(3.0)


def test_isolation_is_an_equal_part_of_every_type():
    # Of 2 + 4 GPUs each of two jobs owns 1 + 2. One GPU at a time, job 0 spends 1/3 and 2/3 of its time on them;
    # job 1, on two at a time, 1/2 of its time on the first type and all of it on the second, 1/3 and 2/3 together.
    cluster = SharedCluster(np.array([[3.0, 1.5], [3.0, 1.5]]), np.array([1, 2]), np.array([2, 4]))
    np.testing.assert_allclose(cluster.isolated_rate, [2.0, 2.0])


def test_finish_time_fairness_favours_the_job_that_has_waited():
    # One GPU, 10 s of work each, so 20 s in isolation; job 0 came 10 s ago. Equal rho, 10 + 10 / x = 10 / (1 - x),
    # at x = (sqrt 5 - 1) / 2.
    cluster = SharedCluster(np.ones((2, 1)), np.array([1, 1]), np.array([1]))
    shares = cluster.finish_time_fairness(np.array([10.0, 10.0]), np.array([10.0, 0.0]), np.zeros(2))
    x = (np.sqrt(5) - 1) / 2
    np.testing.assert_allclose(shares[:, 0], [x, 1 - x], rtol=2e-3)


def run(workload: Workload, cluster: Cluster, policy: str = "max-min", **options):
    scheduler = baselines.make("gavel", policy=policy, round_s=10.0)
    return simulate(workload, cluster, scheduler, **{"round_s": 10.0, "preemptive": True, **options})


def test_equal_jobs_take_turns_round_by_round():
    workload = Workload.build(("a",), np.ones((2, 1)), [0.0, 0.0], iterations=30.0)
    result = run(workload, Cluster.from_counts({"a": 1}))
    assert result.jobs["finish_s"].tolist() == [50.0, 60.0]
    assert result.jobs["restarts"].tolist() == [2, 2]


@pytest.mark.parametrize("policy", ["max-min", "makespan", "finish-time-fairness"])
def test_jobs_run_where_they_gain_most(policy):
    # Each is three times as fast on its own type: that is best for every policy, and no round changes it.
    workload = Workload.build(("a", "b"), [[1.0, 3.0], [3.0, 1.0]], [0.0, 0.0], iterations=90.0)
    result = run(workload, Cluster.from_counts({"a": 1, "b": 1}), policy)
    assert result.jobs["finish_s"].tolist() == [30.0, 30.0]
    assert result.jobs["restarts"].tolist() == [0, 0]


def test_without_preemption_waiting_jobs_take_what_is_free():
    workload = Workload.build(("a",), np.ones((2, 1)), [0.0, 0.0], iterations=30.0)
    result = run(workload, Cluster.from_counts({"a": 1}), preemptive=False)
    assert result.jobs["finish_s"].tolist() == [30.0, 60.0]


def test_a_job_too_large_for_every_type_runs_on_several_once_the_cluster_is_empty():
    workload = Workload.build(("a", "b"), np.ones((2, 2)), [0.0, 0.0], iterations=10.0, batch=[1, 3], min_gpus=[1, 3])
    result = run(workload, Cluster.from_counts({"a": 2, "b": 2}))
    assert result.jobs["finish_s"].tolist() == [10.0, 20.0]


def test_a_job_that_may_not_be_spread_waits_for_a_node():
    # Nodes of 3 GPUs and of 1: beside the first job of two GPUs the second would span both nodes, at rate 0.
    rate = np.zeros((1, 1, 3, 2))
    rate[0, 0, 2, 0] = 1.0
    workload = Workload.build(
        ("a",),
        np.ones((2, 1)),
        [0.0, 0.0],
        iterations=10.0,
        min_gpus=2,
        model="m",
        measured=MeasuredTable(("m",), ("a",), rate),
    )
    result = run(workload, Cluster.from_counts({"a": 4}, 3))
    assert result.jobs["finish_s"].tolist() == [10.0, 20.0]


def test_a_bad_policy_is_named():
    with pytest.raises(InputError, match="option policy: 'fair'; use one of max-min, makespan, finish-time-fairness"):
        baselines.make("gavel", policy="fair")

"""Summary figures against numbers by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import baselines
from hetenv.cluster import Cluster
from hetenv.metrics import jain_index, summarize
from hetenv.simulator import simulate
from hetenv.workload import Workload


@pytest.mark.parametrize(("values", "index"), [([1, 2, 3], 6 / 7), ([5, 5], 1.0), ([1e-12, 1.0], 0.5)])
def test_jain_index(values, index):
    assert jain_index(np.array(values)) == pytest.approx(index)


def test_summary_of_a_table():
    jobs = pd.DataFrame(
        {
            "arrival_s": [10.0, 20.0, 30.0],
            "finish_s": [30.0, 60.0, 90.0],
            "jct_s": [20.0, 40.0, 60.0],
            "queueing_s": [0.0, 10.0, 20.0],
            "restarts": [0, 1, 0],
            "exclusive_s": [20.0, 20.0, 20.0],
        }
    )
    summary = summarize(jobs, busy_gpu_s=160.0, n_gpus=4, decision_s=np.array([0.001, 0.002, 0.003]))
    assert summary == {
        "mean_jct_s": pytest.approx(40.0),
        "p50_jct_s": pytest.approx(40.0),
        "p95_jct_s": pytest.approx(58.0),
        "p99_jct_s": pytest.approx(59.6),
        "makespan_s": pytest.approx(80.0),
        "queueing_s": pytest.approx(10.0),
        "utilization": pytest.approx(0.5),
        "jain": pytest.approx(6 / 7),
        "max_rho": pytest.approx(3.0),
        "restarts_per_job": pytest.approx(1 / 3),
        "decision_ms": {"p50": pytest.approx(2.0), "p99": pytest.approx(2.98)},
    }


def test_utilization_agrees_with_the_timeline():
    rng = np.random.default_rng(0)
    workload = Workload.build(
        ("a", "b"), rng.uniform(1, 3, (30, 2)), rng.uniform(0, 50, 30), iterations=20, min_gpus=rng.integers(1, 4, 30)
    )
    result = simulate(workload, Cluster.from_counts({"a": 3, "b": 3}), baselines.make("fifo-skip"))
    timeline, jobs = result.timeline, result.jobs
    held_gpu_s = (timeline["gpus"] * (timeline["end_s"] - timeline["start_s"])).sum()
    span_s = jobs["finish_s"].max() - jobs["arrival_s"].min()
    assert result.summary()["utilization"] == pytest.approx(held_gpu_s / (6 * span_s), rel=1e-12)
    assert jobs["gpu_s"].sum() == pytest.approx(held_gpu_s, rel=1e-12)

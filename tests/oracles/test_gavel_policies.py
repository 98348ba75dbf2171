"""Gavel's own simulator (commit c4fa4009) on its static traces, policies that solve linear programs.

Theirs is one optimum of many, found by an interior-point solver, and its rounds end with their last whole step, so
means agree and single jobs do not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import baselines
from hetenv.cluster import Cluster
from hetenv.simulator import simulate
from hetenv.traces import load_workload


@pytest.mark.parametrize(
    ("policy", "trace", "figure", "hours"),
    [("max-min", "max_min_fairness", "mean_jct_s", 3.82), ("makespan", "minimize_makespan", "makespan_s", 17.40)],
)
def test_a_static_trace_takes_as_long_as_gavel_says(
    shared: Path, policy: str, trace: str, figure: str, hours: float
) -> None:
    gavel = shared / "data" / "gavel"
    workload = load_workload(
        gavel / "traces" / "physical_cluster" / f"{trace}.trace",
        format="gavel",
        throughputs=gavel / "physical_cluster_throughputs.json",
    )
    cluster = Cluster.from_counts({"k80": 24, "p100": 16, "v100": 8})
    result = simulate(workload, cluster, baselines.make("gavel", policy=policy), round_s=360, preemptive=True)
    assert result.summary()[figure] / 3600 == pytest.approx(hours, rel=0.05)

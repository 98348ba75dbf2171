"""Gavel's own simulator (commit c4fa4009), policy FIFO_Perf: per-job completion times computed outside this project."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import baselines
from hetenv.cluster import Cluster
from hetenv.simulator import Simulator, simulate
from hetenv.traces import load_workload
from hetenv.traces.gavel import measured_workload, read_throughputs

GAVELS_FORM = {"preemptive": True, "round_s": 360, "whole_steps": True, "min_reallocation_s": 1920}


@pytest.mark.parametrize(
    ("trace", "gpus"),
    [
        ("artifact_evaluation", {"k80": 4, "v100": 2}),
        ("minimize_makespan", {"k80": 24, "p100": 16, "v100": 8}),
    ],
)
def test_every_job_of_a_physical_trace_finishes_when_gavel_says(shared: Path, trace: str, gpus: dict[str, int]):
    gavel = shared / "data" / "gavel"
    workload = load_workload(
        gavel / "traces" / "physical_cluster" / f"{trace}.trace",
        format="gavel",
        throughputs=gavel / "physical_cluster_throughputs.json",
    )
    expected = json.loads((shared / "oracles" / f"gavel_fifo_perf_{trace}.json").read_text())
    result = simulate(workload, Cluster.from_counts(gpus), baselines.make("fifo-perf"), **GAVELS_FORM)
    jct_s = np.array([expected["jct_s"][str(job)] for job in range(len(workload))])
    np.testing.assert_allclose(result.jobs["jct_s"], jct_s, atol=1e-6)
    assert result.summary()["makespan_s"] == pytest.approx(expected["makespan_s"], abs=1e-6)


@pytest.mark.slow
def test_the_stream_has_gavels_mean_and_completion_times(shared: Path):
    jobs = pd.read_csv(shared / "oracles" / "gavel_stream_seed0_single.csv")
    workload = measured_workload(
        read_throughputs(shared / "data" / "gavel" / "simulation_throughputs.json"),
        jobs["job_type"].to_numpy(object),
        jobs["scale_factor"].to_numpy(),
        jobs["total_steps"].to_numpy(),
        jobs["arrival_unit_exp"].to_numpy() * 3600 / 0.4,
    )
    simulator = Simulator(Cluster.from_counts({"k80": 36, "p100": 36, "v100": 36}), workload, **GAVELS_FORM)
    scheduler = baselines.make("fifo-perf")
    measured = slice(4000, 5000)
    while np.isnan(simulator.state.jobs["finish_s"][measured]).any():
        simulator.apply(scheduler.plan(simulator.snapshot()))
        simulator.advance()
    jct_s = simulator.state.jobs["finish_s"][measured] - workload.arrival_s[measured]
    assert jct_s.mean() / 3600 == pytest.approx(15.507541, rel=1e-6)
    expected = json.loads((shared / "oracles" / "gavel_fifo_perf_stream_0.4.json").read_text())
    np.testing.assert_allclose(jct_s, [expected[str(job)] for job in range(4000, 5000)], atol=1e-3)

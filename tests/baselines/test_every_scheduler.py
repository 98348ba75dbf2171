"""Every scheduler runs every kind of workload to its end, the same way each time, within what it may decide."""

from __future__ import annotations

import numpy as np
import pytest

import baselines
from hetenv.simulator import Simulator, simulate
from tests.baselines.cases import small_cluster, small_workload

KINDS = ("rigid", "moldable", "malleable", "measured")


@pytest.mark.parametrize("name", baselines.names())
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("preemptive", [False, True])
def test_every_kind_of_workload_runs_to_its_end_and_repeats(name, kind, preemptive):
    workload = small_workload(kind)
    first, second = (
        simulate(workload, small_cluster(), baselines.make(name), seed=3, preemptive=preemptive) for _ in range(2)
    )
    assert np.isfinite(first.jobs["jct_s"]).all()
    assert first.simulator.timeline.tobytes() == second.simulator.timeline.tobytes()


@pytest.mark.parametrize("name", baselines.names())
@pytest.mark.parametrize("options", [{}, {"round_s": 30.0}, {"even_split": True}], ids=str)
def test_a_long_queue_is_worked_off(name, options):
    workload = small_workload("moldable", n_jobs=40, gap_s=0.5)
    few = {"max_jobs": 8} if name in ("jps", "market", "market-tuned", "exact") else {}
    result = simulate(workload, small_cluster(), baselines.make(name, **few), **options)
    assert np.isfinite(result.jobs["jct_s"]).all()


@pytest.mark.parametrize("name", baselines.names())
def test_no_scheduler_goes_beyond_what_it_decides(name):
    scheduler, cluster = baselines.make(name), small_cluster()
    simulator = Simulator(cluster, small_workload("malleable"), preemptive=True)
    scheduler.reset(cluster, 0)
    taken = set()
    while not simulator.done:
        snapshot = simulator.snapshot()
        least, most = snapshot.size_limits
        before = dict(zip(snapshot.jobs.tolist(), zip(snapshot.counts, least, most, strict=True), strict=True))
        plan = scheduler.plan(snapshot)
        for job, after in zip(plan.jobs.tolist(), plan.counts, strict=True):
            held, job_least, _ = before[job]
            if not held.any():
                taken |= {"place"} | ({"size"} if after.sum() != job_least else set())
            elif not after.any():
                taken.add("preempt")
            elif after.sum() != held.sum():
                taken.add("resize")
            elif (after != held).any():
                taken.add("migrate")
        simulator.apply(plan)
        simulator.advance()
    assert "place" in taken
    assert taken <= scheduler.decides

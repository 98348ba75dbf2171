"""Roll-outs: never worse than their base, and better where the future pays."""

from __future__ import annotations

import pytest

import baselines
from baselines.rollout import Rollout
from hetenv.cluster import Cluster
from hetenv.scheduler import Plan, Snapshot
from hetenv.simulator import simulate
from hetenv.workload import Workload
from tests.baselines.cases import small_cluster, small_workload


class Nobody:
    """Starts nothing."""

    name, decides = "nobody", frozenset({"place"})

    def reset(self, cluster: Cluster, seed: int) -> None:
        pass

    def plan(self, snapshot: Snapshot) -> Plan:
        return Plan.nothing(len(snapshot.total))


def test_it_keeps_the_gpu_for_a_short_job_that_comes_soon():
    # Started at once, the long job holds up the short one until 100 s; kept for it, the GPU is free again at 2 s.
    workload = Workload.build(("a",), [[1.0]] * 2, [0.0, 1.0], iterations=[100.0, 1.0])
    cluster = Cluster.from_counts({"a": 1})
    clairvoyant = simulate(workload, cluster, Rollout(baselines.make("sjf"), [Nobody()]))
    assert clairvoyant.jobs["finish_s"].tolist() == [102.0, 2.0]
    assert simulate(workload, cluster, baselines.make("sjf")).jobs["finish_s"].tolist() == [100.0, 101.0]


@pytest.mark.parametrize("base", ["fifo", "market"])
@pytest.mark.parametrize("kind", ["moldable", "malleable", "measured"])
def test_it_is_never_worse_than_its_base(base: str, kind: str) -> None:
    workload, cluster = small_workload(kind), small_cluster()
    alone = simulate(workload, cluster, baselines.make(base))
    others = [baselines.make("market", waiting_factor=8.0), baselines.make("srtf")]
    improved = simulate(workload, cluster, Rollout(baselines.make(base), others))
    assert improved.jobs["jct_s"].mean() <= alone.jobs["jct_s"].mean() * (1 + 1e-9)

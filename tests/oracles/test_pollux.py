"""Pollux's own simulator (Qiao et al., OSDI 2021), its Tiresias baseline: mean completion times computed outside.

The same figures are published with it, for all its workloads (github.com/petuum/adaptdl, commit de25dcc9,
simulator/results-jobload/tiresias-1.0/summary.json). Jobs queue by when they entered a queue, and a new allocation
takes GPUs from the node with most free ones first.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import baselines
from hetenv.cluster import Cluster
from hetenv.simulator import simulate
from tests.oracles.pollux_jobs import NODE_GPUS, Application, read_workload

NODES = 16


BATCHES = [  # that the workloads use
    ("bert", 384),
    ("cifar10", 2048),
    ("cifar10", 4096),
    ("deepspeech2", 320),
    ("deepspeech2", 640),
    ("imagenet", 3200),
    ("imagenet", 6400),
    ("ncf", 32768),
    ("yolov3", 64),
]


@pytest.mark.parametrize(("name", "batch"), BATCHES)
def test_steps_by_the_gradients_are_about_those_that_were_run(shared: Path, name: str, batch: int) -> None:
    # One gradient stands for a whole epoch, and in the first one it changes much.
    application = Application(shared / "data" / "pollux" / "traces" / name)
    assert application.steps(batch) == pytest.approx(application.epochs[batch]["iteration"].iloc[-1], rel=0.1)
    smallest = min(application.epochs)  # makes one step of progress a step
    assert application.steps(smallest) == pytest.approx(application.epochs[smallest]["iteration"].iloc[-1], abs=1)


@pytest.mark.parametrize(("number", "mean_jct_s"), [(1, 2473.65), (2, 5144.9625), (3, 3876.25625)])
def test_tiresias_has_the_mean_completion_time_of_pollux_simulator(shared: Path, number: int, mean_jct_s: float):
    workload = read_workload(shared / "data" / "pollux", number)
    cluster = Cluster.from_counts({"gpu": NODES * NODE_GPUS}, NODE_GPUS)
    tiresias = baselines.make("tiresias", order="entry")
    result = simulate(workload, cluster, tiresias, round_s=60, preemptive=True, packing="emptiest")
    assert result.jobs["jct_s"].mean() == pytest.approx(mean_jct_s, rel=0.01)

"""Training and held-out episodes."""

from __future__ import annotations

import numpy as np
import pytest

from agents.episodes import HeldOutEpisodes, TrainingEpisodes
from agents.network import PairNetwork
from agents.scheduler import PolicyScheduler
from hetenv.envs.placement import PlacementEnv
from hetenv.evaluation import evaluate


def first_jobs(env: PlacementEnv, seed: int | None) -> np.ndarray:
    env.reset(seed=seed)
    return env.unwrapped.simulator.workload.arrival_s


def test_training_episodes_are_reproducible_and_apart_from_held_out_ones(tiny):
    training, held_out = TrainingEpisodes(PlacementEnv(tiny)), PlacementEnv(tiny)
    first, second = first_jobs(training, 5), first_jobs(training, None)
    assert (first_jobs(training, 5) == first).all()
    assert (first_jobs(training, None) == second).all()
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, first_jobs(held_out, 5))


def test_held_out_figures_are_those_of_the_policy_in_an_evaluation(tiny):
    network = PairNetwork()
    figures = HeldOutEpisodes(tiny, range(100, 104)).play(network)
    evaluation = evaluate(tiny, {"policy": lambda: PolicyScheduler(network, tiny)}, episodes=4, seed=100)
    summary = evaluation.summary()["schedulers"]["policy"]
    assert figures.mean_jct_s == pytest.approx(summary["mean_jct_s"], rel=1e-9)
    assert figures.utilization == pytest.approx(summary["utilization"], rel=1e-9)
    assert figures.p95_jct_s == pytest.approx(np.mean([t.figures["p95_jct_s"] for t in evaluation.trials["policy"]]))


def test_held_out_episodes_are_the_same_each_time(tiny):
    episodes = HeldOutEpisodes(tiny, range(3))
    assert episodes.play(PairNetwork()) == episodes.play(PairNetwork())

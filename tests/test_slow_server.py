"""The slow-server scenario against the optimum that its Markov chain gives."""

from __future__ import annotations

import numpy as np
import pytest

import hetenv
from tests.slow_server import Threshold, mean_time_s, optimal_threshold


@pytest.mark.parametrize(
    ("ratio", "load", "gain"),
    [(0.5, 0.6, 0.0), (0.25, 0.3, 0.116), (0.1, 0.3, 0.383), (0.1, 0.6, 0.157), (0.05, 0.8, 0.080)],
)
def test_the_gain_of_the_best_threshold_over_never_waiting(ratio: float, load: float, gain: float) -> None:
    rates = (load * (1 + ratio), 1.0, ratio)
    best_s = mean_time_s(*rates, optimal_threshold(*rates))
    assert 1 - best_s / mean_time_s(*rates, 1) == pytest.approx(gain, abs=0.001)


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_the_simulator_gives_what_the_chain_gives(load: float) -> None:
    scenario = hetenv.load_scenario("slow-server", {"workload": {"load": load, "n_jobs": 20_000}})
    workload = scenario.draw_workload(np.random.default_rng(0))
    mean_s = float((workload.iterations * workload.batch / workload.speed[:, 0]).mean())
    rates = ((len(workload) - 1) / np.ptp(workload.arrival_s), 1 / mean_s, 0.1 / mean_s)
    for threshold in (1, optimal_threshold(*rates)):
        result = hetenv.simulate(workload, scenario.cluster, Threshold(threshold))
        assert result.summary()["mean_jct_s"] == pytest.approx(mean_time_s(*rates, threshold), rel=0.03)

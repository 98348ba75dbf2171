"""``PolicyScheduler`` does in a simulation what its policy does in the environment."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from agents.network import PairNetwork
from agents.scheduler import PolicyScheduler
from hetenv.config import Scenario, load_scenario
from hetenv.envs.placement import PlacementEnv
from hetenv.scheduler import Scheduler
from hetenv.simulator import simulate
from hetenv.workload import Workload
from tests.agents.helpers import TINY

SHORT = {"workload": {"n_jobs": 25}}
MALLEABLE_ONLY = {"workload": {"n_jobs": 20}, "simulator": {"preemptive": False}}


def some_network(seed: int) -> PairNetwork:
    """One that does not play the heuristic, but close enough to it to come to an end soon."""
    torch.manual_seed(seed)
    network = PairNetwork(width=8)
    with torch.no_grad():
        for last in (network.pair, network.wait):
            last.weight.normal_(std=0.5)
    return network


def jct_in_environment(network: PairNetwork, scenario: Scenario, workload: Workload, seed: int) -> np.ndarray:
    env = PlacementEnv(scenario, strict=True)
    observation, _ = env.reset(seed=seed, options={"workload": workload})
    while not env.simulator.done:
        action = network.greedy_actions({key: value[None] for key, value in observation.items()})[0]
        observation = env.step(action)[0]
    return env.simulator.state.jobs["finish_s"] - workload.arrival_s


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("online", SHORT),
        ("online-elastic", SHORT),
        ("online-elastic", MALLEABLE_ONLY),
        ("philly", SHORT),
        ("paper-batch", {}),
    ],
)
def test_equals_the_environment(name, overrides):
    scenario = load_scenario(name, overrides)
    for seed in (3, 4):
        network = some_network(seed)
        workload = scenario.draw_workload(np.random.default_rng(seed))
        wanted = jct_in_environment(network, scenario, workload, seed)
        scheduler = PolicyScheduler(network, scenario)
        for _ in range(2):  # a second run must not remember the first
            result = simulate(workload, scenario.cluster, scheduler, seed=seed, **scenario.simulator.model_dump())
            np.testing.assert_allclose(result.jobs["jct_s"], wanted, rtol=1e-9)


def test_the_network_matters():
    """Else the test above would compare one fixed behaviour with itself."""
    scenario = load_scenario("online", {"workload": {"n_jobs": 50, "load": 2.0}})
    workload = scenario.draw_workload(np.random.default_rng(3))
    ours, others = (jct_in_environment(network, scenario, workload, 3) for network in (some_network(3), PairNetwork()))
    assert not np.allclose(ours, others)


def test_plans_leave_the_simulation_to_the_caller():
    scenario = load_scenario("online", TINY)
    simulator = scenario.make_simulator()
    scheduler = PolicyScheduler(PairNetwork(), scenario)
    scheduler.reset(simulator.cluster, 0)
    before = simulator.version, simulator.time_s, simulator.snapshot().free.tolist()
    plan = scheduler.plan(simulator.snapshot())
    assert len(plan) > 0
    assert (simulator.version, simulator.time_s, simulator.snapshot().free.tolist()) == before
    assert simulator.apply(plan) == len(plan)


def test_it_is_a_scheduler_for_other_clusters_and_processes():
    trained_on, other = load_scenario("online"), load_scenario("philly", {"workload": {"n_jobs": 20}})
    scheduler = pickle.loads(pickle.dumps(PolicyScheduler(PairNetwork(), trained_on, name="best")))
    assert isinstance(scheduler, Scheduler)
    workload = other.draw_workload(np.random.default_rng(0))
    result = simulate(workload, other.cluster, scheduler)
    assert result.scheduler == "best"
    assert np.isfinite(result.jobs["finish_s"]).all()

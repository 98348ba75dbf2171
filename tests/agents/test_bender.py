"""Policies that bend the market: what their numbers mean, how they are bred, and that they plan as the environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import agents
import baselines
from agents.bender import BENDS, FEATURES, TYPE_FEATURES, Inputs, MarketBender, constants_of
from agents.bending import BentEpisodes, play_bent
from agents.breeds import Benders
from agents.config import load_config
from agents.figures import Figures
from agents.runs import Run
from agents.saving import load_bred, save_bred
from agents.scheduler import BendScheduler
from agents.training import train
from baselines.market_tuned import Parameters, tuned_parameters
from hetenv.config import Scenario, load_scenario
from hetenv.envs.market import MarketEnv
from hetenv.envs.market_session import bend_of
from hetenv.errors import InputError
from hetenv.scheduler import Scheduler
from hetenv.simulator import simulate
from tests.agents.helpers import TINY, tiny_bending

EVERYTHING = Inputs(tuple(FEATURES), tuple(TYPE_FEATURES))
SHORT = {"workload": {"n_jobs": 25}}
TUNED = Parameters(waiting_factor=20.0, weight_exponent=0.75, restart_factor=4.0)


def some_bender(seed: int) -> MarketBender:
    return MarketBender(np.random.default_rng(seed).normal(0.0, 0.2, EVERYTHING.n_weights), EVERYTHING)


def figures_of(scenario: Scenario, scheduler: Scheduler, seed: int) -> Figures:
    workload = scenario.draw_workload(np.random.default_rng(seed))
    result = simulate(workload, scenario.cluster, scheduler, seed=seed, **scenario.simulator.model_dump())
    return Figures.of_episode(result.summary(), float(result.jobs["queueing_s"].sum()))


def observed(scenario: Scenario, n_steps: int = 12) -> dict[str, np.ndarray]:
    """A batch of one observation, from the middle of an episode."""
    env = MarketEnv(scenario)
    observation, _ = env.reset(seed=0)
    for _ in range(n_steps):
        observation = env.step(np.zeros(env.action_space.shape))[0]
    return {name: array[None] for name, array in observation.items()}


# --- what the numbers mean ---------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [Inputs(), EVERYTHING])
def test_the_constants_of_tuned_parameters_mean_them(inputs):
    action = MarketBender.constant(inputs, constants_of(TUNED)).greedy_actions(
        observed(load_scenario("online", SHORT))
    )[0]
    bend = bend_of(action, 4, 1.0)
    assert not bend.price_offset_s.any()
    objective = bend.objective
    assert (objective.waiting_factor, objective.weight_exponent) == pytest.approx((20.0, 0.75), rel=1e-5)
    assert (objective.fairness_exponent, objective.restart_factor) == pytest.approx((0.0, 4.0), rel=1e-5)
    assert constants_of(Parameters(waiting_factor=0.0, weight_exponent=3.0)) == (0.0, 1.0, -1.0, 0.0, 0.0)


def test_slopes_count_features_and_actions_are_clipped():
    batch = observed(load_scenario("online", SHORT))
    weights = np.zeros((len(BENDS), 2))
    weights[1, 1], weights[2, 0] = 0.5, -7.0
    inputs = Inputs(("free",), ("demand",))
    action = MarketBender(np.append(weights.ravel(), 0.25), inputs).greedy_actions(batch)[0]
    assert batch["types"][0, :, 4].any()
    np.testing.assert_allclose(action[:4], 0.0625 * batch["types"][0, :, 4], rtol=1e-6)
    free = batch["globals"][0, 3]
    np.testing.assert_allclose(action[4:], [0.5 * free, -1.0, 0.0, 0.0], rtol=1e-6)


@pytest.mark.parametrize("name", FEATURES)
def test_every_feature_is_one_number_within_the_unit_interval(name):
    batch = observed(load_scenario("online", SHORT))
    weights = np.zeros((len(BENDS), 2))
    weights[3, 1] = 1.0
    action = MarketBender(weights.ravel(), Inputs((name,))).greedy_actions(batch)
    assert action.shape == (1, 8)
    assert 0.0 <= action[0, -2] <= 1.0


# --- as a scheduler ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("online", SHORT),
        ("online-elastic", SHORT),
        ("online-elastic", SHORT | {"simulator": {"round_s": 900}}),
        ("philly", {"workload": {"n_jobs": 60}}),
    ],
)
def test_equals_the_environment(name, overrides):
    scenario = load_scenario(name, overrides)
    seen = set()
    for seed in (3, 4):
        bender = some_bender(seed)
        workload = scenario.draw_workload(np.random.default_rng(seed))
        in_environment, _ = play_bent(scenario, workload, bender.weights, bender.inputs)
        scheduler = BendScheduler(bender, scenario)
        for _ in range(2):  # a second run must not remember the first
            assert figures_of(scenario, scheduler, seed) == in_environment
        seen |= {in_environment, figures_of(scenario, baselines.make("market"), seed)}
    assert len(seen) == 4  # else one fixed behaviour is compared with itself


def test_it_serves_clusters_of_other_types():
    scheduler = BendScheduler(some_bender(0), load_scenario("online"))
    assert figures_of(load_scenario("slow-server", SHORT), scheduler, 0).mean_jct_s > 0.0


# --- bred --------------------------------------------------------------------------------------------


def test_it_begins_where_it_is_told_or_at_market_tuned():
    scenario = load_scenario("online-elastic", TINY)
    constants = (-0.25, 0.5, 0.75, 0.125, 1.0)
    for start, wanted in ((constants, constants), (None, constants_of(tuned_parameters("online-elastic")))):
        config = tiny_bending(start=start, policy_kwargs={"features": ["queue"], "type_features": ["free"]})
        breed = Benders(config, scenario)
        assert breed.first[:-1].reshape(5, 2).T.tolist() == [list(wanted), [0.0] * 5]
        assert breed.first[-1] == 0.0
        breed.close()


def test_the_number_of_processes_does_not_matter():
    scenario = load_scenario("online-elastic", TINY)
    workloads = [scenario.draw_workload(np.random.default_rng(seed)) for seed in (1, 2)]
    weights = np.stack([some_bender(seed).weights for seed in (1, 2, 3)])
    played = []
    for workers in (1, 2):
        episodes = BentEpisodes(scenario, EVERYTHING, workers)
        played.append(episodes.play(workloads, weights))
        episodes.close()
    (ours, steps), (others, other_steps) = played
    assert steps == other_steps
    np.testing.assert_array_equal(ours, others)
    assert ours.shape == (3, 2, 4)
    assert ours[1, 0].tolist() == list(play_bent(scenario, workloads[0], weights[1], EVERYTHING)[0])


def test_a_run_leaves_policies_state_and_figures(tmp_path):
    config = tiny_bending()
    run = train(config, tmp_path / "run")
    names = {path.name.partition(".tfevents")[0] for path in run.folder.iterdir()}
    assert names == {
        *("config.yaml", "versions.json", "events.out", "best.npz", "last.npz", "strategy.pickle", "evaluation.json")
    }
    assert load_config(run.folder / "config.yaml") == config
    assert run.history[0][0] == 0
    assert run.steps >= 500
    bender, origin = load_bred(run.folder / "last.npz")
    assert isinstance(bender, MarketBender)
    assert (origin.env, origin.scenario) == ("hetenv/Market-v0", "online-elastic")
    scheduler = agents.load(run.folder / "last.npz")
    seeds = config.evaluation.seeds
    again = Figures.mean([figures_of(config.load_scenario(), scheduler, seed) for seed in seeds])
    np.testing.assert_allclose(again, run.history[-1][1], rtol=1e-12)


ABANDONED = """
import os, signal
from agents.bender import Inputs
from agents.bending import BentEpisodes
from hetenv.config import load_scenario
if __name__ == "__main__":
    episodes = BentEpisodes(load_scenario("paper-batch"), Inputs(), workers=2)
    print(*episodes._pool._processes, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_workers_end_with_a_killed_parent(tmp_path):
    script = tmp_path / "abandoned.py"
    script.write_text(ABANDONED)
    killed = subprocess.run(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    workers = [Path("/proc", number) for number in killed.stdout.split()]
    assert killed.returncode == -signal.SIGKILL
    assert len(workers) == 2
    give_up = time.monotonic() + 60.0
    while any((worker / "cmdline").exists() and (worker / "cmdline").read_bytes() for worker in workers):
        assert time.monotonic() < give_up, "the workers go on"  # a zombie's command line is empty
        time.sleep(0.1)


def test_what_is_loaded_is_what_was_saved(tmp_path):
    config = tiny_bending(policy_kwargs={"features": tuple(FEATURES), "type_features": tuple(TYPE_FEATURES)})
    path: Path = tmp_path / "some.npz"
    bender = some_bender(0)
    save_bred(bender, Run(tmp_path, config, {}).origin, path)
    loaded, _ = load_bred(path)
    assert isinstance(loaded, MarketBender)
    assert loaded.inputs == EVERYTHING
    np.testing.assert_array_equal(loaded.weights, bender.weights)
    save_bred(MarketBender.constant(Inputs(), constants_of(TUNED)), Run(tmp_path, config, {}).origin, path)
    with pytest.raises(InputError, match="its weights do not fit"):
        agents.load(path)

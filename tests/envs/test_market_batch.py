"""Vectors of hetenv/Market-v0 do, to the bit, what single environments do."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import hetenv
from hetenv.config import load_scenario
from hetenv.envs.market import MarketEnv
from hetenv.envs.market_batch import MarketBatch
from hetenv.envs.vector import MarketVectorEnv
from tests.envs.batches import MODES, assert_equal, begun, shown

SMALL: dict[str, Any] = {"workload": {"n_jobs": 12}}
SCENARIOS = ["online", "online-elastic", "philly"]


def batch_of(scenario: str, num_envs: int, num_threads: int = 1) -> MarketBatch:
    return begun(MarketBatch, load_scenario(scenario, SMALL), num_envs, num_threads)


def play(batch: MarketBatch, n_steps: int, seed: int) -> list[bytes]:
    shape = (batch.num_envs, len(batch.scenario.cluster.types) + 4)
    return shown(batch, lambda rng: rng.uniform(-1, 1, shape), n_steps, seed)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_vector_environment_equals_single_ones_to_the_bit(scenario: str, mode: AutoresetMode) -> None:
    single = SyncVectorEnv([lambda: MarketEnv(scenario, SMALL)] * 3, autoreset_mode=mode)
    vector = MarketVectorEnv(3, scenario, SMALL, autoreset_mode=mode)
    assert vector.single_observation_space == single.single_observation_space
    assert vector.action_space == single.action_space
    vector.action_space.seed(1)
    for ours, theirs in zip(vector.reset(seed=5), single.reset(seed=5), strict=True):
        assert_equal(ours, theirs)
    episodes = 0
    while episodes < 7:
        actions = vector.action_space.sample()
        stepped = vector.step(actions)
        for ours, theirs in zip(stepped, single.step(actions), strict=True):
            assert_equal(ours, theirs)
        episodes += int(stepped[2].sum())


def test_threads_give_the_same_bytes() -> None:
    assert play(batch_of("online-elastic", 5), 40, seed=3) == play(batch_of("online-elastic", 5, 3), 40, seed=3)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_saved_state_goes_on_the_same(scenario: str) -> None:
    batch, other = batch_of(scenario, 3), batch_of(scenario, 3)
    play(batch, 9, seed=0)
    saved = batch.get_state()
    future = play(batch, 30, seed=9)
    assert play(other, 3, seed=1) != future[:3]
    for restored in (batch, other):
        restored.set_state(saved)
        assert play(restored, 30, seed=9) == future


def test_make_vec_and_its_arguments() -> None:
    envs = gym.make_vec("hetenv/Market-v0", num_envs=2, scenario="online", overrides=SMALL, autoreset_mode="SameStep")
    assert isinstance(envs.unwrapped, MarketVectorEnv)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert envs.reset(seed=0)[0] in envs.observation_space
    assert envs.step(envs.action_space.sample())[0] in envs.observation_space
    envs.close()


def test_observations_are_copies_unless_told_otherwise() -> None:
    for copy in (True, False):
        vector = MarketVectorEnv(2, "online", SMALL, copy=copy)
        first, _ = vector.reset(seed=0)
        before = first["globals"].copy()
        vector.step(np.zeros((2, 8)))
        assert np.array_equal(first["globals"], before) == copy


def test_reset_replays_a_given_workload_and_resets_some() -> None:
    scenario = load_scenario("online", SMALL)
    workload = scenario.draw_workload(np.random.default_rng(99))
    vector, single = MarketVectorEnv(3, scenario), MarketEnv(scenario)
    mine, _ = vector.reset(options={"workload": workload})
    theirs, _ = single.reset(options={"workload": workload})
    for env in range(3):
        assert_equal({name: array[env] for name, array in mine.items()}, theirs)
    again, infos = vector.reset(seed=[1, 2, 7], options={"reset_mask": np.array([False, False, True])})
    assert infos["_time_s"].tolist() == [False, False, True]
    assert_equal({k: v[:2] for k, v in again.items()}, {k: v[:2] for k, v in mine.items()})
    assert_equal({k: v[2] for k, v in again.items()}, single.reset(seed=7)[0])


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros((2, 7)), r"actions of shape \(2, 7\): give 8 numbers from -1 to 1 each"),
        (np.full((2, 8), np.nan), "give 8 numbers from -1 to 1"),
    ],
)
def test_what_is_no_action_is_refused(actions: np.ndarray, message: str) -> None:
    vector = MarketVectorEnv(2, "online", SMALL)
    vector.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        vector.step(actions)


@pytest.mark.parametrize("argument", ["num_envs", "num_threads"])
def test_bad_arguments_name_the_field(argument: str) -> None:
    with pytest.raises(hetenv.InputError, match=f"{argument}: 0; give a whole number of at least 1"):
        MarketVectorEnv(**{"num_envs": 2, "scenario": "online", argument: 0})

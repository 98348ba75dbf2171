"""The batch core and Gymnasium's vector environment do, to the bit, what single environments do."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import hetenv
from hetenv.config import load_scenario, scenario_names
from hetenv.envs.batch import PlacementBatch
from hetenv.envs.placement import PlacementEnv
from hetenv.envs.vector import PlacementVectorEnv
from tests.envs.batches import MODES, assert_equal, begun, shown, valid_actions

SCENARIOS = scenario_names()
SMALL: dict[str, Any] = {"workload": {"n_jobs": 15}, "window": {"jobs": 6}}


def overrides(scenario: str) -> dict[str, Any] | None:
    return None if scenario == "paper-batch" else SMALL


def batch_of(scenario: str, num_envs: int, num_threads: int = 1) -> PlacementBatch:
    return begun(PlacementBatch, load_scenario(scenario, overrides(scenario)), num_envs, num_threads)


def play(batch: PlacementBatch, n_steps: int, seed: int) -> list[bytes]:
    return shown(batch, lambda rng: valid_actions(batch.mask, rng), n_steps, seed)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_vector_environment_equals_single_ones_to_the_bit(scenario: str, mode: AutoresetMode) -> None:
    single = SyncVectorEnv([lambda: PlacementEnv(scenario, overrides(scenario))] * 3, autoreset_mode=mode)
    vector = PlacementVectorEnv(3, scenario, overrides(scenario), autoreset_mode=mode)
    assert vector.single_observation_space == single.single_observation_space
    assert vector.action_space == single.action_space
    rng = np.random.default_rng(1)
    ours, theirs = vector.reset(seed=5), single.reset(seed=5)
    assert_equal(ours[0], theirs[0])
    assert_equal(ours[1], theirs[1])
    episodes = 0
    while episodes < 9:
        actions = valid_actions(theirs[-1]["action_mask"], rng)
        if rng.random() < 0.1:
            actions[rng.integers(3)] = rng.integers(vector.single_action_space.n)  # may be invalid
        ours, theirs = vector.step(actions), single.step(actions)
        for mine, other in zip(ours, theirs, strict=True):
            assert_equal(mine, other)
        episodes += int(ours[2].sum())


@pytest.mark.parametrize("scenario", ["online", "online-elastic"])
def test_threads_give_the_same_bytes(scenario: str) -> None:
    assert play(batch_of(scenario, 7), 120, seed=3) == play(batch_of(scenario, 7, num_threads=3), 120, seed=3)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_saved_state_goes_on_the_same(scenario: str) -> None:
    batch, other = batch_of(scenario, 4), batch_of(scenario, 4)
    play(batch, 40, seed=0)
    saved = batch.get_state()
    future = play(batch, 80, seed=9)
    assert play(other, 3, seed=1) != future[:3]
    for restored in (batch, other):
        restored.set_state(saved)
        assert play(restored, 80, seed=9) == future


def test_room_grows_with_the_episodes() -> None:
    scenario = load_scenario("online", {"workload": {"n_jobs": [2, 60]}, "window": {"jobs": 4}})
    vector, singles = PlacementVectorEnv(4, scenario), [PlacementEnv(scenario) for _ in range(4)]
    _, infos = vector.reset(seed=0)
    for seed, env in enumerate(singles):
        env.reset(seed=seed)
    rng = np.random.default_rng(0)
    for _ in range(200):
        actions = valid_actions(infos["action_mask"], rng)
        obs, reward, *_, infos = vector.step(actions)
        for e, env in enumerate(singles):
            if env.simulator.done:
                mine, _ = env.reset()
            else:
                mine, gained, *_ = env.step(actions[e])
                assert gained == reward[e]
            assert_equal({name: array[e] for name, array in obs.items()}, mine)


def test_make_vec_and_its_arguments() -> None:
    envs = gym.make_vec("hetenv/Placement-v0", num_envs=2, scenario="paper-batch", autoreset_mode="SameStep")
    assert isinstance(envs.unwrapped, PlacementVectorEnv)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    obs, infos = envs.reset(seed=0)
    assert obs in envs.observation_space
    obs, *_ = envs.step(valid_actions(infos["action_mask"], np.random.default_rng(0)))
    assert obs in envs.observation_space
    envs.close()


def test_observations_are_copies_unless_told_otherwise() -> None:
    for copy in (True, False):
        vector = PlacementVectorEnv(2, "online", SMALL, copy=copy)
        first, infos = vector.reset(seed=0)
        before = first["globals"].copy()
        vector.step(valid_actions(infos["action_mask"], np.random.default_rng(0)))
        assert np.array_equal(first["globals"], before) == copy


def test_reset_replays_a_given_workload_and_resets_some() -> None:
    scenario = load_scenario("online", SMALL)
    workload = scenario.draw_workload(np.random.default_rng(99))
    vector, single = PlacementVectorEnv(3, scenario), PlacementEnv(scenario)
    mine, _ = vector.reset(seed=[4, 5, 6], options={"workload": workload})
    for env in range(3):
        theirs, _ = single.reset(seed=4 + env, options={"workload": workload})
        assert_equal({name: array[env] for name, array in mine.items()}, theirs)
    again, infos = vector.reset(seed=[1, 2, 7], options={"reset_mask": np.array([False, False, True])})
    assert infos["_action_mask"].tolist() == [False, False, True]
    assert_equal({k: v[:2] for k, v in again.items()}, {k: v[:2] for k, v in mine.items()})
    assert_equal({k: v[2] for k, v in again.items()}, single.reset(seed=7)[0])


def test_an_action_below_the_mask_does_nothing() -> None:
    vector, single = PlacementVectorEnv(1, "online", SMALL), PlacementEnv("online", SMALL)
    vector.reset(seed=0)
    single.reset(seed=0)
    for action in (0, 0, -1, -2, -3, -(2**40)):
        ours, theirs = vector.step(np.array([action])), single.step(np.int64(action))
        assert_equal({name: array[0] for name, array in ours[0].items()}, theirs[0])
        assert ours[4].get("invalid_action", [False])[0] == theirs[4].get("invalid_action", False) == (action < 0)
        assert (ours[1][0] == 0.0) or action >= 0


def test_a_job_that_can_never_run_is_named() -> None:
    scenario = load_scenario("online", SMALL)
    workload = scenario.draw_workload(np.random.default_rng(0)).replace(min_gpus=1, max_gpus=64)
    workload.min_gpus[3] = 33
    vector = PlacementVectorEnv(2, scenario)
    with pytest.raises(hetenv.InputError, match="job 3: needs 33 GPUs of k80 or p100 or v100 or a100"):
        vector.reset(options={"workload": workload})


def test_strict_raises_outside_the_mask() -> None:
    vector = PlacementVectorEnv(2, "online", SMALL, strict=True)
    _, infos = vector.reset(seed=0)
    actions = valid_actions(infos["action_mask"], np.random.default_rng(0))
    vector.step(actions)
    with pytest.raises(ValueError, match="environment 1: action -1 is outside the mask; choose one of"):
        vector.step(np.array([valid_actions(vector.action_masks(), np.random.default_rng(0))[0], -1]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs: 0; give a whole number of at least 1"),
        ({"num_threads": 0}, "num_threads: 0; give a whole number of at least 1"),
        ({"autoreset_mode": "Disabled"}, "autoreset_mode: Disabled; use NextStep or SameStep"),
    ],
)
def test_bad_arguments_name_the_field(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(hetenv.InputError, match=message):
        PlacementVectorEnv(**({"num_envs": 2, "scenario": "paper-batch"} | arguments))

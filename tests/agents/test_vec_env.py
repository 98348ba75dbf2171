"""The Stable-Baselines3 adapter: what DummyVecEnv, Monitor and TrainingEpisodes give together, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from agents.episodes import TrainingEpisodes
from agents.vec_env import PlacementVecEnv
from hetenv.config import Scenario, load_scenario
from hetenv.envs.placement import PlacementEnv
from hetenv.errors import InputError

SMALL = {"workload": {"n_jobs": 10}, "window": {"jobs": 4, "candidates": 6}}


def valid_actions(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (mask * rng.uniform(0.1, 1.0, mask.shape)).argmax(axis=1)


def elastic() -> Scenario:
    return load_scenario("online-elastic", SMALL)


@pytest.mark.parametrize("scenario", ["online", "online-elastic", "philly", "slow-server", "paper-batch"])
def test_it_equals_single_environments_to_the_bit(scenario: str) -> None:
    loaded = load_scenario(scenario, None if scenario == "paper-batch" else SMALL)
    dummy = DummyVecEnv([lambda: Monitor(TrainingEpisodes(PlacementEnv(loaded)))] * 3)
    batched = PlacementVecEnv(loaded, 3, seed=7)
    dummy.seed(7)
    assert batched.observation_space == dummy.observation_space
    assert batched.action_space == dummy.action_space
    rng = np.random.default_rng(0)
    mine, theirs = batched.reset(), dummy.reset()
    ends = 0
    while ends < 7:
        for name, array in theirs.items():
            np.testing.assert_array_equal(mine[name], array)
        actions = valid_actions(theirs["action_mask"], rng)
        mine, reward, done, infos = batched.step(actions)
        theirs, their_reward, their_done, their_infos = dummy.step(actions)
        np.testing.assert_array_equal(reward, their_reward)
        np.testing.assert_array_equal(done, their_done)
        for info, other in zip(infos, their_infos, strict=True):
            assert info["TimeLimit.truncated"] is other["TimeLimit.truncated"] is False
            if "episode" in other:
                ends += 1
                assert {k: v for k, v in info["episode"].items() if k != "t"} == {
                    k: v for k, v in other["episode"].items() if k != "t"
                }
                for name in ("mean_jct_s", "p95_jct_s", "makespan_s", "utilization", "time_s"):
                    assert info[name] == other[name]
                for name, array in other["terminal_observation"].items():
                    np.testing.assert_array_equal(info["terminal_observation"][name], array)
            else:
                assert info.keys() == {"TimeLimit.truncated"}


def test_groups_replay_the_same_arrivals() -> None:
    envs = PlacementVecEnv(elastic(), 6, group_size=3, seed=0)
    rng = np.random.default_rng(0)
    drawn: list[list[bytes]] = [[] for _ in range(6)]
    draw = envs.batch.episodes.draw

    def recorded(env: int) -> Any:
        workload, generator = draw(env)
        drawn[env].append(workload.arrival_s.tobytes() + np.float64(generator.bit_generator.state["state"]["state"]))
        return workload, generator

    envs.batch.episodes.draw = recorded  # type: ignore[method-assign]
    envs.reset()
    for _ in range(1500):
        envs.step(valid_actions(envs.action_masks(), rng))
    assert len({len(episodes) for episodes in drawn}) > 1  # they do not go in step
    for group in (drawn[:3], drawn[3:]):
        for episodes in group[1:]:
            assert all(mine == theirs for mine, theirs in zip(episodes, group[0], strict=False))
    assert drawn[0][0] != drawn[3][0]
    assert drawn[0][0] != drawn[0][1]


def test_a_group_may_be_any_divisor() -> None:
    with pytest.raises(InputError, match="group_size: 4; give a divisor of the 6 environments"):
        PlacementVecEnv(elastic(), 6, group_size=4)


def test_time_that_steps_take_sums_to_that_of_the_episode() -> None:
    envs = PlacementVecEnv(elastic(), 2, seed=1)
    envs.reset()
    begun, passed = envs.time_s.copy(), np.zeros(2)
    rng = np.random.default_rng(0)
    while True:
        _, _, done, infos = envs.step(valid_actions(envs.action_masks(), rng))
        passed += envs.elapsed_s
        assert (envs.elapsed_s >= 0.0).all()
        if done[0]:
            break
    assert begun[0] + passed[0] == pytest.approx(infos[0]["time_s"])
    assert envs.time_s[0] == infos[0]["time_s"]


def test_a_saved_state_goes_on_the_same() -> None:
    envs = PlacementVecEnv(elastic(), 4, group_size=2, seed=3)
    envs.reset()

    def play(n_steps: int) -> list[bytes]:
        rng = np.random.default_rng(5)
        return [envs.step(valid_actions(envs.action_masks(), rng))[1].tobytes() for _ in range(n_steps)]

    play(300)
    saved = envs.batch.get_state()
    future = play(400)
    envs.batch.set_state(saved)
    assert play(400) == future


def test_attributes_and_methods_of_the_environments() -> None:
    envs = PlacementVecEnv(elastic(), 3, seed=0)
    envs.reset()
    assert envs.has_attr("action_masks")  # how sb3-contrib asks whether masks are to be had
    np.testing.assert_array_equal(np.stack(envs.env_method("action_masks")), envs.action_masks())
    assert envs.get_attr("scenario", [1, 2]) == [envs.scenario] * 2
    assert envs.env_is_wrapped(Monitor) == [True] * 3
    assert not is_wrapped(PlacementEnv("paper-batch"), Monitor)
    assert not envs.has_attr("nonsense")

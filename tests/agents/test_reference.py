"""Rewards against the heuristic."""

from __future__ import annotations

import numpy as np
import pytest

from agents import heuristic
from agents.vec_env import GroupedEpisodes, PlacementVecEnv
from hetenv.config import Scenario
from hetenv.envs.placement import PlacementEnv
from hetenv.workload import Workload
from tests.agents.helpers import TINY


def heuristic_jct_s(scenario: Scenario, workload: Workload, rng: np.random.Generator) -> float:
    env = PlacementEnv(scenario)
    env.np_random = rng
    observation, _ = env.reset(options={"workload": workload})
    while not env.simulator.done:
        observation = env.step(heuristic.greedy_action(observation))[0]
    return float((env.simulator.state.jobs["finish_s"] - workload.arrival_s).mean())


def test_the_return_is_the_difference_of_the_jct_sums(tiny):
    envs = PlacementVecEnv(tiny, 4, group_size=2, against_heuristic=True, seed=3)
    episodes = GroupedEpisodes(tiny, 4, 2, 3)
    observation = envs.reset()
    rng = np.random.default_rng(0)
    total, ends = np.zeros(4), 0
    their_jct_s = [heuristic_jct_s(tiny, *episodes.draw(env)) for env in range(4)]
    while ends < 10:
        mask = observation["action_mask"]
        observation, reward, done, infos = envs.step((mask * rng.uniform(0.1, 1.0, mask.shape)).argmax(axis=1))
        total += reward
        for env in np.flatnonzero(done).tolist():
            ends += 1
            to_return = TINY["workload"]["n_jobs"] / tiny.time_scale_s
            jct_s = infos[env]["mean_jct_s"]
            assert total[env] == pytest.approx(to_return * (their_jct_s[env] - jct_s), abs=1e-4)
            assert infos[env]["episode"]["r"] == pytest.approx(-to_return * jct_s)
            total[env] = 0.0
            their_jct_s[env] = heuristic_jct_s(tiny, *episodes.draw(env))


def test_episodes_are_the_same_with_and_without_it(tiny):
    both = [PlacementVecEnv(tiny, 2, against_heuristic=against, seed=0) for against in (False, True)]
    for one, other in zip(*(envs.reset().values() for envs in both), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_saved_state_knows_the_heuristic_s_way(tiny):
    envs = PlacementVecEnv(tiny, 2, against_heuristic=True, seed=0)
    envs.reset()
    reference, times_s = envs.reference, np.array([1e4, np.inf])
    assert reference is not None
    saved, lost_s = envs.batch.get_state(), reference.job_seconds(times_s)
    envs.reset()
    assert (reference.job_seconds(times_s) != lost_s).all()
    envs.batch.set_state(saved)
    np.testing.assert_array_equal(reference.job_seconds(times_s), lost_s)

"""hetenv/Placement-v0 keeps Gymnasium's contract and its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import hetenv
from hetenv.config import load_scenario, scenario_names
from hetenv.envs.placement import PlacementEnv

SCENARIOS = scenario_names()
SMALL = {"workload": {"n_jobs": 25}}


def random_masked_steps(env: PlacementEnv, n_steps: int, seed: int) -> Iterator[tuple[Any, ...]]:
    """Play random valid actions over as many episodes as it takes; yields (action, obs, reward, terminated, info)."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    for _ in range(n_steps):
        action = rng.choice(np.flatnonzero(info["action_mask"]))
        obs, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        yield action, obs, reward, terminated, info
        if terminated:
            _, info = env.reset()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_gymnasium_checker_has_no_warning(scenario: str) -> None:
    env = gym.make("hetenv/Placement-v0", scenario=scenario, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_make_finds_it_by_module_name_too() -> None:
    env = gym.make("hetenv:hetenv/Placement-v0", scenario="paper-batch")
    assert isinstance(env.unwrapped, PlacementEnv)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_random_masked_play_never_meets_an_invalid_action(scenario: str) -> None:
    env = PlacementEnv(scenario)
    space = env.observation_space
    for step, (_, obs, reward, terminated, info) in enumerate(random_masked_steps(env, 10_000, seed=3)):
        assert "invalid_action" not in info
        assert reward <= 0.0
        assert terminated or obs["action_mask"].any()
        if step % 50 == 0:
            assert obs in space


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_three_spellings_of_the_mask_agree(scenario: str) -> None:
    env = PlacementEnv(scenario, SMALL if scenario != "paper-batch" else None)
    for _, obs, _, _, info in random_masked_steps(env, 500, seed=5):
        mask = env.action_masks()
        assert mask.dtype == np.bool_
        assert info["action_mask"].dtype == np.int8
        np.testing.assert_array_equal(mask, info["action_mask"])
        np.testing.assert_array_equal(mask, obs["action_mask"])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_return_is_the_negative_sum_of_jcts(scenario: str) -> None:
    env = PlacementEnv(scenario, {"workload": {"n_jobs": 100}} if scenario != "paper-batch" else None)
    total = 0.0
    episodes = 0
    for _, _, reward, terminated, info in random_masked_steps(env, 6_000, seed=7):
        total += reward
        if terminated:
            jobs = env.simulator.state.jobs
            jct_s = jobs["finish_s"] - env.simulator.workload.arrival_s
            assert total == pytest.approx(-jct_s.sum() / env.scenario.time_scale_s, rel=1e-9)
            assert info["mean_jct_s"] == pytest.approx(jct_s.mean())
            assert 0.0 < info["utilization"] <= 1.0
            total = 0.0
            episodes += 1
    assert episodes > 0


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_same_seed_same_bytes(scenario: str) -> None:
    def rollout() -> list[bytes]:
        env = PlacementEnv(scenario)
        return [
            b"".join(obs[key].tobytes() for key in sorted(obs)) + np.float64(reward).tobytes()
            for _, obs, reward, _, _ in random_masked_steps(env, 700, seed=11)
        ]

    assert rollout() == rollout()


def test_an_invalid_action_is_a_no_op() -> None:
    env = PlacementEnv("online")
    obs, info = env.reset(seed=0)
    before = [array.tobytes() for array in env.simulator.state]
    invalid = int(np.flatnonzero(info["action_mask"] == 0)[0])
    again, reward, terminated, truncated, info = env.step(invalid)
    assert info["invalid_action"]
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert before == [array.tobytes() for array in env.simulator.state]
    for key, value in obs.items():
        np.testing.assert_array_equal(value, again[key])


@pytest.mark.parametrize("action", [-1, 10**6])
def test_strict_raises_outside_the_mask(action: int) -> None:
    env = PlacementEnv("online", strict=True)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="outside the mask; choose one of"):
        env.step(action)


def test_observations_are_fresh_arrays() -> None:
    env = PlacementEnv("online")
    first, info = env.reset(seed=0)
    kept = {key: value.copy() for key, value in first.items()}
    env.step(np.flatnonzero(info["action_mask"])[0])
    for key, value in first.items():
        np.testing.assert_array_equal(value, kept[key])


def test_reset_replays_a_given_workload() -> None:
    scenario = load_scenario("online", {"workload": {"n_jobs": 7}})
    workload = scenario.draw_workload(np.random.default_rng(99))
    env = PlacementEnv("online")
    env.reset(seed=0, options={"workload": workload})
    assert env.simulator.workload is workload
    env.reset(seed=0)
    assert len(env.simulator.workload) == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [({"jobs": 3}, "reset options: jobs; use workload"), ({"workload": [1]}, "workload: list; give a hetenv.Workload")],
)
def test_reset_refuses_unknown_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(hetenv.InputError, match=message):
        PlacementEnv("online").reset(options=options)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"scenario": "nowhere"}, "scenario 'nowhere': no such name or file; use one of"),
        ({"overrides": {"workload": {"load": -1}}}, "workload.load: -1"),
        ({"overrides": {"windows": {}}}, "windows: unknown key"),
        ({"render_mode": "human"}, "render_mode: 'human'; use 'ansi'"),
    ],
)
def test_bad_arguments_name_the_field(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(hetenv.InputError, match=message):
        PlacementEnv(**kwargs)


def test_load_is_a_parameter() -> None:
    busy = PlacementEnv("online", {"workload": {"load": 2.0, "n_jobs": 400}})
    calm = PlacementEnv("online", {"workload": {"load": 0.1, "n_jobs": 400}})
    loads = []
    for env in (busy, calm):
        env.reset(seed=1)
        loads.append(env.simulator.workload.offered_load(env.scenario.cluster))
    assert loads[0] / loads[1] == pytest.approx(20.0)  # the same draws, arrivals 20 times closer


def test_render_text_names_types_and_waiting_jobs() -> None:
    env = PlacementEnv("online", render_mode="ansi")
    env.reset(seed=0)
    picture = env.render()
    assert "a100" in picture
    assert "8/8 free" in picture
    assert "job 0: age 0 s; can take 1 " in picture


def test_gantt_shows_as_much_as_was_held() -> None:
    env = PlacementEnv("online", SMALL, render_mode="rgb_array")
    last = [info for _, _, _, terminated, info in random_masked_steps(env, 300, seed=2) if terminated]
    assert last
    env.reset(seed=2)
    terminated, info = False, {"action_mask": env.action_masks()}
    while not terminated:
        _, _, terminated, _, info = env.step(np.flatnonzero(info["action_mask"])[0])
    image = env.render()
    assert image.dtype == np.uint8
    lanes = image[:, 12:]
    coloured = (lanes.max(axis=2).astype(int) - lanes.min(axis=2) > 40).any(axis=1)  # rows with some bar
    assert coloured.any()
    share = (lanes.max(axis=2).astype(int) - lanes.min(axis=2) > 40).sum() / (32 * 5 * lanes.shape[1])
    assert share == pytest.approx(info["utilization"], abs=0.05)

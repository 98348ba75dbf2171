"""Advantages over simulated time, by hand and against Stable-Baselines3's over steps."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import DictRolloutBuffer
from stable_baselines3.common.vec_env import VecEnv

from agents.time_discount import TimeDiscountBuffer, discounted_advantages
from agents.vec_env import PlacementVecEnv


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_advantages_worked_by_hand():
    """Two placements at one time, then 100 ln 2 seconds pass with a loss, then the episode ends with another."""
    advantages = discounted_advantages(
        rewards=column(0.0, -1.0, -2.0),
        values=column(-3.0, -2.0, -1.0, -50.0),
        goes_on=column(1, 1, 0),
        elapsed_s=column(0.0, 100.0 * np.log(2.0), 7.0),
        horizon_s=100.0,
        lam=0.5,
    )
    last = -2.0 - -1.0  # what comes after an end counts for nothing
    middle = (-1.0 + 0.5 * -1.0 - -2.0) + 0.5 * 0.5 * last  # half the discount, half of it by lambda
    first = (0.0 + 1.0 * -2.0 - -3.0) + 1.0 * 1.0 * middle  # no time, no discount, no lambda
    np.testing.assert_allclose(advantages, column(first, middle, last))


def test_placements_of_one_event_may_be_split_or_joined():
    """A decision that takes no time changes nothing for the others, whatever the critic says of its state."""
    joined = discounted_advantages(column(-1.0, -1.0), column(0.0, 5.0, 2.0), column(1, 1), column(3.0, 4.0), 10.0, 0.9)
    split = discounted_advantages(
        column(-1.0, 0.0, -1.0), column(0.0, 5.0, 77.0, 2.0), column(1, 1, 1), column(3.0, 0.0, 4.0), 10.0, 0.9
    )
    np.testing.assert_allclose(split[[0, 1]], joined)


def fill(buffer: DictRolloutBuffer | TimeDiscountBuffer, envs: VecEnv) -> None:
    rng = np.random.default_rng(0)
    observation, starts = envs.reset(), np.ones(envs.num_envs)
    values = torch.from_numpy(rng.normal(size=(buffer.buffer_size + 1, envs.num_envs, 1)).astype(np.float32))
    for step in range(buffer.buffer_size):
        allowed = observation["action_mask"] * rng.uniform(0.1, 1.0, observation["action_mask"].shape)
        actions = allowed.argmax(axis=1)
        following, rewards, dones, _ = envs.step(actions)
        log_probs = torch.from_numpy(rng.normal(size=envs.num_envs))
        buffer.add(observation, actions[:, None], rewards, starts, values[step], log_probs)
        observation, starts = following, dones
    buffer.compute_returns_and_advantage(values[-1], dones)


def test_steps_of_equal_time_give_what_stable_baselines_gives(tiny):
    envs = PlacementVecEnv(tiny, 3, seed=0)
    spaces = envs.observation_space, envs.action_space
    theirs = DictRolloutBuffer(60, *spaces, device="cpu", gae_lambda=0.9, gamma=np.exp(-2.0 / 50.0), n_envs=3)
    fill(theirs, envs)
    ours = TimeDiscountBuffer(60, *spaces, device="cpu", gae_lambda=0.9, n_envs=3, horizon_s=50.0)
    ours.watch(SimpleNamespace(time_s=np.zeros(3), elapsed_s=np.full(3, 2.0)))
    envs.seed(0)
    fill(ours, envs)
    assert theirs.episode_starts.sum() > 5
    np.testing.assert_allclose(ours.advantages, theirs.advantages, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.returns, theirs.returns, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_size", [32, None])
def test_minibatches_hold_every_step_once_with_its_own_inputs(tiny, batch_size):
    envs = PlacementVecEnv(tiny, 2, seed=0)
    buffer = TimeDiscountBuffer(
        40, envs.observation_space, envs.action_space, device="cpu", n_envs=2, horizon_s=tiny.time_scale_s
    )
    buffer.watch(envs)
    fill(buffer, envs)
    assert buffer.elapsed_s.max() > 0.0
    seen = 0
    for batch in buffer.get(batch_size):
        inputs = batch.observations
        rows, n_rows = np.arange(len(batch.actions)), len(inputs.wait)
        assert n_rows == len(batch.actions) == len(batch.advantages)
        seen += n_rows
        allowed = np.zeros((n_rows, inputs.n_actions), bool)
        allowed[inputs.row, inputs.action] = True
        allowed[:, -1] = inputs.may_wait
        assert allowed[rows, batch.actions.numpy()].all()
    assert seen == 80
    np.testing.assert_allclose(sum(b.advantages.sum() for b in buffer.get(7)), buffer.advantages.sum(), rtol=1e-4)

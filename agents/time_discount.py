"""Advantages discounted over simulated time instead of steps.

Decisions of one event share a time stamp, and events come at any distance: gamma per step would weigh the same second
of queueing differently by how many placements lie before it. Here a step that took dt seconds discounts what follows
by exp(-dt / horizon). Lambda counts decision epochs: it weighs a step that took time, and is 1 inside an event, where
nothing is lost or gained between two placements and bootstrapping would only bring in the critic's error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.type_aliases import RolloutBufferSamples

from agents.groups import less_group_mean
from agents.inputs import Inputs


class Clock(Protocol):
    """What a buffer learns the time from: ``PlacementVecEnv``."""

    time_s: np.ndarray  # (N,) simulated time after the last step
    elapsed_s: np.ndarray  # (N,) what of it the step took


def discounted_advantages(
    rewards: np.ndarray, values: np.ndarray, goes_on: np.ndarray, elapsed_s: np.ndarray, horizon_s: float, lam: float
) -> np.ndarray:
    """(T, N) generalized advantage estimates (Schulman et al., ICLR 2016) of T steps of N environments.

    Args:
        rewards: (T, N).
        values: (T + 1, N), the last those of the state after the last step.
        goes_on: (T, N), 0 where the step ended an episode, else 1.
        elapsed_s: (T, N) simulated time of the step.
        horizon_s: what lies so far ahead counts 1 / e.
        lam: weight of each step that took time.
    """
    gamma = np.exp(-elapsed_s / horizon_s) * goes_on
    error = rewards + gamma * values[1:] - values[:-1]
    weight = gamma * np.where(elapsed_s > 0.0, lam, 1.0)
    advantages = np.empty_like(error)
    following = np.zeros(rewards.shape[1])
    for step in reversed(range(len(rewards))):
        following = advantages[step] = error[step] + weight[step] * following
    return advantages


class TimeDiscountBuffer(RolloutBuffer):
    """Rollouts of ``PlacementVecEnv`` for PPO and A2C with a ``PairPolicy``.

    Of the observations it keeps their ``Inputs``, a tenth of their size, and hands these out instead. ``watch`` comes
    before the first step; ``gamma`` has no effect.

    Args:
        horizon_s: see ``discounted_advantages``; lambda is ``gae_lambda``.
        group_size: environments that replay the same arrivals; see ``agents.groups``.
    """

    def __init__(self, *args: Any, horizon_s: float, group_size: int = 1, **kwargs: Any) -> None:
        self.horizon_s, self.group_size = horizon_s, group_size
        self._n_begun = 0  # episodes, by environment
        super().__init__(*args, **kwargs)

    def watch(self, clock: Clock) -> None:
        """Take from ``clock`` the time of each step that is added."""
        self._clock = clock

    def reset(self) -> None:
        shape = self.buffer_size, self.n_envs
        self.actions = np.zeros((*shape, self.action_dim), self.action_space.dtype)
        self.rewards, self.values, self.log_probs, self.returns, self.advantages, self.episode_starts = np.zeros(
            (6, *shape), np.float32
        )
        self.time_s, self.elapsed_s, self._episode = np.zeros((3, *shape))
        self._inputs: list[Inputs] = []
        self.generator_ready, self.full, self.pos = False, False, 0

    def add(
        self, obs: Any, action: np.ndarray, reward: Any, episode_start: Any, value: torch.Tensor, log_prob: torch.Tensor
    ) -> None:
        """One step of all environments; see ``RolloutBuffer``."""
        self._inputs.append(Inputs.of(obs))
        self.elapsed_s[self.pos] = self._clock.elapsed_s
        self.time_s[self.pos] = self._clock.time_s - self._clock.elapsed_s
        self._n_begun = self._episode[self.pos] = self._n_begun + episode_start
        self.actions[self.pos] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[self.pos], self.episode_starts[self.pos] = reward, episode_start
        self.values[self.pos], self.log_probs[self.pos] = value.numpy(force=True)[:, 0], log_prob.numpy(force=True)
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: np.ndarray) -> None:
        values = np.concatenate([self.values, last_values.numpy(force=True).reshape(1, -1)])
        goes_on = 1.0 - np.concatenate([self.episode_starts[1:], dones[None]])
        self.advantages[:] = discounted_advantages(
            self.rewards, values, goes_on, self.elapsed_s, self.horizon_s, self.gae_lambda
        )
        self.returns[:] = self.advantages + self.values
        if self.group_size > 1:
            self.advantages[:] = less_group_mean(self.advantages, self.time_s, self._episode, self.group_size)

    def get(self, batch_size: int | None = None) -> Iterator[RolloutBufferSamples]:  # type: ignore[override]
        """Minibatches in random order, with ``Inputs`` for observations."""
        assert self.full
        inputs = Inputs.concatenate(self._inputs)
        arrays = [self.actions, self.values, self.log_probs, self.advantages, self.returns]
        flat = [torch.from_numpy(array.reshape(-1)) for array in arrays]
        order = np.random.permutation(self.buffer_size * self.n_envs)  # noqa: NPY002  # SB3 seeds this generator
        for first in range(0, len(order), batch_size or len(order)):
            chosen = order[first : first + (batch_size or len(order))]
            yield RolloutBufferSamples(inputs.take(chosen), *(tensor[chosen] for tensor in flat))  # type: ignore[arg-type]

"""Which episodes are trained on and which are held out.

Held-out episodes have plain integer seeds, the same as ``hetenv.evaluation`` plays. Training episodes come
from ``SeedSequence(seed, spawn_key=(TRAINING_SPAWN_KEY,))``, a stream that no plain integer seed gives: the two
never meet, whatever seeds are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from agents.figures import Figures
from agents.saving import GreedyPolicy
from hetenv.config import Scenario
from hetenv.envs.batch import PlacementBatch
from hetenv.workload import Workload

TRAINING_SPAWN_KEY = 1


class TrainingEpisodes(gym.Wrapper[dict[str, np.ndarray], np.int64, dict[str, np.ndarray], np.int64]):
    """An environment whose seeds start random streams of their own, apart from all held-out ones."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        if seed is not None:
            stream = np.random.SeedSequence(seed, spawn_key=(TRAINING_SPAWN_KEY,))
            self.unwrapped.np_random = np.random.default_rng(stream)
        return self.env.reset(options=options)


class HeldOutEpisodes:
    """Episodes that a policy plays greedily, all side by side, one call of it a step.

    Args:
        seeds: one an episode; each draws the jobs, and anew the candidates, as ``PolicyScheduler`` does.
    """

    def __init__(self, scenario: Scenario, seeds: Sequence[int]) -> None:
        self.seeds = seeds
        self._workloads = [scenario.draw_workload(np.random.default_rng(seed)) for seed in seeds]
        self._batch = PlacementBatch(scenario, len(seeds), self)

    def draw(self, env: int) -> tuple[Workload, np.random.Generator]:
        return self._workloads[env], np.random.default_rng(self.seeds[env])

    def get_state(self) -> None:
        """There is none: each environment plays its one episode again and again."""

    def set_state(self, state: None) -> None: ...

    def play(self, policy: GreedyPolicy) -> Figures:
        """The figures of the likeliest actions of ``policy``."""
        batch = self._batch
        batch.begin(np.arange(len(self.seeds)))
        actions = np.empty(len(self.seeds), np.int64)
        while len(running := np.flatnonzero(~batch.done)):
            actions[:] = -1  # does nothing
            actions[running] = policy.greedy_actions({name: own[running] for name, own in batch.observation.items()})
            batch.step(actions)
        queued_s = [
            float((own_s[: len(workload)] - workload.arrival_s).sum())
            for own_s, workload in zip(batch.start_s, self._workloads, strict=True)
        ]
        return Figures.mean([Figures.of_episode(batch.figures(env), own_s) for env, own_s in enumerate(queued_s)])

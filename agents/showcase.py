"""One held-out episode, played for its pictures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agents.saving import GreedyPolicy
from hetenv.config import Scenario
from hetenv.envs.market import MarketEnv
from hetenv.envs.placement import PlacementEnv


class Pictures(NamedTuple):
    """What came of an episode."""

    gantt: np.ndarray  # (H, W, 3) uint8; see hetenv.envs.rendering.gantt
    jct_s: np.ndarray  # (J,)


class Showcase:
    """Plays the same episode under one policy after the other.

    Args:
        env: what the policies act in.
        seed: of the episode, as ``scripts/evaluate.py`` plays it.
    """

    def __init__(self, env: type[PlacementEnv] | type[MarketEnv], scenario: Scenario, seed: int) -> None:
        self.seed = seed
        self._workload = scenario.draw_workload(np.random.default_rng(seed))
        self._env = env(scenario, render_mode="rgb_array")

    def play(self, policy: GreedyPolicy) -> Pictures:
        env = self._env
        observation, _ = env.reset(seed=self.seed, options={"workload": self._workload})
        while not env.simulator.done:
            action = policy.greedy_actions({name: array[None] for name, array in observation.items()})[0]
            observation = env.step(action)[0]
        return Pictures(env.render(), env.simulator.state.jobs["finish_s"] - self._workload.arrival_s)

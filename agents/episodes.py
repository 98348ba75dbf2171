"""Which episodes are trained on and which are held out.

Held-out episodes have plain integer seeds, the same as ``hetenv.evaluation`` plays. Training episodes come
from ``SeedSequence(seed, spawn_key=(TRAINING_SPAWN_KEY,))``, a stream that no plain integer seed gives: the two
never meet, whatever seeds are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from agents import heuristic
from agents.network import PairNetwork
from hetenv.config import Scenario
from hetenv.envs.placement import PlacementEnv
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


class AgainstHeuristic(gym.Wrapper[dict[str, np.ndarray], np.int64, dict[str, np.ndarray], np.int64]):
    """Adds to each reward what the heuristic would have lost in the same span of time on the same jobs.

    The return becomes the sum of the heuristic's JCTs less that of the agent's, over the time scale: the best policy
    stays the same, but the luck of the arrivals cancels, which is most of the noise in the return (an
    input-dependent baseline, Mao et al., ICLR 2019). The heuristic works through each episode when it is drawn.
    """

    def __init__(self, env: gym.Env[dict[str, np.ndarray], np.int64]) -> None:
        super().__init__(env)
        self.scenario = env.get_wrapper_attr("scenario")
        self._heuristic = PlacementEnv(self.scenario)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        workload = self.env.get_wrapper_attr("simulator").workload
        self._arrival_s, self._time_s = workload.arrival_s, info["time_s"]
        self._finish_s = self._play(workload)
        return observation, info

    def step(self, action: np.int64) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        end_s = np.inf if terminated else info["time_s"]
        in_system_s = np.minimum(self._finish_s, end_s) - np.maximum(self._arrival_s, self._time_s)  # (J,)
        self._time_s = end_s
        return (
            observation,
            float(reward) + float(in_system_s.clip(min=0.0).sum()) / self.scenario.time_scale_s,
            terminated,
            truncated,
            info,
        )

    def _play(self, workload: Workload) -> np.ndarray:
        """(J,) finish times under the heuristic."""
        env = self._heuristic
        observation, _ = env.reset(seed=0, options={"workload": workload})
        while not env.simulator.done:
            observation = env.step(np.int64(heuristic.greedy_action(observation)))[0]
        return env.simulator.state.jobs["finish_s"].copy()


class Figures(NamedTuple):
    """Means over held-out episodes."""

    mean_jct_s: float
    p95_jct_s: float
    utilization: float


class HeldOutEpisodes:
    """Episodes that a policy plays greedily, all side by side, one network call a step.

    Args:
        seeds: one an episode; each draws the jobs, and anew the candidates, as ``PolicyScheduler`` does.
    """

    def __init__(self, scenario: Scenario, seeds: Sequence[int]) -> None:
        self.seeds = seeds
        self._workloads = [scenario.draw_workload(np.random.default_rng(seed)) for seed in seeds]
        self._envs = [PlacementEnv(scenario) for _ in seeds]

    def play(self, network: PairNetwork) -> Figures:
        """The figures of ``network``'s likeliest actions."""
        finished: list[Figures] = []
        running = []
        for env, seed, workload in zip(self._envs, self.seeds, self._workloads, strict=True):
            observation, _ = env.reset(seed=seed, options={"workload": workload})
            running.append((env, observation))
        while running:
            batch = {key: np.stack([observation[key] for _, observation in running]) for key in running[0][1]}
            still = []
            for (env, _), action in zip(running, network.greedy_actions(batch), strict=True):
                observation, _, done, _, info = env.step(action)
                if done:
                    finished.append(Figures(info["mean_jct_s"], info["p95_jct_s"], info["utilization"]))
                else:
                    still.append((env, observation))
            running = still
        return Figures(*np.mean(finished, axis=0).tolist())

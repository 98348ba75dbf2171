"""``PlacementVecEnv``: the batch core of ``hetenv/Placement-v0`` as a Stable-Baselines3 ``VecEnv``."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from agents.episodes import TRAINING_SPAWN_KEY
from agents.reference import HeuristicReference
from hetenv.config import Scenario
from hetenv.envs.batch import PlacementBatch
from hetenv.envs.placement import placement_spaces
from hetenv.errors import InputError
from hetenv.workload import Workload


class GroupedEpisodes:
    """Training episodes, the same for all environments of a group: the k-th of each has the same jobs and candidates.

    Each group has a training stream (see ``agents.episodes``) of its own, that of the seed of its first environment:
    without groups environment i of seed s plays what ``TrainingEpisodes`` plays after ``reset(seed=s + i)``.

    Args:
        seed: of environment 0; the others count up from it.
        group_size: environments a group.
        reference: told of every episode that begins.
    """

    def __init__(
        self,
        scenario: Scenario,
        num_envs: int,
        group_size: int,
        seed: int | None,
        reference: HeuristicReference | None = None,
    ) -> None:
        if group_size < 1 or num_envs % group_size:
            raise InputError("group_size", group_size, f"give a divisor of the {num_envs} environments")
        self.scenario, self.group_size, self.reference = scenario, group_size, reference
        first = int(np.random.default_rng().integers(2**63)) if seed is None else seed
        self.generators = [
            np.random.default_rng(np.random.SeedSequence(first + env, spawn_key=(TRAINING_SPAWN_KEY,)))
            for env in range(0, num_envs, group_size)
        ]
        self._played = [0] * num_envs
        # Of each group: the episodes that some of it have still to play, with the generator after the jobs.
        self._drawn: list[dict[int, tuple[Workload, Any]]] = [{} for _ in self.generators]

    def draw(self, env: int) -> tuple[Workload, np.random.Generator]:
        workload, rng = self._draw(env)
        if self.reference is not None:
            self.reference.begin(env, workload, rng)
        return workload, rng

    def _draw(self, env: int) -> tuple[Workload, np.random.Generator]:
        group, episode = env // self.group_size, self._played[env]
        self._played[env] += 1
        rng, drawn = self.generators[group], self._drawn[group]
        if episode not in drawn:
            workload = self.scenario.draw_workload(rng)
            if self.group_size > 1:
                drawn[episode] = workload, rng.bit_generator.state
            return workload, rng
        workload, state = drawn[episode]
        if episode < min(self._played[group * self.group_size : (group + 1) * self.group_size]):
            del drawn[episode]
        twin = copy.deepcopy(rng)
        twin.bit_generator.state = state
        return workload, twin

    def get_state(self) -> Any:
        drawn = [dict(episodes) for episodes in self._drawn]
        reference = None if self.reference is None else self.reference.get_state()
        return [rng.bit_generator.state for rng in self.generators], self._played.copy(), drawn, reference

    def set_state(self, state: Any) -> None:
        streams, played, drawn, reference = state
        for rng, own in zip(self.generators, streams, strict=True):
            rng.bit_generator.state = own
        self._played, self._drawn = played.copy(), [dict(episodes) for episodes in drawn]
        if self.reference is not None:
            self.reference.set_state(reference)


class PlacementVecEnv(VecEnv):
    """N environments, each beginning its next episode in the step that ended the last.

    The info of an environment is empty between the ends of its episodes but for ``TimeLimit.truncated``, always
    False. At an end it holds ``terminal_observation``, the figures of ``PlacementEnv`` and ``episode`` as SB3's
    ``Monitor`` writes it.

    Args:
        group_size: environments that replay the same arrivals; see ``GroupedEpisodes``.
        against_heuristic: add to each reward what the heuristic would have lost; see ``agents.reference``. Monitored
            returns stay those of the environment.
        seed: until ``seed`` is called.

    Attributes:
        time_s: (N,) simulated time after the last step, before a new episode began.
        elapsed_s: (N,) simulated time that the last step took, for discounts over time.
        reference: the heuristic's way through the same episodes, with ``against_heuristic``.
    """

    def __init__(
        self,
        scenario: Scenario,
        num_envs: int,
        *,
        group_size: int = 1,
        against_heuristic: bool = False,
        num_threads: int = 1,
        seed: int | None = None,
    ) -> None:
        self.scenario, self.group_size, self.render_mode = scenario, group_size, None
        self.reference = HeuristicReference(scenario, num_envs) if against_heuristic else None
        episodes = GroupedEpisodes(scenario, num_envs, group_size, seed, self.reference)
        self.batch = PlacementBatch(scenario, num_envs, episodes, num_threads)
        super().__init__(num_envs, *placement_spaces(scenario))
        self._begin_s = time.time()
        self._actions = np.zeros(num_envs, np.int64)
        self.time_s, self.elapsed_s, self._before_s = np.zeros((3, num_envs))
        self._return, self._length = np.zeros(num_envs), np.zeros(num_envs, np.int64)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Environment i plays the training stream of ``seed + i`` (of its group's first) from the next reset on."""
        self.batch.episodes = GroupedEpisodes(self.scenario, self.num_envs, self.group_size, seed, self.reference)
        return [None if seed is None else seed + env for env in range(self.num_envs)]

    def reset(self) -> VecEnvObs:
        copies = self.batch.room()
        self.batch.begin(np.arange(self.num_envs), copies=copies)
        self.time_s[:] = self._before_s[:] = self.batch.time_s
        self.elapsed_s[:] = self._return[:] = self._length[:] = 0
        return copies.arrays

    def step_async(self, actions: np.ndarray) -> None:
        self._actions[:] = actions

    def step_wait(self) -> VecEnvStepReturn:
        batch, copies = self.batch, self.batch.room()
        batch.step(self._actions, copies)
        reward, done, time_s = batch.reward, batch.done, batch.time_s
        self.time_s, self.elapsed_s = time_s, time_s - self._before_s
        self._return += reward
        self._length += 1
        if self.reference is not None:
            reward += self._lost_by_heuristic(self._before_s, np.where(done, np.inf, time_s))
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        ended = np.flatnonzero(done)
        for env in ended.tolist():
            infos[env] |= self._last_info(env)
        if len(ended):
            batch.begin(ended, copies=copies)
            self._return[ended] = self._length[ended] = 0
        self._before_s = batch.time_s
        return copies.arrays, reward.astype(np.float32), done, infos

    def close(self) -> None:
        self.batch.close()

    def action_masks(self) -> np.ndarray:
        """(N, W * S + 1) bool, what can be done now."""
        return self.batch.mask.copy()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """``scenario`` and ``render_mode``, the same for all, ``time_s`` and ``action_masks``, which is called."""
        chosen = list(self._get_indices(indices))
        if attr_name in ("scenario", "render_mode"):
            return [getattr(self, attr_name)] * len(chosen)
        if attr_name == "time_s":
            return [float(self.time_s[env]) for env in chosen]
        if attr_name == "action_masks":
            return [partial(self._action_mask, env) for env in chosen]
        raise AttributeError(f"the environments of a batch have no attribute {attr_name!r}")

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise AttributeError(f"the environments of a batch are all alike: {attr_name!r} cannot be set")

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        return [method(*method_args, **method_kwargs) for method in self.get_attr(method_name, indices)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """The ends of episodes are told as by ``Monitor``; there are no other wrappers."""
        return [issubclass(wrapper_class, Monitor)] * len(list(self._get_indices(indices)))

    def _lost_by_heuristic(self, begin_s: np.ndarray, end_s: np.ndarray) -> np.ndarray:
        assert self.reference is not None
        lost_s = self.reference.job_seconds(end_s) - self.reference.job_seconds(begin_s)
        return lost_s / self.scenario.time_scale_s

    def _action_mask(self, env: int) -> np.ndarray:
        return self.batch.mask[env].copy()

    def _last_info(self, env: int) -> dict[str, Any]:
        episode = {
            "r": round(float(self._return[env]), 6),
            "l": int(self._length[env]),
            "t": round(time.time() - self._begin_s, 6),
        }
        observation = {name: buffer[env].copy() for name, buffer in self.batch.observation.items()}
        figures = {"time_s": float(self.time_s[env])} | self.batch.figures(env)
        return {"terminal_observation": observation, "episode": episode} | figures

"""``gym.make_vec("hetenv/Placement-v0", num_envs=N)``: the batch core as a ``gymnasium.vector.VectorEnv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from hetenv.config import Scenario, load_scenario
from hetenv.envs.batch import NOWHERE, OwnEpisodes, PlacementBatch
from hetenv.envs.episode import workload_option
from hetenv.envs.placement import placement_spaces
from hetenv.errors import InputError

_Observations = dict[str, np.ndarray]


class PlacementVectorEnv(VectorEnv[_Observations, np.ndarray, np.ndarray]):
    """N environments of ``hetenv/Placement-v0``, one compiled call a step; each does what ``PlacementEnv`` would do.

    Args:
        num_envs: N.
        scenario, overrides: see ``PlacementEnv``.
        strict: raise on actions outside the mask.
        num_threads: threads that share the environments out among them.
        autoreset_mode: ``NEXT_STEP`` or ``SAME_STEP`` of ``gymnasium.vector.AutoresetMode``, or its value.
        copy: hand out copies; without it observations and masks are buffers that the next step overwrites.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | Path | Scenario = "online",
        overrides: Mapping[str, Any] | None = None,
        strict: bool = False,
        num_threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
    ) -> None:
        mode = AutoresetMode(autoreset_mode)
        if mode == AutoresetMode.DISABLED:
            raise InputError("autoreset_mode", mode.value, "use NextStep or SameStep")
        self.metadata = {"autoreset_mode": mode}
        self.num_envs, self.strict, self.copy = num_envs, strict, copy
        self.scenario = load_scenario(scenario, overrides)
        self.single_observation_space, self.single_action_space = placement_spaces(self.scenario)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators = [np_random(None)[0] for _ in range(num_envs)]
        self.batch = PlacementBatch(self.scenario, num_envs, OwnEpisodes(self.scenario, self._generators), num_threads)
        self._same_step = mode == AutoresetMode.SAME_STEP
        self._everyone = np.ones(num_envs, np.bool_)
        self._done = ~self._everyone  # ended in the last step and not begun anew

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Observations, dict[str, Any]]:
        """New episodes everywhere, or where the mask ``options["reset_mask"]`` (N,) says.

        Args:
            seed: of environment 0, counting up from there, or one an environment.
            options: ``workload`` as for ``PlacementEnv``, for all environments.
        """
        options = dict(options or {})
        chosen = np.flatnonzero(options.pop("reset_mask", self._everyone))
        seeds = [seed + env for env in range(self.num_envs)] if isinstance(seed, (int, np.integer)) else seed
        if seeds is not None and len(seeds) != self.num_envs:
            raise InputError("seed", f"{len(seeds)} values", f"give one number, or {self.num_envs}")
        for env in chosen.tolist():
            if seeds is not None and seeds[env] is not None:
                self._generators[env] = np_random(seeds[env])[0]
        self.batch.episodes = OwnEpisodes(self.scenario, self._generators)
        workload = workload_option(options)
        self.batch.begin(chosen, OwnEpisodes(self.scenario, self._generators, workload) if workload else None)
        self._done[chosen] = False
        who = np.zeros(self.num_envs, np.bool_)
        who[chosen] = True
        buffers = self.batch.observation
        observations = {name: buffer.copy() for name, buffer in buffers.items()} if self.copy else buffers
        return observations, self._infos(who)

    def step(self, actions: np.ndarray) -> tuple[_Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        actions = np.array(actions, np.int64)
        over = np.flatnonzero(self._done)  # only with NEXT_STEP
        actions[over] = -1
        if self.strict:
            self._refuse_invalid(actions, ~self._done)
        copies = self.batch.room() if self.copy else NOWHERE
        self.batch.step(actions, copies)
        reward, invalid, done = self.batch.reward, self.batch.invalid, self.batch.done
        if len(over):
            self.batch.begin(over, copies=copies)
            done[over] = invalid[over] = False
        ended = np.flatnonzero(done)
        infos: dict[str, Any] = {}
        if len(ended) and self._same_step:
            infos = self._final_infos(ended, invalid)
            self.batch.begin(ended, copies=copies)
            invalid[ended] = False
        else:
            self._done = done
            if len(ended):
                infos = self._final_figures(ended)
        if invalid.any():
            infos |= {"invalid_action": invalid, "_invalid_action": invalid.copy()}
        return (
            copies.arrays or self.batch.observation,
            reward,
            done,
            np.zeros(self.num_envs, np.bool_),
            self._infos(self._everyone) | infos,
        )

    def _infos(self, who: np.ndarray) -> dict[str, Any]:
        """What every step tells of the environments ``who`` (N,) bool."""
        mask = self.batch.mask.view(np.int8)
        time_s = self.batch.time_s
        if not who.all():
            mask, time_s = mask * who[:, None], time_s * who
        elif self.copy:
            mask = mask.copy()
        return {"action_mask": mask, "_action_mask": who.copy(), "time_s": time_s, "_time_s": who.copy()}

    def _final_infos(self, ended: np.ndarray, invalid: np.ndarray) -> dict[str, Any]:
        """``final_obs`` and ``final_info`` of the environments ``ended`` (n,), which are about to begin anew."""
        final_info = self._final_figures(ended)
        who = final_info["_mean_jct_s"]
        for name, values in (("action_mask", self.batch.mask.view(np.int8)), ("time_s", self.batch.time_s)):
            final_info[name], final_info["_" + name] = np.zeros(values.shape, values.dtype), who.copy()
            final_info[name][ended] = values.take(ended, axis=0)
        if (invalid := invalid & who).any():
            final_info |= {"invalid_action": invalid, "_invalid_action": invalid.copy()}
        rows = {name: buffer.take(ended, axis=0) for name, buffer in self.batch.observation.items()}
        final_obs = np.full(self.num_envs, None)
        for at, env in enumerate(ended.tolist()):
            final_obs[env] = {name: row[at] for name, row in rows.items()}
        return {"final_obs": final_obs, "_final_obs": who.copy(), "final_info": final_info, "_final_info": who.copy()}

    def _final_figures(self, ended: np.ndarray) -> dict[str, Any]:
        """What came of the episodes that the environments ``ended`` (n,) have finished."""
        figures = [self.batch.figures(env) for env in ended.tolist()]
        values = np.zeros((len(figures[0]), self.num_envs))
        values[:, ended] = np.array([list(own.values()) for own in figures]).T
        who = np.zeros(self.num_envs, np.bool_)
        who[ended] = True
        return dict(zip(figures[0], values, strict=True)) | {"_" + name: who.copy() for name in figures[0]}

    def _refuse_invalid(self, actions: np.ndarray, who: np.ndarray) -> None:
        mask = self.batch.mask
        inside = (actions >= 0) & (actions < mask.shape[1])
        inside[inside] = mask[np.flatnonzero(inside), actions[inside]]
        if (who & ~inside).any():
            env = int(np.argmax(who & ~inside))
            choices = np.flatnonzero(mask[env]).tolist()
            raise ValueError(f"environment {env}: action {actions[env]} is outside the mask; choose one of {choices}")

    def action_masks(self) -> np.ndarray:
        """(N, W * S + 1) bool, what can be done now."""
        return self.batch.mask.copy()

    def close_extras(self, **kwargs: Any) -> None:
        self.batch.close()

"""``gym.make_vec("hetenv/...", num_envs=N)``: batches as a ``gymnasium.vector.VectorEnv``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from hetenv.config import Scenario, load_scenario
from hetenv.envs.batch import NOWHERE, Copies, EpisodeSource, OwnEpisodes, PlacementBatch
from hetenv.envs.episode import workload_option
from hetenv.envs.market import market_spaces
from hetenv.envs.market_batch import MarketBatch
from hetenv.envs.placement import placement_spaces
from hetenv.errors import InputError

_Observations = dict[str, np.ndarray]


class Batch(Protocol):
    """N environments in one state, without a policy of when to begin the next episode; see ``PlacementBatch``."""

    episodes: EpisodeSource

    @property
    def observation(self) -> dict[str, np.ndarray]: ...
    @property
    def reward(self) -> np.ndarray: ...
    @property
    def done(self) -> np.ndarray: ...
    @property
    def time_s(self) -> np.ndarray: ...
    def figures(self, env: int) -> dict[str, float]: ...
    def room(self) -> Copies: ...
    def begin(self, chosen: np.ndarray, episodes: EpisodeSource | None = None, copies: Copies = NOWHERE) -> None: ...
    def step(self, actions: np.ndarray, copies: Copies = NOWHERE) -> None: ...
    def close(self) -> None: ...


BatchT = TypeVar("BatchT", bound=Batch)


class BatchVectorEnv(VectorEnv[_Observations, np.ndarray, np.ndarray], Generic[BatchT]):
    """What the vector environments share: seeds, when episodes begin anew, what ``infos`` tell.

    Args:
        batch: makes the batch of a number of environments, of their episodes.
        single_spaces: observation and action space of one environment.
    """

    def __init__(
        self,
        num_envs: int,
        scenario: Scenario,
        single_spaces: tuple[spaces.Dict, spaces.Space[Any]],
        autoreset_mode: AutoresetMode | str,
        copy: bool,
        make_batch: Callable[[EpisodeSource], BatchT],
    ) -> None:
        mode = AutoresetMode(autoreset_mode)
        if mode == AutoresetMode.DISABLED:
            raise InputError("autoreset_mode", mode.value, "use NextStep or SameStep")
        self.metadata = {"autoreset_mode": mode}
        self.num_envs, self.scenario, self.copy = num_envs, scenario, copy
        self.single_observation_space, self.single_action_space = single_spaces
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators = [np_random(None)[0] for _ in range(num_envs)]
        self.batch = make_batch(OwnEpisodes(scenario, self._generators))
        self._same_step = mode == AutoresetMode.SAME_STEP
        self._everyone = np.ones(num_envs, np.bool_)
        self._done = ~self._everyone  # ended in the last step and not begun anew

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Observations, dict[str, Any]]:
        """New episodes everywhere, or where the mask ``options["reset_mask"]`` (N,) says.

        Args:
            seed: of environment 0, counting up from there, or one an environment.
            options: ``workload`` as for the single environment, for all environments.
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
        over = np.flatnonzero(self._done)  # only with NEXT_STEP
        copies = self.batch.room() if self.copy else NOWHERE
        self.batch.step(self._effective(actions, over), copies)
        reward, done = self.batch.reward, self.batch.done
        if len(over):
            self.batch.begin(over, copies=copies)
            done[over] = False
        ended = np.flatnonzero(done)
        infos = self._step_infos(over, ended)
        if len(ended) and self._same_step:
            infos |= self._final_infos(ended)
            self.batch.begin(ended, copies=copies)
        else:
            self._done = done
            if len(ended):
                infos |= self._final_figures(ended)
        observation, truncated = copies.arrays or self.batch.observation, np.zeros(self.num_envs, np.bool_)
        return observation, reward, done, truncated, self._infos(self._everyone) | infos

    def _effective(self, actions: np.ndarray, over: np.ndarray) -> np.ndarray:
        """The actions (N, ...) for the batch; those of the environments ``over`` (n,) do nothing."""
        raise NotImplementedError

    def _step_infos(self, over: np.ndarray, ended: np.ndarray) -> dict[str, Any]:
        """What a step tells beside ``_infos``: ``over`` (n,) have begun anew, ``ended`` (n,) are about to."""
        return {}

    def _final_infos(self, ended: np.ndarray) -> dict[str, Any]:
        """``final_obs`` and ``final_info`` of the environments ``ended`` (n,), which are about to begin anew."""
        final_info = self._final_figures(ended)
        who = final_info["_mean_jct_s"]
        for name, values in self._told().items():
            final_info[name], final_info["_" + name] = np.zeros_like(values), who.copy()
            final_info[name][ended] = values.take(ended, axis=0)
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

    def _infos(self, who: np.ndarray) -> dict[str, Any]:
        """What every step tells of the environments ``who`` (N,) bool."""
        infos = {}
        for name, values in self._told().items():
            shape = (-1,) + (1,) * (values.ndim - 1)
            infos[name], infos["_" + name] = values if who.all() else values * who.reshape(shape), who.copy()
        return infos

    def _told(self) -> dict[str, np.ndarray]:
        """What every step tells of each environment, (N, ...) by name."""
        return {"time_s": self.batch.time_s}

    def close_extras(self, **kwargs: Any) -> None:
        self.batch.close()


class PlacementVectorEnv(BatchVectorEnv[PlacementBatch]):
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
        loaded = load_scenario(scenario, overrides)
        self.strict = strict
        super().__init__(
            num_envs, loaded, placement_spaces(loaded), autoreset_mode, copy,
            lambda episodes: PlacementBatch(loaded, num_envs, episodes, num_threads),
        )  # fmt: skip

    def _effective(self, actions: np.ndarray, over: np.ndarray) -> np.ndarray:
        actions = np.array(actions, np.int64)
        actions[over] = -1
        if self.strict:
            self._refuse_invalid(actions, ~self._done)
        return actions

    def _step_infos(self, over: np.ndarray, ended: np.ndarray) -> dict[str, Any]:
        invalid = self.batch.invalid
        invalid[over] = False
        if self._same_step:
            invalid[ended] = False  # it is in their final_info
        return {"invalid_action": invalid, "_invalid_action": invalid.copy()} if invalid.any() else {}

    def _final_infos(self, ended: np.ndarray) -> dict[str, Any]:
        infos = super()._final_infos(ended)
        invalid = np.zeros(self.num_envs, np.bool_)
        invalid[ended] = self.batch.invalid[ended]
        if invalid.any():
            infos["final_info"] |= {"invalid_action": invalid, "_invalid_action": invalid.copy()}
        return infos

    def _told(self) -> dict[str, np.ndarray]:
        mask = self.batch.mask.view(np.int8)
        return {"action_mask": mask.copy() if self.copy else mask} | super()._told()

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


class MarketVectorEnv(BatchVectorEnv[MarketBatch]):
    """N environments of ``hetenv/Market-v0``; each does what ``MarketEnv`` would do.

    Args:
        num_envs: N.
        scenario, overrides: see ``MarketEnv``.
        num_threads: threads that share the environments out among them.
        autoreset_mode: ``NEXT_STEP`` or ``SAME_STEP`` of ``gymnasium.vector.AutoresetMode``, or its value.
        copy: hand out copies; without it observations are buffers that the next step overwrites.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | Path | Scenario = "online",
        overrides: Mapping[str, Any] | None = None,
        num_threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
    ) -> None:
        loaded = load_scenario(scenario, overrides)
        super().__init__(
            num_envs, loaded, market_spaces(len(loaded.cluster.types)), autoreset_mode, copy,
            lambda episodes: MarketBatch(loaded, num_envs, episodes, num_threads),
        )  # fmt: skip

    def _effective(self, actions: np.ndarray, over: np.ndarray) -> np.ndarray:
        actions = np.array(actions, float)
        actions[over] = 0.0
        return actions

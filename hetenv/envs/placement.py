"""``hetenv/Placement-v0``: one step, one placement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from hetenv.config import Scenario
from hetenv.envs import rendering
from hetenv.envs.episode import ScenarioEnv, unit_box
from hetenv.envs.session import PlacementSession
from hetenv.envs.view import CANDIDATE_FEATURES, GLOBAL_FEATURES, JOB_FEATURES, TYPE_FEATURES


class PlacementEnv(ScenarioEnv[np.int64]):
    """
    ## Description

    Jobs arrive at a cluster of several GPU types and wait in a queue. The agent places them one at a time:
    each step gives one job one *category*, a number of GPUs of each type. It is the decision that the
    matching scheduler of "Sampling-Based Multi-Job Placement for Heterogeneous Deep Learning Clusters"
    takes, with that paper's sparsification of the choices. The aim is the least mean job completion time (JCT).

    Simulated time stands still while the agent places jobs. It moves to the next event, an arrival or a
    completion, when the agent waits, or by itself when nothing can be placed. All that happens between
    two moves of time is one *decision epoch*.

    ## Action Space

    `Discrete(W * S + 1)`: action `w * S + s` gives job `w` of the window its candidate `s`; the last action waits.
    The window shows W jobs: the waiting ones in order of arrival, head and tail of the queue when there
    are more, so that no job starves out of sight. In preemptive and malleable scenarios running jobs share
    the window (a quarter of it at the least, if so many run); each job changes at most once in an epoch, and
    the last candidate of a preemptive scenario gives all GPUs back.

    The S candidates of a job are made once, when it first comes into view: the fastest category of its least
    size, its least size on each type alone, the fastest category of each doubled size, each doubled size on
    each type alone, and, in the places left, mixes sampled with the environment's random generator.

    What can be done now is told in three spellings of one mask: `observation["action_mask"]` (float32),
    `info["action_mask"]` (int8, for `Discrete.sample`), and `action_masks()` (bool, for MaskablePPO). An
    action outside the mask changes nothing, earns 0 and sets `info["invalid_action"]`; with `strict=True` it
    raises `ValueError`. Waiting is invalid when no event could follow.

    ## Observation Space

    A flat `Dict` of float32 boxes. Times t enter as t / (t + time_scale_s), numbers of jobs as n / (n + W).

    - `jobs` (W, 11), `candidates` (W, S, 12), `types` (M, 4), `globals` (8,), all in [0, 1] but for the gain of a
      candidate in [-1, 1]; the features by name are `hetenv.envs.view.JOB_FEATURES`, `CANDIDATE_FEATURES`,
      `TYPE_FEATURES` and `GLOBAL_FEATURES`. Empty places are zeros.
    - `action_mask` (W * S + 1,): 1 for what can be done now.

    ## Rewards

    `-(job-seconds spent in the system since the last step) / time_scale_s`. By Little's law the return of an
    episode is exactly `-sum(JCT) / time_scale_s`.

    ## Starting State

    The scenario draws its jobs from the environment's random generator; the first observation is at the first
    arrival. `reset(options={"workload": workload})` replays a given `hetenv.Workload` instead.

    ## Episode End

    Terminated when every job has finished; never truncated by itself. The last `info` then holds
    `mean_jct_s`, `p95_jct_s`, `makespan_s` and `utilization`.

    ## Arguments

    - `scenario`: name of a shipped scenario, path of a YAML file, or a `hetenv.config.Scenario`.
    - `overrides`: nested mapping merged over the scenario, such as `{"workload": {"load": 0.5}}`.
    - `strict`: raise on actions outside the mask.
    - `render_mode`: `"ansi"` (text) or `"rgb_array"` (a Gantt chart, GPUs by node over time).

    ## Version History

    - v0: first version.
    """

    def __init__(
        self,
        scenario: str | Path | Scenario = "online",
        overrides: Mapping[str, Any] | None = None,
        strict: bool = False,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(scenario, overrides, render_mode)
        self.strict = strict
        self.observation_space, self.action_space = placement_spaces(self.scenario)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        super().reset(seed=seed)
        self.begin_episode(options)
        self._session = PlacementSession(self.simulator, self.scenario, self.np_random)
        self._session.begin()
        return self._session.settled_observation(), self._info()

    def step(self, action: np.int64) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        session = self._session
        mask = session.mask
        if self.strict and not (0 <= action < len(mask) and mask[action]):
            raise ValueError(f"action {action} is outside the mask; choose one of {np.flatnonzero(mask).tolist()}")
        session.step(int(action))
        agent = session.view.agent
        info = self._info()
        if agent["invalid"][0]:
            info["invalid_action"] = True
        return session.settled_observation(), float(agent["reward"][0]), self.simulator.done, False, info

    def action_masks(self) -> np.ndarray:
        """(W * S + 1,) bool, what can be done now; the name that sb3-contrib looks for."""
        return self._session.mask.copy()

    def render(self) -> Any:
        if self.render_mode == "ansi":
            return rendering.text(self.simulator, self._session.view)
        if self.render_mode == "rgb_array":
            return rendering.gantt(self.simulator)
        return None

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._session.mask.astype(np.int8)} | self.figures()


def placement_spaces(scenario: Scenario) -> tuple[spaces.Dict, spaces.Discrete]:
    """Observation and action space of one environment."""
    n_jobs, n_candidates = scenario.window.jobs, scenario.window.candidates
    least_gain = np.zeros((n_jobs, n_candidates, len(CANDIDATE_FEATURES)), np.float32)
    least_gain[..., [name.startswith("gain") for name in CANDIDATE_FEATURES]] = -1.0
    observation_space = spaces.Dict(
        {
            "jobs": unit_box(n_jobs, len(JOB_FEATURES)),
            "candidates": spaces.Box(least_gain, np.ones_like(least_gain)),
            "types": unit_box(len(scenario.cluster.types), len(TYPE_FEATURES)),
            "globals": unit_box(len(GLOBAL_FEATURES)),
            "action_mask": unit_box(n_jobs * n_candidates + 1),
        }
    )
    return observation_space, spaces.Discrete(n_jobs * n_candidates + 1)

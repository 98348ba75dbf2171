"""What the environments share: a scenario, its episodes, their rewards and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.core import ActType

from hetenv.cluster import Cluster
from hetenv.config import Scenario, load_scenario
from hetenv.errors import InputError
from hetenv.simulator import Simulator
from hetenv.workload import Workload


class ScenarioEnv(gym.Env[dict[str, Any], ActType]):
    """One simulator, moved by an agent from the first arrival to the last finish."""

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self, scenario: str | Path | Scenario, overrides: Mapping[str, Any] | None, render_mode: str | None
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InputError("render_mode", repr(render_mode), "use 'ansi', 'rgb_array' or None")
        self.scenario = load_scenario(scenario, overrides)
        self.render_mode = render_mode
        self.simulator = self.scenario.make_simulator()

    def begin_episode(self, options: Mapping[str, Any] | None) -> None:
        """Reset the simulator to the jobs of ``options["workload"]``, or to jobs drawn from ``np_random``."""
        self.simulator.reset(self.np_random, workload_option(options))

    def figures(self) -> dict[str, Any]:
        """The time, and in the end what came of the episode: entries of ``info``."""
        simulator = self.simulator
        info: dict[str, Any] = {"time_s": simulator.time_s}
        return info | finished_figures(simulator) if simulator.done else info


def workload_option(options: Mapping[str, Any] | None) -> Workload | None:
    """What ``reset(options={"workload": workload})`` asks to replay; raises InputError for any other option."""
    workload = (options or {}).get("workload")
    if unknown := set(options or {}) - {"workload"}:
        raise InputError("reset options", sorted(unknown)[0], "use workload")
    if workload is not None and not isinstance(workload, Workload):
        raise InputError("reset options, workload", type(workload).__name__, "give a hetenv.Workload")
    return workload


def finished_figures(simulator: Simulator) -> dict[str, float]:
    """What came of the finished episode of ``simulator``."""
    state = simulator.state
    return episode_figures(
        simulator.cluster,
        simulator.workload.arrival_s,
        state.jobs["finish_s"],
        simulator.time_s,
        state.uses["busy_gpu_s"],
    )


def episode_figures(
    cluster: Cluster, arrival_s: np.ndarray, finish_s: np.ndarray, time_s: float, busy_gpu_s: np.ndarray
) -> dict[str, float]:
    """What came of a finished episode.

    Args:
        arrival_s, finish_s: (J,) seconds.
        time_s: when the last job finished.
        busy_gpu_s: (M,) ``State.uses``: GPU-seconds held, less those of the whole cluster.
    """
    jct_s = finish_s - arrival_s
    makespan_s = time_s - float(arrival_s[0])
    held_gpu_s = float(np.add.reduce(cluster.total * time_s + busy_gpu_s))
    return {
        "mean_jct_s": float(np.add.reduce(jct_s)) / len(jct_s),
        "p95_jct_s": _percentile(jct_s, 95),
        "makespan_s": makespan_s,
        "utilization": held_gpu_s / (cluster.n_gpus * makespan_s),
    }


def _percentile(values: np.ndarray, percent: float) -> float:
    """``np.percentile``, several times as fast for the few values of an episode; their order changes."""
    at = percent / 100 * (len(values) - 1)
    below, above = math.floor(at), math.ceil(at)
    values.partition((below, above))
    return float(values[below] + (at - below) * (values[above] - values[below]))


def unit_box(*shape: int) -> spaces.Box:
    """A float32 box of [0, 1]."""
    return spaces.Box(0.0, 1.0, shape, np.float32)

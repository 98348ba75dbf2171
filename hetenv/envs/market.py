"""``hetenv/Market-v0``: one step, one decision epoch of a bent market."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from hetenv.config import Scenario
from hetenv.envs import rendering
from hetenv.envs.episode import ScenarioEnv, workload_option
from hetenv.envs.market_session import MarketSession, bend_of
from hetenv.envs.market_view import make_observation, observation_space


class MarketEnv(ScenarioEnv[np.ndarray]):
    """
    ## Description

    Jobs arrive at a cluster of several GPU types and wait in a queue. At every *decision epoch*, an arrival or a
    completion, a matching market after "Sampling-Based Multi-Job Placement for Heterogeneous Deep Learning
    Clusters" places the waiting jobs and, where the scenario allows it, resizes, moves and pauses the running
    ones. The market sees one epoch at a time; the agent bends it with a few numbers towards what pays over the
    whole stream. The aim is the least mean job completion time (JCT).

    One step is one epoch. Epochs at which the market has nothing to decide, because no waiting job fits the
    free GPUs and no running job may change, pass by themselves. Whatever the action, something runs
    whenever something can. Jobs may always wait, even in scenarios that place all jobs in one shot.

    ## Action Space

    `Box(-1, 1, (M + 4,), float32)` for M GPU types. The zero action is the market with its defaults, the
    plans of `baselines.make("market")` exactly. Values outside are clipped.

    | at | bends | for a in [-1, 1] | at 0 |
    |---|---|---|---|
    | m < M | price: seconds that a GPU of type m adds to the cost of a job of median weight | 0.25 a time_scale_s | 0 |
    | M | weight exponent: a job weighs (remaining time alone on the cluster)^-exponent | a | 0 |
    | M + 1 | waiting factor of the expected wait for GPUs; more of it starts jobs sooner | 32^a | 1 |
    | M + 2 | fairness exponent: a job weighs (remaining time on an equal share of the GPUs)^-exponent | a | 0 |
    | M + 3 | restart factor of the time that a change of a running job costs; more of it changes fewer | 32^a | 1 |

    Positive exponents favour short jobs.

    ## Observation Space

    A flat `Dict` of float32 boxes, all in [0, 1]; times t enter as t / (t + time_scale_s). Quantiles are the least, the
    quartiles and the greatest; without jobs they are zeros. The features by name are
    `hetenv.envs.market_view.WAITING_FEATURES`, `RUNNING_FEATURES`, `TYPE_FEATURES` and `GLOBAL_FEATURES`.

    - `waiting` (5, 5), `running` (5, 4): quantiles, one row each, over the waiting and the running jobs.
    - `affinity` (M, 5): quantiles over the waiting jobs of speed on the type / speed on the job's fastest type.
    - `types` (M, 5), `globals` (10,). Prices are those of the last decision, in seconds of a job of median weight, 0
      before the first.

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
    - `render_mode`: `"ansi"` (text) or `"rgb_array"` (a Gantt chart, GPUs by node over time).

    ## Version History

    - v0: first version.
    """

    def __init__(
        self,
        scenario: str | Path | Scenario = "online",
        overrides: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(scenario, overrides, render_mode)
        n_types = len(self.scenario.cluster.types)
        self.observation_space, self.action_space = market_spaces(n_types)
        self._session = MarketSession(self.simulator, self.scenario.time_scale_s, make_observation(n_types))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        super().reset(seed=seed)
        self._session.begin(workload_option(options) or self.scenario.draw_workload(self.np_random))
        return self._observation(), self.figures()

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        reward = self._session.step(bend_of(action, len(self.scenario.cluster.types), self.scenario.time_scale_s))
        return self._observation(), reward, self.simulator.done, False, self.figures()

    def _observation(self) -> dict[str, np.ndarray]:
        return {name: buffer.copy() for name, buffer in self._session.observation._asdict().items()}

    def render(self) -> Any:
        if self.render_mode == "ansi":
            return self._text()
        if self.render_mode == "rgb_array":
            return rendering.gantt(self.simulator)
        return None

    def _text(self) -> str:
        """Time, jobs, and free GPUs and price of each type."""
        snapshot, names = self.simulator.snapshot(), self.simulator.cluster.type_names
        n_waiting = snapshot.n_waiting
        lines = [f"t = {snapshot.time_s:,.0f} s   {n_waiting} waiting, {snapshot.n_active - n_waiting} running"]
        for name, free, total, price_s in zip(names, snapshot.free, snapshot.total, self._session.price_s, strict=True):
            lines.append(f"  {name:{max(map(len, names))}}  {free}/{total} free, {price_s:,.0f} s a GPU")
        return "\n".join(lines)


def market_spaces(n_types: int) -> tuple[spaces.Dict, spaces.Box]:
    """Observation and action space of one environment."""
    return observation_space(n_types), spaces.Box(-1.0, 1.0, (n_types + 4,), np.float32)

"""``hetenv/Market-v0``: one step, one decision epoch of a bent market."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from hetenv.config import Scenario
from hetenv.envs import rendering
from hetenv.envs.episode import ScenarioEnv
from hetenv.envs.market_view import observation_space, observe_market
from hetenv.epoch import OnlineObjective, anyone_competes, plan_epoch
from hetenv.matching import OnlineTerms, Placement, PlacementProblem, solve_market
from hetenv.scheduler import Plan, Snapshot

PRICE_REACH = 0.25  # time scales per GPU at an action of 1
FACTOR_REACH = 32.0  # waiting and restart factor at an action of 1; its inverse at -1


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
        self.action_space = spaces.Box(-1.0, 1.0, (n_types + 4,), np.float32)
        self.observation_space = observation_space(n_types)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        super().reset(seed=seed)
        self.begin_episode(options)
        self._price_s = np.zeros(len(self.scenario.cluster.types))
        self._settle()
        return self._observation(), self.figures()

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        bend = bend_of(action, len(self._price_s), self.scenario.time_scale_s)
        before = self.simulator.job_seconds
        if not self.simulator.done:
            self._pass_epoch(bend)
            self._settle()
        return self._observation(), self.reward_since(before), self.simulator.done, False, self.figures()

    def render(self) -> Any:
        if self.render_mode == "ansi":
            return self._text()
        if self.render_mode == "rgb_array":
            return rendering.gantt(self.simulator)
        return None

    def _pass_epoch(self, bend: Bend) -> None:
        plan, price_s = plan_bent(self.simulator.snapshot(), bend)
        if price_s is not None:
            self._price_s = price_s
        self.simulator.apply(plan)
        self.simulator.advance()

    def _settle(self) -> None:
        """Let time pass until the market has something to decide or all is done."""
        unbent = Bend(np.zeros_like(self._price_s), OnlineObjective())
        while not self.simulator.done and not anyone_competes(self.simulator.snapshot()):
            self._pass_epoch(unbent)

    def _observation(self) -> dict[str, np.ndarray]:
        return observe_market(self.simulator, self._price_s, self.scenario.time_scale_s)

    def _text(self) -> str:
        """Time, jobs, and free GPUs and price of each type."""
        snapshot, names = self.simulator.snapshot(), self.simulator.cluster.type_names
        n_waiting = snapshot.n_waiting
        lines = [f"t = {snapshot.time_s:,.0f} s   {n_waiting} waiting, {snapshot.n_active - n_waiting} running"]
        for name, free, total, price_s in zip(names, snapshot.free, snapshot.total, self._price_s, strict=True):
            lines.append(f"  {name:{max(map(len, names))}}  {free}/{total} free, {price_s:,.0f} s a GPU")
        return "\n".join(lines)


class Bend(NamedTuple):
    """How one epoch's market departs from its defaults."""

    price_offset_s: np.ndarray  # (M,) per GPU, for a job of median weight
    objective: OnlineObjective


def bend_of(action: np.ndarray, n_types: int, time_scale_s: float) -> Bend:
    """What an action (M + 4,) means; the zero action means the market's defaults.

    Raises:
        ValueError: a wrong shape, or a value that is not a number.
    """
    numbers = np.asarray(action, float)
    if numbers.shape != (n_types + 4,) or np.isnan(numbers).any():
        raise ValueError(f"action {numbers.tolist()}: give {n_types + 4} numbers from -1 to 1")
    *price, weight, waiting, fairness, restart = np.clip(numbers, -1.0, 1.0).tolist()
    objective = OnlineObjective(
        waiting_factor=FACTOR_REACH**waiting,
        weight_exponent=weight,
        fairness_exponent=fairness,
        restart_factor=FACTOR_REACH**restart,
    )
    return Bend(PRICE_REACH * time_scale_s * np.array(price), objective)


def plan_bent(snapshot: Snapshot, bend: Bend) -> tuple[Plan, np.ndarray | None]:
    """The market's plan, and its prices (M,) in seconds per GPU; None when there was nothing to solve."""
    price_s = None

    def solve(problem: PlacementProblem, terms: OnlineTerms) -> Placement:
        nonlocal price_s
        # Weights set the unit of costs; an offset in seconds would outweigh light jobs and be nothing to heavy ones.
        unit = float(np.median(np.asarray(terms["weights"], float)))
        placement = solve_market(problem, price_offset=bend.price_offset_s * unit, **terms)
        assert placement.prices is not None
        price_s = placement.prices / unit
        return placement

    return plan_epoch(snapshot, bend.objective, solve), price_s

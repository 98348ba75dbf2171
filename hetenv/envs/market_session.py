"""One agent that bends the market epoch by epoch on one simulator; the environments, one or many, are adapters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetenv.compiled import njit_unlocked
from hetenv.envs.market_view import MarketObservation, observe
from hetenv.epoch import OnlineObjective
from hetenv.market_epoch import plan_market
from hetenv.posing import finish_plan, open_epoch
from hetenv.scheduler import Plan, Snapshot
from hetenv.simulator import Simulator
from hetenv.simulator.kernels import next_epoch
from hetenv.simulator.plans import apply_plan
from hetenv.workload import Workload

PRICE_REACH = 0.25  # time scales per GPU at an action of 1
FACTOR_REACH = 32.0  # waiting and restart factor at an action of 1; its inverse at -1
_CROWDED, _SETTLED, _STUCK = range(3)  # the timeline has no room; something to decide, or all done; nothing will happen


class Bend(NamedTuple):
    """How one epoch's market departs from its defaults."""

    price_offset_s: np.ndarray  # (M,) per GPU, for a job of median weight
    objective: OnlineObjective


def bends_of(actions: np.ndarray, n_types: int, time_scale_s: float) -> list[Bend]:
    """What actions (N, M + 4) mean; a zero action means the market's defaults.

    Raises:
        ValueError: a wrong shape, or a value that is not a number.
    """
    numbers = np.asarray(actions, float)
    if numbers.ndim != 2 or numbers.shape[1] != n_types + 4:
        raise ValueError(f"actions of shape {numbers.shape}: give {n_types + 4} numbers from -1 to 1 each")
    if (bad := np.isnan(numbers).any(axis=1)).any():
        raise ValueError(f"action {numbers[bad.argmax()].tolist()}: give {n_types + 4} numbers from -1 to 1")
    numbers = np.clip(numbers, -1.0, 1.0)
    offsets_s = PRICE_REACH * time_scale_s * numbers[:, :n_types]
    return [
        Bend(
            offset_s,
            OnlineObjective(
                waiting_factor=FACTOR_REACH**waiting,
                weight_exponent=weight,
                fairness_exponent=fairness,
                restart_factor=FACTOR_REACH**restart,
            ),
        )
        for offset_s, (weight, waiting, fairness, restart) in zip(offsets_s, numbers[:, n_types:].tolist(), strict=True)
    ]


def bend_of(action: np.ndarray, n_types: int, time_scale_s: float) -> Bend:
    """What one action (M + 4,) means; see ``bends_of``."""
    return bends_of(np.asarray(action, float)[None], n_types, time_scale_s)[0]


def plan_bent(snapshot: Snapshot, bend: Bend) -> tuple[Plan, np.ndarray | None]:
    """The market's plan, and its prices (M,) in seconds per GPU; None when there was nothing to solve."""
    plan, prices, unit = plan_market(snapshot, bend.objective, bend.price_offset_s)
    return plan, None if prices is None else prices / unit


class MarketSession:
    """The agent's side of ``simulator``; see ``hetenv.envs.market.MarketEnv``.

    Args:
        observation: of one environment, written at each step.
    """

    def __init__(self, simulator: Simulator, time_scale_s: float, observation: MarketObservation) -> None:
        self.simulator, self._time_scale_s, self.observation = simulator, time_scale_s, observation
        self.price_s = np.zeros(len(simulator.cluster.types))  # (M,) per GPU, of the last decision

    def begin(self, workload: Workload) -> None:
        """New jobs; up to the first decision."""
        self.simulator.reset(workload=workload)
        self.price_s = np.zeros_like(self.price_s)
        self._go_on(Plan.nothing(len(self.price_s)), decided=False)

    def step(self, bend: Bend) -> float:
        """Decide one epoch, unless all is done, and let time pass up to the next decision; returns the reward."""
        simulator = self.simulator
        before = simulator.job_seconds
        if not simulator.done:
            plan, price_s = plan_bent(simulator.snapshot(), bend)
            if price_s is not None:
                self.price_s = price_s
            self._go_on(plan, decided=True)
        return (before - simulator.job_seconds) / self._time_scale_s

    def _go_on(self, plan: Plan, decided: bool) -> None:
        """Carry out the ``plan`` of this epoch, if it is ``decided``, let others pass until one has something to
        decide or all is done, and observe.

        Raises:
            StallError: jobs wait, nothing runs and nothing will arrive.
        """
        simulator = self.simulator
        rules = simulator.running_may_change, 2 * simulator.cluster.n_gpus
        outcome = simulator.change(_pass_epochs, plan.jobs, plan.counts, decided, *rules)
        while outcome == _CROWDED:
            outcome = simulator.change(_pass_epochs, plan.jobs, plan.counts, False, *rules)
        if outcome == _STUCK:
            simulator.advance()  # says who waits
        observe(
            simulator.fixed, simulator.state, simulator.exclusive_s, self.price_s, self._time_scale_s, self.observation
        )


@njit_unlocked
def _pass_epochs(fixed, state, timeline, jobs, counts, decided, running_may_change, room):
    """Carry out a plan, if it is ``decided``, then those of epochs at which nobody competes.

    Ends early when the timeline lacks ``room`` for what one move can write.
    """
    clock = state.clock[0]
    no_places = np.empty((0, 3), np.int64)
    while clock.n_done < fixed.jobs.shape[0]:
        if clock.n_segments + room > timeline.shape[0]:
            return _CROWDED
        if not decided:
            opening, sketch = open_epoch(fixed, state, running_may_change)
            if opening.competes.any():
                return _SETTLED
            jobs, counts = finish_plan(fixed, state, sketch, True)
        apply_plan(fixed, state, timeline, jobs, counts, no_places)
        if clock.n_running == 0 and clock.next_arrival == fixed.jobs.shape[0]:
            return _STUCK
        next_epoch(fixed, state, timeline)
        decided = False
    return _SETTLED

"""What the schedulers built on ``hetenv.matching`` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from baselines.options import number, whole
from hetenv.cluster import Cluster
from hetenv.epoch import OnlineObjective, plan_epoch
from hetenv.matching import OnlineTerms, Placement, PlacementProblem
from hetenv.scheduler import Plan, Snapshot


class OnlineScheduler:
    """Poses a placement problem at every epoch; see ``hetenv.epoch`` for what enters it.

    Args:
        waiting_factor: kappa, multiplies the expected wait for GPUs in the value of waiting.
        weight_exponent: jobs weigh J(best) to the power of minus this.
        max_jobs: most jobs that compete in one decision.
        fairness_exponent: jobs weigh, besides, their time on an equal share of the GPUs to the power of minus this.
        restart_factor: rho, multiplies the time that a running job loses when it changes.
    """

    name: str
    decides = frozenset({"place", "size", "preempt", "resize", "migrate"})

    def __init__(
        self,
        waiting_factor: float = 1.0,
        weight_exponent: float = 0.0,
        max_jobs: int = 128,
        fairness_exponent: float = 0.0,
        restart_factor: float = 1.0,
    ) -> None:
        self._objective = OnlineObjective(
            number("waiting_factor", waiting_factor, least=0.0),
            number("weight_exponent", weight_exponent),
            whole("max_jobs", max_jobs, least=1),
            number("fairness_exponent", fairness_exponent),
            number("restart_factor", restart_factor, least=0.0),
        )

    def reset(self, cluster: Cluster, seed: int) -> None:
        self._rng = np.random.default_rng(seed)


class OnlineMatcher(OnlineScheduler, ABC):
    """Solves the problem in Python; takes what ``OnlineScheduler`` does."""

    def plan(self, snapshot: Snapshot) -> Plan:
        return plan_epoch(snapshot, self._objective, self._solve)

    @abstractmethod
    def _solve(self, problem: PlacementProblem, terms: OnlineTerms) -> Placement:
        """The placement of one epoch."""

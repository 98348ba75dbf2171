"""One step of roll-out improvement: how much better than a base scheduler one could do who knew what comes.

At each epoch several schedulers propose a plan. Each is tried on a copy of the simulator, which the base scheduler
then takes to the end of the last job; the plan of the least sum of completion times is carried out (Bertsekas,
Tsitsiklis and Wu, Journal of Heuristics 1997). The copies hold the jobs yet to arrive, so this is no scheduler to
compare others with, but a measure of what they leave: it is not in the registry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hetenv.cluster import Cluster
from hetenv.scheduler import DECISIONS, Plan, Scheduler, Snapshot
from hetenv.simulator import Simulator


class Rollout:
    """Carries out, of several plans, the one from which ``base`` ends best.

    Args:
        base: plays every copy to its end, and proposes first: of plans equally good its own wins. It must decide from
            the snapshot alone.
        others: propose plans as well; likewise.
    """

    name = "rollout"
    decides = DECISIONS

    def __init__(self, base: Scheduler, others: Sequence[Scheduler]) -> None:
        self._base, self._proposers = base, [base, *others]

    def reset(self, cluster: Cluster, seed: int) -> None:
        for scheduler in self._proposers:
            scheduler.reset(cluster, seed)

    def plan(self, snapshot: Snapshot) -> Plan:
        plans: list[Plan] = []
        for scheduler in self._proposers:
            proposed = scheduler.plan(snapshot)
            if not any(_alike(proposed, plan) for plan in plans):
                plans.append(proposed)
        if len(plans) == 1:
            return plans[0]
        job_seconds = [self._played_out(snapshot.clone_simulator(), plan) for plan in plans]
        return plans[int(np.argmin(job_seconds))]

    def _played_out(self, simulator: Simulator, plan: Plan) -> float:
        """Job-seconds in the system when ``plan`` is followed by the base scheduler; inf if nothing can follow."""
        simulator.apply(plan)
        if simulator.stalled:
            return float("inf")
        simulator.advance()
        while not simulator.done:
            simulator.apply(self._base.plan(simulator.snapshot()))
            simulator.advance()
        return simulator.job_seconds


def _alike(one: Plan, other: Plan) -> bool:
    """Whether two plans give the same jobs the same counts."""
    first, second = np.argsort(one.jobs), np.argsort(other.jobs)
    return np.array_equal(one.jobs[first], other.jobs[second]) and np.array_equal(
        one.counts[first], other.counts[second]
    )

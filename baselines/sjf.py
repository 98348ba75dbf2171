"""Shortest job first."""

from __future__ import annotations

import numpy as np

from hetenv.cluster import Cluster
from hetenv.scheduler import Plan, QueueDiscipline, Snapshot
from hetenv.simulator import Simulator


class SJF:
    """Shortest job first, without preemption (folklore).

    Waiting jobs queue by their total time alone on the cluster on their best allocation; each takes the
    free allocation on which it finishes first, and a job that fits nowhere lets others pass. Large jobs
    may therefore starve under overload, as the textbook policy has it.

    Our decisions: the time alone is known exactly; ties go to the earlier arrival.
    """

    name = "sjf"
    decides = frozenset({"place", "size"})

    def reset(self, cluster: Cluster, seed: int) -> None:
        """Keeps no state."""

    def plan(self, snapshot: Snapshot) -> Plan:
        if snapshot.n_waiting == 0 or not snapshot.free.any():
            return Plan.nothing(len(snapshot.free))
        draft, waiting = snapshot.draft(), snapshot.waiting
        order = np.argsort(snapshot.exclusive_s[waiting], kind="stable")
        draft.fill(snapshot.jobs[waiting][order], skip=True)
        return draft.plan()

    def discipline(self, simulator: Simulator) -> QueueDiscipline:
        return shortest_alone_first(simulator)


def shortest_alone_first(simulator: Simulator) -> QueueDiscipline:
    """Jobs by their total time alone on the cluster, ties by arrival."""
    rank = np.empty(len(simulator.workload), np.int64)
    rank[np.argsort(simulator.exclusive_s, kind="stable")] = np.arange(len(rank))
    return QueueDiscipline(rank, skip=True)

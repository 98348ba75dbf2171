"""Shortest remaining time first."""

from __future__ import annotations

import numpy as np

from baselines.preemption import serve_in_order
from baselines.sjf import shortest_alone_first
from hetenv.cluster import Cluster
from hetenv.scheduler import Plan, QueueDiscipline, Snapshot
from hetenv.simulator import Simulator


class SRTF:
    """Shortest remaining time first (folklore).

    Jobs rank by the time their remaining work takes alone on the cluster. Jobs without GPUs are taken in
    this order, each onto the free allocation on which it finishes first. Where the simulator allows
    preemption, a job that fits nowhere pauses running jobs of longer remaining time, the longest first,
    until it fits; a paused job may go on at once on what is still free. A job that fits nowhere even so
    lets others pass.

    Our decisions: the remaining time is known exactly and includes the restart of a job that ran before,
    so a job pauses another only if it is the shorter one even with its own restart. Running jobs that
    nobody pauses stay where they are.
    """

    name = "srtf"
    decides = frozenset({"place", "size", "preempt", "resize", "migrate"})

    def reset(self, cluster: Cluster, seed: int) -> None:
        """Keeps no state."""

    def plan(self, snapshot: Snapshot) -> Plan:
        if snapshot.n_waiting == 0 or not (snapshot.preemptive or snapshot.free.any()):
            return Plan.nothing(len(snapshot.free))
        restart_s = np.where(snapshot.waiting & (snapshot.service_gpu_s > 0), snapshot.restart_s, 0.0)
        return serve_in_order(snapshot, np.argsort(snapshot.exclusive_remaining_s + restart_s, kind="stable"))

    def discipline(self, simulator: Simulator) -> QueueDiscipline | None:
        # Without preemption all waiting jobs are fresh, and remaining time is total time.
        return None if simulator.preemptive else shortest_alone_first(simulator)

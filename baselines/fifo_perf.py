"""Gavel's FIFO_Perf: arrival order, each job on its fastest type."""

from __future__ import annotations

import numpy as np

from hetenv.cluster import Cluster
from hetenv.scheduler import Plan, Snapshot


class FIFOPerf:
    """The heterogeneity-aware FIFO of Gavel (Narayanan et al., OSDI 2020; taken from the released code).

    At each epoch all GPUs are dealt out afresh: active jobs in order of arrival each get their least size
    on the one type with the highest rate among those with enough GPUs left (the first type on ties). The
    first job that fits nowhere blocks all behind it, unless it can run on none of the types that have
    room; that one is skipped, as in the original.

    Without preemption, running jobs keep what they hold and waiting jobs share what is free.
    """

    name = "fifo-perf"
    decides = frozenset({"place", "preempt", "migrate"})

    def reset(self, cluster: Cluster, seed: int) -> None:
        """Keeps no state."""

    def plan(self, snapshot: Snapshot) -> Plan:
        rows = np.arange(len(snapshot.jobs)) if snapshot.preemptive else np.flatnonzero(snapshot.waiting)
        left = (snapshot.total if snapshot.preemptive else snapshot.free).copy()
        size, rate = snapshot.size_limits[0], rate_by_type(snapshot)
        dealt = np.zeros((len(snapshot.jobs), len(left)), np.int64)
        for row in rows.tolist():
            fits = left >= size[row]
            if not fits.any():
                break
            fastest = int(np.argmax(np.where(fits, rate[row], -1.0)))
            if rate[row, fastest] > 0:
                dealt[row, fastest] = size[row]
                left[fastest] -= size[row]
        changed = rows[(dealt[rows] != snapshot.counts[rows]).any(axis=1)]
        return Plan(snapshot.jobs[changed], dealt[changed])


def rate_by_type(snapshot: Snapshot) -> np.ndarray:
    """(A, M) iterations/s of each job's least size on one type alone; 0 where it cannot run."""
    size = snapshot.size_limits[0][:, None]
    cluster = snapshot.cluster
    link = np.where(size <= cluster.largest_node, cluster.intra_bytes_per_s, cluster.nic_bytes_per_s)
    allreduce_s = 2 * (size - 1) / size * snapshot.grad_bytes[:, None] / link
    speed = snapshot.speed
    rate = speed / (snapshot.batch[:, None] / size + allreduce_s * speed)
    if snapshot.measured_rate is not None:
        n_sizes = snapshot.measured_rate.shape[2]
        known = np.minimum(size[:, 0], n_sizes - 1)
        measured = snapshot.measured_rate[np.arange(len(size)), :, known]
        rate = np.where(np.isnan(measured), rate, np.where(size < n_sizes, measured, 0.0))
    return rate

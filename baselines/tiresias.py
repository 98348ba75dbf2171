"""Tiresias: least attained service in two dimensions, GPUs and time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baselines.memory import carry_over
from baselines.options import number
from baselines.preemption import serve_in_order
from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.scheduler import Plan, Snapshot


class Tiresias:
    """Discretised two-dimensional least attained service of "Tiresias: A GPU Cluster Manager for Distributed Deep
    Learning" (Gu et al., NSDI 2019). It knows no job's length.

    Jobs stand in queues by their attained service, GPUs times seconds held: each threshold that it reaches moves a
    job one queue down. Higher queues go first. Inside a queue jobs are served in order of their first start, and
    those that have not started after them, by arrival. A job that fits nowhere pauses running jobs behind it in
    this order, or lets others pass: new jobs pause only those of lower queues. A job that has waited
    ``promote_after`` times as long as it has run returns to the first queue, and both counts begin anew.

    Our decisions: placement is consolidated for every job (the paper tells by profiling which jobs need it), onto
    the fewest nodes by the simulator's packing rule. Jobs that accept several sizes or types take the free
    allocation on which they finish first. Waiting counts from the first start, as in the authors' simulator.

    Args:
        thresholds: ascending GPU-seconds, one less than there are queues; a single number makes two queues. The
            default, 16 GPU-hours, is that of Pollux's comparison (Qiao et al., OSDI 2021).
        promote_after: the paper's PROMOTEKNOB; 0 never promotes, which minimises the mean.
    """

    name = "tiresias"
    decides = frozenset({"place", "size", "preempt", "resize", "migrate"})

    def __init__(self, thresholds: float | Sequence[float] = 57_600.0, promote_after: float = 0.0) -> None:
        given = [thresholds] if isinstance(thresholds, int | float) else list(thresholds)
        self._thresholds = np.array([number("thresholds", threshold, least=0.0) for threshold in given])
        if (np.diff(self._thresholds) <= 0).any():
            raise InputError("option thresholds", given, "give GPU-seconds in ascending order")
        self._promote_after = number("promote_after", promote_after, least=0.0)

    def reset(self, cluster: Cluster, seed: int) -> None:
        self._time_s = 0.0
        self._jobs = np.empty(0, np.int64)
        self._start_s = np.empty(0)  # first starts as seen at the epochs, inf before
        self._ran_s = np.empty(0)  # with GPUs, since the last promotion
        self._waited_s = np.empty(0)  # without GPUs after the first start, since the last promotion
        self._forgiven_gpu_s = np.empty(0)  # service attained before the last promotion

    def plan(self, snapshot: Snapshot) -> Plan:
        self._observe(snapshot)
        self._promote(snapshot)
        attained_gpu_s = snapshot.service_gpu_s - self._forgiven_gpu_s
        queue = np.searchsorted(self._thresholds, attained_gpu_s, side="right")
        plan = serve_in_order(snapshot, np.lexsort((snapshot.jobs, self._start_s, queue)))
        starts = np.isin(snapshot.jobs, plan.jobs[plan.counts.any(axis=1)]) & np.isinf(self._start_s)
        self._start_s[starts] = snapshot.time_s
        return plan

    def _observe(self, snapshot: Snapshot) -> None:
        """Bring what is remembered to the jobs and the time of ``snapshot``."""
        known, self._jobs = self._jobs, snapshot.jobs
        self._start_s = carry_over(self._start_s, known, self._jobs, np.inf)
        self._ran_s = carry_over(self._ran_s, known, self._jobs, 0.0)
        self._waited_s = carry_over(self._waited_s, known, self._jobs, 0.0)
        self._forgiven_gpu_s = carry_over(self._forgiven_gpu_s, known, self._jobs, 0.0)
        passed_s, self._time_s = snapshot.time_s - self._time_s, snapshot.time_s
        self._ran_s += passed_s * ~snapshot.waiting
        self._waited_s += passed_s * (snapshot.waiting & np.isfinite(self._start_s))

    def _promote(self, snapshot: Snapshot) -> None:
        """Let jobs that have waited long for how long they ran begin anew in the first queue."""
        if self._promote_after == 0:
            return
        starved = snapshot.waiting & (self._ran_s > 0) & (self._waited_s >= self._promote_after * self._ran_s)
        self._forgiven_gpu_s[starved] = snapshot.service_gpu_s[starved]
        self._ran_s[starved] = self._waited_s[starved] = 0.0

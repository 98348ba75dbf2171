"""Tiresias: least attained service in two dimensions, GPUs and time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baselines.memory import carry_over
from baselines.options import number, one_of
from baselines.preemption import serve_in_order
from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.scheduler import Plan, Snapshot


class Tiresias:
    """Discretised two-dimensional least attained service of "Tiresias: A GPU Cluster Manager for Distributed Deep
    Learning" (Gu et al., NSDI 2019). It knows no job's length.

    Jobs stand in queues by their attained service, GPUs times seconds held: each threshold that it reaches moves a
    job one queue down. Higher queues go first; ``order`` says who is served first inside a queue. A job that fits
    nowhere pauses running jobs behind it in this order, or lets others pass. A job that has waited
    ``promote_after`` times as long as it has run returns to the first queue, and both counts begin anew.

    Our decisions: placement is consolidated for every job (the paper tells by profiling which jobs need it), onto
    the fewest nodes by the simulator's packing rule. Jobs that accept several sizes or types take the free
    allocation on which they finish first. Waiting counts from the first start, as in the authors' simulator.

    Pollux's comparison (Qiao et al., OSDI 2021) serves with ``order="entry"`` in rounds of 60 s, on a simulator with
    ``packing="emptiest"``.

    Args:
        thresholds: ascending GPU-seconds, one less than there are queues; a single number makes two queues. The
            default, 16 GPU-hours, is that of Pollux's comparison.
        promote_after: the paper's PROMOTEKNOB; 0 never promotes, which minimises the mean.
        order: of the jobs of one queue. "start": by first start, as in the paper, and after them by arrival those
            that have not started, so that new jobs pause only those of lower queues. "entry": by when they entered
            the queue, those that did so at once by arrival, as in Pollux's comparison; a job that was too large for
            what was free then pauses later ones that were not.
    """

    name = "tiresias"
    decides = frozenset({"place", "size", "preempt", "resize", "migrate"})

    def __init__(
        self, thresholds: float | Sequence[float] = 57_600.0, promote_after: float = 0.0, order: str = "start"
    ) -> None:
        given = [thresholds] if isinstance(thresholds, int | float) else list(thresholds)
        self._thresholds = np.array([number("thresholds", threshold, least=0.0) for threshold in given])
        if (np.diff(self._thresholds) <= 0).any():
            raise InputError("option thresholds", given, "give GPU-seconds in ascending order")
        self._promote_after = number("promote_after", promote_after, least=0.0)
        self._order = one_of("order", order, ("start", "entry"))

    def reset(self, cluster: Cluster, seed: int) -> None:
        self._time_s = 0.0
        self._jobs = np.empty(0, np.int64)
        self._start_s = np.empty(0)  # first starts as seen at the epochs, inf before
        self._queue: np.ndarray = np.empty(0, np.int64)  # at the last epoch, -1 before the first
        self._entry_s = np.empty(0)  # when the job entered it
        self._ran_s = np.empty(0)  # with GPUs, since the last promotion
        self._waited_s = np.empty(0)  # without GPUs after the first start, since the last promotion
        self._forgiven_gpu_s = np.empty(0)  # service attained before the last promotion

    def plan(self, snapshot: Snapshot) -> Plan:
        self._observe(snapshot)
        self._promote(snapshot)
        attained_gpu_s = snapshot.service_gpu_s - self._forgiven_gpu_s
        queue = np.searchsorted(self._thresholds, attained_gpu_s, side="right")
        self._entry_s[queue != self._queue] = snapshot.time_s
        self._queue = queue
        since_s = self._start_s if self._order == "start" else self._entry_s
        plan = serve_in_order(snapshot, np.lexsort((snapshot.jobs, since_s, queue)))
        starts = np.isin(snapshot.jobs, plan.jobs[plan.counts.any(axis=1)]) & np.isinf(self._start_s)
        self._start_s[starts] = snapshot.time_s
        return plan

    def _observe(self, snapshot: Snapshot) -> None:
        """Bring what is remembered to the jobs and the time of ``snapshot``."""
        known, self._jobs = self._jobs, snapshot.jobs
        self._start_s = carry_over(self._start_s, known, self._jobs, np.inf)
        self._queue = carry_over(self._queue, known, self._jobs, -1)
        self._entry_s = carry_over(self._entry_s, known, self._jobs, np.nan)
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

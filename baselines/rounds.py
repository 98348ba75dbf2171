"""Gavel's rounds (Narayanan et al., OSDI 2020): shares of time become whole GPUs, round after round."""

from __future__ import annotations

import numpy as np

from baselines.memory import carry_over
from hetenv.scheduler import Plan, Snapshot


class Ledger:
    """What each active job is to have, and has had, of each type since the shares were last set.

    Attributes:
        jobs: (A,) job indices.
        shares: (A, M) fractions of time that jobs are to hold GPUs; none before they are set for a newcomer.
        received_s: (A, M) seconds that they have held some. It begins at half a round, so that a job
            without any does not go before all others.
        deficit_s: (A, M) seconds that earlier shares promised and did not give.
        set_s: when the shares were last set; None before.
    """

    def __init__(self, n_types: int, round_s: float) -> None:
        self.jobs = np.empty(0, np.int64)
        self.shares, self.received_s, self.deficit_s = (np.empty((0, n_types)) for _ in range(3))
        self.set_s: float | None = None
        self._head_start_s = round_s / 2
        self._time_s = 0.0

    def observe(self, snapshot: Snapshot) -> bool:
        """Bring the ledger to the jobs and the time of ``snapshot``; returns whether jobs came or went."""
        known, self.jobs = self.jobs, snapshot.jobs
        self.shares = carry_over(self.shares, known, self.jobs, 0.0)
        self.received_s = carry_over(self.received_s, known, self.jobs, self._head_start_s)
        self.deficit_s = carry_over(self.deficit_s, known, self.jobs, 0.0)
        self.received_s += (snapshot.time_s - self._time_s) * (snapshot.counts > 0)
        self._time_s = snapshot.time_s
        return not np.array_equal(known, self.jobs)

    def set_shares(self, shares: np.ndarray) -> None:
        """Owe jobs what the old shares did not give them, and count anew for ``shares`` (A, M)."""
        if self.set_s is not None:
            self.deficit_s += self.shares * (self._time_s - self.set_s) - (self.received_s - self._head_start_s)
        self.shares, self.set_s = shares, self._time_s
        self.received_s = np.full_like(shares, self._head_start_s)

    def deal(self, rows: np.ndarray, free: np.ndarray, rate: np.ndarray, gpus: np.ndarray) -> np.ndarray:
        """(A, M) GPUs for the jobs ``rows`` (n,), at most ``free`` (M,) of each type.

        The types deal one after the other, the one on which jobs run fastest first. Each goes through the jobs in
        order of priority, share / time received, ties by deficit and share, and gives ``gpus`` (A,) to every job
        that has none yet, can run there (``rate`` (A, M) above 0) and fits; even one without a share, rather
        than leave GPUs idle.
        """
        left, dealt = free.copy(), np.zeros_like(rate, np.int64)
        priority = self.shares / self.received_s
        relative = rate[rows] / np.maximum(rate[rows].max(axis=1, keepdims=True), np.finfo(float).tiny)
        for m in np.argsort(-relative.sum(axis=0), kind="stable").tolist():
            able = rows[rate[rows, m] > 0]
            ranked = np.lexsort((-self.shares[able, m], -self.deficit_s[able, m], -priority[able, m]))
            for row in able[ranked].tolist():
                if gpus[row] <= left[m] and not dealt[row].any():
                    dealt[row, m] = gpus[row]
                    left[m] -= gpus[row]
        return dealt


def carry_out(snapshot: Snapshot, rows: np.ndarray, dealt: np.ndarray) -> Plan:
    """The plan that gives the jobs ``rows`` (n,) what they were ``dealt`` (A, M), the largest first.

    Jobs that keep their type keep their GPUs. A job that cannot run as it would be packed (a measured rate of 0
    once spread over nodes) gets nothing. When nothing would run at all, waiting jobs take their fastest free
    allocation by arrival.
    """
    dealt = dealt.copy()
    while True:
        changed = rows[(dealt[rows] != snapshot.counts[rows]).any(axis=1)]
        changed = changed[np.argsort(-dealt[changed].sum(axis=1), kind="stable")]
        draft = snapshot.draft()
        for row in changed[~snapshot.waiting[changed]].tolist():
            draft.preempt(int(snapshot.jobs[row]))
        placed = [row for row in changed.tolist() if dealt[row].any()]
        stuck = next((row for row in placed if not draft.place(int(snapshot.jobs[row]), dealt[row])), None)
        if stuck is None:
            break
        dealt[stuck] = 0
    if (draft.free == snapshot.total).all():
        draft = snapshot.draft()
        draft.fill(snapshot.queue(), skip=True)
        return draft.plan()
    return Plan(snapshot.jobs[changed], dealt[changed])

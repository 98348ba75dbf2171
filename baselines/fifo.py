"""First in, first out, with three ways to treat the jobs behind a blocked head."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from baselines.options import one_of
from hetenv.cluster import Cluster
from hetenv.scheduler import Plan, QueueDiscipline, Snapshot
from hetenv.simulator import Simulator
from hetenv.simulator.draft import Draft


class FIFO:
    """First in, first out (folklore), without preemption.

    Each job takes the free allocation on which it finishes first: the best mix of free types at its best
    size. What happens once the head of the queue fits nowhere:

    strict: everybody waits. The default.
    skip: later jobs that fit start; a large head may starve.
    easy: EASY backfilling (Lifka, JSSPP 1995; Mu'alem and Feitelson, TPDS 2001). The head gets a
        reservation at the first moment when, as running jobs finish, it fits; later jobs start if they
        finish before that moment or leave enough GPUs for the head then.

    Our decisions: finish estimates are exact. The reservation is for the head's fastest category among
    the GPUs free at that moment, counted by type and not by node.

    Args:
        backfill: "strict", "skip" or "easy".
    """

    decides = frozenset({"place", "size"})

    def __init__(self, backfill: str = "strict") -> None:
        self._backfill = backfill
        self._fill = _FILL[one_of("backfill", backfill, tuple(_FILL))]
        self.name = "fifo" if backfill == "strict" else f"fifo-{backfill}"

    def reset(self, cluster: Cluster, seed: int) -> None:
        """Keeps no state."""

    def plan(self, snapshot: Snapshot) -> Plan:
        if snapshot.n_waiting == 0 or not snapshot.free.any():
            return Plan.nothing(len(snapshot.free))
        draft = snapshot.draft()
        self._fill(snapshot, draft)
        return draft.plan()

    def discipline(self, simulator: Simulator) -> QueueDiscipline | None:
        if self._backfill == "easy":
            return None
        return QueueDiscipline(np.arange(len(simulator.workload)), skip=self._backfill == "skip")


def _strict(snapshot: Snapshot, draft: Draft) -> None:
    draft.fill(snapshot.queue(limit=int(draft.free.sum())), skip=False)


def _skip(snapshot: Snapshot, draft: Draft) -> None:
    draft.fill(snapshot.queue(), skip=True)


def _easy(snapshot: Snapshot, draft: Draft) -> None:
    queue = snapshot.queue()
    blocked = draft.fill(queue, skip=False)
    if blocked == len(queue) or not draft.free.any():
        return
    head_in_s, spare = _reserve(draft, int(queue[blocked]))
    behind = queue[blocked + 1 :]
    for job in behind[draft.least_gpus(behind) <= draft.free.sum()].tolist():
        counts, run_s = draft.fastest(job)
        if run_s > head_in_s:
            counts, run_s = draft.fastest(job, within=spare)
            spare -= counts
        if counts.any():
            draft.place(job, counts)


def _reserve(draft: Draft, head: int) -> tuple[float, np.ndarray]:
    """When the blocked ``head`` fits at the latest, in seconds, and the GPUs (M,) it leaves free then."""
    finish_in_s, released = draft.releases()
    free_then = draft.free + np.cumsum(released, axis=0)  # (n, M), after each release
    low, high = 0, len(finish_in_s) - 1  # more free GPUs never hinder the head, so bisect
    while low < high:
        middle = (low + high) // 2
        if draft.fastest_among(head, free_then[middle]).any():
            high = middle
        else:
            low = middle + 1
    last = int(np.searchsorted(finish_in_s, finish_in_s[low], side="right")) - 1  # all released at that moment
    return float(finish_in_s[low]), free_then[last] - draft.fastest_among(head, free_then[last])


_FILL: dict[str, Callable[[Snapshot, Draft], None]] = {"strict": _strict, "skip": _skip, "easy": _easy}

"""Jobs served in an order of priority, where those ahead pause those behind."""

from __future__ import annotations

import numpy as np

from hetenv.scheduler import Plan, Snapshot


def serve_in_order(snapshot: Snapshot, order: np.ndarray) -> Plan:
    """Serve the active jobs in ``order`` (A,), rows of the snapshot.

    Running jobs stay where they are unless a waiting job ahead of them fits nowhere; it pauses them, the last in
    the order first, until it fits. Each waiting job takes the free allocation on which it finishes first, a paused
    one at its own turn; one that fits nowhere even so lets others pass. Where the simulator allows no preemption,
    nobody is paused.
    """
    draft = snapshot.draft()
    jobs, without_gpus = snapshot.jobs, snapshot.waiting.copy()
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    holders = order[~without_gpus[order]][::-1] if snapshot.preemptive else order[:0]
    for place, row in enumerate(order.tolist()):
        if not without_gpus[row]:
            continue
        holders = holders[rank[holders] > place]
        if len(holders) == 0:  # nobody left to pause
            rest = order[place:]
            draft.fill(jobs[rest[without_gpus[rest]]], skip=True)
            break
        paused = draft.make_room(int(jobs[row]), jobs[holders])
        without_gpus[holders[paused]] = True
        holders = holders[~paused]
        draft.fill(jobs[[row]], skip=True)
    return draft.plan()

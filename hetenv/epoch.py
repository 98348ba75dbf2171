"""One decision epoch as a placement problem: who competes, for which GPUs, and what waiting is worth.

Shared by every scheduler that solves ``hetenv.matching`` online. The paper (DOI 10.1109/TPDS.2024.3390109) places a
batch of jobs; all of the following is our extension to a stream.

Who competes. Waiting jobs that fit, and running jobs that may change: all of them where the simulator allows
preemption, otherwise the malleable ones, which may be resized but never paused. The others keep what they hold.

What it costs. ``w (J(c) + rho restart)`` on a category c, where restart applies to a running job that changes, and
``w (kappa tau + J(best))`` without GPUs, plus rho restart for a running job. rho is the restart factor: 1 counts on the
change to last for the rest of the job, more of it on further changes to come. J(best) is the job's remaining time alone
on the cluster (on the categories it is offered, if those are fewer than it accepts), kappa the waiting factor, tau the
expected wait: the mean time until the GPUs that running jobs give back serve a waiting job (``expected_wait_s``; the
very next release would not do: with hundreds of jobs running it is seconds away, however many wait for it), or, when
none runs, the least J(best) of the jobs competing, which is the first release their plan could bring.
``w = J(best) ** -exponent * J_eq ** -fairness``, J_eq the remaining time on an equal share of the GPUs on offer
(``exclusive_share_s``). With kappa = rho = 1 and both exponents 0 the objective is the paper's sum of J.

What is left out. J is estimated from the category: as few empty nodes as possible, batches split in
proportion to speed even where the simulator splits them evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hetenv.compiled import njit
from hetenv.matching import OnlineTerms, Placement, PlacementProblem, exclusive_share_s
from hetenv.scheduler import Plan, Snapshot
from hetenv.simulator.draft import Draft

MOST_CATEGORIES = 10_000  # per job; 4 types have 4,844 of up to 16 GPUs
Solve = Callable[[PlacementProblem, OnlineTerms], Placement]


@dataclass(frozen=True)
class OnlineObjective:
    """How waiting and weights enter, and how many jobs one decision considers.

    Args:
        waiting_factor: kappa, at least 0; more of it starts jobs sooner on slower GPUs.
        weight_exponent: above 0 favours short jobs.
        max_jobs: most jobs that compete in one decision. Beyond it, half the places go to waiting jobs, half
            of those to the ones of least J(best) and the rest to the oldest, so that none starves
            out of sight; the others go to the running jobs of most remaining time. Places that one side leaves
            empty go to the other.
        fairness_exponent: above 0 favours jobs that an equal share of the GPUs would serve fast, so that
            none takes many times as long as on that share.
        restart_factor: rho, at least 0; more of it leaves running jobs where they are.
    """

    waiting_factor: float = 1.0
    weight_exponent: float = 0.0
    max_jobs: int = 128
    fairness_exponent: float = 0.0
    restart_factor: float = 1.0


@dataclass(frozen=True, eq=False)
class EpochProblem:
    """The jobs that compete, ``rows`` (S,) of the snapshot, and what the solvers need to know of them."""

    rows: np.ndarray
    problem: PlacementProblem
    terms: OnlineTerms


def plan_epoch(snapshot: Snapshot, objective: OnlineObjective, solve: Solve) -> Plan:
    """The plan of one epoch: ``solve`` decides, and something runs whenever something can.

    Jobs with more than ``MOST_CATEGORIES`` categories even at their least size do not compete: they take their
    fastest free allocation before the others do. New allocations are packed largest first, which leaves fewer
    fragments. When nothing would run at all, or a placement does not survive packing (a measured rate of 0 once
    spread over nodes), waiting jobs take their fastest free allocation by arrival instead.
    """
    if (opened := _open_epoch(snapshot)) is None:
        return Plan.nothing(len(snapshot.total))
    snapshot, draft, movable, most = opened
    sound = True
    if (epoch := pose_epoch(snapshot, objective, draft.free, movable, most)) is not None:
        sound = _carry_out(draft, snapshot, epoch.rows, solve(epoch.problem, epoch.terms).counts)
    if not sound or (draft.free == snapshot.total).all():
        draft = snapshot.draft()
        draft.fill(snapshot.queue(), skip=True)
    return draft.plan()


def anyone_competes(snapshot: Snapshot) -> bool:
    """Whether ``plan_epoch`` has something to solve; otherwise its plan is the same under every objective."""
    if (opened := _open_epoch(snapshot)) is None:
        return False
    snapshot, draft, movable, most = opened
    capacity = draft.free + snapshot.counts[movable].sum(axis=0)
    return bool(capacity.any() and (movable | _may_start(snapshot, capacity, most)).any())


def pose_epoch(
    snapshot: Snapshot, objective: OnlineObjective, free: np.ndarray, movable: np.ndarray, most: np.ndarray
) -> EpochProblem | None:
    """The problem of one epoch, or None when nobody competes.

    Args:
        free: (M,) free GPUs to compete for, beside those of the ``movable`` jobs.
        movable: (A,) bool, running jobs that may change.
        most: (A,) most GPUs that a job may ask for; a waiting job needs at least its least size to compete.
    """
    capacity = free + snapshot.counts[movable].sum(axis=0)
    if not capacity.any():
        return None
    remaining_s = np.maximum(snapshot.exclusive_remaining_s, 1e-9 * snapshot.exclusive_s)  # rounding may leave 0
    waiting = _may_start(snapshot, capacity, most)
    rows, displaced = _competitors(remaining_s, waiting, movable, objective.max_jobs)
    if len(rows) == 0:
        return None
    capacity = capacity - snapshot.counts[displaced].sum(axis=0)
    if not capacity.any():
        return None
    cluster = snapshot.cluster
    problem = PlacementProblem(
        capacity,
        snapshot.speed[rows],
        snapshot.batch[rows],
        np.maximum(snapshot.remaining[rows], 1e-9),
        snapshot.grad_bytes[rows],
        cluster.nic_bytes_per_s,
        snapshot.size_limits[0][rows],
        np.minimum(snapshot.size_limits[1], most)[rows],
        local_bandwidth=cluster.intra_bytes_per_s,
        node_gpus=cluster.largest_node,
        measured_rate=None if snapshot.measured_rate is None else snapshot.measured_rate[rows],
    )
    best_s = remaining_s[rows]
    for at in np.flatnonzero(most[rows] < snapshot.size_limits[1][rows]).tolist():
        best_s[at] = _best_on_offer_s(problem, at, best_s[at])
    running, restart_s = ~snapshot.waiting[rows], objective.restart_factor * snapshot.restart_s[rows]
    weights = best_s**-objective.weight_exponent
    if objective.fairness_exponent:
        share_s = exclusive_share_s(problem)  # inf for a job that the GPUs on offer cannot run
        weights = weights * np.where(np.isfinite(share_s), share_s, best_s) ** -objective.fairness_exponent
    wait_s = snapshot.expected_wait_s if np.isfinite(snapshot.expected_wait_s) else float(best_s.min())
    idle_s = objective.waiting_factor * wait_s + best_s + np.where(running, restart_s, 0.0)
    terms = OnlineTerms(
        weights=weights,
        waiting=np.where(~running | snapshot.preemptive, weights * idle_s, np.inf),
        current=snapshot.counts[rows],
        restart_penalty=weights * restart_s,
    )
    return EpochProblem(rows, problem, terms)


class _Opening(NamedTuple):
    """The snapshot of those who may change, the draft with the jobs too varied to compete in place, ``movable`` (A,)
    bool who may change while running, ``most`` (A,) GPUs to ask for."""

    snapshot: Snapshot
    draft: Draft
    movable: np.ndarray
    most: np.ndarray


def _open_epoch(snapshot: Snapshot) -> _Opening | None:
    """None when nobody can move and nobody waits, or waits for GPUs of which none is free: then nothing can change."""
    may_start = snapshot.n_waiting > 0 and snapshot.free.any()
    if not (may_start or snapshot.running_may_change):
        return None
    if not snapshot.running_may_change:
        snapshot = snapshot.without_running()
    movable = ~snapshot.waiting & (snapshot.malleable | snapshot.preemptive)
    if not (may_start or movable.any()):
        return None
    draft = snapshot.draft()
    least, most = snapshot.size_limits
    most = _most_gpus(draft.free + snapshot.counts[movable].sum(axis=0), least, most, float(MOST_CATEGORIES))
    too_varied = snapshot.waiting & (most < least)
    if too_varied.any():
        draft.fill(snapshot.jobs[too_varied], skip=True)
    return _Opening(snapshot, draft, movable & (snapshot.counts.sum(axis=1) <= most), most)


def _best_on_offer_s(problem: PlacementProblem, job: int, otherwise: float) -> float:
    """Least J over the categories of a job, or ``otherwise`` when none is left to it."""
    first, end = problem.costs.start[problem.kind[job] : problem.kind[job] + 2]
    return float(problem.scale[job] * problem.costs.cost[first:end].min()) if end > first else otherwise


def _carry_out(draft: Draft, snapshot: Snapshot, rows: np.ndarray, counts: np.ndarray) -> bool:
    """Draft the changes that bring ``rows`` (S,) to ``counts`` (S, M); whether all of them can be packed."""
    changes = (counts != snapshot.counts[rows]).any(axis=1)
    rows, counts = rows[changes], counts[changes]
    for row in rows[~snapshot.waiting[rows]]:
        draft.preempt(int(snapshot.jobs[row]))
    n_gpus = counts.sum(axis=1)
    return all(
        draft.place(int(snapshot.jobs[rows[at]]), counts[at])
        for at in np.argsort(-n_gpus, kind="stable")
        if n_gpus[at] > 0
    )


@njit
def _most_gpus(capacity, least, most, categories):
    """(A,) most GPUs at which a job's sizes still have so many ``categories`` at most; below its least if none have.

    ``capacity`` (M,), ``least`` and ``most`` (A,) GPUs of each job. A job with few enough keeps its ``most``, even
    above the capacity.
    """
    largest = 1
    for job in range(most.shape[0]):
        largest = max(largest, most[job])
    largest = min(largest, capacity.sum())
    ways = np.zeros(largest + 1)  # count vectors of each size within the types so far
    ways[0] = 1.0
    for gpus in capacity:
        up_to = np.cumsum(ways)
        for n in range(largest + 1):
            ways[n] = up_to[n] - (up_to[n - gpus - 1] if n > gpus else 0.0)
    below = np.zeros(largest + 2)  # count vectors of all sizes below n
    below[1:] = np.cumsum(ways)
    asked = most.copy()
    for job in range(most.shape[0]):
        if least[job] <= largest:
            bounded = np.searchsorted(below, below[least[job]] + categories, side="right") - 2
            if bounded < largest:
                asked[job] = min(most[job], bounded)
    return asked


def _may_start(snapshot: Snapshot, capacity: np.ndarray, most: np.ndarray) -> np.ndarray:
    """(A,) bool, waiting jobs that compete for ``capacity`` (M,) GPUs."""
    return snapshot.waiting & (most >= snapshot.size_limits[0]) & _fits(snapshot, capacity)


def _fits(snapshot: Snapshot, capacity: np.ndarray) -> np.ndarray:
    """(A,) bool, whether some category of a job lies within ``capacity`` (M,)."""
    least, most = snapshot.size_limits
    fits = (capacity * (snapshot.speed > 0)).sum(axis=1) >= least
    rate = snapshot.measured_rate
    if rate is None:
        return fits
    gpus = np.arange(rate.shape[2])
    offered = (rate > 0) & (gpus <= capacity[:, None])
    sized = (gpus >= least[:, None]) & (gpus <= most[:, None])
    return np.where(np.isnan(rate[:, 0, 0]), fits, (offered & sized[:, None]).any(axis=(1, 2)))


def _competitors(
    remaining_s: np.ndarray, waiting: np.ndarray, movable: np.ndarray, max_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that compete, ascending, and the movable rows left out; see ``OnlineObjective.max_jobs``."""
    everyone = np.flatnonzero(waiting | movable)
    if len(everyone) <= max_jobs:
        return everyone, everyone[:0]
    queue, running = np.flatnonzero(waiting), np.flatnonzero(movable)
    n_running = min(len(running), max(max_jobs // 2, max_jobs - len(queue)))
    n_queue = min(len(queue), max_jobs - n_running)
    if n_queue < len(queue):
        shortest = np.argsort(remaining_s[queue], kind="stable")[: (n_queue + 1) // 2]
        oldest = np.setdiff1d(np.arange(len(queue)), shortest)[: n_queue - len(shortest)]
        queue = queue[np.concatenate([shortest, oldest])]
    by_length = running[np.argsort(-remaining_s[running], kind="stable")]
    return np.sort(np.concatenate([queue, by_length[:n_running]])), by_length[n_running:]

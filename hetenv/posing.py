"""Compiled parts of one decision epoch: who may change, who competes for what, what becomes of a placement.

``hetenv.epoch`` says what they do and why. Each takes its arrays from the simulator, and changes nothing there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.fairness import share_seconds
from hetenv.matching.kinds import JobModel
from hetenv.matching.offers import seconds_on
from hetenv.simulator.draft import fill_free, give_back, size_limits, take_gpus
from hetenv.simulator.kernels import gather_active, gather_waiting
from hetenv.simulator.releases import expected_wait_s

MOST_CATEGORIES = 10_000  # per job; 4 types have 4,844 of up to 16 GPUs


class Sketch(NamedTuple):
    """A plan in the making: ``nodes`` and ``free`` (M,) that it leaves, ``jobs`` and ``counts`` (n, M) so far.

    ``length`` (1,) of the rows are filled.
    """

    nodes: np.ndarray
    free: np.ndarray
    jobs: np.ndarray
    counts: np.ndarray
    length: np.ndarray


class Opening(NamedTuple):
    """The A jobs that may change or wait, by arrival: ``jobs``, ``remaining`` iterations, ``least`` and ``most`` GPUs,
    ``asked``, the most they may ask for now (A,), ``counts`` (A, M) held, (A,) bool who is ``waiting``, ``movable``
    (may change while running) and ``competes``; and the ``capacity`` (M,) to compete for."""

    jobs: np.ndarray
    remaining: np.ndarray
    least: np.ndarray
    most: np.ndarray
    asked: np.ndarray
    counts: np.ndarray
    waiting: np.ndarray
    movable: np.ndarray
    competes: np.ndarray
    capacity: np.ndarray


class Posed(NamedTuple):
    """The S jobs that compete, ``rows`` of the opening, for ``capacity`` (M,) GPUs; their ``model`` and what waiting
    hangs on: ``best_s``, ``restart_s`` (S,) and ``stays`` (S,) bool, who may not be paused."""

    rows: np.ndarray
    capacity: np.ndarray
    model: JobModel
    best_s: np.ndarray
    restart_s: np.ndarray
    stays: np.ndarray


class Terms(NamedTuple):
    """``OnlineTerms`` of the jobs that compete, all (S,)."""

    weights: np.ndarray
    waiting: np.ndarray
    restart_penalty: np.ndarray


@njit
def begin_sketch(state, n_jobs):
    """A plan of up to ``n_jobs`` rows that changes nothing."""
    n_types = state.uses.shape[0]
    free = np.empty(n_types, np.int64)
    for m in range(n_types):
        free[m] = state.uses[m].free
    jobs, counts = np.empty(n_jobs, np.int64), np.empty((n_jobs, n_types), np.int64)
    return Sketch(state.nodes.copy(), free, jobs, counts, np.zeros(1, np.int64))


@njit
def fill_sketch(fixed, state, sketch, jobs):
    """Place waiting ``jobs`` (n,) in this order, each on its fastest free allocation, past those that fit nowhere."""
    begin = sketch.length[0]
    run_s = np.empty(sketch.jobs.shape[0])
    _, started = fill_free(
        fixed, state, sketch.nodes, sketch.free, jobs, True, sketch.jobs[begin:], run_s, sketch.counts[begin:]
    )
    sketch.length[0] += started


@njit
def open_epoch(fixed, state, running_may_change):
    """The ``Opening`` and the plan so far; nobody is in it when nobody can move and nobody waits, or waits for GPUs of
    which none is free.

    Waiting jobs with more than ``MOST_CATEGORIES`` categories even at their least size are placed already.
    """
    clock = state.clock[0]
    n_types = state.uses.shape[0]
    n_waiting = clock.n_active - clock.n_running
    n_free = 0
    for m in range(n_types):
        n_free += state.uses[m].free
    may_start = n_waiting > 0 and n_free > 0
    n_jobs = 0
    if running_may_change:
        n_jobs = clock.n_active
    elif may_start:
        n_jobs = n_waiting
    jobs, figures, counts = np.empty(n_jobs, np.int64), np.empty((n_jobs, 3)), np.empty((n_jobs, n_types), np.int64)
    if n_jobs > 0:
        gather_active(fixed, state, not running_may_change, jobs, figures, counts)
    sketch = begin_sketch(state, n_jobs)
    waiting, movable = np.zeros(n_jobs, np.bool_), np.zeros(n_jobs, np.bool_)
    least, most = np.empty(n_jobs, np.int64), np.empty(n_jobs, np.int64)
    capacity = sketch.free.copy()
    for row in range(n_jobs):
        job = jobs[row]
        waiting[row] = state.jobs[job].status == 1
        movable[row] = not waiting[row] and (fixed.jobs[job].malleable > 0 or fixed.rules[0].preemptive > 0)
        least[row], most[row] = size_limits(fixed, state, job)
        if movable[row]:
            capacity += counts[row]
    asked = most.copy()
    if n_jobs > 0 and (may_start or movable.any()):
        _limit_categories(capacity, least, asked)
        too_varied = waiting & (asked < least)
        if too_varied.any():
            fill_sketch(fixed, state, sketch, jobs[too_varied])
    competes = np.zeros(n_jobs, np.bool_)
    capacity[:] = sketch.free
    for row in range(n_jobs):
        movable[row] = movable[row] and counts[row].sum() <= asked[row]
        if movable[row]:
            capacity += counts[row]
    if capacity.any():
        for row in range(n_jobs):
            competes[row] = movable[row] or (
                waiting[row] and asked[row] >= least[row] and _fits(fixed, jobs[row], least[row], most[row], capacity)
            )
    remaining = figures[:, 0].copy()
    return Opening(jobs, remaining, least, most, asked, counts, waiting, movable, competes, capacity), sketch


@njit
def _limit_categories(capacity, least, most):
    """Lower ``most`` (A,) so far that no job has above ``MOST_CATEGORIES``; below its ``least`` (A,) if all sizes have.

    A job with few enough keeps its ``most``, even above the ``capacity`` (M,).
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
    for job in range(most.shape[0]):
        if least[job] <= largest:
            bounded = np.searchsorted(below, below[least[job]] + MOST_CATEGORIES, side="right") - 2
            if bounded < largest:
                most[job] = min(most[job], bounded)


@njit
def _fits(fixed, job, least, most, capacity):
    """Whether some category of ``least`` to ``most`` GPUs of ``job`` lies within ``capacity`` (M,)."""
    row = fixed.jobs[job].measured_row
    if row < 0:
        usable = 0
        for m in range(capacity.shape[0]):
            if fixed.speed[job, m] > 0.0:
                usable += capacity[m]
        return usable >= least
    for m in range(capacity.shape[0]):
        for gpus in range(least, min(most, capacity[m], fixed.measured.shape[2] - 1) + 1):
            if _measured_rate(fixed, row, m, gpus) > 0.0:
                return True
    return False


@njit
def _measured_rate(fixed, row, m, gpus):
    """Iterations/s on so many GPUs of type ``m``; sizes that exceed its largest node are spread."""
    return fixed.measured[row, m, gpus, 1 if gpus > fixed.types[m].largest_node else 0]


@njit
def pose(fixed, state, exclusive_s, opening, max_jobs, restart_factor):
    """The ``Posed`` problem of those who compete; of nobody where no GPUs are left to them.

    ``exclusive_s`` (J,) is the simulator's.
    """
    n_active, n_types = opening.counts.shape
    remaining_s = np.empty(n_active)
    for row in range(n_active):
        job = opening.jobs[row]
        whole_s = exclusive_s[job]  # rounding may leave 0
        remaining_s[row] = max(whole_s * (opening.remaining[row] / fixed.jobs[job].iterations), 1e-9 * whole_s)
    rows, displaced = _competitors(remaining_s, opening, max_jobs)
    capacity = opening.capacity.copy()
    for row in displaced:
        capacity -= opening.counts[row]
    if not capacity.any():
        rows = rows[:0].copy()
    n_jobs, n_sizes = rows.shape[0], fixed.measured.shape[2] if fixed.measured.shape[0] > 0 else 1
    n_gpus = capacity.sum()
    speed, rate = np.empty((n_jobs, n_types)), np.zeros((n_jobs, n_types, n_sizes))
    batch, iterations, grad_bytes = np.empty(n_jobs), np.empty(n_jobs), np.empty(n_jobs)
    least, most, measured = np.empty(n_jobs, np.int64), np.empty(n_jobs, np.int64), np.zeros(n_jobs, np.bool_)
    best_s, restart_s, stays = np.empty(n_jobs), np.empty(n_jobs), np.zeros(n_jobs, np.bool_)
    for at in range(n_jobs):
        row = rows[at]
        job = opening.jobs[row]
        spec = fixed.jobs[job]
        speed[at] = fixed.speed[job]
        batch[at], grad_bytes[at] = spec.batch, spec.grad_bytes
        iterations[at] = max(opening.remaining[row], 1e-9)
        least[at], most[at] = opening.least[row], min(opening.asked[row], n_gpus)
        if spec.measured_row >= 0:
            measured[at] = True
            for m in range(n_types):
                for gpus in range(n_sizes):
                    rate[at, m, gpus] = _measured_rate(fixed, spec.measured_row, m, gpus)
        best_s[at] = remaining_s[row]
        restart_s[at] = restart_factor * spec.restart_s
        stays[at] = not opening.waiting[row] and fixed.rules[0].preemptive == 0
    nic, local, node = np.empty(n_types), np.empty(n_types), np.empty(n_types)
    for m in range(n_types):
        nic[m], local[m] = fixed.types[m].nic_bytes_per_s, fixed.types[m].intra_bytes_per_s
        node[m] = fixed.types[m].largest_node
    model = JobModel(speed, batch, iterations, grad_bytes, least, most, rate, measured, nic, local, node)
    return Posed(rows, capacity, model, best_s, restart_s, stays)


@njit
def _competitors(remaining_s, opening, max_jobs):
    """Rows that compete, ascending, and the movable rows left out; see ``OnlineObjective.max_jobs``."""
    everyone = np.flatnonzero(opening.competes)
    if everyone.shape[0] <= max_jobs:
        return everyone, everyone[:0].copy()
    queue, running = np.flatnonzero(opening.competes & opening.waiting), np.flatnonzero(opening.movable)
    n_running = min(running.shape[0], max(max_jobs // 2, max_jobs - queue.shape[0]))
    n_queue = min(queue.shape[0], max_jobs - n_running)
    chosen = np.zeros(opening.competes.shape[0], np.bool_)
    if n_queue < queue.shape[0]:
        n_shortest = (n_queue + 1) // 2
        chosen[queue[np.argsort(remaining_s[queue], kind="mergesort")[:n_shortest]]] = True
        n_chosen = n_shortest
        for row in queue:  # the oldest of the others
            if n_chosen == n_queue:
                break
            if not chosen[row]:
                chosen[row] = True
                n_chosen += 1
    else:
        chosen[queue] = True
    by_length = running[np.argsort(-remaining_s[running], kind="mergesort")]
    chosen[by_length[:n_running]] = True
    return np.flatnonzero(chosen), by_length[n_running:].copy()


@njit
def value_waiting(fixed, state, opening, posed, offers, kind, waiting_factor, weight_exponent, fairness_exponent):
    """The ``Terms`` of a posed problem, ``offers`` made to its jobs of each ``kind`` (S,)."""
    best_s = posed.best_s.copy()
    n_jobs = best_s.shape[0]
    for at in range(n_jobs):
        if opening.asked[posed.rows[at]] < opening.most[posed.rows[at]]:  # its best may not be on offer
            k = kind[at]
            least_s = np.inf
            for v in range(offers.block[offers.low[k]], offers.block[offers.high[k] + 1]):
                least_s = min(least_s, seconds_on(offers, k, v))
            if least_s < np.inf:
                best_s[at] = posed.model.iterations[at] * least_s
    weights = best_s**-weight_exponent
    if fairness_exponent != 0.0:
        share_s = share_seconds(posed.model, posed.capacity)  # inf for a job that the GPUs on offer cannot run
        for at in range(n_jobs):
            weights[at] *= (share_s[at] if share_s[at] < np.inf else best_s[at]) ** -fairness_exponent
    wait_s = expected_wait_s(fixed, state)
    if wait_s == np.inf:
        wait_s = best_s.min()
    waiting = np.empty(n_jobs)
    for at in range(n_jobs):
        idle_s = waiting_factor * wait_s + best_s[at]
        if not opening.waiting[posed.rows[at]]:
            idle_s += posed.restart_s[at]
        waiting[at] = np.inf if posed.stays[at] else weights[at] * idle_s
    return Terms(weights, waiting, weights * posed.restart_s)


@njit
def carry_out(fixed, state, opening, rows, counts, sketch):
    """Sketch the changes that bring ``rows`` (S,) to ``counts`` (S, M); whether all of them can be packed.

    New allocations are packed largest first, which leaves fewer fragments.
    """
    n_jobs = counts.shape[0]
    planned = np.full(n_jobs, -1)  # row of the sketch of each running job that changes
    size = np.zeros(n_jobs)
    for at in range(n_jobs):
        row = rows[at]
        if (counts[at] == opening.counts[row]).all():
            continue
        size[at] = counts[at].sum()
        if not opening.waiting[row]:
            give_back(state, sketch.nodes, sketch.free, opening.jobs[row])
            planned[at] = _add_row(sketch, opening.jobs[row])
    for at in np.argsort(-size, kind="mergesort"):
        if size[at] == 0:
            break
        if planned[at] < 0:
            planned[at] = _add_row(sketch, opening.jobs[rows[at]])
        sketch.counts[planned[at]] = counts[at]
        if take_gpus(fixed, state, sketch.nodes, sketch.free, opening.jobs[rows[at]], counts[at]) == np.inf:
            return False
    return True


@njit
def _add_row(sketch, job):
    """Append a row without GPUs for ``job``; returns its place."""
    at = sketch.length[0]
    sketch.jobs[at] = job
    sketch.counts[at] = 0
    sketch.length[0] += 1
    return at


@njit
def finish_plan(fixed, state, sketch, sound):
    """Jobs (n,) and counts (n, M) of the plan ``sketch``, or, if it is not ``sound`` or nothing would run under it, of
    waiting jobs on their fastest free allocations, by arrival."""
    n_used = 0
    for m in range(sketch.free.shape[0]):
        n_used += fixed.types[m].total - sketch.free[m]
    if not sound or n_used == 0:
        queue = np.empty(state.clock[0].n_active - state.clock[0].n_running, np.int64)
        queue = queue[: gather_waiting(state, queue)]
        sketch = begin_sketch(state, queue.shape[0])
        fill_sketch(fixed, state, sketch, queue)
    return sketch.jobs[: sketch.length[0]].copy(), sketch.counts[: sketch.length[0]].copy()

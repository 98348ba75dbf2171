"""Queue disciplines in compiled code: a whole run without a return to Python at every event.

A scheduler that is nothing but a queue says so (``QueueDiscipline``), and ``run_queue`` does what its plans would
do, epoch by epoch, to the same bytes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from hetenv.compiled import njit
from hetenv.scheduler import QueueDiscipline
from hetenv.simulator.draft import fastest_run_s
from hetenv.simulator.kernels import next_epoch, start_job

if TYPE_CHECKING:
    from hetenv.simulator.core import Simulator

CAN_TIME = hasattr(time, "clock_gettime")  # decisions are timed by the C library's clock, where there is one
_DECISIONS_A_CALL = 65_536
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.CPointer(types.int64)))


def run_queue(simulator: Simulator, discipline: QueueDiscipline) -> np.ndarray:
    """Let ``discipline`` decide at every epoch until all jobs are done; returns (D,) decision seconds.

    Raises:
        StallError: jobs wait that fit nowhere, on an idle cluster.
    """
    decision_s = []
    while not simulator.done:
        timed_s = np.empty(_DECISIONS_A_CALL)
        n_decisions, stuck = simulator.change(
            _run_queue, discipline.rank, discipline.skip, timed_s, time.CLOCK_MONOTONIC, simulator.cluster.n_gpus
        )
        decision_s.append(timed_s[:n_decisions])
        if stuck:
            simulator.advance()  # says who waits
    return np.concatenate(decision_s) if decision_s else np.empty(0)


@njit
def _run_queue(fixed, state, timeline, rank, skip, timed_s, clock_id, n_segments):
    """Decide and advance while ``timed_s`` and the timeline have room, the latter for ``n_segments`` a move.

    Returns the number of decisions, and whether nothing moves time on after the last.
    """
    clock = state.clock[0]
    queue, n_waiting = _waiting_by_rank(state, rank)
    free = np.empty(state.uses.shape[0], np.int64)
    counts = np.empty(state.uses.shape[0], np.int64)
    timespec = np.zeros(2, np.int64)
    n_decisions = 0
    while (
        clock.n_done < fixed.jobs.shape[0]
        and n_decisions < timed_s.shape[0]
        and clock.n_segments + n_segments <= timeline.shape[0]
    ):
        begin_s = _now_s(clock_id, timespec)
        n_waiting = _start_from(fixed, state, queue, n_waiting, skip, free, counts)
        timed_s[n_decisions] = _now_s(clock_id, timespec) - begin_s
        n_decisions += 1
        if clock.n_running == 0 and clock.next_arrival == fixed.jobs.shape[0]:
            return n_decisions, True
        arrived = clock.next_arrival
        next_epoch(fixed, state, timeline)
        for job in range(arrived, clock.next_arrival):
            _insert(queue, n_waiting, rank, job)
            n_waiting += 1
    return n_decisions, False


@njit
def _start_from(fixed, state, queue, n_waiting, skip, free, counts):
    """Start jobs of ``queue`` by rank, each on its fastest free allocation; returns how many go on waiting."""
    n_free = 0
    for m in range(free.shape[0]):
        free[m] = state.uses[m].free
        n_free += free[m]
    kept = 0
    at = 0
    while at < n_waiting and n_free > 0:
        job = queue[at]
        if fixed.jobs[job].min_gpus <= n_free and fastest_run_s(fixed, state, state.nodes, free, job, counts) < np.inf:
            start_job(fixed, state, job, counts)
            for m in range(free.shape[0]):
                free[m] -= counts[m]
                n_free -= counts[m]
        else:
            queue[kept] = job
            kept += 1
            if not skip:
                at += 1
                break
        at += 1
    while at < n_waiting:
        queue[kept] = queue[at]
        kept += 1
        at += 1
    return kept


@njit
def _waiting_by_rank(state, rank):
    """The waiting jobs in order, in an array with room for every job."""
    queue = np.empty(state.jobs.shape[0], np.int32)
    n_waiting = 0
    job = state.clock[0].first_waiting
    while job >= 0:
        if state.jobs[job].status == 1:
            _insert(queue, n_waiting, rank, job)
            n_waiting += 1
        job = state.jobs[job].next
    return queue, n_waiting


@njit
def _insert(queue, n_waiting, rank, job):
    at = n_waiting
    while at > 0 and rank[queue[at - 1]] > rank[job]:
        queue[at] = queue[at - 1]
        at -= 1
    queue[at] = job


@njit
def _now_s(clock_id, timespec):
    _clock_gettime(clock_id, timespec.ctypes)
    return timespec[0] + 1e-9 * timespec[1]

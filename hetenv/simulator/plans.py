"""Compiled check and execution of a whole plan."""

import numpy as np

from hetenv.compiled import njit
from hetenv.simulator.kernels import begin_running, hold, job_rate, pack, release_job, start_job, unpack

# What plan_fault may find; core.py puts it into words.
OK, NOT_ACTIVE, BAD_SIZE, NOT_PREEMPTIVE, NOT_MALLEABLE, CANNOT_RUN, NO_CAPACITY, BAD_NODE = range(8)


@njit
def plan_fault(fixed, state, jobs, counts, places):
    """Why a plan cannot be carried out: (code, row or type), (0, 0) if it can.

    ``places`` (R, 3) int: (plan row, node, GPUs) by ascending plan row for plans that choose nodes, else no rows.
    """
    n_types = counts.shape[1]
    free = np.zeros(n_types, np.int64)
    for m in range(n_types):
        free[m] = state.uses[m].free
    rate_hangs_on_packing = False
    for row in range(jobs.shape[0]):
        job = jobs[row]
        if job < 0 or job >= state.jobs.shape[0] or not (1 <= state.jobs[job].status <= 2):
            return NOT_ACTIVE, row
        record = state.jobs[job]
        spec = fixed.jobs[job]
        n_gpus = 0
        for m in range(n_types):
            if counts[row, m] < 0:
                return BAD_SIZE, row
            n_gpus += counts[row, m]
            free[m] += state.counts[job, m] - counts[row, m]
        if _keeps(state, job, row, counts, places):
            continue
        if record.status == 2 and not fixed.rules[0].preemptive and (n_gpus == 0 or not spec.malleable):
            return NOT_PREEMPTIVE, row
        if n_gpus > 0:
            if n_gpus < spec.min_gpus or n_gpus > spec.max_gpus:
                return BAD_SIZE, row
            if record.size > 0 and n_gpus != record.size and not spec.malleable:
                return NOT_MALLEABLE, row
            on_one = job_rate(fixed, job, counts[row], 1) > 0.0
            on_several = job_rate(fixed, job, counts[row], 2) > 0.0
            if not on_one and not on_several:
                return CANNOT_RUN, row
            rate_hangs_on_packing = rate_hangs_on_packing or on_one != on_several
    for m in range(n_types):
        if free[m] < 0:
            return NO_CAPACITY, m
    if places.shape[0] > 0:
        return _places_fault(fixed, state, jobs, counts, places)
    if rate_hangs_on_packing:
        return _packing_fault(fixed, state, jobs, counts, places)
    return OK, 0


@njit
def _packing_fault(fixed, state, jobs, counts, places):
    """Try the packing of a plan with jobs whose measured rate is 0 once they span several nodes (or just one)."""
    nodes = state.nodes.copy()
    keeps = np.zeros(jobs.shape[0], np.bool_)
    for row in range(jobs.shape[0]):
        keeps[row] = _keeps(state, jobs[row], row, counts, places)
        if not keeps[row]:
            unpack(state, nodes, jobs[row])
    for row in range(jobs.shape[0]):
        if not keeps[row] and counts[row].sum() > 0:
            n_nodes = pack(fixed, nodes, counts[row])
            if job_rate(fixed, jobs[row], counts[row], n_nodes) <= 0.0:
                return CANNOT_RUN, row
    return OK, 0


@njit
def _places_fault(fixed, state, jobs, counts, places):
    """Check node by node a plan that chooses its nodes."""
    nodes = state.nodes.copy()
    for row in range(jobs.shape[0]):
        unpack(state, nodes, jobs[row])
    left = counts.copy()
    n_nodes = np.zeros(jobs.shape[0], np.int64)
    for r in range(places.shape[0]):
        row, node, gpus = places[r]
        if node < 0 or node >= nodes.shape[0] or gpus < 1 or gpus > nodes[node].free:
            return BAD_NODE, row
        for earlier in range(r - n_nodes[row], r):
            if places[earlier, 1] == node:
                return BAD_NODE, row
        nodes[node].free -= gpus
        left[row, nodes[node].type] -= gpus
        n_nodes[row] += 1
    for row in range(jobs.shape[0]):
        for m in range(counts.shape[1]):
            if left[row, m] != 0:
                return BAD_NODE, row
        if n_nodes[row] > 0 and job_rate(fixed, jobs[row], counts[row], n_nodes[row]) <= 0.0:
            return CANNOT_RUN, row
    return OK, 0


@njit
def apply_plan(fixed, state, timeline, jobs, counts, places):
    """Carry out a plan that ``plan_fault`` found sound: give back first, then take in plan order.

    A running job whose counts stay the same is left where it is, unless the plan chooses other nodes.
    Returns how many jobs changed.
    """
    changed = 0
    keeps = np.zeros(jobs.shape[0], np.bool_)
    for row in range(jobs.shape[0]):
        keeps[row] = _keeps(state, jobs[row], row, counts, places)
        if not keeps[row]:
            changed += 1
            if state.jobs[jobs[row]].status == 2:
                release_job(fixed, state, timeline, jobs[row])
    for row in range(jobs.shape[0]):
        if not keeps[row] and counts[row].sum() > 0:
            if places.shape[0] == 0:
                start_job(fixed, state, jobs[row], counts[row])
            else:
                for r in range(places.shape[0]):
                    if places[r, 0] == row:
                        hold(state, jobs[row], places[r, 1], places[r, 2])
                begin_running(fixed, state, jobs[row])
    return changed


@njit
def _keeps(state, job, row, counts, places):
    """Whether a plan row leaves the job as it is."""
    for m in range(counts.shape[1]):
        if counts[row, m] != state.counts[job, m]:
            return False
    if places.shape[0] == 0 or state.jobs[job].status == 1:
        return True
    asked = 0
    for r in range(places.shape[0]):
        if places[r, 0] == row:
            asked += 1
            found = False
            at = state.jobs[job].first_hold
            while at >= 0:
                found = found or (state.holds[at].node == places[r, 1] and state.holds[at].gpus == places[r, 2])
                at = state.holds[at].next
            if not found:
                return False
    return asked == state.jobs[job].n_nodes

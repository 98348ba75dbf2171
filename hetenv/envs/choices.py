"""What an agent can do now: the jobs in its window, their candidates, the mask."""

import numpy as np

from hetenv.compiled import njit_in_place as njit
from hetenv.envs.candidates import propose_candidates
from hetenv.simulator.kernels import release_job, start_job


@njit
def may_change(fixed, job):
    """Whether a running job may be changed at all."""
    return fixed.rules[0].preemptive > 0 or fixed.jobs[job].malleable > 0


@njit
def choose_window(fixed, state, view):
    """Choose the jobs in view: waiting ones first, but a quarter of the places is the running ones' if needed."""
    clock = state.clock[0]
    n_waiting = clock.n_active - clock.n_running
    n_running = 0
    if view.agent[0].running_may_change > 0:
        for at in range(clock.n_running):
            n_running += may_change(fixed, state.running[at])
    places = view.window.shape[0]
    for_running = min(n_running, max(places - n_waiting, places // 4))
    _fill_from(fixed, state, view.window, 0, places - for_running, n_waiting, 1, clock.first_waiting)
    if for_running > 0:
        _fill_from(fixed, state, view.window, places - for_running, places, n_running, 2, clock.first_active)


@njit
def _fill_from(fixed, state, window, first, end, n_jobs, status, begin):
    """Put jobs of this status into places first..end: all ``n_jobs`` if they fit, else the list's head and tail.

    Of the running jobs only those that may be changed count. The head of the list is looked for from job ``begin``.
    """
    places = end - first
    n_head = n_jobs if n_jobs <= places else (places + 1) // 2
    at = first
    job = begin
    while at < first + n_head:
        if state.jobs[job].status == status and (status == 1 or may_change(fixed, job)):
            window[at] = job
            at += 1
        job = state.jobs[job].next
    if n_jobs <= places:
        window[at:end] = -1
        return
    at = end
    job = state.clock[0].last_active
    while at > first + n_head:
        if state.jobs[job].status == status and (status == 1 or may_change(fixed, job)):
            at -= 1
            window[at] = job
        job = state.jobs[job].prev


@njit
def _see(fixed, view, job):
    """Make the candidates of a job that comes into view for the first time."""
    seen = view.seen[job]
    n_places = view.candidates.shape[1]
    n_offered = n_places - 1 if fixed.rules[0].preemptive > 0 else n_places
    seen.n_candidates = propose_candidates(
        fixed,
        job,
        view.draws[job, :n_offered],
        view.counts[job, :n_offered],
        view.candidates[job, :n_offered],
        view.ideal,
        view.scratch,
    )
    for s in range(seen.n_candidates, n_places):
        view.candidates[job, s].n_gpus = 0
    seen.best_rate = 0.0
    seen.least_gpu_s = np.inf
    for s in range(seen.n_candidates):
        candidate = view.candidates[job, s]
        seen.best_rate = max(seen.best_rate, candidate.rate)
        seen.least_gpu_s = min(seen.least_gpu_s, candidate.n_gpus / candidate.rate)
    seen.fastest_type = 0
    for m in range(fixed.types.shape[0]):
        if fixed.speed[job, m] > fixed.speed[job, seen.fastest_type]:
            seen.fastest_type = m


@njit
def _sum_least_gpus(fixed, state):
    """GPUs that the waiting jobs need at the least."""
    needed = 0
    job = state.clock[0].first_waiting
    while job >= 0:
        if state.jobs[job].status == 1:
            needed += fixed.jobs[job].min_gpus
        job = state.jobs[job].next
    return needed


@njit
def _free_gpus(fixed, state, view):
    """The free GPUs, and how many of them a job may take beyond its least size.

    In a one-shot scenario every other waiting job must still get its least size.
    """
    n_free = 0
    n_total = 0
    for m in range(state.uses.shape[0]):
        n_free += state.uses[m].free
        n_total += fixed.types[m].total
    if view.agent[0].one_shot > 0 and state.clock[0].n_active > state.clock[0].n_running:
        return n_free, n_free - _sum_least_gpus(fixed, state)
    return n_free, n_total


@njit
def nothing_to_place(state, view):
    """Whether a look at the free GPUs is enough to say that no placement is possible."""
    n_free = 0
    for m in range(state.uses.shape[0]):
        n_free += state.uses[m].free
    return n_free == 0 and view.agent[0].running_may_change == 0


@njit
def refresh_mask(fixed, state, view):
    """Choose the window and mark what can be done now; returns whether any placement is possible.

    A candidate can be taken if the job has not changed in this epoch, the GPUs are free (its own count
    as free), it differs from what the job holds, a job sized for good keeps its size, and, in a one-shot
    scenario, every other waiting job can still get its least size. GPUs can be given back by a running
    job unless nothing would be left to move time on. Waiting needs something that moves time on: a running
    job or an arrival to come.
    """
    choose_window(fixed, state, view)
    n_free, spare = _free_gpus(fixed, state, view)
    found = False
    view.mask[:] = False
    for w in range(view.window.shape[0]):
        if view.window[w] >= 0:
            found |= _mark(fixed, state, view, w, n_free, spare)
    clock = state.clock[0]
    stuck = clock.n_running == 0 and clock.next_arrival == fixed.jobs.shape[0]
    must_place = found and view.agent[0].one_shot > 0 and clock.n_active > clock.n_running
    view.mask[view.mask.shape[0] - 1] = not stuck and not must_place
    return found


@njit
def _mark(fixed, state, view, w, n_free, spare):
    """Mark what the job at place ``w`` can do; whether that is anything."""
    job = view.window[w]
    if view.seen[job].n_candidates == 0:
        _see(fixed, view, job)
    if view.seen[job].changed_at == view.agent[0].epoch:
        return False
    record = state.jobs[job]
    spec = fixed.jobs[job]
    n_places = view.candidates.shape[1]
    n_types = state.uses.shape[0]
    runs = record.status == 2
    preemptive = fixed.rules[0].preemptive > 0
    sized = record.size > 0 and spec.malleable == 0
    most = min(n_free + record.n_gpus, spec.min_gpus + spare)
    found = False
    for s in range(view.seen[job].n_candidates):
        n_gpus = view.candidates[job, s].n_gpus
        if n_gpus > most or (sized and n_gpus != record.size):
            continue
        if runs and not preemptive and n_gpus == record.n_gpus:
            continue  # may be resized, not moved
        fits = True
        same = runs
        for m in range(n_types):
            asked = view.counts[job, s, m]
            held = state.counts[job, m]
            fits = fits and asked <= state.uses[m].free + held
            same = same and asked == held
        if fits and not same:
            view.mask[w * n_places + s] = True
            found = True
    clock = state.clock[0]
    if preemptive and runs and (clock.n_running > 1 or clock.next_arrival < fixed.jobs.shape[0]):
        view.mask[w * n_places + n_places - 1] = True
        found = True
    return found


@njit
def take_action(fixed, state, timeline, view, action):
    """Carry out a valid placement: give the job's GPUs back if it runs, then take the candidate's; returns the job."""
    n_places = view.candidates.shape[1]
    job = view.window[action // n_places]
    chosen = action % n_places
    if state.jobs[job].status == 2:
        release_job(fixed, state, timeline, job)
    if view.candidates[job, chosen].n_gpus > 0:
        start_job(fixed, state, job, view.counts[job, chosen])
    view.seen[job].changed_at = view.agent[0].epoch
    return job

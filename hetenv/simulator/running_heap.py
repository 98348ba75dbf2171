"""The running jobs as a binary heap ordered by (eta_s, job): ``state.running`` and the jobs' ``heap_at``."""

from hetenv.compiled import njit_in_place as njit


@njit
def _sooner(jobs, a, b):
    return jobs[a].eta_s < jobs[b].eta_s or (jobs[a].eta_s == jobs[b].eta_s and a < b)


@njit
def _sift_up(jobs, running, at):
    job = running[at]
    while at > 0:
        above = (at - 1) // 2
        if not _sooner(jobs, job, running[above]):
            break
        running[at] = running[above]
        jobs[running[at]].heap_at = at
        at = above
    running[at] = job
    jobs[job].heap_at = at


@njit
def _sift_down(jobs, running, at, size):
    job = running[at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and _sooner(jobs, running[below + 1], running[below]):
            below += 1
        if not _sooner(jobs, running[below], job):
            break
        running[at] = running[below]
        jobs[running[at]].heap_at = at
        at = below
    running[at] = job
    jobs[job].heap_at = at


@njit
def push_running(state, job):
    clock = state.clock[0]
    state.running[clock.n_running] = job
    clock.n_running += 1
    _sift_up(state.jobs, state.running, clock.n_running - 1)


@njit
def remove_running(state, job):
    clock = state.clock[0]
    at = state.jobs[job].heap_at
    clock.n_running -= 1
    last = state.running[clock.n_running]
    state.jobs[job].heap_at = -1
    if last != job:
        state.running[at] = last
        state.jobs[last].heap_at = at
        _sift_up(state.jobs, state.running, at)
        _sift_down(state.jobs, state.running, state.jobs[last].heap_at, clock.n_running)


@njit
def rebuild_heap(state):
    """Restore the order after finishes have changed in place."""
    size = state.clock[0].n_running
    for at in range(size // 2 - 1, -1, -1):
        _sift_down(state.jobs, state.running, at, size)

"""The running jobs in the order of their finishes, (eta_s, job), the last first: ``state.running``.

Which job comes and goes is mostly one of the next to finish, at the end of the list, so that little has to move; a heap
would not show an environment the next releases, which it looks at in every step.
"""

from hetenv.compiled import njit_in_place as njit


@njit
def next_to_finish(state):
    """The running job that finishes first; there is one."""
    return state.running[state.clock[0].n_running - 1]


@njit
def push_running(state, job):
    """Put ``job``, whose ``eta_s`` is set, in its place."""
    clock, running, jobs = state.clock[0], state.running, state.jobs
    eta_s = jobs[job].eta_s
    place, end = 0, clock.n_running
    while place < end:
        middle = (place + end) // 2
        other_s = jobs[running[middle]].eta_s
        if other_s > eta_s or (other_s == eta_s and running[middle] > job):
            place = middle + 1
        else:
            end = middle
    for at in range(clock.n_running, place, -1):
        running[at] = running[at - 1]
    running[place] = job
    clock.n_running += 1


@njit
def remove_running(state, job):
    clock, running = state.clock[0], state.running
    clock.n_running -= 1
    at = clock.n_running
    moved = running[at]
    while moved != job:
        at -= 1
        moved, running[at] = running[at], moved


@njit
def sort_running(state):
    """Restore the order after finishes have changed in place."""
    n_running = state.clock[0].n_running
    state.clock[0].n_running = 0
    for at in range(n_running):
        push_running(state, state.running[at])

"""How long waiting jobs have to wait for the GPUs of the running ones."""

import numpy as np

from hetenv.compiled import njit


@njit
def expected_wait_s(fixed, state):
    """Mean over the waiting jobs of the seconds until the GPUs given back serve it; inf when nothing runs.

    Every running job gives its GPUs back when it is due to finish, and the waiting jobs take them in order of arrival,
    each as few as it accepts, of whatever type. Those who come after all that is held wait beyond the last finish in
    proportion. When nobody waits, it is the time to the next release.
    """
    clock = state.clock[0]
    if clock.n_running == 0:
        return np.inf
    running = state.running[: clock.n_running][::-1]
    last_s = state.jobs[running[-1]].eta_s - clock.time_s
    released, wanted, n_waiting = 0, 0, 0
    wait_s = 0.0
    next_release = 0
    job = clock.first_waiting
    while job >= 0:
        record, spec = state.jobs[job], fixed.jobs[job]
        if record.status == 1:
            n_waiting += 1
            wanted += record.size if record.size > 0 and not spec.malleable else spec.min_gpus
            while released < wanted and next_release < clock.n_running:
                released += state.jobs[running[next_release]].n_gpus
                next_release += 1
            if released < wanted:
                wait_s += last_s * wanted / released
            else:
                wait_s += state.jobs[running[next_release - 1]].eta_s - clock.time_s
        job = record.next
    if n_waiting == 0:
        return state.jobs[running[0]].eta_s - clock.time_s
    return wait_s / n_waiting

"""The observation, kept up to date in place: only what can have changed is written.

What a waiting job that has never run shows of itself is constant but for its age, its mask and the scarcity and wait
of its candidates. Such rows are moved with their job through the window; all others are written anew.
"""

import numpy as np

from hetenv.compiled import njit_in_place as njit
from hetenv.simulator.running_order import next_to_finish

_RELEASES_SEEN = 64  # running jobs that finish first; of later ones no wait is told


@njit
def observe(fixed, state, view, observation):
    """Bring the observation up to the window and mask of ``refresh_mask``."""
    clock = state.clock[0]
    now = clock.time_s
    scale = view.agent[0].time_scale_s
    n_types = fixed.types.shape[0]
    n_gpus = 0
    n_free = 0
    for m in range(n_types):
        n_gpus += fixed.types[m].total
        n_free += state.uses[m].free
        observation.types[m, 3] = 0.0
        view.release_s[m] = np.inf
    _move_rows(state, view.window, observation)
    soonest = state.running[max(0, clock.n_running - _RELEASES_SEEN) : clock.n_running]
    n_shown = 0
    for w in range(view.window.shape[0]):
        job = view.window[w]
        if job >= 0:
            n_shown += 1
            observation.types[view.seen[job].fastest_type, 3] += 1.0
            _observe_job(fixed, state, view, observation, w, job, now, scale, n_gpus, soonest)
        elif observation.rows[w] != -1:
            observation.rows[w] = -1
            observation.jobs[w, :] = 0.0
            observation.candidates[w, :, :] = 0.0
    n_found = 0
    for at in range(clock.n_running - 1, -1, -1):
        if n_found == n_types:
            break
        job = state.running[at]
        for m in range(n_types):
            if state.counts[job, m] > 0 and view.release_s[m] == np.inf:
                view.release_s[m] = state.jobs[job].eta_s
                n_found += 1
    for m in range(n_types):
        total = fixed.types[m].total
        observation.types[m, 0] = total / n_gpus
        observation.types[m, 1] = state.uses[m].free / total
        observation.types[m, 2] = _squash(view.release_s[m] - now, scale)
        observation.types[m, 3] /= max(n_shown, 1)
    last_arrival_s = fixed.jobs[clock.next_arrival - 1].arrival_s
    release_s = state.jobs[next_to_finish(state)].eta_s if clock.n_running > 0 else np.inf
    n_waiting = clock.n_active - clock.n_running
    out = observation.globals
    out[0] = n_waiting / (n_waiting + view.window.shape[0])
    out[1] = clock.n_running / n_gpus
    out[2] = n_free / n_gpus
    out[3] = clock.n_done / fixed.jobs.shape[0]
    out[4] = _squash(release_s - now, scale)
    out[5] = _squash((last_arrival_s - fixed.jobs[0].arrival_s) / max(clock.next_arrival - 1, 1), scale)
    out[6] = _squash(now - last_arrival_s, scale)
    out[7] = view.mask[view.mask.shape[0] - 1]
    for action in range(view.mask.shape[0]):
        observation.action_mask[action] = view.mask[action]


@njit
def _wait_s(state, counts, held, soonest, now):
    """Seconds until ``counts`` (M,) GPUs are free, those ``held`` (M,) included; inf if not by the ``soonest``."""
    wait_s = 0.0
    for m in range(counts.shape[0]):
        missing = counts[m] - state.uses[m].free - held[m]
        if counts[m] > 0 and missing > 0:
            for at in range(soonest.shape[0] - 1, -1, -1):
                missing -= state.counts[soonest[at], m]
                if missing <= 0:
                    wait_s = max(wait_s, state.jobs[soonest[at]].eta_s - now)
                    break
            if missing > 0:
                return np.inf
    return wait_s


@njit
def _squash(value, scale):
    return 1.0 if value == np.inf else value / (value + scale)


@njit
def _move_rows(state, window, observation):
    """Move the rows of waiting jobs to where the window has them now.

    Both orders are by arrival, so no row is overwritten before it has moved: to the front in one pass from the
    front, to the back in one from the back.
    """
    rows = observation.rows
    n_rows = rows.shape[0]
    at = 0
    for w in range(n_rows):
        job = window[w]
        if job < 0 or state.jobs[job].size > 0:
            continue
        while at < n_rows and rows[at] < job:
            at += 1
        if w < at < n_rows and rows[at] == job:
            _move_row(observation, at, w)
    at = n_rows - 1
    for w in range(n_rows - 1, -1, -1):
        job = window[w]
        if job < 0 or state.jobs[job].size > 0:
            continue
        while at >= 0 and (rows[at] > job or rows[at] < 0):
            at -= 1
        if 0 <= at < w and rows[at] == job and rows[w] != job:
            _move_row(observation, at, w)


@njit
def _move_row(observation, source, target):
    for f in range(observation.jobs.shape[1]):
        observation.jobs[target, f] = observation.jobs[source, f]
    for s in range(observation.candidates.shape[1]):
        for f in range(observation.candidates.shape[2]):
            observation.candidates[target, s, f] = observation.candidates[source, s, f]
    observation.rows[target] = observation.rows[source]


@njit
def _observe_job(fixed, state, view, observation, w, job, now, scale, n_gpus, soonest):
    """The row of ``job`` and its candidates at place ``w``."""
    record = state.jobs[job]
    spec = fixed.jobs[job]
    seen = view.seen[job]
    out = observation.jobs[w]
    remaining = record.remaining
    if record.size > 0:
        remaining = max(0.0, remaining - record.rate * max(0.0, now - record.as_of_s))
        observation.rows[w] = -2
    if observation.rows[w] != job:
        out[0] = 1.0
        out[1] = _squash(remaining / seen.best_rate, scale)
        out[2] = _squash(remaining * seen.least_gpu_s, scale)
        out[5] = spec.min_gpus / n_gpus
        out[6] = spec.max_gpus / n_gpus
        out[7] = record.status == 2
        out[8] = record.n_gpus / spec.max_gpus
        out[9] = _squash(spec.restart_s, scale)
        _observe_candidates(fixed, state, view, observation.candidates[w], job, now, remaining, scale, n_gpus)
        observation.rows[w] = -2 if record.size > 0 else job
    age_s = now - spec.arrival_s
    fastest_s = remaining / seen.best_rate
    out[3] = _squash(age_s, scale)
    out[4] = fastest_s / (age_s + fastest_s) if fastest_s > 0.0 else 0.0
    out[10] = seen.changed_at == view.agent[0].epoch
    first_action = w * view.candidates.shape[1]
    _observe_free(state, view, observation.candidates[w], job, first_action, now, scale, soonest)


@njit
def _observe_candidates(fixed, state, view, out, job, now, remaining, scale, n_gpus):
    """All of one job's candidates ``out`` (S, Fc) that does not depend on the free GPUs."""
    spec = fixed.jobs[job]
    record = state.jobs[job]
    seen = view.seen[job]
    restart_s = spec.restart_s if record.size > 0 else 0.0
    now_s = record.eta_s - now
    for s in range(seen.n_candidates):
        candidate = view.candidates[job, s]
        run_s = remaining / candidate.rate
        then_s = run_s + restart_s
        out[s, 0] = 1.0
        out[s, 2] = candidate.n_gpus / spec.max_gpus
        out[s, 3] = candidate.n_gpus / n_gpus
        out[s, 4] = _squash(then_s, scale)
        out[s, 5] = candidate.rate / seen.best_rate * (run_s / then_s if then_s > 0.0 else 1.0)
        out[s, 6] = min(1.0, seen.least_gpu_s * candidate.rate / candidate.n_gpus)
        out[s, 7] = candidate.same_size
        out[s, 9] = candidate.one_node
        out[s, 10] = 0.0
        if record.status == 2 and now_s + then_s > 0.0:
            out[s, 10] = (now_s - then_s) / (now_s + then_s)
    out[seen.n_candidates :, :] = 0.0


@njit
def _observe_free(state, view, out, job, first_action, now, scale, soonest):
    """What depends on the free GPUs: mask, scarcity and wait, and whether GPUs can be given back."""
    n_types = state.uses.shape[0]
    n_candidates = view.seen[job].n_candidates
    for s in range(n_candidates):
        scarcity = 0.0
        fits = True
        for m in range(n_types):
            asked = view.counts[job, s, m]
            if asked > 0:
                free = state.uses[m].free + state.counts[job, m]
                scarcity = max(scarcity, asked / free if free > asked else 1.0)
                fits = fits and free >= asked
        out[s, 1] = view.mask[first_action + s]
        out[s, 8] = scarcity
        if fits:
            out[s, 11] = 0.0
        else:
            wait_s = _wait_s(state, view.counts[job, s], state.counts[job], soonest, now)
            out[s, 11] = _squash(wait_s, scale)
    last = out.shape[0] - 1
    if n_candidates <= last and view.mask[first_action + last]:  # give all back
        out[last, 0] = 1.0
        out[last, 1] = 1.0
        out[last, 10] = -1.0

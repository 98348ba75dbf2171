"""What an agent sees of a simulator: the window of jobs, their candidates, the mask, the observation.

``View`` lies beside the simulator's ``State``: it holds what belongs to the agent's side alone.
Times enter observations as t / (t + time scale), numbers of jobs as n / (n + W): finite, bounded, cheap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetenv.compiled import njit
from hetenv.envs.candidates import CANDIDATE, propose_candidates
from hetenv.simulator.kernels import release_job, start_job

JOB_FEATURES = (
    "present",
    "work: remaining time under its fastest candidate, squashed",
    "GPU work: least GPU-seconds remaining over the candidates, squashed",
    "age, squashed",
    "progress bound: fastest remaining time / (age + fastest remaining time)",
    "least GPUs / cluster",
    "most GPUs / cluster",
    "running",
    "held GPUs / most GPUs",
    "restart cost, squashed",
    "changed in this decision epoch, so fixed until the next",
)
CANDIDATE_FEATURES = (
    "present",
    "can be taken now",
    "GPUs / most GPUs",
    "GPUs / cluster",
    "remaining time under it, restart included, squashed",
    "speed: fastest remaining time / remaining time under it",
    "efficiency: least GPU-seconds / GPU-seconds under it",
    "same size: its rate / rate of the fastest category of that size",
    "scarcity: largest share it takes of the free GPUs of a type",
    "fits one node",
    "gain over the current allocation: (now - then) / (now + then), -1 for giving all back",
)
TYPE_FEATURES = (
    "GPUs / cluster",
    "free / total",
    "next release, squashed",
    "demand: share of the window's jobs for which it is the fastest type",
)
GLOBAL_FEATURES = (
    "waiting jobs, squashed",
    "running jobs / GPUs of the cluster",
    "free GPUs / cluster",
    "finished jobs / all jobs",
    "next release, squashed",
    "mean gap between arrivals, squashed",
    "time since the last arrival, squashed",
    "may wait",
)


class View(NamedTuple):
    """The agent's side of one environment."""

    counts: np.ndarray  # (J, S, M) int32, candidate categories; the last place of a preemptive scenario is "give back"
    candidates: np.ndarray  # (J, S) CANDIDATE
    best_rate: np.ndarray  # (J,) iterations/s of the fastest candidate, 0 until the job comes into view
    least_gpu_s: np.ndarray  # (J,) least GPU-seconds of one iteration over the candidates
    changed_at: np.ndarray  # (J,) int64, decision epoch in which the job last changed
    draws: np.ndarray  # (J, S, M + 1) float32, uniform draws for sampled mixes
    window: np.ndarray  # (W,) int64, jobs shown, -1: empty place
    mask: np.ndarray  # (W * S + 1,) bool, last: wait


class Observation(NamedTuple):
    """Private buffers that the kernel fills; the environment hands out copies."""

    jobs: np.ndarray  # (W, len(JOB_FEATURES)) float32
    candidates: np.ndarray  # (W, S, len(CANDIDATE_FEATURES)) float32
    types: np.ndarray  # (M, len(TYPE_FEATURES)) float32
    globals: np.ndarray  # (len(GLOBAL_FEATURES),) float32


def make_view(n_jobs: int, n_types: int, window: int, n_candidates: int, rng: np.random.Generator) -> View:
    """A view in which no job has been seen yet; ``rng`` draws the sampled mixes."""
    return View(
        counts=np.zeros((n_jobs, n_candidates, n_types), np.int32),
        candidates=np.zeros((n_jobs, n_candidates), CANDIDATE),
        best_rate=np.zeros(n_jobs),
        least_gpu_s=np.zeros(n_jobs),
        changed_at=np.full(n_jobs, -1, np.int64),
        draws=rng.random((n_jobs, n_candidates, n_types + 1), dtype=np.float32),
        window=np.full(window, -1, np.int64),
        mask=np.zeros(window * n_candidates + 1, np.bool_),
    )


def make_observation(n_types: int, window: int, n_candidates: int) -> Observation:
    return Observation(
        np.zeros((window, len(JOB_FEATURES)), np.float32),
        np.zeros((window, n_candidates, len(CANDIDATE_FEATURES)), np.float32),
        np.zeros((n_types, len(TYPE_FEATURES)), np.float32),
        np.zeros(len(GLOBAL_FEATURES), np.float32),
    )


@njit
def _may_change(fixed, state, job):
    """Whether a running job may be changed at all."""
    return fixed.rules[0].preemptive > 0 or fixed.jobs[job].malleable > 0


@njit
def _fill_from(fixed, state, window, first, end, running):
    """Put jobs into places first..end: the head of the list in the first half, its tail in the rest.

    ``running`` chooses between running jobs that may be changed and waiting ones.
    """
    wanted = 2 if running else 1
    places = end - first
    head = first
    job = state.clock[0].first_active
    last_head = -1
    while job >= 0 and head < first + (places + 1) // 2:
        if state.jobs[job].status == wanted and (not running or _may_change(fixed, state, job)):
            window[head] = job
            last_head = job
            head += 1
        job = state.jobs[job].next
    tail = end
    job = state.clock[0].last_active
    while job >= 0 and job != last_head and tail > head:
        if state.jobs[job].status == wanted and (not running or _may_change(fixed, state, job)):
            tail -= 1
            window[tail] = job
        job = state.jobs[job].prev
    moved = head
    for at in range(tail, end):  # close the gap between head and tail
        window[moved] = window[at]
        moved += 1
    window[moved:end] = -1


@njit
def choose_window(fixed, state, window):
    """Choose the jobs in view (W,): waiting ones first, but a quarter of the places is the running ones' if needed."""
    n_waiting = state.clock[0].n_active - state.clock[0].n_running
    n_running = 0
    for at in range(state.clock[0].n_running):
        n_running += _may_change(fixed, state, state.running[at])
    places = window.shape[0]
    for_running = min(n_running, max(places - n_waiting, places // 4))
    _fill_from(fixed, state, window, 0, places - for_running, False)
    _fill_from(fixed, state, window, places - for_running, places, True)


@njit
def _see(fixed, view, job):
    """Make the candidates of a job that comes into view for the first time."""
    n_places = view.candidates.shape[1]
    n_offered = n_places - 1 if fixed.rules[0].preemptive > 0 else n_places
    propose_candidates(
        fixed, job, view.draws[job, :n_offered], view.counts[job, :n_offered], view.candidates[job, :n_offered]
    )
    least = np.inf
    for s in range(n_offered):
        candidate = view.candidates[job, s]
        if candidate.n_gpus > 0:
            view.best_rate[job] = max(view.best_rate[job], candidate.rate)
            least = min(least, candidate.n_gpus / candidate.rate)
    view.least_gpu_s[job] = least


@njit
def _sum_least_gpus(fixed, state):
    """GPUs that the waiting jobs need at the least."""
    needed = 0
    job = state.clock[0].first_active
    while job >= 0:
        if state.jobs[job].status == 1:
            needed += fixed.jobs[job].min_gpus
        job = state.jobs[job].next
    return needed


@njit
def refresh_mask(fixed, state, view, epoch, one_shot):
    """Choose the window and mark what can be done now; returns whether any placement is possible.

    A candidate can be taken if the job has not changed in this epoch, the GPUs are free (its own count
    as free), it differs from what the job holds, a job sized for good keeps its size, and, in a one-shot
    scenario, every other waiting job can still get its least size. GPUs can be given back by a running
    job unless nothing would be left to move time on. Waiting needs something that moves time on: a running
    job or an arrival to come.
    """
    choose_window(fixed, state, view.window)
    n_places = view.candidates.shape[1]
    n_types = fixed.types.shape[0]
    clock = state.clock[0]
    more_to_come = clock.next_arrival < fixed.jobs.shape[0]
    preemptive = fixed.rules[0].preemptive > 0
    needed = _sum_least_gpus(fixed, state) if one_shot else 0
    n_free = 0
    for m in range(n_types):
        n_free += state.uses[m].free
    any_placement = False
    view.mask[:] = False
    for w in range(view.window.shape[0]):
        job = view.window[w]
        if job < 0:
            continue
        if view.best_rate[job] == 0.0:
            _see(fixed, view, job)
        if view.changed_at[job] == epoch:
            continue
        record = state.jobs[job]
        sized = record.size > 0 and fixed.jobs[job].malleable == 0
        for s in range(n_places):
            n_gpus = view.candidates[job, s].n_gpus
            if n_gpus == 0 or (sized and n_gpus != record.size):
                continue
            if one_shot and needed > 0 and n_free - n_gpus < needed - fixed.jobs[job].min_gpus:
                continue
            if record.status == 2 and not preemptive and n_gpus == record.n_gpus:
                continue  # may be resized, not moved
            fits = True
            same = True
            for m in range(n_types):
                fits = fits and view.counts[job, s, m] <= state.uses[m].free + state.counts[job, m]
                same = same and view.counts[job, s, m] == state.counts[job, m]
            if fits and not same:
                view.mask[w * n_places + s] = True
                any_placement = True
        if preemptive and record.status == 2 and (clock.n_running > 1 or more_to_come):
            view.mask[w * n_places + n_places - 1] = True
            any_placement = True
    stuck = clock.n_running == 0 and not more_to_come
    must_place = one_shot and needed > 0 and any_placement
    view.mask[view.mask.shape[0] - 1] = not stuck and not must_place
    return any_placement


@njit
def take_action(fixed, state, timeline, view, action, epoch):
    """Carry out a valid placement: give the job's GPUs back if it runs, then take the candidate's."""
    n_places = view.candidates.shape[1]
    job = view.window[action // n_places]
    counts = view.counts[job, action % n_places]
    if state.jobs[job].status == 2:
        release_job(fixed, state, timeline, job)
    if counts.sum() > 0:
        start_job(fixed, state, job, counts)
    view.changed_at[job] = epoch


@njit
def _squash(value, scale):
    return 1.0 if value == np.inf else value / (value + scale)


@njit
def observe(fixed, state, view, observation, epoch, time_scale_s):
    """Fill the observation buffers from the window and mask of ``refresh_mask``."""
    clock = state.clock[0]
    now = clock.time_s
    n_types = fixed.types.shape[0]
    n_places = view.candidates.shape[1]
    n_gpus_total = 0
    n_free = 0
    for m in range(n_types):
        n_gpus_total += fixed.types[m].total
        n_free += state.uses[m].free
        observation.types[m, 3] = 0.0
    observation.jobs[:] = 0.0
    observation.candidates[:] = 0.0
    n_shown = 0
    for w in range(view.window.shape[0]):
        job = view.window[w]
        if job < 0:
            continue
        n_shown += 1
        fastest_type = 0
        for m in range(n_types):
            if fixed.speed[job, m] > fixed.speed[job, fastest_type]:
                fastest_type = m
        observation.types[fastest_type, 3] += 1.0
        _observe_job(fixed, state, view, observation.jobs[w], job, epoch, now, time_scale_s, n_gpus_total)
        _observe_candidates(
            fixed, state, view, observation.candidates[w], job, w * n_places, now, time_scale_s, n_gpus_total
        )
    for m in range(n_types):
        observation.types[m, 0] = fixed.types[m].total / n_gpus_total
        observation.types[m, 1] = state.uses[m].free / fixed.types[m].total
        observation.types[m, 2] = 1.0
        observation.types[m, 3] /= max(n_shown, 1)
    for at in range(clock.n_running):
        job = state.running[at]
        release = _squash(state.jobs[job].eta_s - now, time_scale_s)
        for m in range(n_types):
            if state.counts[job, m] > 0:
                observation.types[m, 2] = min(observation.types[m, 2], release)
    last_arrival_s = fixed.jobs[clock.next_arrival - 1].arrival_s
    out = observation.globals
    n_waiting = clock.n_active - clock.n_running
    out[0] = n_waiting / (n_waiting + view.window.shape[0])
    out[1] = clock.n_running / n_gpus_total
    out[2] = n_free / n_gpus_total
    out[3] = clock.n_done / fixed.jobs.shape[0]
    out[4] = 1.0 if clock.n_running == 0 else _squash(state.jobs[state.running[0]].eta_s - now, time_scale_s)
    out[5] = _squash((last_arrival_s - fixed.jobs[0].arrival_s) / max(clock.next_arrival - 1, 1), time_scale_s)
    out[6] = _squash(now - last_arrival_s, time_scale_s)
    out[7] = view.mask[view.mask.shape[0] - 1]


@njit
def _remaining(state, job, now):
    record = state.jobs[job]
    return max(0.0, record.remaining - record.rate * max(0.0, now - record.as_of_s))


@njit
def _observe_job(fixed, state, view, out, job, epoch, now, time_scale_s, n_gpus_total):
    spec = fixed.jobs[job]
    record = state.jobs[job]
    remaining = _remaining(state, job, now)
    fastest_s = remaining / view.best_rate[job]
    age_s = now - spec.arrival_s
    out[0] = 1.0
    out[1] = _squash(fastest_s, time_scale_s)
    out[2] = _squash(remaining * view.least_gpu_s[job], time_scale_s)
    out[3] = _squash(age_s, time_scale_s)
    out[4] = fastest_s / (age_s + fastest_s) if fastest_s > 0.0 else 0.0
    out[5] = spec.min_gpus / n_gpus_total
    out[6] = spec.max_gpus / n_gpus_total
    out[7] = record.status == 2
    out[8] = record.n_gpus / spec.max_gpus
    out[9] = _squash(spec.restart_s, time_scale_s)
    out[10] = view.changed_at[job] == epoch


@njit
def _observe_candidates(fixed, state, view, out, job, first_action, now, time_scale_s, n_gpus_total):
    """One job's candidates ``out`` (S, Fc)."""
    spec = fixed.jobs[job]
    record = state.jobs[job]
    n_places = out.shape[0]
    remaining = _remaining(state, job, now)
    restart_s = spec.restart_s if record.size > 0 else 0.0
    now_s = record.eta_s - now
    for s in range(n_places):
        candidate = view.candidates[job, s]
        out[s, 1] = view.mask[first_action + s]
        if candidate.n_gpus == 0:
            if view.mask[first_action + s]:  # give all back
                out[s, 0] = 1.0
                out[s, 10] = -1.0
            continue
        run_s = remaining / candidate.rate
        then_s = run_s + restart_s
        out[s, 0] = 1.0
        out[s, 2] = candidate.n_gpus / spec.max_gpus
        out[s, 3] = candidate.n_gpus / n_gpus_total
        out[s, 4] = _squash(then_s, time_scale_s)
        out[s, 5] = candidate.rate / view.best_rate[job] * (run_s / then_s if then_s > 0.0 else 1.0)
        out[s, 6] = min(1.0, view.least_gpu_s[job] * candidate.rate / candidate.n_gpus)
        out[s, 7] = candidate.same_size
        scarcity = 0.0
        for m in range(fixed.types.shape[0]):
            asked = view.counts[job, s, m]
            if asked > 0:
                free = state.uses[m].free + state.counts[job, m]
                scarcity = max(scarcity, asked / free if free > asked else 1.0)
        out[s, 8] = scarcity
        out[s, 9] = candidate.one_node
        if record.status == 2 and now_s + then_s > 0.0:
            out[s, 10] = (now_s - then_s) / (now_s + then_s)

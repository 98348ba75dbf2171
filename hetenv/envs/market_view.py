"""What the agent of ``hetenv/Market-v0`` sees: queue, cluster and prices in summaries of fixed size.

Times enter as t / (t + time scale). A quantity of many jobs enters by its quantiles, all zeros without jobs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from hetenv.compiled import njit, njit_unlocked
from hetenv.envs.episode import unit_box
from hetenv.simulator import Simulator
from hetenv.simulator.draft import size_limits
from hetenv.simulator.kernels import gather_active

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
WAITING_FEATURES = (
    "work: remaining time alone on the cluster, squashed",
    "age, squashed",
    "progress bound: that remaining time / (age + remaining time)",
    "least GPUs / cluster",
    "most GPUs / cluster",
)
RUNNING_FEATURES = (
    "release: time to the finish, squashed",
    "age, squashed",
    "progress bound: time to the finish / (age + time to the finish)",
    "held GPUs / cluster",
)
TYPE_FEATURES = (
    "GPUs / cluster",
    "free / total",
    "next release, squashed",
    "price of the last decision, squashed",
    "demand: share of the waiting jobs for which it is the fastest type",
)
GLOBAL_FEATURES = (
    "waiting jobs / (waiting jobs + GPUs of the cluster)",
    "running jobs / GPUs of the cluster",
    "running jobs that may change / GPUs of the cluster",
    "free GPUs / cluster",
    "finished jobs / all jobs",
    "backlog: time the whole cluster would need for the waiting work, squashed",
    "next release, squashed",
    "mean gap between arrivals, squashed",
    "mean gap between the latest arrivals, squashed",
    "time since the last arrival, squashed",
)
LATEST_GAPS = 8  # gaps in the recent estimate of the arrival rate


def observation_space(n_types: int) -> spaces.Dict:
    return spaces.Dict(
        {
            "waiting": unit_box(len(QUANTILES), len(WAITING_FEATURES)),
            "running": unit_box(len(QUANTILES), len(RUNNING_FEATURES)),
            "affinity": unit_box(n_types, len(QUANTILES)),
            "types": unit_box(n_types, len(TYPE_FEATURES)),
            "globals": unit_box(len(GLOBAL_FEATURES)),
        }
    )


class MarketObservation(NamedTuple):
    """Float32 arrays within ``observation_space``, of one environment or with a leading axis of N."""

    waiting: np.ndarray
    running: np.ndarray
    affinity: np.ndarray
    types: np.ndarray
    globals: np.ndarray


def make_observation(n_types: int, lead: tuple[int, ...] = ()) -> MarketObservation:
    """Zeros."""
    boxes = observation_space(n_types)
    shapes = ((*lead, *(boxes[name].shape or ())) for name in MarketObservation._fields)
    return MarketObservation(*(np.zeros(shape, np.float32) for shape in shapes))


def observe_market(simulator: Simulator, price_s: np.ndarray, time_scale_s: float) -> dict[str, np.ndarray]:
    """Fresh float32 arrays within ``observation_space``.

    Args:
        price_s: (M,) seconds per GPU, prices of the last decision.
    """
    observation = make_observation(len(price_s))
    observe(simulator.fixed, simulator.state, simulator.exclusive_s, price_s, time_scale_s, observation)
    return observation._asdict()


@njit_unlocked
def observe(fixed, state, exclusive_s, price_s, time_scale_s, observation):
    """Write what the agent sees into a ``MarketObservation`` of one environment."""
    clock, preemptive = state.clock[0], fixed.rules[0].preemptive > 0
    now_s, n_types, n_active = clock.time_s, price_s.shape[0], clock.n_active
    jobs, figures = np.empty(n_active, np.int64), np.empty((n_active, 3))
    counts = np.empty((n_active, n_types), np.int64)
    gather_active(fixed, state, False, jobs, figures, counts)
    n_running = clock.n_running
    n_waiting = n_active - n_running
    queue, releases = np.empty((5, n_waiting)), np.empty((4, n_running))  # features by jobs
    affinity = np.empty((n_types, n_waiting))
    release, fastest = np.ones(n_types), np.zeros(n_types)
    n_gpus, n_free = 0, 0
    for m in range(n_types):
        n_gpus += fixed.types[m].total
        n_free += state.uses[m].free
    backlog_s, q, r, n_movable = 0.0, 0, 0, 0
    for row in range(n_active):
        job = jobs[row]
        spec = fixed.jobs[job]
        age_s = now_s - spec.arrival_s
        if state.jobs[job].status == 1:
            least, most = size_limits(fixed, state, job)
            work_s = exclusive_s[job] * (figures[row, 0] / spec.iterations)
            queue[0, q] = _squash(work_s, time_scale_s)
            queue[1, q] = _squash(age_s, time_scale_s)
            queue[2, q] = _ratio(work_s, age_s + work_s)
            queue[3, q] = least / n_gpus
            queue[4, q] = most / n_gpus
            top, whole = 0, 0.0
            for m in range(n_types):
                whole += fixed.speed[job, m] * fixed.types[m].total
                if fixed.speed[job, m] > fixed.speed[job, top]:
                    top = m
            for m in range(n_types):
                affinity[m, q] = _ratio(fixed.speed[job, m], fixed.speed[job, top])
            fastest[top] += 1.0
            backlog_s += _ratio(figures[row, 0] * spec.batch, whole)
            q += 1
        else:
            finish_in_s = figures[row, 2]
            releases[0, r] = _squash(finish_in_s, time_scale_s)
            releases[1, r] = _squash(age_s, time_scale_s)
            releases[2, r] = _ratio(finish_in_s, age_s + finish_in_s)
            releases[3, r] = counts[row].sum() / n_gpus
            for m in range(n_types):
                if counts[row, m] > 0:
                    release[m] = min(release[m], releases[0, r])
            n_movable += spec.malleable > 0 or preemptive
            r += 1
    _write_quantiles(queue, observation.waiting)
    _write_quantiles(releases, observation.running)
    _write_quantiles(affinity, observation.affinity.T)
    for m in range(n_types):
        total = fixed.types[m].total
        observation.types[m, 0] = total / n_gpus
        observation.types[m, 1] = state.uses[m].free / total
        observation.types[m, 2] = release[m]
        observation.types[m, 3] = _squash(price_s[m], time_scale_s)
        observation.types[m, 4] = fastest[m] / max(n_waiting, 1)
    last = clock.next_arrival - 1
    observation.globals[0] = n_waiting / (n_waiting + n_gpus)
    observation.globals[1] = n_running / n_gpus
    observation.globals[2] = n_movable / n_gpus
    observation.globals[3] = n_free / n_gpus
    observation.globals[4] = clock.n_done / fixed.jobs.shape[0]
    observation.globals[5] = _squash(backlog_s, time_scale_s)
    observation.globals[6] = release.min()
    observation.globals[7] = _squash(_mean_gap_s(fixed, 0, last), time_scale_s)
    observation.globals[8] = _squash(_mean_gap_s(fixed, max(0, last - LATEST_GAPS), last), time_scale_s)
    observation.globals[9] = _squash(now_s - fixed.jobs[last].arrival_s, time_scale_s)


@njit
def _squash(time_s, time_scale_s):
    return time_s / (time_s + time_scale_s)


@njit
def _ratio(value, unit):
    """``value / unit``, 0 where the unit is: a job of age and work 0, or a measured one without speeds."""
    return value / unit if unit > 0.0 else 0.0


@njit
def _mean_gap_s(fixed, first, last):
    """Mean time between the arrivals of the jobs ``first`` to ``last``."""
    return (fixed.jobs[last].arrival_s - fixed.jobs[first].arrival_s) / max(last - first, 1)


@njit
def _write_quantiles(values, quantiles):
    """Write those of each row of ``values`` (F, n) into a column of ``quantiles`` (5, F), as ``np.quantile`` does.

    They are zeros when n is 0.
    """
    quantiles[:] = 0.0
    n_values = values.shape[1]
    for f in range(values.shape[0] if n_values > 0 else 0):
        ordered = values[f][np.argsort(values[f], kind="mergesort")]
        for q in range(quantiles.shape[0]):
            at = QUANTILES[q] * (n_values - 1)
            low = int(np.floor(at))
            share = at - low
            rise = ordered[min(low + 1, n_values - 1)] - ordered[low]
            if share < 0.5:
                quantiles[q, f] = ordered[low] + rise * share
            else:
                quantiles[q, f] = ordered[min(low + 1, n_values - 1)] - rise * (1.0 - share)

"""Fairness: the time on an exclusive equal share of the cluster, which finish-time fairness is relative to."""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit
from hetenv.errors import InputError
from hetenv.matching.problem import PlacementProblem


def exclusive_share_s(problem: PlacementProblem) -> np.ndarray:
    """J_eq (S,): seconds each job would need on a fractional 1/S of every GPU type, all to itself.

    The share of ``capacity_m / S`` GPUs of each type that the job can use is cut in proportion to ``max_gpus`` and
    trains at the summed speed; more than one GPU in all pays the ring all-reduce over the slowest network link.
    A measured job takes the best single type, its rate interpolated between whole GPUs. J / J_eq is the finish-time
    fairness of Themis (Mahajan et al., NSDI 2020).

    Raises:
        InputError: a problem with explicit costs, which has no speeds.
    """
    model = problem.model
    if model is None:
        raise InputError("problem", "explicit costs without speeds", "build it with PlacementProblem(...)")
    return share_seconds(model, problem.capacity)


@njit
def share_seconds(model, capacity):
    """``exclusive_share_s`` of the jobs of a ``JobModel`` on ``capacity`` (M,) GPUs."""
    n_jobs, n_types = model.speed.shape
    seconds = np.empty(n_jobs)
    for i in range(n_jobs):
        gpus, speed, link = 0.0, 0.0, np.inf
        best_rate = 0.0
        for m in range(n_types):
            share = capacity[m] / n_jobs
            if model.measured[i]:
                best_rate = max(best_rate, _rate_at(model.measured_rate[i, m], min(share, model.max_gpus[i])))
            elif model.speed[i, m] > 0.0 and capacity[m] > 0:
                gpus += share
                speed += share * model.speed[i, m]
                link = min(link, model.bandwidth[m])
        if model.measured[i]:
            seconds[i] = model.iterations[i] * (1.0 / best_rate if best_rate > 0.0 else np.inf)
            continue
        gpus = max(gpus, 1e-300)
        cut = min(1.0, model.max_gpus[i] / gpus)
        gpus *= cut
        iteration_s = model.batch[i] / speed / cut if speed > 0.0 else np.inf
        iteration_s += max(2.0 * (gpus - 1.0) / gpus, 0.0) * model.grad_bytes[i] / link
        seconds[i] = model.iterations[i] * iteration_s
    return seconds


@njit
def _rate_at(rate, gpus):
    """The ``rate`` (G + 1,) of whole GPUs, at a number between them; that of G beyond."""
    below = int(gpus)
    if below >= rate.shape[0] - 1:
        return rate[-1]
    return (rate[below + 1] - rate[below]) * (gpus - below) + rate[below]

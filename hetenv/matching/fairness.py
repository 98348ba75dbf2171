"""Fairness: the time on an exclusive equal share of the cluster, which finish-time fairness is relative to."""

from __future__ import annotations

import numpy as np

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
    n_jobs = problem.n_jobs
    usable = (model.speed > 0) & (problem.capacity > 0)  # (S, M)
    share = np.where(usable, problem.capacity / n_jobs, 0.0)  # (S, M) GPUs
    gpus = np.maximum(share.sum(axis=1), 1e-300)
    cut = np.minimum(1.0, model.max_gpus / gpus)
    gpus = gpus * cut
    with np.errstate(divide="ignore"):
        compute_s = model.batch / (share * model.speed).sum(axis=1) / cut
    link = np.where(usable, model.bandwidth, np.inf).min(axis=1)  # (S,) bytes/s
    iteration_s = compute_s + np.maximum(2.0 * (gpus - 1.0) / gpus, 0.0) * model.grad_bytes / link
    whole_gpus = np.arange(model.measured_rate.shape[2])
    for i in np.flatnonzero(model.measured):
        rates = [
            np.interp(min(gpus_m / n_jobs, model.max_gpus[i]), whole_gpus, rate)
            for gpus_m, rate in zip(problem.capacity, model.measured_rate[i], strict=True)
        ]
        iteration_s[i] = 1.0 / max(rates) if max(rates) > 0 else np.inf
    return model.iterations * iteration_s

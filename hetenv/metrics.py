"""Figures of a run from its job table.

Finish-time fairness rho is JCT / exclusive best time. Themis multiplies the denominator by the
contention, one number for all jobs of a run: Jain's index does not change by it, and rho here stays
comparable between schedulers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hetenv.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def jain_index(x: ArrayLike) -> float:
    """``(sum x)^2 / (n sum x^2)`` of the values ``x`` (n,): 1 when all are equal, 1/n when one has all.

    Source: Jain, Chiu and Hawe, DEC-TR-301, 1984. All zeros count as equal.

    Raises:
        InputError: no values, or one that is negative or not finite.
    """
    values = np.asarray(x, float).ravel()
    if values.size == 0 or not (np.isfinite(values) & (values >= 0)).all():
        raise InputError("jain_index", values.tolist(), "give at least one value, all finite and not negative")
    squares = float((values**2).sum())
    return float(values.sum() ** 2 / (values.size * squares)) if squares > 0 else 1.0


def summarize(jobs: pd.DataFrame, busy_gpu_s: float, n_gpus: int, decision_s: np.ndarray) -> dict[str, Any]:
    """Summary figures of a finished run.

    Args:
        jobs: the job table of ``Result.jobs``.
        busy_gpu_s: GPU-seconds held by jobs.
        n_gpus: GPUs of the cluster.
        decision_s: (D,) wall-clock seconds of each decision.

    Returns:
        mean_jct_s, p50_jct_s, p95_jct_s, p99_jct_s, makespan_s (first arrival to last finish), queueing_s
        (mean time to the first start), utilization (GPU time held / GPU time there was), jain and max_rho
        (of rho = JCT / exclusive best time), restarts_per_job, decision_ms (p50 and p99).
    """
    jct_s = jobs["jct_s"].to_numpy()
    rho = jct_s / jobs["exclusive_s"].to_numpy()
    makespan_s = float(jobs["finish_s"].max() - jobs["arrival_s"].min())
    p50, p95, p99 = (float(p) for p in np.percentile(jct_s, [50, 95, 99]))
    slow, slowest = (float(p) * 1e3 for p in np.percentile(decision_s, [50, 99]))
    return {
        "mean_jct_s": float(jct_s.mean()),
        "p50_jct_s": p50,
        "p95_jct_s": p95,
        "p99_jct_s": p99,
        "makespan_s": makespan_s,
        "queueing_s": float(jobs["queueing_s"].mean()),
        "utilization": busy_gpu_s / (n_gpus * makespan_s),
        "jain": jain_index(rho),
        "max_rho": float(rho.max()),
        "restarts_per_job": float(jobs["restarts"].mean()),
        "decision_ms": {"p50": slow, "p99": slowest},
    }

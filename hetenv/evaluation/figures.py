"""Figures of several episodes from those of each, and their bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hetenv.evaluation.trials import Trial

RESAMPLES = 9999
CONFIDENCE = 0.95


def pool_episodes(trials: Sequence[Trial]) -> dict[str, Any]:
    """Figures of one scheduler over its episodes; ``Evaluation.summary`` says how each is pooled."""

    def mean(figure: str) -> float:
        return float(np.mean([trial.figures[figure] for trial in trials]))

    jct_s = np.concatenate([trial.jobs["jct_s"] for trial in trials])
    decision_ms = 1e3 * np.concatenate([trial.decision_s for trial in trials])
    p50_s, p95_s, p99_s = np.percentile(jct_s, [50, 95, 99]).tolist()
    usual_ms, slow_ms = np.percentile(decision_ms, [50, 99]).tolist()
    return {
        "mean_jct_s": mean("mean_jct_s"),
        "p50_jct_s": p50_s,
        "p95_jct_s": p95_s,
        "p99_jct_s": p99_s,
        "makespan_s": mean("makespan_s"),
        "queueing_s": mean("queueing_s"),
        "utilization": mean("utilization"),
        "jain": mean("jain"),
        "max_rho": max(trial.figures["max_rho"] for trial in trials),
        "restarts_per_job": mean("restarts_per_job"),
        "decision_ms": {"p50": usual_ms, "p99": slow_ms},
    }


def ratio_of_means(values: np.ndarray, reference: np.ndarray, axis: int = -1) -> np.ndarray:
    """mean(values) / mean(reference) along ``axis``."""
    return values.mean(axis=axis) / reference.mean(axis=axis)


def bootstrap_interval(statistic: Callable[..., Any], *samples: np.ndarray) -> list[float] | None:
    """95 % percentile-bootstrap interval [low, high] of a statistic over episodes; None for one episode.

    Several samples are paired: each resample takes the same episodes of all of them (Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, chapter 8). The generator is fixed, so that the
    same figures have the same interval.

    Args:
        statistic: ``statistic(*samples, axis)``, vectorized.
        samples: (K,) one value an episode each.
    """
    from scipy.stats import bootstrap

    if len(samples[0]) < 2:
        return None
    interval = bootstrap(
        samples,
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return [float(interval.low), float(interval.high)]

"""Small clusters and workloads that schedulers are tried on."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetenv.cluster import Cluster
from hetenv.performance import MeasuredTable
from hetenv.workload import Workload

TYPES = ("a", "b")


def small_workload(kind: str, n_jobs: int = 12, gap_s: float = 20.0, seed: int = 0) -> Workload:
    """Jobs for ``small_cluster``: rigid, moldable, malleable or measured; one in four cannot use type b."""
    rng = np.random.default_rng(seed)
    speed = rng.uniform(1, 4, (n_jobs, 2))
    speed[::4, 1] = 0.0
    least = rng.integers(1, 4, n_jobs)
    columns: dict[str, Any] = {"max_gpus": least if kind in ("rigid", "measured") else least + 2}
    if kind == "measured":
        rate = np.zeros((2, 2, 5, 2))
        rate[:, :, 1:, 0] = rng.uniform(0.2, 1.0, (2, 2, 1)) * np.arange(1, 5)
        rate[:, :, 1:, 1] = rate[:, :, 1:, 0] * 0.6
        rate[1, 1, :, 1] = 0.0  # the second model does not run on b when spread
        columns |= {"model": np.array(["m", "n"], object)[np.arange(n_jobs) % 2]}
        columns |= {"measured": MeasuredTable(("m", "n"), TYPES, rate)}
    return Workload.build(
        TYPES,
        speed,
        rng.exponential(gap_s, n_jobs).cumsum(),
        iterations=rng.integers(20, 120, n_jobs),
        batch=4,
        grad_bytes=2e8,
        min_gpus=least,
        malleable=kind == "malleable",
        restart_s=5.0,
        **columns,
    )


def small_cluster() -> Cluster:
    """6 GPUs of type a and 4 of type b, two a node."""
    return Cluster.from_counts({"a": 6, "b": 4}, 2)

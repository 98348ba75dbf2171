"""Synthetic jobs: Poisson arrivals, chosen size law, speeds that differ by type, job and pairing."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import Self

from hetenv.cluster import Cluster
from hetenv.traces.poisson_jobs import PoissonJobs, lognormal
from hetenv.traces.reference_gpu import relative_speed
from hetenv.traces.source import Ascending, TypeSpeed


class SyntheticJobs(PoissonJobs):
    """Jobs drawn from simple laws; see ``PoissonJobs`` for their sizes and their offered load."""

    kind: Literal["synthetic"] = "synthetic"
    type_speed: TypeSpeed = Field(default_factory=dict)
    affinity_sigma: float = Field(
        0.0, ge=0, le=5, description="lognormal noise of each (job, type) speed: standard deviation of the log, mean 1"
    )
    job_speed_sigma: float = Field(
        0.0, ge=0, le=5, description="lognormal factor of each job's speeds: standard deviation of the log, mean 1"
    )
    base_speed: float = Field(100.0, gt=0, allow_inf_nan=False, description="samples/s of a GPU of relative speed 1")
    grad_bytes: Annotated[tuple[float, float], Ascending] = Field(
        (0.0, 0.0), description="bytes reduced per iteration: a log-uniform range [lo, hi]; [0, 0]: no communication"
    )

    @model_validator(mode="after")
    def _check_grad_bytes(self) -> Self:
        lowest, highest = self.grad_bytes
        if not (np.isfinite(highest) and (lowest > 0 or highest == 0)):
            raise ValueError(f"grad_bytes [{lowest:g}, {highest:g}]: give two positive numbers of bytes, or [0, 0]")
        return self

    def _draw_speeds(
        self, cluster: Cluster, n_jobs: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, Any]]:
        by_type = relative_speed(self.type_speed, cluster.type_names)  # (M,)
        normal = rng.standard_normal(n_jobs * (1 + len(by_type)))
        speed = self.base_speed * by_type
        if self.job_speed_sigma > 0:
            speed = speed * lognormal(self.job_speed_sigma, normal[:n_jobs, None])
        return speed * lognormal(self.affinity_sigma, normal[n_jobs:].reshape(n_jobs, -1)), {}

    def _draw_communication(self, n_jobs: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        lowest, highest = self.grad_bytes
        if highest == 0:
            return {}
        return {"grad_bytes": np.exp(rng.uniform(*_logs(lowest, highest), n_jobs))}


@lru_cache(maxsize=64)
def _logs(lowest: float, highest: float) -> tuple[float, float]:
    return float(np.log(lowest)), float(np.log(highest))

"""Synthetic jobs: Poisson arrivals, chosen size law, speeds that differ by type, job and pairing."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import Self

from hetenv.cluster import Cluster
from hetenv.traces.poisson_jobs import PoissonJobs, noise, pick
from hetenv.traces.reference_gpu import relative_speed
from hetenv.traces.source import Ascending, TypeSpeed, draw_count
from hetenv.workload import Workload


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

    def draw(self, cluster: Cluster, rng: np.random.Generator) -> Workload:
        """The jobs of one episode.

        Raises:
            InputError: ``type_speed`` lacks a type of the cluster.
        """
        n_jobs = draw_count(self.n_jobs, rng)
        speed = self._draw_speeds(cluster, n_jobs, rng)  # (J, M) samples/s
        batch = pick(self.batch, n_jobs, rng)
        return Workload.unchecked(
            cluster.type_names,
            speed,
            self._draw_arrivals(cluster, n_jobs, rng),
            iterations=self._draw_iterations(cluster, speed, batch, rng),
            batch=batch,
            grad_bytes=self._draw_grad_bytes(n_jobs, rng),
            min_gpus=self.min_gpus,
            max_gpus=pick(self.max_gpus, n_jobs, rng),
            malleable=self.malleable,
            restart_s=self.restart_s,
        )

    def _draw_speeds(self, cluster: Cluster, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        by_type = relative_speed(self.type_speed, cluster.type_names)  # (M,)
        by_job = noise(self.job_speed_sigma, (n_jobs, 1), rng)
        by_pair = noise(self.affinity_sigma, (n_jobs, len(by_type)), rng)
        return self.base_speed * by_type * by_job * by_pair

    def _draw_grad_bytes(self, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        lowest, highest = self.grad_bytes
        if highest == 0:
            return np.zeros(n_jobs)
        return np.exp(rng.uniform(np.log(lowest), np.log(highest), n_jobs))

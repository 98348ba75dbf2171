"""Synthetic jobs: Poisson arrivals, chosen size law, speeds that differ by type, job and pairing."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveInt, model_validator
from typing_extensions import Self

from hetenv.cluster import Cluster
from hetenv.traces.reference_gpu import relative_speed
from hetenv.traces.source import Ascending, JobCount, Source, TypeSpeed, draw_count
from hetenv.workload import Workload

Batch = Annotated[int, Field(ge=1)]


class SyntheticJobs(Source):
    """Jobs drawn from simple laws, with an offered load that is right by construction.

    A job's size is drawn in GPU-seconds of *its own* average GPU of the cluster: with speeds
    ``v_m`` and ``N_m`` GPUs of type m its average speed is ``sum N_m v_m / sum N_m``, and
    ``iterations = size * average speed / batch``. A job of size g is therefore worth g / (GPUs)
    seconds of the whole cluster whatever its speeds, and arrivals at the rate
    ``load * GPUs / mean_gpu_s`` offer exactly ``load`` in expectation.

    The first job arrives at 0, and n jobs have n - 1 gaps: the *measured* ``Workload.offered_load``
    of an episode is the ratio of two sample means, with expectation ``load * (n - 1) / (n - 2)``.
    """

    kind: Literal["synthetic"] = "synthetic"
    n_jobs: JobCount = Field(100, description="jobs of an episode; a range [lo, hi] is drawn anew for each")
    load: float | None = Field(
        0.8,
        gt=0,
        allow_inf_nan=False,
        description="offered load: arrival rate x mean GPU time / GPUs; null: all at t = 0",
    )
    mean_gpu_s: float = Field(
        3600.0, gt=0, allow_inf_nan=False, description="mean size, seconds on one average GPU of the cluster"
    )
    size_law: Literal["lognormal", "exponential"] = Field("lognormal", description="distribution of the sizes")
    size_sigma: float = Field(1.0, ge=0, le=10, description="lognormal sizes: standard deviation of the log")
    type_speed: TypeSpeed = Field(default_factory=dict)
    affinity_sigma: float = Field(
        0.0, ge=0, le=5, description="lognormal noise of each (job, type) speed: standard deviation of the log, mean 1"
    )
    job_speed_sigma: float = Field(
        0.0, ge=0, le=5, description="lognormal factor of each job's speeds: standard deviation of the log, mean 1"
    )
    base_speed: float = Field(100.0, gt=0, allow_inf_nan=False, description="samples/s of a GPU of relative speed 1")
    batch: tuple[Batch, ...] = Field((256,), min_length=1, description="samples of one iteration; one is drawn per job")
    grad_bytes: Annotated[tuple[float, float], Ascending] = Field(
        (0.0, 0.0), description="bytes reduced per iteration: a log-uniform range [lo, hi]; [0, 0]: no communication"
    )
    min_gpus: PositiveInt = Field(1, description="GPUs a job needs at least")
    max_gpus: PositiveInt | Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = Field(
        1, description="GPUs a job can use at most; of several values one is drawn per job"
    )
    malleable: bool = Field(False, description="whether running jobs may be resized")
    restart_s: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="seconds without progress after a preemption, migration or resize"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        lowest, highest = self.grad_bytes
        if not (np.isfinite(highest) and (lowest > 0 or highest == 0)):
            raise ValueError(f"grad_bytes [{lowest:g}, {highest:g}]: give two positive numbers of bytes, or [0, 0]")
        if min(np.atleast_1d(self.max_gpus)) < self.min_gpus:
            raise ValueError(f"max_gpus {self.max_gpus}: give at least min_gpus = {self.min_gpus}")
        return self

    def draw(self, cluster: Cluster, rng: np.random.Generator) -> Workload:
        """The jobs of one episode.

        Raises:
            InputError: ``type_speed`` lacks a type of the cluster.
        """
        n_jobs = draw_count(self.n_jobs, rng)
        speed = self._draw_speeds(cluster, n_jobs, rng)  # (J, M) samples/s
        average_speed = speed @ cluster.total / cluster.n_gpus  # (J,)
        batch = _pick(self.batch, n_jobs, rng)
        return Workload.unchecked(
            cluster.type_names,
            speed,
            self._draw_arrivals(cluster.n_gpus, n_jobs, rng),
            iterations=self._draw_sizes(n_jobs, rng) * average_speed / batch,
            batch=batch,
            grad_bytes=self._draw_grad_bytes(n_jobs, rng),
            min_gpus=self.min_gpus,
            max_gpus=_pick(self.max_gpus, n_jobs, rng),
            malleable=self.malleable,
            restart_s=self.restart_s,
        )

    def _draw_speeds(self, cluster: Cluster, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        by_type = relative_speed(self.type_speed, cluster.type_names)  # (M,)
        by_job = _noise(self.job_speed_sigma, (n_jobs, 1), rng)
        by_pair = _noise(self.affinity_sigma, (n_jobs, len(by_type)), rng)
        return self.base_speed * by_type * by_job * by_pair

    def _draw_arrivals(self, n_gpus: int, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        arrival_s = np.zeros(n_jobs)
        if self.load is not None:
            mean_gap_s = self.mean_gpu_s / (self.load * n_gpus)
            np.cumsum(rng.exponential(mean_gap_s, n_jobs - 1), out=arrival_s[1:])
        return arrival_s

    def _draw_sizes(self, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        if self.size_law == "exponential":
            return rng.exponential(self.mean_gpu_s, n_jobs)
        return self.mean_gpu_s * _noise(self.size_sigma, (n_jobs,), rng)

    def _draw_grad_bytes(self, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        lowest, highest = self.grad_bytes
        if highest == 0:
            return np.zeros(n_jobs)
        return np.exp(rng.uniform(np.log(lowest), np.log(highest), n_jobs))


def _pick(choices: int | tuple[int, ...], n_jobs: int, rng: np.random.Generator) -> np.ndarray:
    """(J,) one of ``choices`` for each job, all equally likely."""
    values = np.atleast_1d(choices)
    return values[rng.integers(len(values), size=n_jobs)]


def _noise(sigma: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Lognormal factors of mean exactly 1."""
    return np.exp(sigma * rng.standard_normal(shape) - sigma**2 / 2)

"""What generators of Poisson streams share: arrivals, sizes, batches and limits.

An environment draws new jobs at every reset, where each call of NumPy costs as much as a hundred draws: hence few.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PositiveInt, model_validator
from typing_extensions import Self

from hetenv.cluster import Cluster
from hetenv.traces.source import JobCount, Source, draw_count
from hetenv.workload import Workload

Batch = Annotated[int, Field(ge=1)]


class PoissonJobs(Source):
    """Poisson arrivals of jobs of a chosen size law, with an offered load that is right by construction.

    A job's size is drawn in GPU-seconds of *its own* average GPU of the cluster: with speeds
    ``v_m`` and ``N_m`` GPUs of type m its average speed is ``sum N_m v_m / sum N_m``, and
    ``iterations = size * average speed / batch``. A job of size g is therefore worth g / (GPUs)
    seconds of the whole cluster whatever its speeds, and arrivals at the rate
    ``load * GPUs / mean_gpu_s`` offer exactly ``load`` in expectation.

    The first job arrives at 0, and n jobs have n - 1 gaps: the *measured* ``Workload.offered_load``
    of an episode is the ratio of two sample means, with expectation ``load * (n - 1) / (n - 2)``.
    """

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
    batch: tuple[Batch, ...] = Field((256,), min_length=1, description="samples of one iteration; one is drawn per job")
    min_gpus: PositiveInt = Field(1, description="GPUs a job needs at least")
    max_gpus: PositiveInt | Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = Field(
        1, description="GPUs a job can use at most; of several values one is drawn per job"
    )
    malleable: bool = Field(False, description="whether running jobs may be resized")
    restart_s: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="seconds without progress after a preemption, migration or resize"
    )

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if min(np.atleast_1d(self.max_gpus)) < self.min_gpus:
            raise ValueError(f"max_gpus {self.max_gpus}: give at least min_gpus = {self.min_gpus}")
        return self

    def draw(self, cluster: Cluster, rng: np.random.Generator) -> Workload:
        """The jobs of one episode.

        Raises:
            InputError: the speeds do not fit the types of the cluster.
        """
        n_jobs = draw_count(self.n_jobs, rng)
        speed, columns = self._draw_speeds(cluster, n_jobs, rng)
        batch = pick(self.batch, n_jobs, rng)
        arrival_s = self._draw_arrivals(cluster, n_jobs, rng)
        columns["iterations"] = self._draw_iterations(cluster, speed, batch, rng)
        columns |= self._draw_communication(n_jobs, rng)
        return Workload.unchecked(
            cluster.type_names,
            speed,
            arrival_s,
            batch=batch,
            min_gpus=self.min_gpus,
            max_gpus=pick(self.max_gpus, n_jobs, rng),
            malleable=self.malleable,
            restart_s=self.restart_s,
            **columns,
        )

    @abstractmethod
    def _draw_speeds(
        self, cluster: Cluster, n_jobs: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """(J, M) samples/s, and the columns of the job table that come with them."""

    def _draw_communication(self, n_jobs: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """The column ``grad_bytes`` where it does not come with the speeds."""
        return {}

    def _draw_arrivals(self, cluster: Cluster, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        """(J,) seconds."""
        arrival_s = np.zeros(n_jobs)
        if self.load is not None:
            mean_gap_s = self.mean_gpu_s / (self.load * cluster.n_gpus)
            np.add.accumulate(rng.exponential(mean_gap_s, n_jobs - 1), out=arrival_s[1:])
        return arrival_s

    def _draw_iterations(
        self, cluster: Cluster, speed: np.ndarray, batch: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """(J,) work of jobs with ``speed`` (J, M) samples/s and ``batch`` (J,) samples an iteration."""
        average_speed = speed @ cluster.total.astype(float) / cluster.n_gpus
        return self._draw_sizes(len(batch), rng) * average_speed / batch

    def _draw_sizes(self, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        if self.size_law == "exponential":
            return rng.exponential(self.mean_gpu_s, n_jobs)
        return self.mean_gpu_s * lognormal(self.size_sigma, rng.standard_normal(n_jobs))


def pick(choices: int | tuple[int, ...], n_jobs: int, rng: np.random.Generator) -> np.ndarray:
    """(J,) one of ``choices`` for each job, all equally likely."""
    values = _as_array(choices)
    return values[rng.integers(len(values), size=n_jobs)]


@lru_cache(maxsize=64)
def _as_array(choices: int | tuple[int, ...]) -> np.ndarray:
    return np.atleast_1d(choices)


def lognormal(sigma: float, normal: np.ndarray) -> np.ndarray:
    """Lognormal factors of mean exactly 1, made in place of the standard normal numbers ``normal``."""
    normal *= sigma
    normal -= sigma**2 / 2
    return np.exp(normal, out=normal)

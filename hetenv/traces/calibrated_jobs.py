"""Rigid jobs with the published statistics of a real cluster, and an exact offered load."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from pydantic import Field

from hetenv.cluster import Cluster
from hetenv.traces.arrivals import bursty_arrivals
from hetenv.traces.job_figures import JobFigures
from hetenv.traces.reference_gpu import recorded_work, relative_speed
from hetenv.traces.source import Source, StreamCount, TypeSpeed, draw_count
from hetenv.workload import Workload


class CalibratedJobs(Source):
    """What the generators of real clusters share; each adds its figures.

    * GPU counts follow the source. A count above the GPUs of the cluster's largest usable type is
      cut down to it (so that every job fits into one type), and the job keeps its duration.
    * Durations follow the law of the job's own GPU count; they are run times on reference GPUs of
      speed 1 (see ``reference_gpu``).
    * Outcomes depend on the GPU count and on the rank of the duration.
    * Gaps are lognormal with coefficient of variation ``gap_cv``, in a time that runs with the
      hourly and daily submission rate; the episode starts at a random moment of the week.
    * The time from the first arrival to the last is set such that
      ``workload.offered_load(cluster) == load`` up to rounding; hours and days keep their length.
    """

    n_jobs: StreamCount = Field(1000, description="jobs of an episode; a range [lo, hi] is drawn anew for each")
    load: float = Field(0.8, gt=0, allow_inf_nan=False, description="offered load: arrival rate x mean GPU time / GPUs")
    gap_cv: float | None = Field(
        None,
        ge=0,
        le=1000,
        description="coefficient of variation of the gaps, before days and weeks are laid over them; "
        "null: that of the source",
    )
    time_limit_s: float | None = Field(
        None,
        gt=0,
        description="what longer durations are cut to, so that an episode is not all waiting for its last jobs; "
        "null: as recorded",
    )
    type_speed: TypeSpeed = Field(default_factory=dict)
    restart_s: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="seconds without progress after a preemption or migration"
    )

    @property
    @abstractmethod
    def figures(self) -> JobFigures:
        """The statistics of the source."""

    def draw(self, cluster: Cluster, rng: np.random.Generator) -> Workload:
        """The jobs of one episode.

        Raises:
            InputError: ``type_speed`` lacks a type of the cluster.
        """
        figures = self.figures
        n_jobs = draw_count(self.n_jobs, rng)
        size = figures.draw_sizes(n_jobs, rng)  # (J,) rows of the figures
        rank = rng.random(n_jobs)
        duration_s = figures.duration.quantile_s(size, figures.n_gpus[size], rank)
        if self.time_limit_s is not None:
            duration_s = np.minimum(duration_s, self.time_limit_s)
        speed = relative_speed(self.type_speed, cluster.type_names)
        n_gpus = np.minimum(figures.n_gpus[size], cluster.total[speed > 0].max())
        work = recorded_work(duration_s, n_gpus, speed)
        cluster_s = work["iterations"] * work["batch"] / (work["speed"] @ cluster.total)  # as Workload.cluster_seconds
        gap_cv = figures.gap_cv if self.gap_cv is None else self.gap_cv
        span_s = (n_jobs - 1) * cluster_s.mean() / self.load
        return Workload.unchecked(
            cluster.type_names,
            arrival_s=bursty_arrivals(n_jobs, span_s, gap_cv, figures.week, rng),
            outcome=figures.draw_outcomes(size, rank, rng),
            restart_s=self.restart_s,
            **work,
        )

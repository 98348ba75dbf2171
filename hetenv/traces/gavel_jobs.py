"""The continuous stream of Gavel's evaluation, job by job the one that its own generator draws.

Source: the generator of github.com/stanford-futuredata/gavel (Narayanan et al., OSDI 2020). Python's own
``random.Random`` draws here, since the same seed shall give the same jobs.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from hetenv.catalogue import load_catalogue
from hetenv.cluster import Cluster
from hetenv.performance import MeasuredTable
from hetenv.traces.gavel import measured_workload
from hetenv.traces.source import Source, StreamCount, draw_count
from hetenv.workload import Workload

REFERENCE_GPU = "v100"  # durations are run times there
SCALE_FACTORS = ((0.7, 1), (0.8, 2), (0.95, 4), (1.0, 8))  # up to which unit draw how many GPUs
SHORT_SHARE = 0.8
SHORT_LOG_MIN, LONG_LOG_MIN = (1.5, 3.0), (3.0, 4.0)  # ranges of the decimal log of minutes


@dataclass(frozen=True)
class Stream:
    """The jobs of one seed, one entry a job.

    Args:
        job_type: (J,) models at a batch.
        scale_factor: (J,) GPUs.
        duration_s: (J,) seconds on the reference GPU.
        total_steps: (J,) iterations; fractions are kept.
        arrival: (J,) in mean gaps, from 0.
    """

    job_type: list[str]
    scale_factor: np.ndarray
    duration_s: np.ndarray
    total_steps: np.ndarray
    arrival: np.ndarray


def draw_stream(table: MeasuredTable, n_jobs: int, seed: int, multi_gpu: bool) -> Stream:
    """The first ``n_jobs`` jobs of Gavel's generator.

    Args:
        table: throughputs; its order of models is that of the draws.
        n_jobs: J.
        seed: Gavel's seed; jobs are drawn from ``seed + 2``, gaps from ``seed + 3``.
        multi_gpu: jobs of 1, 2, 4 and 8 GPUs; else all have one, and the draw is made all the same.
    """
    jobs, gaps = random.Random(seed + 2), random.Random(seed + 3)
    reference = table.rate[:, table.types.index(REFERENCE_GPU), :, 0]  # (R, G + 1) steps/s
    rows, scale_factor, duration_s = [], np.ones(n_jobs, int), np.empty(n_jobs)
    for job in range(n_jobs):
        drawn = _scale_factor(jobs.random())
        scale_factor[job] = drawn if multi_gpu else 1
        log_min = SHORT_LOG_MIN if jobs.random() < SHORT_SHARE else LONG_LOG_MIN
        duration_s[job] = 60.0 * 10 ** jobs.uniform(*log_min)
        row = jobs.choice(range(len(table.models)))
        while not reference[row, scale_factor[job]] > 0:  # not distributable
            row = jobs.choice(range(len(table.models)))
        rows.append(row)
    arrival = np.cumsum([0.0, *(-math.log(1.0 - gaps.random()) for _ in range(n_jobs - 1))])
    steps_per_s = reference[rows, scale_factor]
    return Stream([table.models[row] for row in rows], scale_factor, duration_s, duration_s * steps_per_s, arrival)


def _scale_factor(unit: float) -> int:
    return next(gpus for bound, gpus in SCALE_FACTORS if unit <= bound)


class GavelJobs(Source):
    """Rigid jobs of Gavel's mix at measured throughputs, Poisson arrivals.

    Each episode is Gavel's stream of a seed of its own. Its gaps are stretched such that
    ``workload.offered_load(cluster) == load`` up to rounding; or they have the mean of Gavel's
    experiments, ``jobs_per_hour``, and the load follows.
    """

    kind: Literal["gavel"] = "gavel"
    n_jobs: StreamCount = Field(100, description="jobs of an episode; a range [lo, hi] is drawn anew for each")
    load: float = Field(0.8, gt=0, allow_inf_nan=False, description="offered load: arrival rate x mean GPU time / GPUs")
    jobs_per_hour: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="arrival rate; null: what the load asks for"
    )
    multi_gpu: bool = Field(True, description="30 % of the jobs have 2, 4 or 8 GPUs; false: all have one")
    restart_s: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="seconds without progress after a preemption or migration"
    )

    def draw(self, cluster: Cluster, rng: np.random.Generator) -> Workload:
        """The jobs of one episode.

        Raises:
            InputError: a job that cannot run on the cluster.
        """
        table = load_catalogue().throughputs["gavel"].table
        n_jobs = draw_count(self.n_jobs, rng)
        stream = draw_stream(table, n_jobs, int(rng.integers(2**31)), self.multi_gpu)
        workload = measured_workload(table, stream.job_type, stream.scale_factor, stream.total_steps, stream.arrival)
        workload.check_runnable(cluster)
        if self.jobs_per_hour is not None:
            mean_gap_s = 3600.0 / self.jobs_per_hour
        else:
            mean_gap_s = workload.offered_load(cluster) / self.load
        return workload.replace(arrival_s=mean_gap_s * stream.arrival, restart_s=self.restart_s)

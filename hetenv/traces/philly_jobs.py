"""Jobs like those of Microsoft's Philly cluster: sizes, durations, outcomes, days, weeks and bursts.

Sources of the figures:

* Outcomes (passed .57, failed .30, killed .13): job statuses of the published Philly job log
  (github.com/msr-fiddle/philly-traces; Jeon et al., USENIX ATC 2019).
* GPU counts, durations, hours, weekdays and gaps: measured on the 82,247 jobs that Pollux
  (Qiao et al., OSDI 2021) distilled from them, 2017-09-04 to 2017-12-22: median 1,144 s, p25 115 s,
  p75 2,932 s, p90 11,265 s, p95 43,646 s; 93.2 % of the jobs have one GPU, yet 8-GPU jobs use 48 % of
  the GPU time; the gaps between arrivals have a coefficient of variation of 15.1 and a median of 8 s
  under a mean of 114 s.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from hetenv.cluster import Cluster
from hetenv.traces.reference_gpu import recorded_work, relative_speed
from hetenv.traces.source import JobCount, Source, TypeSpeed, draw_count
from hetenv.workload import Workload

HOUR_S = 3600.0
WEEK_H = 168

# Jobs of each GPU count; the 23 jobs of 12, 24, 64 and 128 GPUs (0.03 %) are left out.
N_GPUS = np.array([1, 2, 4, 8, 16, 32])
N_JOBS = np.array([76627, 1818, 1870, 1643, 199, 67])

# Quantiles of the duration (s), one row a GPU count, one column a rank.
RANK = np.array([0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 1])
# fmt: off
DURATION_S = np.array([
    [1, 52, 62, 122, 1_120, 2_720, 8_510, 19_100, 55_500, 135_000, 267_000, 866_000, 3_260_000],
    [2, 9, 11, 16, 21, 76, 72_700, 197_000, 289_000, 523_000, 808_000, 1_470_000, 2_580_000],
    [3, 75, 138, 773, 17_400, 89_400, 184_000, 274_000, 499_000, 907_000, 1_210_000, 2_450_000, 2_750_000],
    [1, 125, 216, 1_880, 23_700, 173_000, 352_000, 526_000, 743_000, 1_060_000, 2_000_000, 2_660_000, 4_630_000],
    [2, 40, 54, 384, 52_500, 165_000, 341_000, 506_000, 624_000, 1_160_000, 1_370_000, 1_640_000, 1_710_000],
    [2, 351, 816, 1_180, 14_300, 53_200, 61_700, 76_100, 110_000, 124_000, 127_000, 128_000, 129_000],
], float)

# Share of the jobs (%) submitted in each hour of the day and on each day from Monday to Sunday.
HOUR_SHARE = np.array([
    5.31, 4.10, 4.66, 4.60, 2.92, 4.80, 6.97, 8.70, 4.62, 4.19, 4.27, 3.62,
    3.12, 2.94, 2.66, 2.70, 3.67, 2.78, 3.34, 3.03, 4.23, 3.82, 4.72, 4.21,
])
DAY_SHARE = np.array([12.32, 15.23, 16.26, 18.38, 20.61, 8.70, 8.50])
# fmt: on

FAILED, KILLED = 0.30, 0.13


def _two_or_more(n_jobs: int | tuple[int, int]) -> int | tuple[int, int]:
    if np.min(n_jobs) < 2:
        raise ValueError("one job has no gap and so no load: give 2 jobs or more")
    return n_jobs


class PhillyJobs(Source):
    """Rigid jobs with Philly's statistics and an exact offered load.

    * GPU counts follow the trace. A count above the GPUs of the cluster's largest usable type is cut
      down to it (so that every job fits into one type), and the job keeps its duration.
    * Durations follow the quantiles of the job's GPU count, log-linear between them; they are run
      times on reference GPUs of speed 1 (see ``reference_gpu``).
    * Failed and killed jobs are short: the chance of either falls linearly with the rank of the
      duration, from twice its overall share at the shortest job to nothing at the longest.
    * Gaps are lognormal with coefficient of variation ``gap_cv``, in a time that runs with the
      hourly and weekly submission rate; the episode starts at a random moment of the week.
    * The time from the first arrival to the last is set such that
      ``workload.offered_load(cluster) == load`` up to rounding; hours and days keep their length.
    """

    kind: Literal["philly"] = "philly"
    n_jobs: Annotated[JobCount, AfterValidator(_two_or_more)] = Field(
        1000, description="jobs of an episode; a range [lo, hi] is drawn anew for each"
    )
    load: float = Field(0.8, gt=0, allow_inf_nan=False, description="offered load: arrival rate x mean GPU time / GPUs")
    gap_cv: float = Field(
        15.1,
        ge=0,
        le=1000,
        description="coefficient of variation of the gaps, before days and weeks are laid over them",
    )
    type_speed: TypeSpeed = Field(default_factory=dict)

    def draw(self, cluster: Cluster, rng: np.random.Generator) -> Workload:
        """The jobs of one episode.

        Raises:
            InputError: ``type_speed`` lacks a type of the cluster.
        """
        n_jobs = draw_count(self.n_jobs, rng)
        size = np.searchsorted(
            np.cumsum(N_JOBS) / N_JOBS.sum(), rng.random(n_jobs), side="right"
        )  # (J,) rows of the tables
        rank = rng.random(n_jobs)
        duration_s = np.empty(n_jobs)
        for row, quantiles in enumerate(np.log(DURATION_S)):
            of_size = size == row
            duration_s[of_size] = np.exp(np.interp(rank[of_size], RANK, quantiles))
        speed = relative_speed(self.type_speed, cluster.type_names)
        n_gpus = np.minimum(N_GPUS[size], cluster.total[speed > 0].max())
        work = recorded_work(duration_s, n_gpus, speed)
        cluster_s = work["iterations"] * work["batch"] / (work["speed"] @ cluster.total)  # as Workload.cluster_seconds
        span_s = (n_jobs - 1) * cluster_s.mean() / self.load
        return Workload.unchecked(
            cluster.type_names,
            arrival_s=bursty_arrivals(n_jobs, span_s, self.gap_cv, rng),
            outcome=_outcomes(rank, rng),
            **work,
        )


def bursty_arrivals(n_jobs: int, span_s: float, gap_cv: float, rng: np.random.Generator) -> np.ndarray:
    """(J,) arrivals from 0 to exactly ``span_s``: lognormal gaps in a time that runs at Philly's weekly rate."""
    sigma = np.sqrt(np.log1p(gap_cv**2))
    gaps = np.exp(sigma * rng.standard_normal(n_jobs - 1))
    progress = np.concatenate([[0.0], np.cumsum(gaps) / gaps.sum()])  # 0..1, share of the arrivals so far

    week = np.outer(DAY_SHARE, HOUR_SHARE).ravel()  # (168,) submission rate of each hour, from Monday 0 h
    start_h = rng.uniform(0, WEEK_H)
    end_h = start_h + span_s / HOUR_S
    whole_hours = np.arange(np.floor(start_h), np.ceil(end_h) + 1)
    arrived = np.concatenate([[0.0], np.cumsum(week[whole_hours[:-1].astype(int) % WEEK_H])])
    first, last = np.interp([start_h, end_h], whole_hours, arrived)
    arrival_h = np.interp(first + progress * (last - first), arrived, whole_hours)
    arrival_s = np.clip((arrival_h - start_h) * HOUR_S, 0.0, span_s)
    arrival_s[0], arrival_s[-1] = 0.0, span_s  # interpolation leaves rounding there, and the load shall be exact
    return arrival_s


def _outcomes(rank: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(J,) outcomes; the chances of failed and killed average to their shares over evenly drawn ranks."""
    draw = rng.random(len(rank))
    failed = 2 * FAILED * (1 - rank)
    killed = 2 * KILLED * (1 - rank)
    outcome = np.full(len(rank), "completed", object)
    outcome[draw < failed + killed] = "killed"
    outcome[draw < failed] = "failed"
    return outcome

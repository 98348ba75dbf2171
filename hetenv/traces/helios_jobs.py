"""Jobs like those of SenseTime's Helios clusters: many small, most GPU time in jobs of 8 GPUs and more.

Sources of the figures (Hu et al., SC 2021):

* The published summary of the four clusters (github.com/S-Lab-System-Group/HeliosArtifact), over the
  1,580,464 GPU jobs: median duration 206 s, mean 6,652 s, longest 4,320,009 s, mean 3.716 GPUs; .624
  completed, .221 cancelled, .155 failed; .513, .394 and .093 of the 78.0e9 GPU-seconds, which are
  49,351 GPU-seconds a job.
* The published job logs: 55 % of the jobs have 1 GPU, 22 % 8, 5.4 % 16; a sample of 15,000 has mean
  5.95 and standard deviation 2.85 of the log duration; Venus has 28.8 arrivals an hour, from 5.4 at
  6 h to 50 at 16 and 17 h, 10 % of them on each day of the weekend, and hourly counts with a
  coefficient of variation of 1.17.

Ours, for want of a published figure: how the other jobs divide into 2, 4 and 32 GPUs (such that the
mean holds), the hours between the extremes, and the law of the durations (see ``GrowingLognormal``).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hetenv.traces.arrivals import weekly_rate
from hetenv.traces.calibrated_jobs import CalibratedJobs
from hetenv.traces.job_figures import Chance, GrowingLognormal, JobFigures

# fmt: off
ARRIVALS_PER_H = np.array([  # in each hour of the day
    30.0, 22.3, 18.0, 13.0,  9.0,  6.5,  5.4,  7.0, 13.0, 25.0, 36.0, 42.0,
    30.0, 34.0, 42.0, 47.0, 50.0, 50.0, 37.0, 33.0, 36.0, 37.0, 35.0, 33.0,
])
DAY_SHARE = np.array([16.0, 16.0, 16.0, 16.0, 16.0, 10.0, 10.0])  # % of the jobs, from Monday to Sunday
# fmt: on

HELIOS = JobFigures(
    n_gpus=np.array([1, 2, 4, 8, 16, 32]),
    share=np.array([55.0, 12.3, 5.0, 22.0, 5.4, 0.3]),
    duration=GrowingLognormal(median_s=113.4, growth=0.7845, sigma=2.54, longest_s=4_320_009),
    # Lines through the share of jobs (at the mean rank, 0.5) and the share of GPU time (at 0.96, its mean rank).
    failed=Chance(0.2226, 0.0874),
    killed=Chance(0.0325, 0.4095),
    week=weekly_rate(DAY_SHARE, ARRIVALS_PER_H),
    gap_cv=22.0,  # at which the counts of Venus' hours vary as published
)


class HeliosJobs(CalibratedJobs):
    """Jobs of SenseTime's Helios; see ``CalibratedJobs``. Cancelled jobs count as killed."""

    kind: Literal["helios"] = "helios"

    @property
    def figures(self) -> JobFigures:
        return HELIOS

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

from typing import Literal

import numpy as np

from hetenv.traces.arrivals import weekly_rate
from hetenv.traces.calibrated_jobs import CalibratedJobs
from hetenv.traces.job_figures import Chance, JobFigures, QuantileTable

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

PHILLY = JobFigures(
    n_gpus=np.array([1, 2, 4, 8, 16, 32]),  # the 23 jobs of 12, 24, 64 and 128 GPUs (0.03 %) are left out
    share=np.array([76627, 1818, 1870, 1643, 199, 67]),
    duration=QuantileTable(RANK, DURATION_S),
    # Failed and killed jobs are short: from twice the overall share at the shortest job to none at the longest.
    failed=Chance(2 * FAILED, 0.0),
    killed=Chance(2 * KILLED, 0.0),
    week=weekly_rate(DAY_SHARE, HOUR_SHARE),
    gap_cv=15.1,
)


class PhillyJobs(CalibratedJobs):
    """Jobs of Microsoft's Philly; see ``CalibratedJobs``."""

    kind: Literal["philly"] = "philly"

    @property
    def figures(self) -> JobFigures:
        return PHILLY

"""Jobs like those of Shanghai AI Lab's Acme: short evaluations by number, long pretraining by GPU time.

Sources of the figures (github.com/InternLM/AcmeTrace; Hu et al., NSDI 2024), for the two clusters:

                                            Seren                Kalos
    GPU jobs                                663,813              19,907
    duration: median, mean, longest (s)     122, 1,414, 1209604  124, 1,260, 625740
    GPUs: median, mean, most                1, 5.68, 1,024       1, 26.77, 1,024
    GPU-seconds of a job                    32,390               267,900
    jobs completed, cancelled, failed       .497, .075, .429     .541, .062, .397
    GPU time of these                       .212, .664, .124     .313, .607, .080
    coefficient of variation of the gaps    14.7                 11.3

Ours, for want of a published figure: how jobs divide into GPU counts (such that mean and median hold, 7 %
of them above one node of 8), the law of the durations (see ``GrowingLognormal``), and an even rhythm.
Outcomes depend on whether a job is larger than a node, the one way to meet both of their rows: cancelled
jobs are few, and hold most of the GPU time.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from hetenv.traces.arrivals import EVEN_WEEK
from hetenv.traces.calibrated_jobs import CalibratedJobs
from hetenv.traces.job_figures import Chance, GrowingLognormal, JobFigures

N_GPUS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])


def _by_size(one_node: float, several: float) -> Chance:
    chance = np.where(N_GPUS <= 8, one_node, several)
    return Chance(chance, chance)


ACME = {
    "seren": JobFigures(
        n_gpus=N_GPUS,
        share=np.array([60.0, 10.0, 8.0, 15.0, 3.6, 1.7, 0.95, 0.45, 0.2, 0.06, 0.02]),
        duration=GrowingLognormal(median_s=85.9, growth=0.492, sigma=2.132, longest_s=1_209_604),
        failed=_by_size(0.455, 0.077),
        killed=_by_size(0.024, 0.754),
        week=EVEN_WEEK,
        gap_cv=14.7,
    ),
    "kalos": JobFigures(
        n_gpus=N_GPUS,
        share=np.array([60.0, 8.0, 8.0, 17.0, 0.9, 0.8, 0.8, 0.8, 1.0, 1.5, 1.2]),
        duration=GrowingLognormal(median_s=84.7, growth=0.4637, sigma=1.968, longest_s=625_740),
        failed=_by_size(0.421, 0.076),
        killed=_by_size(0.0205, 0.613),
        week=EVEN_WEEK,
        gap_cv=11.3,
    ),
}


class AcmeJobs(CalibratedJobs):
    """Jobs of one of Acme's clusters; see ``CalibratedJobs``. Cancelled jobs count as killed."""

    kind: Literal["acme"] = "acme"
    site: Literal["seren", "kalos"] = Field("seren", description="which of the two clusters the figures are of")

    @property
    def figures(self) -> JobFigures:
        return ACME[self.site]

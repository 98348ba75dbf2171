"""Jobs like the pods of Alibaba's openb cluster: almost all of one GPU or a share of one.

Source of the figures: the 8,152 pods of ``cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv`` in
github.com/alibaba/clusterdata (Weng et al., USENIX ATC 2023):

* GPU pods: median duration 616 s, p75 2,241 s, p90 7,764 s; the log has standard deviation 1.91.
* 37.8 % of all pods ask for less than one GPU, 48.0 % for one, 0.2 % for two, 0.2 % for four, 0.5 % for
  eight, the rest for none: of the GPU pods 43.6 % ask for a share of one.

A share of a GPU becomes a whole one, held for the recorded time: jobs here do not share GPUs. The
offered load counts what is held, so it stays the one asked for.

Ours, for want of a published figure: durations do not depend on the GPU count, all jobs complete, and
arrivals come at an even rate, their gaps as variable as those of a Poisson process.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hetenv.traces.arrivals import EVEN_WEEK
from hetenv.traces.calibrated_jobs import CalibratedJobs
from hetenv.traces.job_figures import NEVER, GrowingLognormal, JobFigures

GPU_SHARE_PODS, WHOLE_GPU_PODS = 37.8, 48.0  # %

OPENB = JobFigures(
    n_gpus=np.array([1, 2, 4, 8]),
    share=np.array([GPU_SHARE_PODS + WHOLE_GPU_PODS, 0.2, 0.2, 0.5]),
    duration=GrowingLognormal(median_s=616.0, growth=0.0, sigma=1.94),
    failed=NEVER,
    killed=NEVER,
    week=EVEN_WEEK,
    gap_cv=1.0,
)


class OpenbJobs(CalibratedJobs):
    """Jobs of Alibaba's openb, each on whole GPUs; see ``CalibratedJobs``."""

    kind: Literal["openb"] = "openb"

    @property
    def figures(self) -> JobFigures:
        return OPENB

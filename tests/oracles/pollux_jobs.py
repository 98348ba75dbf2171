"""The jobs of Pollux's simulator (Qiao et al., OSDI 2021), read from its workloads and measured tables.

A job trains an application for all its epochs, with a fixed batch on a fixed number of GPUs. Its work is a number of
steps: an epoch is a stretch of progress, of which a step of batch B makes
``gain = (var + sqr) / (var B0 / B + sqr)``, B0 the smallest batch, ``sqr`` and ``var`` the gradient's squared norm and
variance at that epoch. Its speed follows from the placement: ``placements.csv`` has the seconds of a step, and of the
all-reduce in it, by the GPUs on each node and the batch of one GPU, ``scalability.csv`` those on more nodes. A batch
beyond what a GPU may take is accumulated over several passes, of which only the last reduces.

Left out: whole seconds for each epoch, and the further loss of a job of more than a node's GPUs that is split over
more nodes than it needs. The means come out 0.2 to 0.6 % lower for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.interpolate import LinearNDInterpolator

from hetenv.performance import MeasuredTable
from hetenv.traces.pollux_workload import MOST_SAMPLES
from hetenv.workload import Workload

NODE_GPUS = 4
RESTART_S = 30.0
KIND = ["application", "num_replicas", "batch_size"]


def read_workload(pollux: Path, number: int) -> Workload:
    """The rigid jobs of ``workload-<number>.csv``, with a row of measured rates for each kind of job.

    A job on one node runs at the rate measured there, any other at that on the fewest nodes (two, for a job that one
    node could hold). A restart takes 30 s, and so does the first start, which is counted as work.
    """
    jobs = pd.read_csv(pollux / "workloads" / f"workload-{number}.csv")
    kinds = list(jobs.groupby(KIND).groups)
    rate = np.zeros((len(kinds), 1, 1 + jobs["num_replicas"].max(), 2))
    work = np.empty(len(kinds))
    for row, (name, gpus, batch) in enumerate(kinds):
        application = Application(pollux / "traces" / name)
        local, passes = application.split(gpus, batch)
        if gpus <= NODE_GPUS:
            rate[row, 0, gpus, 0] = 1 / application.step_s(str(gpus), local, passes)
        rate[row, 0, gpus, 1] = 1 / application.step_s(spread(gpus), local, passes)
        work[row] = application.steps(gpus * local * passes) + RESTART_S * rate[row, 0, gpus, int(gpus > NODE_GPUS)]
    models = np.array([" ".join(map(str, kind)) for kind in kinds], object)
    kind_of = [kinds.index(kind) for kind in jobs[KIND].itertuples(index=False, name=None)]
    return Workload.build(
        ("gpu",),
        np.ones((len(jobs), 1)),
        jobs["time"].to_numpy(float),
        job_id=jobs["name"].to_numpy(object),
        iterations=work[kind_of],
        min_gpus=jobs["num_replicas"].to_numpy(),
        restart_s=RESTART_S,
        model=models[kind_of],
        measured=MeasuredTable(tuple(models), ("gpu",), rate),
    )


def spread(gpus: int) -> str:
    """The placement of ``gpus`` on the fewest nodes, but on two at least where there are two GPUs."""
    if gpus <= NODE_GPUS:
        return "".join(str(half) for half in (gpus // 2, gpus - gpus // 2) if half)
    return "".join(str(held) for held in (gpus % NODE_GPUS, *[NODE_GPUS] * (gpus // NODE_GPUS)) if held)


@dataclass(frozen=True)
class Application:
    """The measurements of one application, in its folder."""

    path: Path

    @cached_property
    def placements(self) -> pd.DataFrame:
        """step_time and sync_time (s) by placement, a digit a node, and local_bsz."""
        return pd.read_csv(self.path / "placements.csv", dtype={"placement": str})

    @cached_property
    def epochs(self) -> dict[int, pd.DataFrame]:
        """By ascending batch, one row an epoch: progress and iteration at its end, grad_sqr and grad_var."""
        paths = {int(path.stem.split("-")[1]): path for path in self.path.glob("validation-*.csv")}
        return {batch: pd.read_csv(paths[batch]) for batch in sorted(paths)}

    def split(self, gpus: int, batch: int) -> tuple[int, int]:
        """Samples of one pass on one GPU, and the passes of a step."""
        local = -(-batch // gpus)
        passes = -(-local // MOST_SAMPLES.get(self.path.name, int(self.placements["local_bsz"].max())))
        if gpus == 1 and batch > min(self.epochs):
            passes = max(passes, 2)  # one GPU tells the gradient's variance from the difference of two passes
        return min(-(-local // passes), max(self.epochs) // (gpus * passes)), passes

    def steps(self, batch: int) -> float:
        """Steps of ``batch`` samples to the end of the last epoch; gradients are interpolated between batches."""
        batches = list(self.epochs)
        progress = self.epochs[batches[0]]["progress"].to_numpy()
        sqr, var = (
            np.array([np.interp(batch, batches, epoch) for epoch in zip(*measured, strict=True)])
            for measured in ([table[name] for table in self.epochs.values()] for name in ("grad_sqr", "grad_var"))
        )
        gain = (var + sqr) / (var * batches[0] / batch + sqr)
        return float((np.diff(progress, prepend=0.0) / gain).sum())

    def step_s(self, placement: str, local: int, passes: int) -> float:
        """Seconds of one step on ``placement``."""
        times = ["step_time", "sync_time"]
        known = self.placements[self.placements["placement"] == placement]
        if len(known):
            step_s, sync_s = (np.interp(local, known["local_bsz"], known[name]) for name in times)
        else:
            table = pd.read_csv(self.path / "scalability.csv")
            measured = LinearNDInterpolator(table[["num_nodes", "num_replicas", "local_bsz"]], table[times])
            step_s, sync_s = measured([len(placement), sum(map(int, placement)), local])[0]
        return float(step_s + (passes - 1) * (step_s - sync_s))

"""``simulate``: a whole workload under one scheduler, and what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hetenv.cluster import Cluster
from hetenv.errors import PlanError, StallError
from hetenv.metrics import summarize
from hetenv.scheduler import QueueScheduler, Scheduler
from hetenv.simulator.core import Simulator
from hetenv.simulator.queueing import CAN_TIME, run_queue
from hetenv.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Result:
    """A finished simulation.

    Attributes:
        simulator: in its final state.
        scheduler: name of the scheduler.
        decision_s: (D,) seconds of wall-clock time each decision took.
    """

    simulator: Simulator
    scheduler: str
    decision_s: np.ndarray

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a job, in order of arrival: the workload's description and what happened to the job.

        Columns: job_id, model, outcome, arrival_s, start_s, finish_s, jct_s (finish - arrival), queueing_s
        (start - arrival), gpus (chosen at the first start), gpu_s (GPU-seconds held), lost_gpu_s (of those,
        restarting), restarts, exclusive_s (fastest time alone on the cluster).
        """
        import pandas as pd

        simulator = self.simulator
        workload, jobs = simulator.workload, simulator.state.jobs
        return pd.DataFrame(
            {
                "job_id": workload.job_id,
                "model": workload.model,
                "outcome": workload.outcome,
                "arrival_s": workload.arrival_s,
                "start_s": jobs["start_s"],
                "finish_s": jobs["finish_s"],
                "jct_s": jobs["finish_s"] - workload.arrival_s,
                "queueing_s": jobs["start_s"] - workload.arrival_s,
                "gpus": jobs["size"],
                "gpu_s": jobs["service_gpu_s"],
                "lost_gpu_s": jobs["lost_gpu_s"],
                "restarts": jobs["restarts"],
                "exclusive_s": simulator.exclusive_s,
            }
        )

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """One row for each stretch of time a job held GPUs of a node.

        Columns: job (row of ``jobs``), node, type, gpus, start_s, end_s.
        """
        import pandas as pd

        frame = pd.DataFrame(self.simulator.timeline)
        cluster = self.simulator.cluster
        frame["type"] = np.array(cluster.type_names)[cluster.node_type[frame["node"]]]
        return frame[["job", "node", "type", "gpus", "start_s", "end_s"]]

    def summary(self) -> dict[str, Any]:
        """Figures of the whole run; see ``hetenv.metrics.summarize``."""
        busy_gpu_s = float(self.simulator.busy_gpu_s.sum())
        return summarize(self.jobs, busy_gpu_s, self.simulator.cluster.n_gpus, self.decision_s)


def run_to_end(simulator: Simulator, scheduler: Scheduler, *, seed: int = 0) -> np.ndarray:
    """Let ``scheduler`` decide at every epoch until all jobs are done; returns (D,) decision seconds.

    A ``QueueScheduler`` runs compiled, to the same result.

    Raises:
        StallError: the scheduler left jobs waiting on an idle cluster.
        PlanError: the scheduler asked for the impossible; the message names it.
    """
    scheduler.reset(simulator.cluster, seed)
    discipline = scheduler.discipline(simulator) if CAN_TIME and isinstance(scheduler, QueueScheduler) else None
    try:
        if discipline is not None:
            return run_queue(simulator, discipline)
        return _run_plans(simulator, scheduler)
    except (PlanError, StallError) as error:
        raise type(error)(f"scheduler {scheduler.name}: {error}") from None


def _run_plans(simulator: Simulator, scheduler: Scheduler) -> np.ndarray:
    decision_s = []
    while not simulator.done:
        begin = time.perf_counter()
        plan = scheduler.plan(simulator.snapshot())
        decision_s.append(time.perf_counter() - begin)
        simulator.apply(plan)
        simulator.advance()
    return np.array(decision_s)


def simulate(
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler,
    round_s: float | None = None,
    seed: int = 0,
    **options: Any,
) -> Result:
    """Run ``workload`` on ``cluster`` under ``scheduler`` until every job is done.

    Args:
        round_s: decide only at multiples of this many seconds; None decides at every event.
        seed: for the scheduler's random generator.
        options: further arguments of ``Simulator`` (preemptive, even_split, whole_steps, ...).
    """
    simulator = Simulator(cluster, workload, round_s=round_s, **options)
    decision_s = run_to_end(simulator, scheduler, seed=seed)
    return Result(simulator, scheduler.name, decision_s)

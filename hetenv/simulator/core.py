"""The Simulator: one state moved by plans and by time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hetenv.cluster import Cluster
from hetenv.errors import InputError, PlanError, StallError
from hetenv.scheduler import Plan, Snapshot
from hetenv.simulator import kernels, plans
from hetenv.simulator.exclusive import exclusive_best_s
from hetenv.simulator.releases import expected_wait_s
from hetenv.simulator.state import RULES, SEGMENT, State, fixed_part, initial_state
from hetenv.workload import Workload

PACKINGS = ("fullest", "emptiest")
_NO_PLACES = np.empty((0, 3), np.int64)
_WHY = {
    plans.NOT_ACTIVE: "is not in the system",
    plans.BAD_SIZE: "cannot have that many GPUs",
    plans.NOT_PREEMPTIVE: "runs, and running jobs may not be paused or moved here",
    plans.NOT_MALLEABLE: "is sized already and not malleable",
    plans.CANNOT_RUN: "cannot run on these GPUs",
    plans.BAD_NODE: "asks for nodes that lack the GPUs or do not match its counts",
}


class Elapsed(NamedTuple):
    """What ``advance`` passed: wall-clock seconds, and job-seconds spent in the system."""

    seconds: float
    job_seconds: float


class Simulator:
    """A cluster working through a workload.

    Args:
        cluster: where the jobs run.
        workload: the jobs, or a function of a ``numpy.random.Generator`` that draws them at ``reset``.
        preemptive: whether running jobs may be paused and moved. Malleable jobs may be resized either way.
        even_split: split batches evenly (the slowest worker holds up the others) instead of in
            proportion to the workers' speeds.
        round_s: decide only at multiples of this; None decides at every arrival and completion.
        whole_steps: rounds in Gavel's form: jobs make whole iterations, a round ends with its last
            finished one, arrivals join at its end.
        min_reallocation_s: with ``whole_steps``, the least time between two decision epochs (one at
            time 0 does not count, as in Gavel); an epoch also needs an arrival or a completion since the last.
        packing: which nodes a job takes, of those that let it span the fewest: the "fullest" that fit it, which
            leaves whole nodes to large jobs, or the "emptiest", which spreads small jobs and splits large ones.

    Raises:
        InputError: a job that the cluster can never run, or options that contradict each other.
    """

    def __init__(
        self,
        cluster: Cluster,
        workload: Workload | Callable[[np.random.Generator], Workload],
        *,
        preemptive: bool = False,
        even_split: bool = False,
        round_s: float | None = None,
        whole_steps: bool = False,
        min_reallocation_s: float = 0.0,
        packing: str = "fullest",
    ) -> None:
        if round_s is not None and not (np.isfinite(round_s) and round_s > 0):
            raise InputError("round_s", round_s, "give positive seconds, or None to decide at every event")
        if whole_steps and round_s is None:
            raise InputError("whole_steps", "no round_s", "give the length of a round in seconds")
        if min_reallocation_s and not whole_steps:
            raise InputError("min_reallocation_s", min_reallocation_s, "use it with whole_steps=True")
        if packing not in PACKINGS:
            raise InputError("packing", repr(packing), f"use one of {', '.join(PACKINGS)}")
        self.cluster = cluster
        self.preemptive, self.even_split, self.packing = preemptive, even_split, packing
        self.round_s, self.whole_steps, self.min_reallocation_s = round_s, whole_steps, min_reallocation_s
        rules = (round_s or 0.0, min_reallocation_s, preemptive, even_split, whole_steps, packing == "emptiest")
        self._rules = np.array([rules], RULES)
        self._source = workload
        self._n_gpus = cluster.n_gpus
        self.version = 0
        self.reset(0)

    def reset(self, seed: int | np.random.Generator | None = None, workload: Workload | None = None) -> None:
        """Back to the first decision epoch.

        A workload given as a function is drawn afresh from ``seed``; ``workload`` replaces it for this run.
        """
        if workload is not None:
            self.workload = workload
        elif not isinstance(self._source, Workload):
            self.workload = self._source(np.random.default_rng(seed))
        else:
            self.workload = self._source
        self.fixed = fixed_part(self.cluster, self.workload, self._rules)
        self.state: State = initial_state(self.cluster, self.fixed)
        self._exclusive_s: np.ndarray | None = None
        self.running_may_change = self.preemptive or bool(self.fixed.jobs["malleable"].any())
        self._timeline = np.zeros(2 * self._n_gpus, SEGMENT)
        self.change(kernels.next_epoch)

    # --- reading ---------------------------------------------------------------------------------

    @property
    def time_s(self) -> float:
        return float(self.state.clock["time_s"][0])

    @property
    def job_seconds(self) -> float:
        """Integral of the number of jobs in the system; the sum of all JCTs once everything is done."""
        return float(self.state.clock["job_s"][0])

    @property
    def done(self) -> bool:
        """Whether every job has finished."""
        return int(self.state.clock["n_done"][0]) == len(self.workload)

    @property
    def stalled(self) -> bool:
        """Whether jobs wait, nothing runs and nothing will arrive: only a plan can move time on."""
        clock = self.state.clock[0]
        no_event = clock["n_running"] == 0 and clock["next_arrival"] == len(self.workload)
        return bool(no_event and clock["n_active"] > 0)

    @property
    def busy_gpu_s(self) -> np.ndarray:
        """(M,) GPU-seconds held so far."""
        return self.cluster.total * self.time_s + self.state.uses["busy_gpu_s"]

    @property
    def timeline(self) -> np.ndarray:
        """(n,) SEGMENT records: what each finished or given-up allocation held on a node, and when."""
        return self._timeline[: int(self.state.clock["n_segments"][0])]

    @property
    def exclusive_s(self) -> np.ndarray:
        """(J,) seconds each job needs alone on the cluster with its best allocation."""
        if self._exclusive_s is None:
            self._exclusive_s = exclusive_best_s(self.fixed)
        return self._exclusive_s

    @property
    def expected_wait_s(self) -> float:
        """Mean seconds until the GPUs that running jobs give back serve a waiting job; see ``releases``."""
        return expected_wait_s(self.fixed, self.state)

    def snapshot(self) -> Snapshot:
        """What a scheduler may see now."""
        return Snapshot(self)

    def gather_active(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Active jobs by arrival: indices (A,), [remaining, GPU-seconds, seconds to finish] (A, 3), counts (A, M)."""
        n_jobs = int(self.state.clock[0]["n_active"])
        jobs = np.empty(n_jobs, np.int64)
        figures = np.empty((n_jobs, 3))
        counts = np.empty((n_jobs, len(self.cluster.types)), np.int64)
        kernels.gather_active(self.fixed, self.state, False, jobs, figures, counts)
        return jobs, figures, counts

    def gather_waiting(self, limit: int | None = None) -> np.ndarray:
        """(n,) int64, indices of the waiting jobs by arrival, at most the first ``limit``."""
        clock = self.state.clock[0]
        n_waiting = int(clock["n_active"] - clock["n_running"])
        jobs = np.empty(n_waiting if limit is None else min(limit, n_waiting), np.int64)
        return jobs[: kernels.gather_waiting(self.state, jobs)]

    def holds(self, job: int) -> list[tuple[int, int]]:
        """The (node, GPUs) pairs that ``job`` holds now."""
        pairs = []
        at = int(self.state.jobs["first_hold"][job])
        while at >= 0:
            node, gpus, at = self.state.holds[at].item()
            pairs.append((node, gpus))
        return sorted(pairs)

    # --- moving ----------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> int:
        """Start, resize, preempt or migrate; returns how many jobs changed.

        Raises:
            PlanError: the plan is impossible; nothing has changed.
        """
        if len(plan) == 0:
            return 0
        if plan.counts.shape[1] != len(self.cluster.types):
            raise PlanError(
                f"plan has counts for {plan.counts.shape[1]} types; the cluster has {len(self.cluster.types)}"
            )
        places = _NO_PLACES
        if plan.nodes is not None:
            rows = [np.asarray(chosen, np.int64).reshape(-1, 2) for chosen in plan.nodes]
            places = np.concatenate([np.insert(chosen, 0, row, axis=1) for row, chosen in enumerate(rows)])
        code, at = plans.plan_fault(self.fixed, self.state, plan.jobs, plan.counts, places)
        if code == plans.NO_CAPACITY:
            raise PlanError(f"plan needs more {self.cluster.type_names[at]} GPUs than are free or given back by it")
        if code != plans.OK:
            raise PlanError(f"{self._name(plan.jobs[at])} {_WHY[code]}: {plan.counts[at].tolist()}")
        return int(self.change(plans.apply_plan, plan.jobs, plan.counts, places))

    def change(self, kernel: Callable[..., Any], *args: Any) -> Any:
        """Let a compiled ``kernel(fixed, state, timeline, *args)`` move time or place jobs that it knows to fit.

        Nothing is checked. The timeline has room for two segments a GPU at the least.
        """
        self.version += 1
        self._reserve_timeline()
        return kernel(self.fixed, self.state, self._timeline, *args)

    def advance(self) -> Elapsed:
        """Move to the next decision epoch (or to the end of the last job).

        Raises:
            StallError: jobs wait, nothing runs and nothing will arrive.
        """
        if self.stalled:
            waiting = self.gather_active()[0]
            raise StallError(f"{len(waiting)} jobs wait on an idle cluster, first {self._name(waiting[0])}")
        from_s, from_job_s = self.time_s, self.job_seconds
        self.change(kernels.next_epoch)
        return Elapsed(self.time_s - from_s, self.job_seconds - from_job_s)

    def clone(self) -> Simulator:
        """An independent simulator in the same state; constants are shared, the state is copied."""
        twin = copy.copy(self)
        twin.state = self.state.copy()
        twin._timeline = self._timeline.copy()
        return twin

    def _reserve_timeline(self) -> None:
        """Make room for what one move can write: one segment a GPU for what is given up, one for what ends after it."""
        if self.state.clock["n_segments"][0] + 2 * self._n_gpus > len(self._timeline):
            self._timeline = np.concatenate([self._timeline, np.zeros_like(self._timeline)])

    def _name(self, job: int) -> str:
        return f"job {self.workload.job_id[job]}" if 0 <= job < len(self.workload) else f"job index {job}"

"""What a scheduler sees (Snapshot), what it answers (Plan), and the contract between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from hetenv.errors import PlanError

if TYPE_CHECKING:
    from hetenv.cluster import Cluster
    from hetenv.simulator.core import Simulator
    from hetenv.simulator.draft import Draft

DECISIONS = frozenset({"place", "size", "preempt", "resize", "migrate"})


@dataclass(frozen=True, eq=False)
class Plan:
    """Changes of allocations; a job that the plan does not name keeps what it holds.

    Args:
        jobs: (P,) int, job indices as in ``snapshot.jobs``, each at most once.
        counts: (P, M) int, GPUs per type each job is to hold; all zeros takes its GPUs away.
        nodes: optional, one (n, 2) int array of (node, GPUs) a job for schedulers that choose nodes
            themselves; otherwise the simulator packs the counts onto the fewest nodes by its rule, in plan order.

    Raises:
        PlanError: shapes do not agree, or a job is named twice.
    """

    jobs: np.ndarray
    counts: np.ndarray
    nodes: Sequence[np.ndarray] | None = None

    def __post_init__(self) -> None:
        jobs = np.asarray(self.jobs, np.int64).reshape(-1)
        counts = np.asarray(self.counts, np.int64)
        if counts.ndim != 2 or len(counts) != len(jobs):
            raise PlanError(f"plan has counts of shape {counts.shape} for {len(jobs)} jobs; give one row a job")
        if len(jobs) > 1 and len(np.unique(jobs)) != len(jobs):
            raise PlanError(f"plan names a job twice: {jobs.tolist()}; give each job one row")
        if self.nodes is not None and len(self.nodes) != len(jobs):
            raise PlanError(f"plan has {len(self.nodes)} node lists for {len(jobs)} jobs; give one a job")
        object.__setattr__(self, "jobs", jobs)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def nothing(cls, n_types: int) -> Plan:
        """The plan that changes nothing."""
        return cls(np.empty(0, np.int64), np.empty((0, n_types), np.int64))

    def __len__(self) -> int:
        return len(self.jobs)


class Snapshot:
    """The cluster and its jobs at one decision epoch, gathered when first asked for.

    Arrays over jobs have one entry for each of the A active (waiting or running) jobs, in order of
    arrival, and are copies. A snapshot is good until the simulator moves; asking later raises RuntimeError.
    """

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._version = simulator.version

    def _current(self) -> Simulator:
        if self._simulator.version != self._version:
            raise RuntimeError("the simulator has moved on; take a new snapshot")
        return self._simulator

    @property
    def simulator(self) -> Simulator:
        """What compiled schedulers read: its arrays are not copies, and must not be changed."""
        return self._current()

    # --- cluster ---------------------------------------------------------------------------------

    @cached_property
    def cluster(self) -> Cluster:
        return self._current().cluster

    @cached_property
    def time_s(self) -> float:
        return self._current().time_s

    @cached_property
    def preemptive(self) -> bool:
        """Whether running jobs may be paused and moved."""
        return self._current().preemptive

    @cached_property
    def even_split(self) -> bool:
        """Whether batches are split evenly over the workers rather than in proportion to their speed."""
        return self._current().even_split

    @cached_property
    def total(self) -> np.ndarray:
        """(M,) int64, GPUs of each type."""
        return self._current().cluster.total.copy()

    @cached_property
    def free(self) -> np.ndarray:
        """(M,) int64, free GPUs of each type."""
        return self._current().state.uses["free"].astype(np.int64)

    @cached_property
    def node_free(self) -> np.ndarray:
        """(N,) int64, free GPUs of each node; ``cluster.node_type`` says what they are."""
        return self._current().state.nodes["free"].astype(np.int64)

    @cached_property
    def expected_wait_s(self) -> float:
        """Mean seconds until the GPUs that running jobs give back serve a waiting job; inf when nothing runs.

        See ``hetenv.simulator.releases``; with nobody or one single-GPU job waiting, the time to the next release.
        """
        return self._current().expected_wait_s

    @cached_property
    def running_may_change(self) -> bool:
        """Whether some job may be paused, moved or resized while it runs."""
        return self._current().running_may_change

    @cached_property
    def n_active(self) -> int:
        return int(self._current().state.clock["n_active"][0])

    @cached_property
    def n_waiting(self) -> int:
        clock = self._current().state.clock[0]
        return int(clock["n_active"] - clock["n_running"])

    # --- towards a plan --------------------------------------------------------------------------

    def queue(self, limit: int | None = None) -> np.ndarray:
        """(n,) int64, indices of the waiting jobs by arrival, at most the first ``limit``.

        Costs less than ``jobs`` when a long queue waits and only its head matters.
        """
        return self._current().gather_waiting(limit)

    def draft(self) -> Draft:
        """A plan in the making, which knows what it leaves free."""
        from hetenv.simulator.draft import Draft

        return Draft(self._current())

    def clone_simulator(self) -> Simulator:
        """An independent simulator in this state, to try plans on."""
        return self._current().clone()

    # --- active jobs -----------------------------------------------------------------------------

    @cached_property
    def _active(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._current().gather_active()

    @property
    def jobs(self) -> np.ndarray:
        """(A,) int64, job indices: rows of the workload."""
        return self._active[0]

    @property
    def remaining(self) -> np.ndarray:
        """(A,) float64, iterations left."""
        return self._active[1][:, 0]

    @property
    def service_gpu_s(self) -> np.ndarray:
        """(A,) float64, attained service in GPU-seconds."""
        return self._active[1][:, 1]

    @property
    def finish_in_s(self) -> np.ndarray:
        """(A,) float64, seconds to the finish under the current allocation; inf while waiting."""
        return self._active[1][:, 2]

    @property
    def counts(self) -> np.ndarray:
        """(A, M) int64, GPUs held per type; all zeros while waiting."""
        return self._active[2]

    @cached_property
    def waiting(self) -> np.ndarray:
        """(A,) bool, which jobs hold no GPUs."""
        return self.counts.sum(axis=1) == 0

    @cached_property
    def arrival_s(self) -> np.ndarray:
        """(A,) float64."""
        return self._current().fixed.jobs["arrival_s"][self.jobs]

    @cached_property
    def exclusive_s(self) -> np.ndarray:
        """(A,) float64, seconds the whole job takes alone on the cluster, on its best allocation."""
        return self._current().exclusive_s[self.jobs]

    @cached_property
    def exclusive_remaining_s(self) -> np.ndarray:
        """(A,) float64, of these the seconds that the remaining work takes."""
        return self.exclusive_s * (self.remaining / self._current().fixed.jobs["iterations"][self.jobs])

    @cached_property
    def age_s(self) -> np.ndarray:
        """(A,) float64, seconds since arrival."""
        return self.time_s - self.arrival_s

    @cached_property
    def speed(self) -> np.ndarray:
        """(A, M) float64, samples/s of one GPU; 0 where the job cannot run."""
        return self._current().fixed.speed[self.jobs]

    @cached_property
    def batch(self) -> np.ndarray:
        """(A,) float64, samples of one iteration."""
        return self._current().fixed.jobs["batch"][self.jobs]

    @cached_property
    def grad_bytes(self) -> np.ndarray:
        """(A,) float64."""
        return self._current().fixed.jobs["grad_bytes"][self.jobs]

    @cached_property
    def restart_s(self) -> np.ndarray:
        """(A,) float64, seconds a preemption, migration or resize costs the job."""
        return self._current().fixed.jobs["restart_s"][self.jobs]

    @cached_property
    def malleable(self) -> np.ndarray:
        """(A,) bool, whether the job may be resized after its first start."""
        return self._current().fixed.jobs["malleable"][self.jobs] > 0

    @cached_property
    def size_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and most GPUs (A,) int64 each job may hold now; equal once a job that is not malleable is sized."""
        simulator = self._current()
        spec, size = simulator.fixed.jobs[self.jobs], simulator.state.jobs["size"][self.jobs]
        sized = (size > 0) & (spec["malleable"] == 0)
        least, most = (np.where(sized, size, spec[name]).astype(np.int64) for name in ("min_gpus", "max_gpus"))
        return least, most

    @cached_property
    def measured_rate(self) -> np.ndarray | None:
        """(A, M, G + 1) iterations/s on 0..G GPUs of one type, NaN rows for jobs that follow ``speed``.

        None when the workload has no measured throughputs. Sizes that exceed a type's largest node
        take the figure of the spread placement.
        """
        simulator = self._current()
        measured = simulator.fixed.measured
        if len(measured) == 0:
            return None
        spread = np.arange(measured.shape[2]) > self.cluster.largest_node[:, None]  # (M, G + 1)
        rate = np.where(spread, measured[..., 1], measured[..., 0])
        rows = simulator.fixed.jobs["measured_row"][self.jobs]
        return np.where((rows >= 0)[:, None, None], rate[rows], np.nan)


@runtime_checkable
class Scheduler(Protocol):
    """Anything that turns a snapshot into a plan.

    Attributes:
        name: as it appears in tables.
        decides: the decisions it may take, a subset of ``DECISIONS``: place (start a waiting job),
            size (choose among min..max GPUs at the start), preempt (pause a running job), resize
            (change a running job's size), migrate (move it at the same size).
    """

    name: str
    decides: frozenset[str]

    def reset(self, cluster: Cluster, seed: int) -> None:
        """Forget all jobs and make the scheduler's random generator from ``seed``."""

    def plan(self, snapshot: Snapshot) -> Plan:
        """What to change now."""


class QueueDiscipline(NamedTuple):
    """A scheduler that starts waiting jobs in a fixed order, each on the free allocation where it finishes first."""

    rank: np.ndarray  # (J,) int64, place of each job in the order, all different
    skip: bool  # whether jobs pass one that fits nowhere; otherwise it blocks those behind it


@runtime_checkable
class QueueScheduler(Scheduler, Protocol):
    """A scheduler whose plans may be those of a queue, so that whole traces run compiled."""

    def discipline(self, simulator: Simulator) -> QueueDiscipline | None:
        """What ``plan`` does at every epoch of this run; None if it does something else."""

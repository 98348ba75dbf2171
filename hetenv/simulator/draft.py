"""A plan in the making: what it leaves free, and the fastest allocation of that for the next job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hetenv.compiled import njit
from hetenv.scheduler import Plan
from hetenv.simulator.fastest import can_use, fastest_counts
from hetenv.simulator.kernels import job_rate, pack, unpack

if TYPE_CHECKING:
    from hetenv.simulator.core import Simulator


class Draft:
    """A plan in the making, made by ``snapshot.draft()``.

    Jobs are named by their index, as in a plan. Packing is followed node by node, so run times are
    what the simulator will make of the plan; only a preemption drafted after a placement may let the
    simulator pack that placement onto fewer nodes than foreseen here.
    """

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._fixed, self._state = simulator.fixed, simulator.state
        self._nodes = simulator.state.nodes.copy()
        self._free = simulator.state.uses["free"].astype(np.int64)
        self._rows: dict[int, np.ndarray] = {}
        self._finish_in_s: dict[int, float] = {}

    @property
    def free(self) -> np.ndarray:
        """(M,) int64, GPUs of each type that the plan so far leaves free."""
        return self._free.copy()

    # --- asking ----------------------------------------------------------------------------------

    def fastest(self, job: int, within: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """The free allocation on which ``job`` finishes first: (M,) counts and seconds to its finish.

        Args:
            within: (M,) GPUs to stay within besides those that are free.

        Returns:
            Zeros and inf when nothing free will do. The seconds include the restart of a job that ran before.
        """
        free = self._free if within is None else np.minimum(self._free, within)
        counts = np.zeros_like(free)
        return counts, fastest_run_s(self._fixed, self._state, self._nodes, free, job, counts)

    def fastest_among(self, job: int, free: np.ndarray) -> np.ndarray:
        """(M,) counts of the fastest category for ``job`` were ``free`` (M,) GPUs free on the emptiest nodes."""
        counts = np.zeros_like(free)
        room = np.minimum(free, self._fixed.types["largest_node"])
        least, most = size_limits(self._fixed, self._state, job)
        fastest_counts(self._fixed, job, least, most, free, room, counts)
        return counts

    def least_gpus(self, jobs: np.ndarray) -> np.ndarray:
        """(n,) int, the fewest GPUs that each of ``jobs`` (n,) accepts."""
        spec, size = self._fixed.jobs[jobs], self._state.jobs["size"][jobs]
        return np.where((size > 0) & (spec["malleable"] == 0), size, spec["min_gpus"])

    def releases(self) -> tuple[np.ndarray, np.ndarray]:
        """What the jobs running under the plan give back: seconds to the finish (n,), ascending, and counts (n, M)."""
        jobs, figures, counts = self._simulator.gather_active()
        stays = (counts.any(axis=1)) & ~np.isin(jobs, list(self._rows))
        finish_in_s = np.concatenate([figures[stays, 2], list(self._finish_in_s.values())])
        placed = [self._rows[job] for job in self._finish_in_s]
        order = np.argsort(finish_in_s, kind="stable")
        return finish_in_s[order], np.concatenate([counts[stays], *(row[None] for row in placed)])[order]

    # --- changing --------------------------------------------------------------------------------

    def place(self, job: int, counts: np.ndarray) -> bool:
        """Give a job without GPUs ``counts`` (M,) free ones; returns whether it can run on them as packed."""
        run_s = take_gpus(self._fixed, self._state, self._nodes, self._free, job, counts)
        self._finish_in_s[job] = run_s
        self._rows[job] = counts
        return run_s < np.inf

    def preempt(self, job: int) -> None:
        """Take all GPUs from a running job."""
        give_back(self._state, self._nodes, self._free, job)
        self._rows[job] = np.zeros_like(self._free)

    def make_room(self, job: int, victims: np.ndarray) -> np.ndarray:
        """Preempt ``victims`` (n,), running jobs, one after the other until ``job`` fits somewhere.

        Victims that hold no GPU the job could run on are passed over; nobody is preempted when the job
        fits already, or not even with the GPUs of them all.

        Returns:
            (n,) bool, who was preempted.
        """
        chosen = _make_room(self._fixed, self._state, self._nodes.copy(), self._free.copy(), job, victims)
        for victim in victims[chosen].tolist():
            self.preempt(victim)
        return chosen

    def fill(self, jobs: np.ndarray, *, skip: bool) -> int:
        """Place waiting ``jobs`` (n,) in this order, each on its fastest free allocation.

        Args:
            skip: go on past a job that fits nowhere; otherwise it blocks those behind it.

        Returns:
            The position of the first job not looked at, or that blocks; n when there is none.
        """
        started = np.empty(min(len(jobs), int(self._free.sum())), np.int64)
        run_s = np.empty(len(started))
        counts = np.empty((len(started), len(self._free)), np.int64)
        reached, n_started = fill_free(
            self._fixed, self._state, self._nodes, self._free, jobs, skip, started, run_s, counts
        )
        self._rows.update(zip(started[:n_started].tolist(), counts[:n_started], strict=True))
        self._finish_in_s.update(zip(started[:n_started].tolist(), run_s[:n_started].tolist(), strict=True))
        return reached

    def plan(self) -> Plan:
        """The plan as it stands."""
        if not self._rows:
            return Plan.nothing(len(self._free))
        return Plan(np.fromiter(self._rows, np.int64, len(self._rows)), np.stack(list(self._rows.values())))


@njit
def size_limits(fixed, state, job):
    """Least and most GPUs the job may hold now."""
    spec, size = fixed.jobs[job], state.jobs[job].size
    if size > 0 and not spec.malleable:
        return size, size
    return spec.min_gpus, spec.max_gpus


@njit
def _freest_node(nodes, first, end):
    """Free GPUs of the freest of the nodes first..end; a loop without branches, as there may be thousands."""
    most = np.int32(0)
    for node in range(first, end):
        most = max(most, nodes[node].free)
    return most


@njit
def fastest_run_s(fixed, state, nodes, free, job, counts):
    """Fill ``counts`` with the fastest allocation of ``free`` (M,) and return the seconds to the finish."""
    least, most = size_limits(fixed, state, job)
    if free.sum() < least:
        counts[:] = 0
        return np.inf
    room = np.empty(free.shape[0], np.int64)
    for m in range(free.shape[0]):
        room[m] = _freest_node(nodes, fixed.types[m].first_node, fixed.types[m].end_node)
    record = state.jobs[job]
    restart_s = fixed.jobs[job].restart_s if record.size > 0 else 0.0
    return restart_s + record.remaining * fastest_counts(fixed, job, least, most, free, room, counts)


@njit
def take_gpus(fixed, state, nodes, free, job, counts):
    """Pack ``counts`` (M,) GPUs; returns the seconds to the job's finish, inf if it cannot run as packed."""
    for m in range(counts.shape[0]):
        free[m] -= counts[m]
    rate = job_rate(fixed, job, counts, pack(fixed, nodes, counts))
    if rate <= 0.0:
        return np.inf
    record = state.jobs[job]
    restart_s = fixed.jobs[job].restart_s if record.size > 0 else 0.0
    return restart_s + record.remaining / rate


@njit
def give_back(state, nodes, free, job):
    unpack(state, nodes, job)
    for m in range(free.shape[0]):
        free[m] += state.counts[job, m]


@njit
def _make_room(fixed, state, nodes, free, job, victims):
    """Which ``victims`` to preempt; works ``nodes`` and ``free`` up as scratch."""
    chosen = np.zeros(victims.shape[0], np.bool_)
    counts = np.zeros(free.shape[0], np.int64)
    if fastest_run_s(fixed, state, nodes, free, job, counts) < np.inf:
        return chosen
    for at in range(victims.shape[0]):
        for m in range(free.shape[0]):
            chosen[at] = chosen[at] or (state.counts[victims[at], m] > 0 and can_use(fixed, job, m))
        if chosen[at]:
            give_back(state, nodes, free, victims[at])
            if fastest_run_s(fixed, state, nodes, free, job, counts) < np.inf:
                return chosen
    chosen[:] = False
    return chosen


@njit
def fill_free(fixed, state, nodes, free, jobs, skip, started, run_s, counts):
    """Kernel of ``Draft.fill``; returns the position reached and how many rows were written."""
    n_started = 0
    for at in range(jobs.shape[0]):
        if n_started == started.shape[0] or free.sum() == 0:
            return at, n_started
        if fastest_run_s(fixed, state, nodes, free, jobs[at], counts[n_started]) < np.inf:
            run_s[n_started] = take_gpus(fixed, state, nodes, free, jobs[at], counts[n_started])
            started[n_started] = jobs[at]
            n_started += 1
        elif not skip:
            return at, n_started
    return jobs.shape[0], n_started

"""Each job's menu: the categories it may get and what each costs, online terms included.

All solvers read this one form. The first entry of every job is the empty category. A job that must be
placed has it too, at a cost above any saving elsewhere, so that a search may pass through incomplete
placements and still be drawn out of them; bounds and the exact solver leave that entry out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.offers import JobTerms, OnlineTerms, check_room, settle_terms
from hetenv.matching.problem import PlacementProblem

if TYPE_CHECKING:
    from typing import Unpack


class Menu(NamedTuple):
    """Categories on offer to each job, ascending by key within a job; a tuple, so that kernels take it whole.

    ``start`` (S + 1,), ``vector`` (O,) rows of ``counts``, ``cost`` (O,) weighted seconds, ``must`` (S,) bool: the
    first entry of the job is only a stand-in, ``counts`` (V, M), ``key`` (V,), ``type_key`` (M,), ``limit`` (M,):
    see ``CountVectors``.
    """

    start: np.ndarray
    vector: np.ndarray
    cost: np.ndarray
    must: np.ndarray
    counts: np.ndarray
    key: np.ndarray
    type_key: np.ndarray
    limit: np.ndarray

    @property
    def n_jobs(self) -> int:
        return len(self.must)

    def counts_of(self, choice: np.ndarray) -> np.ndarray:
        """(S, M) int64 GPUs per type of the chosen entries ``choice`` (S,)."""
        return self.counts[self.vector[choice]]

    def total(self, choice: np.ndarray) -> float:
        """Cost of the chosen entries ``choice`` (S,)."""
        return float(self.cost[choice].sum())

    def unplaced(self, choice: np.ndarray) -> np.ndarray:
        """Indices of the jobs that must be placed and are not."""
        return np.flatnonzero(self.must & (choice == self.start[:-1]))


def build_menu(problem: PlacementProblem, kept: np.ndarray, **online: Unpack[OnlineTerms]) -> Menu:
    """The menu of every job of ``problem``, in its order, out of the ``kept`` entries of its cost table.

    Args:
        problem: the jobs and GPUs.
        kept: (O,) bool. The current category stays on the menu even if it is not kept: a restart may make it the best.
        online: see ``OnlineTerms``.

    Raises:
        InputError: a term with the wrong shape or a bad value, a job that fits nowhere and may not wait,
            or more GPUs needed than there are.
    """
    return serve_menu(problem, kept, settle_terms(problem, **online), np.arange(problem.n_jobs))


def serve_menu(problem: PlacementProblem, kept: np.ndarray, terms: JobTerms, order: np.ndarray) -> Menu:
    """As ``build_menu``, of the jobs ``order`` (S,) with the ``terms`` in that order."""
    table, vectors = problem.costs, problem.vectors
    start, vector, cost, smallest = _serve(table.start, table.vector, table.cost, kept, terms, vectors.counts)
    check_room(problem, terms.must, smallest, order)
    price_stand_ins(start, cost, terms.must)
    return Menu(start, vector, cost, terms.must, vectors.counts, vectors.key, vectors.type_key, vectors.limit)


@njit
def extend(menu, other, jobs):
    """``menu`` with what ``other``, the menu of the ``jobs`` (J,), ascending, offers them besides."""
    most = menu.vector.shape[0] + other.vector.shape[0]
    start, vector, cost = np.zeros_like(menu.start), np.empty(most, np.int32), np.empty(most)
    end, j = 0, 0
    for i in range(menu.must.shape[0]):
        more, last = 0, 0
        if j < jobs.shape[0] and jobs[j] == i:
            more, last = other.start[j], other.start[j + 1]
            j += 1
        for entry in range(menu.start[i], menu.start[i + 1]):
            while more < last and other.vector[more] < menu.vector[entry]:
                vector[end], cost[end] = other.vector[more], other.cost[more]
                more += 1
                end += 1
            more += more < last and other.vector[more] == menu.vector[entry]
            vector[end], cost[end] = menu.vector[entry], menu.cost[entry]
            end += 1
        for entry in range(more, last):
            vector[end], cost[end] = other.vector[entry], other.cost[entry]
            end += 1
        start[i + 1] = end
    cost = cost[:end].copy()
    price_stand_ins(start, cost, menu.must)
    return Menu(start, vector[:end].copy(), cost, menu.must, menu.counts, menu.key, menu.type_key, menu.limit)


@njit
def price_stand_ins(start, cost, must):
    """Set the cost of the stand-ins of jobs that must be placed above any saving elsewhere."""
    dearest = 0.0
    for i in range(must.shape[0]):
        high = 0.0
        for entry in range(start[i] + (1 if must[i] else 0), start[i + 1]):
            high = max(high, cost[entry])
        dearest += high
    for i in range(must.shape[0]):
        if must[i]:
            cost[start[i]] = 1.0 + 2.0 * dearest


@njit
def _serve(table_start, table_vector, table_cost, kept, terms, counts):
    """Write each job's menu: the empty entry, then the kept rows of its kind, scaled; also its smallest size (S,)."""
    n_jobs = terms.kind.shape[0]
    most = n_jobs
    for i in range(n_jobs):
        most += table_start[terms.kind[i] + 1] - table_start[terms.kind[i]]
    start = np.zeros(n_jobs + 1, np.int64)
    vector = np.empty(most, np.int32)
    cost = np.empty(most)
    smallest = np.zeros(n_jobs, np.int64)
    end = 0
    for i in range(n_jobs):
        vector[end] = 0
        cost[end] = terms.empty_cost[i]
        end += 1
        for row in range(table_start[terms.kind[i]], table_start[terms.kind[i] + 1]):
            stays = table_vector[row] == terms.held[i]
            if kept[row] or stays:
                vector[end] = table_vector[row]
                cost[end] = terms.scale[i] * table_cost[row] + (0.0 if stays else terms.penalty[i])
                end += 1
        start[i + 1] = end
        if end > start[i] + 1:  # graded order: the first row is a smallest one
            smallest[i] = counts[vector[start[i] + 1]].sum()
    return start, vector[:end].copy(), cost[:end].copy(), smallest


@njit
def find_from(menu, job, wanted):
    """First entry of ``job`` whose vector has at least the key ``wanted``; the end of its menu without one."""
    low, high = menu.start[job], menu.start[job + 1]
    while low < high:
        middle = (low + high) // 2
        if menu.key[menu.vector[middle]] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def find_entry(menu, job, wanted):
    """Entry of ``job`` whose vector has the key ``wanted``, or -1."""
    entry = find_from(menu, job, wanted)
    return entry if entry < menu.start[job + 1] and menu.key[menu.vector[entry]] == wanted else -1


@njit
def first_genuine(menu, job):
    """First entry of ``job`` that may end up in a placement: skips the stand-in of a job that must be placed."""
    return menu.start[job] + (1 if menu.must[job] else 0)


@njit
def free_gpus(menu, choice, capacity):
    """(M,) GPUs that the chosen entries ``choice`` (S,) leave free."""
    free = capacity.copy()
    for i in range(choice.shape[0]):
        for m in range(free.shape[0]):
            free[m] -= menu.counts[menu.vector[choice[i]], m]
    return free


@njit
def fits(menu, choice, capacity):
    """Whether the chosen entries ``choice`` (S,) need no more than ``capacity`` (M,), which may be fractional."""
    return (free_gpus(menu, choice, capacity) >= 0).all()

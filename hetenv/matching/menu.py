"""Each job's menu: the categories it may get and what each costs, online terms included.

All solvers read this one form. The first entry of every job is the empty category. A job that must be
placed has it too, at a cost above any saving elsewhere, so that a search may pass through incomplete
placements and still be drawn out of them; bounds and the exact solver leave that entry out.
"""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from hetenv.compiled import njit
from hetenv.errors import InputError
from hetenv.matching.categories import find_key
from hetenv.matching.problem import PlacementProblem, per_job


class OnlineTerms(TypedDict, total=False):
    """What changes when placement happens again and again while jobs run. Every solver takes these by keyword.

    Keys:
        weights: (S,) factors of J, 1 by default.
        waiting: (S,) cost of leaving the job without GPUs, in the unit of the weighted J. Without it, or
            where it is inf, the job must be placed.
        current: (S, M) GPUs per type held now.
        restart_penalty: scalar or (S,), added as it is (not weighted) to every non-empty category other
            than a non-empty current one.
    """

    weights: ArrayLike | None
    waiting: ArrayLike | None
    current: ArrayLike | None
    restart_penalty: ArrayLike


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


def build_menu(
    problem: PlacementProblem,
    kept: np.ndarray,
    *,
    weights: ArrayLike | None = None,
    waiting: ArrayLike | None = None,
    current: ArrayLike | None = None,
    restart_penalty: ArrayLike = 0.0,
) -> Menu:
    """The menu of every job of ``problem`` out of the ``kept`` entries of its cost table; see ``OnlineTerms``.

    The current category stays on the menu even if it is not kept: a restart may make it the best.

    Raises:
        InputError: a term with the wrong shape or a bad value, a job that fits nowhere and may not wait,
            or more GPUs needed than there are.
    """
    n_jobs, table, vectors = problem.n_jobs, problem.costs, problem.vectors
    weight = per_job("weights", 1.0 if weights is None else weights, n_jobs, low=0.0)
    penalty = per_job("restart_penalty", restart_penalty, n_jobs, low=0.0)
    empty_cost = weight * problem.empty_cost if np.isfinite(problem.empty_cost).any() else problem.empty_cost
    if waiting is not None:
        empty_cost = np.minimum(empty_cost, per_job("waiting", waiting, n_jobs, infinite=True))
    held = np.full(n_jobs, -1, np.int64)
    if current is not None:
        now = np.asarray(current, np.int64)
        if now.shape != (n_jobs, problem.n_types) or (now < 0).any():
            raise InputError("current", f"shape {now.shape}", f"give {n_jobs} x {problem.n_types} counts of at least 0")
        held = _rows_of(now, vectors.key, vectors.type_key, vectors.limit)
        penalty = np.where(now.any(axis=1), penalty, 0.0)
    else:
        penalty = np.zeros(n_jobs)
    start, vector, cost, smallest = _serve(
        table.start, table.vector, table.cost, kept, problem.kind, weight * problem.scale, penalty, empty_cost, held,
        vectors.counts,
    )  # fmt: skip
    must = ~np.isfinite(empty_cost)
    _check_room(problem, must, np.diff(start) == 1, smallest)
    menu = Menu(start, vector, cost, must, vectors.counts, vectors.key, vectors.type_key, vectors.limit)
    if must.any():
        highest = np.maximum.reduceat(np.where(np.isfinite(cost), cost, 0.0), start[:-1])
        cost[start[:-1][must]] = 1.0 + 2.0 * np.abs(highest).sum()
    return menu


def _check_room(problem: PlacementProblem, must: np.ndarray, nowhere: np.ndarray, smallest: np.ndarray) -> None:
    """Refuse what no search could place: a job without any category, or a total need above the GPUs there are."""
    if (must & nowhere).any():
        job = int(np.flatnonzero(must & nowhere)[0])
        raise InputError(f"job {job}", "fits nowhere on the free GPUs", "lower min_gpus or pass waiting values")
    needed, gpus = int(smallest[must].sum()), int(problem.capacity.sum())
    if needed > gpus:
        raise InputError(
            "jobs to place",
            f"{int(must.sum())} jobs need {needed} of {gpus} GPUs",
            "pass waiting values for some of them",
        )


@njit
def _rows_of(counts, key, type_key, limit):
    """Row of each non-empty ``counts`` (S, M) in the table, -1 where it is empty or not in it."""
    rows = np.full(counts.shape[0], -1, np.int64)
    for i in range(counts.shape[0]):
        wanted = 0
        inside = True
        for m in range(counts.shape[1]):
            wanted += counts[i, m] * type_key[m]
            inside = inside and counts[i, m] <= limit[m]
        if inside and wanted > 0:
            rows[i] = find_key(key, wanted)
    return rows


@njit
def _serve(table_start, table_vector, table_cost, kept, kind, scale, penalty, empty_cost, held, counts):
    """Write each job's menu: the empty entry, then the kept rows of its kind, scaled; also its smallest size (S,)."""
    n_jobs = kind.shape[0]
    most = n_jobs
    for i in range(n_jobs):
        most += table_start[kind[i] + 1] - table_start[kind[i]]
    start = np.zeros(n_jobs + 1, np.int64)
    vector = np.empty(most, np.int32)
    cost = np.empty(most)
    smallest = np.zeros(n_jobs, np.int64)
    end = 0
    for i in range(n_jobs):
        vector[end] = 0
        cost[end] = empty_cost[i]
        end += 1
        for row in range(table_start[kind[i]], table_start[kind[i] + 1]):
            stays = table_vector[row] == held[i]
            if kept[row] or stays:
                vector[end] = table_vector[row]
                cost[end] = scale[i] * table_cost[row] + (0.0 if stays else penalty[i])
                end += 1
        start[i + 1] = end
        if end > start[i] + 1:  # graded order: the first row is a smallest one
            smallest[i] = counts[vector[start[i] + 1]].sum()
    return start, vector[:end].copy(), cost[:end].copy(), smallest


@njit
def find_entry(menu, job, wanted):
    """Entry of ``job`` whose vector has the key ``wanted``, or -1."""
    low, high = menu.start[job], menu.start[job + 1]
    while low < high:
        middle = (low + high) // 2
        if menu.key[menu.vector[middle]] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < menu.start[job + 1] and menu.key[menu.vector[low]] == wanted:
        return low
    return -1


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

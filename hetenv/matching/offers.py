"""What each job is offered, without writing its categories out: the input of pricing and of menus.

All kernels number the jobs in a canonical order, by their parameters, so that results do not depend on the caller's;
only jobs alike in everything keep the caller's order among themselves, and may exchange places in the answer.
"""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from hetenv.compiled import njit
from hetenv.errors import InputError
from hetenv.matching.categories import find_key
from hetenv.matching.inputs import check_entries, number_array, per_job
from hetenv.matching.problem import PlacementProblem


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


class JobTerms(NamedTuple):
    """The online terms of every job: a category c costs ``scale * seconds(c) + (0 if c is held else penalty)``.

    ``kind`` (S,) row set, ``scale`` (S,), ``penalty`` (S,), ``empty_cost`` (S,) inf where the job must be placed,
    ``held`` (S,) row of the current count vector, -1 without one.
    """

    kind: np.ndarray
    scale: np.ndarray
    penalty: np.ndarray
    empty_cost: np.ndarray
    held: np.ndarray

    @property
    def must(self) -> np.ndarray:
        """(S,) bool, jobs that may not wait."""
        return ~np.isfinite(self.empty_cost)

    def canonical_order(self) -> np.ndarray:
        """(S,) indices of the jobs by their parameters."""
        return np.lexsort((self.held, self.penalty, self.empty_cost, self.scale, self.kind))

    def take(self, order: np.ndarray) -> JobTerms:
        """The terms of the jobs ``order`` (J,)."""
        return JobTerms(*(column[order] for column in self))


class Offers(NamedTuple):
    """Count vectors, what the kinds of jobs do on them, and the jobs; a tuple, so that kernels take it whole.

    Vectors: ``counts`` (V, M), ``columns`` (M, V), ``size`` (V,), ``block`` (G + 2,), ``single`` (M, G + 1), ``below``
    (V, M), ``key`` (V,), ``type_key``, ``limit`` (M,): see ``CountVectors``; ``allreduce`` (V,) seconds per gradient
    byte, ``least_allreduce`` (G + 1,) the least of each size. Kinds: ``low``, ``high`` (C,) sizes allowed, ``fewest``
    (C,) GPUs of a smallest category, 0 without any, ``speed`` (C, M), ``batch``, ``grad_bytes``, ``measured`` (C,),
    ``rate`` (C, M, G' + 1). Jobs: ``kind``, ``scale``, ``penalty``, ``empty_cost``, ``held``, ``must`` (S,), in
    canonical order.
    """

    counts: np.ndarray
    columns: np.ndarray
    size: np.ndarray
    block: np.ndarray
    single: np.ndarray
    below: np.ndarray
    key: np.ndarray
    type_key: np.ndarray
    limit: np.ndarray
    allreduce: np.ndarray
    least_allreduce: np.ndarray
    low: np.ndarray
    high: np.ndarray
    fewest: np.ndarray
    speed: np.ndarray
    batch: np.ndarray
    grad_bytes: np.ndarray
    measured: np.ndarray
    rate: np.ndarray
    kind: np.ndarray
    scale: np.ndarray
    penalty: np.ndarray
    empty_cost: np.ndarray
    held: np.ndarray
    must: np.ndarray


def settle_terms(
    problem: PlacementProblem,
    *,
    weights: ArrayLike | None = None,
    waiting: ArrayLike | None = None,
    current: ArrayLike | None = None,
    restart_penalty: ArrayLike = 0.0,
) -> JobTerms:
    """The online terms of the jobs of ``problem``, in its order; see ``OnlineTerms``.

    Raises:
        InputError: a term with the wrong shape or a bad value.
    """
    n_jobs = problem.n_jobs
    weight = np.ones(n_jobs) if weights is None else per_job("weights", weights, n_jobs, low=0.0)
    penalty = per_job("restart_penalty", restart_penalty, n_jobs, low=0.0)
    empty_cost = weight * problem.empty_cost if np.isfinite(problem.empty_cost).any() else problem.empty_cost
    if waiting is not None:
        empty_cost = np.minimum(empty_cost, per_job("waiting", waiting, n_jobs, finite=False))
    held = np.full(n_jobs, -1, np.int64)
    if current is None:
        penalty = np.zeros(n_jobs)
    else:
        now = job_counts("current", current, problem)
        held = rows_of(now, problem)
        penalty = np.where(now.any(axis=1), penalty, 0.0)
    return JobTerms(problem.kind, weight * problem.scale, penalty, empty_cost, held)


def build_offers(problem: PlacementProblem, terms: JobTerms) -> Offers:
    """The offers of a problem with speeds to the jobs of ``terms``."""
    model, vectors, kinds, allreduce = problem.model, problem.vectors, problem.kinds, problem.allreduce
    assert model is not None
    assert kinds is not None
    example, largest = kinds.example, len(vectors.block) - 2
    low, high = np.minimum(kinds.low, largest + 1), np.minimum(kinds.high, largest)
    speed, measured, rate = model.speed[example], model.measured[example], model.measured_rate[example]
    return Offers(
        vectors.counts, vectors.columns, vectors.size, vectors.block, vectors.single, vectors.below, vectors.key,
        vectors.type_key, vectors.limit, allreduce.seconds, allreduce.least,
        low, high, _fewest_gpus(vectors.limit, low, high, speed, measured, rate),
        speed, model.batch[example], model.grad_bytes[example], measured, rate, *terms, terms.must,
    )  # fmt: skip


@njit
def _fewest_gpus(limit, low, high, speed, measured, rate):
    """(C,) GPUs of a smallest category of each kind, 0 without any."""
    fewest = np.zeros(low.shape[0], np.int64)
    for k in range(low.shape[0]):
        usable = 0
        for m in range(limit.shape[0]):
            if speed[k, m] > 0.0:
                usable += limit[m]
        for n in range(low[k], high[k] + 1):
            offered = n <= usable and not measured[k]
            if measured[k] and n < rate.shape[2]:
                for m in range(limit.shape[0]):
                    offered |= n <= limit[m] and rate[k, m, n] > 0.0
            if offered:
                fewest[k] = n
                break
    return fewest


def job_counts(name: str, value: ArrayLike, problem: PlacementProblem) -> np.ndarray:
    """(S, M) int64 whole counts of at least 0.

    Raises:
        InputError: another shape, or a bad count, named by job and type.
    """
    counts = number_array(name, value)
    shape = (problem.n_jobs, problem.n_types)
    if counts.shape != shape:
        raise InputError(name, f"shape {counts.shape}", f"give {shape[0]} x {shape[1]} counts of at least 0")
    check_entries(name, counts, low=0.0, whole=True)
    return counts.astype(np.int64)


def rows_of(counts: np.ndarray, problem: PlacementProblem) -> np.ndarray:
    """Row of each non-empty ``counts`` (S, M) among the count vectors, -1 where it is empty or not among them."""
    return _rows_of(counts, problem.vectors.key, problem.vectors.type_key, problem.vectors.limit)


@njit
def _rows_of(counts, key, type_key, limit):
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


def check_room(problem: PlacementProblem, must: np.ndarray, smallest: np.ndarray, order: np.ndarray) -> None:
    """Refuse what no search could place: a job without any category, or a total need above the GPUs there are.

    ``must`` and ``smallest`` (S,), 0 for a job without categories, in the order ``order`` (S,) of the problem's jobs.
    """
    nowhere = must & (smallest == 0)
    if nowhere.any():
        job = int(order[nowhere].min())
        raise InputError(f"job {job}", "fits nowhere on the free GPUs", "lower min_gpus or pass waiting values")
    needed, gpus = int(smallest[must].sum()), int(problem.capacity.sum())
    if needed > gpus:
        raise InputError(
            "jobs to place",
            f"{int(must.sum())} jobs need {needed} of {gpus} GPUs",
            "pass waiting values for some of them",
        )

"""What each job is offered, without writing its categories out: the input of pricing and of menus.

All kernels number the jobs in a canonical order, by their parameters, so that results do not depend on the caller's;
only jobs alike in everything keep the caller's order among themselves, and may exchange places in the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from hetenv.compiled import njit
from hetenv.errors import InputError
from hetenv.matching.categories import find_key
from hetenv.matching.inputs import check_entries, number_array, per_job
from hetenv.matching.kinds import sorted_rows
from hetenv.performance import category_link, ring_allreduce_s

if TYPE_CHECKING:
    from hetenv.matching.problem import PlacementProblem

CANNOT_RUN = -1e200  # samples/s: one such GPU spoils a category


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
    ``held`` (S,) row of the current count vector, -1 without one, ``must`` (S,) bool, jobs that may not wait.
    """

    kind: np.ndarray
    scale: np.ndarray
    penalty: np.ndarray
    empty_cost: np.ndarray
    held: np.ndarray
    must: np.ndarray


@njit
def canonical_order(terms):
    """(S,) indices of the jobs by their parameters."""
    features = np.empty((terms.kind.shape[0], 5))
    features[:, 0] = terms.kind
    features[:, 1] = terms.scale
    features[:, 2] = terms.empty_cost
    features[:, 3] = terms.penalty
    features[:, 4] = terms.held
    return sorted_rows(features)


@njit
def take_terms(terms, order):
    """The terms of the jobs ``order`` (J,)."""
    return JobTerms(
        terms.kind[order],
        terms.scale[order],
        terms.penalty[order],
        terms.empty_cost[order],
        terms.held[order],
        terms.must[order],
    )


class Offers(NamedTuple):
    """Count vectors, and what the kinds of jobs do on them; a tuple, so that kernels take it whole.

    Vectors: ``counts`` (V, M), ``columns`` (M, V), ``size`` (V,), ``block`` (G + 2,), ``single`` (M, G + 1),
    ``key`` (V,), ``type_key``, ``limit`` (M,): see ``CountVectors``; ``allreduce`` (V,) seconds per gradient
    byte, ``least_allreduce`` (G + 1,) the least of each size. Kinds: ``low``, ``high`` (C,) sizes allowed, ``fewest``
    (C,) GPUs of a smallest category, 0 without any, ``speed`` (C, M), ``batch``, ``grad_bytes``, ``measured`` (C,),
    ``rate`` (C, M, G' + 1).
    """

    counts: np.ndarray
    columns: np.ndarray
    size: np.ndarray
    block: np.ndarray
    single: np.ndarray
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


@njit
def offer(model, kinds, vectors):
    """The ``Offers`` of count ``vectors`` to the ``kinds`` of the jobs of a ``JobModel``."""
    example, largest = kinds.example, vectors.block.shape[0] - 2
    low, high = np.minimum(kinds.low, largest + 1), np.minimum(kinds.high, largest)
    speed, measured, rate = model.speed[example], model.measured[example], model.measured_rate[example]
    fewest = _fewest_gpus(vectors.limit, low, high, speed, measured, rate)
    allreduce, least = _allreduce_s_per_byte(vectors, model)
    return Offers(
        vectors.counts, vectors.columns, vectors.size, vectors.block, vectors.single, vectors.key,
        vectors.type_key, vectors.limit, allreduce, least,
        low, high, fewest, speed, model.batch[example], model.grad_bytes[example], measured, rate,
    )  # fmt: skip


@njit
def _allreduce_s_per_byte(vectors, model):
    """Seconds that one gradient byte takes on each count vector (V,), and the least of each size (G + 1,)."""
    seconds = np.zeros(vectors.size.shape[0])
    least = np.full(vectors.block.shape[0] - 1, np.inf)
    least[0] = 0.0
    for v in range(1, seconds.shape[0]):
        link = category_link(vectors.counts[v], model.local_bandwidth, model.bandwidth, model.node_gpus)
        seconds[v] = ring_allreduce_s(vectors.size[v], 1.0, link)
        least[vectors.size[v]] = min(least[vectors.size[v]], seconds[v])
    return seconds, least


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


@njit
def seconds_on(offers, k, v):
    """Seconds of one iteration of kind ``k`` on count vector ``v``; inf: cannot run."""
    if offers.measured[k]:
        n = offers.size[v]
        for m in range(offers.counts.shape[1]):
            if offers.counts[v, m] == n and n < offers.rate.shape[2] and offers.rate[k, m, n] > 0.0:
                return 1.0 / offers.rate[k, m, n]
        return np.inf
    total_speed = 0.0
    for m in range(offers.counts.shape[1]):
        if offers.counts[v, m] > 0:
            total_speed += offers.counts[v, m] * (offers.speed[k, m] if offers.speed[k, m] > 0.0 else CANNOT_RUN)
    return offers.batch[k] / total_speed + offers.grad_bytes[k] * offers.allreduce[v] if total_speed > 0.0 else np.inf


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
    now = np.zeros((n_jobs, problem.n_types), np.int64)
    if current is not None:
        now = job_counts("current", current, problem)
    return make_terms(problem.offers, problem.kind, weight * problem.scale, penalty, empty_cost, now)


@njit
def make_terms(offers, kind, scale, penalty, empty_cost, current):
    """The ``JobTerms`` of jobs that hold ``current`` (S, M); only those that hold something pay a penalty."""
    charged = np.zeros_like(penalty)
    for i in range(charged.shape[0]):
        if current[i].any():
            charged[i] = penalty[i]
    return JobTerms(kind, scale, charged, empty_cost, rows_of(offers, current), ~np.isfinite(empty_cost))


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


@njit
def rows_of(offers, counts):
    """Row of each non-empty ``counts`` (S, M) among the count vectors, -1 where it is empty or not among them."""
    rows = np.full(counts.shape[0], -1)
    for i in range(counts.shape[0]):
        wanted = 0
        inside = True
        for m in range(counts.shape[1]):
            wanted += counts[i, m] * offers.type_key[m]
            inside = inside and counts[i, m] <= offers.limit[m]
        if inside and wanted > 0:
            rows[i] = find_key(offers.key, wanted)
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

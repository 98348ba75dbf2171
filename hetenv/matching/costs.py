"""The cost table: seconds of one iteration on every feasible category of every kind of job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.offers import seconds_on


@dataclass(frozen=True, eq=False)
class CostTable:
    """Feasible categories of C kinds of jobs, ascending by key within a kind.

    ``start`` (C + 1,), ``vector`` (O,) int32 rows of the count vectors, ``cost`` (O,) seconds of one iteration (or the
    explicit cost), ``undominated`` (O,) bool: no category with fewer or equal GPUs per type costs as little.
    """

    start: np.ndarray
    vector: np.ndarray
    cost: np.ndarray
    undominated: np.ndarray


@njit
def category_seconds(offers, below):
    """The fields of the ``CostTable`` of all kinds, ``below`` (V, M) from ``rows_below``.

    A category is dominated if one with a GPU less is as cheap, or had a cheaper one below itself: a prefix minimum.
    """
    n_kinds, n_types = offers.speed.shape
    first, last = offers.block[offers.low], offers.block[offers.high + 1]
    start = np.zeros(n_kinds + 1, np.int64)
    most = np.maximum(last - first, 0).sum()
    vector = np.empty(most, np.int32)
    cost = np.empty(most)
    undominated = np.empty(most, np.bool_)
    cheapest = np.empty(offers.size.shape[0])  # of the vector and all below it
    end = 0
    for k in range(n_kinds):
        for v in range(first[k], last[k]):
            seconds = seconds_on(offers, k, v)
            smaller = np.inf
            for m in range(n_types):
                if below[v, m] >= first[k]:
                    smaller = min(smaller, cheapest[below[v, m]])
            cheapest[v] = min(seconds, smaller)
            if seconds < np.inf:
                vector[end] = v
                cost[end] = seconds
                undominated[end] = seconds < smaller
                end += 1
        start[k + 1] = end
    return start, vector[:end].copy(), cost[:end].copy(), undominated[:end].copy()


@njit
def undominated_offers(counts, cost):
    """(Q,) bool for explicit categories, distinct and in graded order, so that only earlier ones can dominate."""
    alone = np.ones(cost.shape[0], np.bool_)
    for q in range(cost.shape[0]):
        for earlier in range(q):
            if cost[earlier] <= cost[q] and alone[earlier]:
                inside = True
                for m in range(counts.shape[1]):
                    inside = inside and counts[earlier, m] <= counts[q, m]
                if inside:
                    alone[q] = False
                    break
    return alone

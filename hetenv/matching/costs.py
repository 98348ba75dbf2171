"""The cost table: seconds of one iteration on every feasible category of every kind of job."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.categories import CountVectors
from hetenv.performance import category_link, ring_allreduce_s


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


class Allreduce(NamedTuple):
    """Seconds that one gradient byte takes: ``seconds`` (V,) on each count vector, ``least`` (G + 1,) of each size."""

    seconds: np.ndarray
    least: np.ndarray


def allreduce_on(
    vectors: CountVectors, local_bandwidth: np.ndarray, bandwidth: np.ndarray, node_gpus: np.ndarray
) -> Allreduce:
    """The all-reduce of count vectors, given (M,) per type; kept for the last few calls, as the vectors are."""
    return _cached_allreduce(vectors, local_bandwidth.tobytes(), bandwidth.tobytes(), node_gpus.tobytes())


@lru_cache(maxsize=16)
def _cached_allreduce(vectors: CountVectors, local_bandwidth: bytes, bandwidth: bytes, node_gpus: bytes) -> Allreduce:
    links = (np.frombuffer(each) for each in (local_bandwidth, bandwidth, node_gpus))
    seconds = allreduce_s_per_byte(vectors.counts, *links)
    filled = np.flatnonzero(np.diff(vectors.block))
    least = np.full(len(vectors.block) - 1, np.inf)
    least[filled] = np.minimum.reduceat(seconds, vectors.block[filled])
    for array in (seconds, least):
        array.setflags(write=False)
    return Allreduce(seconds, least)


@njit
def allreduce_s_per_byte(counts, local_bandwidth, bandwidth, node_gpus):
    """(V,) seconds that one gradient byte takes on each count vector: the same for every job."""
    seconds = np.zeros(counts.shape[0])
    for v in range(1, counts.shape[0]):
        link = category_link(counts[v], local_bandwidth, bandwidth, node_gpus)
        seconds[v] = ring_allreduce_s(counts[v].sum(), 1.0, link)
    return seconds


@njit
def category_seconds(counts, size, below, allreduce_s, first, last, speed, batch, grad_bytes, rate, measured):
    """The cost table of C kinds: count vectors ``first`` (C,) to ``last`` (C,), seconds of one iteration on each.

    A category is dominated if one with a GPU less is as cheap, or had a cheaper one below itself: a prefix minimum.
    """
    n_kinds, n_types = speed.shape
    start = np.zeros(n_kinds + 1, np.int64)
    most = max(0, (last - first).sum())
    vector = np.empty(most, np.int32)
    cost = np.empty(most)
    undominated = np.empty(most, np.bool_)
    cheapest = np.empty(counts.shape[0])  # of the vector and all below it
    end = 0
    for k in range(n_kinds):
        for v in range(first[k], last[k]):
            seconds = np.inf
            if measured[k]:
                for m in range(n_types):
                    if counts[v, m] == size[v] and size[v] < rate.shape[2] and rate[k, m, size[v]] > 0.0:
                        seconds = 1.0 / rate[k, m, size[v]]
            else:
                total_speed = 0.0
                for m in range(n_types):
                    if counts[v, m] > 0:
                        total_speed += counts[v, m] * (speed[k, m] if speed[k, m] > 0.0 else -np.inf)
                if total_speed > 0.0:
                    seconds = batch[k] / total_speed + grad_bytes[k] * allreduce_s[v]
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

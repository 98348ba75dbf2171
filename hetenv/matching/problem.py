"""The placement problem: jobs, GPUs per type, and the cost of every category of every job.

Model (reconstructed from the abstract of DOI 10.1109/TPDS.2024.3390109 and sibling papers): on counts c
the job needs ``J(c) = iterations * (batch / R(c) + ring all-reduce)`` seconds, where R is the summed speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hetenv.errors import InputError
from hetenv.matching.categories import CountVectors, count_vectors, find_key, index_vectors, rows_below, type_keys
from hetenv.matching.costs import CostTable, category_seconds, undominated_offers
from hetenv.matching.inputs import (
    check_entries,
    gpu_capacity,
    measured_rates,
    number_array,
    per_job,
    per_type,
    refuse_entry,
)
from hetenv.matching.kinds import JobModel, no_kinds, no_model, sort_kinds
from hetenv.matching.offers import Offers, offer


@dataclass(frozen=True, eq=False)
class Placement:
    """Who gets which GPUs.

    Args:
        counts: (S, M) int64, GPUs of each type per job.
        total: objective value; sum of J in seconds when no online term was given.
        lower_bound: certified bound that no placement can go below, or None.
        prices: (M,) cost of one GPU of each type at which the bound holds, or None.
    """

    counts: np.ndarray
    total: float
    lower_bound: float | None = None
    prices: np.ndarray | None = None

    @property
    def gap(self) -> float | None:
        """``total / lower_bound - 1``: proven distance to the optimum, or None without a positive bound."""
        return self.total / self.lower_bound - 1.0 if self.lower_bound is not None and self.lower_bound > 0 else None


class PlacementProblem:
    """Jobs to place on GPU types.

    Args:
        capacity: (M,) GPUs of each type; some may be 0, not all.
        speed: (S, M) samples/s of one GPU; 0: the job cannot run on the type.
        batch: (S,) or scalar, samples per iteration.
        iterations: (S,) or scalar, iterations left.
        grad_bytes: (S,) or scalar, gradient bytes that each iteration sums.
        bandwidth: (M,) or scalar, bytes/s of the network link.
        min_gpus, max_gpus: (S,) or scalar, fewest and most GPUs of the job; 1 and all by default.
        local_bandwidth: (M,) or scalar, bytes/s inside a node; by default the network's.
        node_gpus: (M,) or scalar, GPUs of the type's largest node; by default all of the type.
        measured_rate: (S, M, G + 1) whole-job iterations/s on 0..G GPUs of one type. A job whose rows
            are all NaN uses the formula; any other runs on one type at a time, where its rate is above 0.

    Jobs that differ only in ``iterations`` share one row set of the cost table.

    Raises:
        InputError: a wrong shape or a bad value, named by job or type.
    """

    def __init__(
        self,
        capacity: ArrayLike,
        speed: ArrayLike,
        batch: ArrayLike,
        iterations: ArrayLike,
        grad_bytes: ArrayLike,
        bandwidth: ArrayLike,
        min_gpus: ArrayLike | None = None,
        max_gpus: ArrayLike | None = None,
        *,
        local_bandwidth: ArrayLike | None = None,
        node_gpus: ArrayLike | None = None,
        measured_rate: ArrayLike | None = None,
    ) -> None:
        self.capacity = gpu_capacity(capacity)
        n_types, n_gpus = self.n_types, int(self.capacity.sum())
        rho = number_array("speed", speed)
        if rho.ndim != 2 or rho.shape[0] == 0 or rho.shape[1] != n_types:
            raise InputError("speed", f"shape {rho.shape}", f"give one row per job and {n_types} columns, one per type")
        check_entries("speed", rho, "give samples/s, 0 where the job cannot run", low=0.0)
        n_jobs = rho.shape[0]
        smallest = per_job("min_gpus", 1 if min_gpus is None else min_gpus, n_jobs, low=1.0, whole=True)
        largest = np.maximum(smallest, n_gpus)  # a job of more GPUs than there are is free to wait
        if max_gpus is not None:
            largest = per_job("max_gpus", max_gpus, n_jobs, low=1.0, whole=True)
            if (crossed := smallest > largest).any():
                refuse_entry("min_gpus", smallest, int(crossed.argmax()), "give at most max_gpus")
        rate, measured = measured_rates(measured_rate, n_jobs, n_types)
        network = per_type("bandwidth", bandwidth, n_types, above=0.0)
        local = network
        if local_bandwidth is not None:
            local = per_type("local_bandwidth", local_bandwidth, n_types, above=0.0)
        self.model = JobModel(
            speed=rho,
            batch=per_job("batch", batch, n_jobs, above=0.0),
            iterations=per_job("iterations", iterations, n_jobs, above=0.0),
            grad_bytes=per_job("grad_bytes", grad_bytes, n_jobs, low=0.0),
            min_gpus=smallest.astype(np.int64),
            max_gpus=np.minimum(largest, n_gpus).astype(np.int64),
            measured_rate=rate,
            measured=measured,
            bandwidth=network,
            local_bandwidth=local,
            node_gpus=per_type("node_gpus", self.capacity if node_gpus is None else node_gpus, n_types, low=0.0),
        )
        self._settle()

    @classmethod
    def unchecked(cls, capacity: np.ndarray, model: JobModel) -> PlacementProblem:
        """The problem of jobs that are known to be sound: ``capacity`` (M,) int64, not all 0."""
        problem = cls.__new__(cls)
        problem.capacity, problem.model = capacity, model
        problem._settle()
        return problem

    def _settle(self) -> None:
        """What follows from capacity and model."""
        assert self.model is not None
        self.scale = self.model.iterations
        self.empty_cost = np.full(self.n_jobs, np.inf)
        kinds = sort_kinds(self.model)
        self.kind = kinds.of_job
        self.vectors = count_vectors(np.minimum(self.capacity, kinds.high.max()), kinds.sizes)
        self.offers = offer(self.model, kinds, self.vectors)

    @cached_property
    def costs(self) -> CostTable:
        """All categories of all kinds of jobs; tabulated at the first use, since the market needs only few of them."""
        return CostTable(*category_seconds(self.offers, rows_below(self.vectors)))

    @classmethod
    def from_costs(
        cls, capacity: ArrayLike, counts: Sequence[ArrayLike], cost: Sequence[ArrayLike]
    ) -> PlacementProblem:
        """A problem with explicit categories: ``counts[i]`` (Q_i, M) GPUs per type at ``cost[i]`` (Q_i,).

        The all-zero category is allowed and lets the job wait. Categories above capacity are left out.

        Raises:
            InputError: no jobs, a job without categories, wrong shapes, negative counts, a cost that is not finite.
        """
        problem = cls.__new__(cls)
        problem.capacity = gpu_capacity(capacity)
        if len(counts) == 0 or len(counts) != len(cost):
            raise InputError("jobs", f"{len(counts)} count and {len(cost)} cost lists", "give one of each per job")
        offers = [_offers(i, counts[i], cost[i], problem.capacity) for i in range(len(counts))]
        problem.model = None
        problem.kind = np.arange(len(offers))
        problem.scale = np.ones(len(offers))
        problem.empty_cost = np.array([float(prices[~rows.any(axis=1)].min(initial=np.inf)) for rows, prices in offers])
        limit = np.maximum(np.max([rows.max(axis=0, initial=0) for rows, _ in offers], axis=0), 0)
        weights = type_keys(limit)
        nothing = np.zeros((1, problem.n_types), np.int64)
        rows = np.unique(np.concatenate([nothing, *(each for each, _ in offers)]), axis=0)
        rows = rows[np.argsort(rows @ weights)]
        key = rows @ weights
        problem.vectors = index_vectors(rows, limit)
        problem.offers = offer(no_model(len(offers), problem.n_types), no_kinds(len(offers)), problem.vectors)
        start, vector, price, undominated = [0], [], [], []
        for each, prices in offers:
            used = each.any(axis=1)
            ids = np.searchsorted(key, each[used] @ weights)
            order = np.lexsort((prices[used], ids))
            ids, ordered = ids[order], prices[used][order]
            once = np.diff(ids, prepend=-1) > 0  # of equal categories the cheapest
            vector.append(ids[once].astype(np.int32))
            price.append(ordered[once])
            undominated.append(undominated_offers(rows[ids[once]], ordered[once]))
            start.append(start[-1] + int(once.sum()))
        problem.costs = CostTable(
            np.array(start), np.concatenate(vector), np.concatenate(price), np.concatenate(undominated)
        )
        return problem

    model: JobModel | None
    capacity: np.ndarray  # (M,) int64
    kind: np.ndarray  # (S,) row set of each job in the cost table
    scale: np.ndarray  # (S,) factor of that row set's costs: iterations, or 1 for explicit costs
    empty_cost: np.ndarray  # (S,) cost of an explicit all-zero category, inf without one
    vectors: CountVectors
    offers: Offers  # with explicit costs of the vectors alone

    @property
    def n_jobs(self) -> int:
        return len(self.scale)

    @property
    def n_types(self) -> int:
        return len(self.capacity)

    def cost_s(self, job: int, counts: ArrayLike) -> float:
        """J in seconds (or the explicit cost) of ``counts`` (M,) for ``job``; inf for a category it cannot have."""
        wanted = np.asarray(counts, np.int64)
        if not wanted.any():
            return float(self.empty_cost[job])
        if (wanted > self.vectors.limit).any():
            return float("inf")
        row = find_key(self.vectors.key, int(wanted @ self.vectors.type_key))
        first, last = self.costs.start[self.kind[job]], self.costs.start[self.kind[job] + 1]
        entry = first + int(np.searchsorted(self.costs.vector[first:last], row))
        if row < 0 or entry == last or self.costs.vector[entry] != row:
            return float("inf")
        return float(self.scale[job] * self.costs.cost[entry])


def _offers(job: int, counts: ArrayLike, cost: ArrayLike, capacity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One job's explicit categories that fit, as (Q, M) int64 and (Q,) float64."""
    rows, prices = number_array(f"counts of job {job}", counts), number_array(f"cost of job {job}", cost)
    if rows.ndim != 2 or rows.shape[1] != len(capacity) or len(rows) == 0 or prices.shape != (len(rows),):
        found = f"shapes {rows.shape} and {prices.shape}"
        raise InputError(f"categories of job {job}", found, f"give (Q, {len(capacity)}) counts and (Q,) costs, Q > 0")
    if (rows < 0).any() or (rows != np.floor(rows)).any() or not np.isfinite(prices).all():
        raise InputError(f"categories of job {job}", "a bad count or cost", "give whole counts from 0 and finite costs")
    fits = (rows <= capacity).all(axis=1)
    return rows[fits].astype(np.int64), prices[fits]

"""Exhaustive search of what prices leave open: depth first, one job after another, cut off at the bound."""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.menu import first_genuine


@njit
def search_entries(menu, capacity, prices, total, most_steps):
    """Entries (S,) of the cheapest placement on the ``menu``, if it costs less than ``total``.

    Above g at ``prices`` (M,) over the menu a placement costs what each entry's reduced cost is above its job's least,
    and the price of the GPUs left free: a branch ends where the former exceed the best sum so far. Jobs with most to
    lose by their second entry go first. Few gaps leave more than a hundred branches open, but nothing keeps them from
    being exponentially many.

    Returns the entries, all -1 if there is no such placement, and whether the search ended within ``most_steps``.
    """
    n_jobs, n_types = menu.must.shape[0], capacity.shape[0]
    start, entries, excess, bound = _by_excess(menu, prices)  # of job i: start[i]..start[i + 1], ascending
    best = total - bound
    for m in range(n_types):
        best += prices[m] * capacity[m]
    second = np.full(n_jobs, np.inf)
    for i in range(n_jobs):
        if start[i + 1] > start[i] + 1:
            second[i] = excess[start[i] + 1]
    jobs = np.argsort(-second, kind="mergesort")
    chosen = np.full(n_jobs, -1, np.int64)
    at = np.empty(n_jobs + 1, np.int64)  # next entry to try at each depth
    paid, free = np.zeros(n_jobs + 1), np.empty((n_jobs + 1, n_types), np.int64)
    free[0] = capacity
    at[0] = start[jobs[0]]
    depth, steps = 0, 0
    while depth >= 0:
        if depth == n_jobs:
            spent = paid[depth]
            for m in range(n_types):
                spent += prices[m] * free[depth, m]
            if spent < best:
                best = spent
                for d in range(n_jobs):
                    chosen[jobs[d]] = entries[at[d] - 1]
            depth -= 1
            continue
        q = at[depth]
        if q == start[jobs[depth] + 1] or paid[depth] + excess[q] >= best:
            depth -= 1
            continue
        at[depth] += 1
        steps += 1
        if steps > most_steps:
            return chosen, False
        fits = True
        for m in range(n_types):
            free[depth + 1, m] = free[depth, m] - menu.counts[menu.vector[entries[q]], m]
            fits = fits and free[depth + 1, m] >= 0
        if fits:
            paid[depth + 1] = paid[depth] + excess[q]
            depth += 1
            if depth < n_jobs:
                at[depth] = start[jobs[depth]]
    return chosen, True


@njit
def _by_excess(menu, prices):
    """Each job's genuine entries by their reduced cost above its least: ``start`` (S + 1,), entries and excess (N,).

    Also the sum of the least ones.
    """
    n_jobs = menu.must.shape[0]
    start = np.zeros(n_jobs + 1, np.int64)
    entries, excess = np.empty(menu.cost.shape[0], np.int64), np.empty(menu.cost.shape[0])
    end, bound = 0, 0.0
    for i in range(n_jobs):
        for entry in range(first_genuine(menu, i), menu.start[i + 1]):
            value = menu.cost[entry]
            for m in range(prices.shape[0]):
                value += prices[m] * menu.counts[menu.vector[entry], m]
            q = end
            while q > start[i] and excess[q - 1] > value:
                entries[q], excess[q] = entries[q - 1], excess[q - 1]
                q -= 1
            entries[q], excess[q] = entry, value
            end += 1
        start[i + 1] = end
        least = excess[start[i]] if end > start[i] else 0.0
        bound += least
        for q in range(start[i], end):
            excess[q] -= least
    return start, entries, excess, bound

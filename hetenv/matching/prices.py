"""Prices per GPU type: the dual of the placement problem and its ascent.

    g(p) = sum_i min_c [J_i(c) + p . c] - p . capacity

is concave, and at any p >= 0 a certified lower bound on every placement's total (weak duality; the constraint
relaxed is that of the GPUs per type). Polyak's subgradient step raises it.
"""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.menu import first_genuine

SHORTLIST = 12  # entries per job; more of them cost time at each scan, fewer cost scans


@njit
def shorten(menu, job, vector_price, entries, reduced):
    """Write the ``job``'s entries of least reduced cost, ascending, into ``entries`` and ``reduced`` (Q,).

    ``vector_price`` (V,) is p . c of each count vector. Returns how many were written and the reduced cost of
    the best entry left off (inf if none was).
    """
    width = entries.shape[0]
    listed = 0
    left_off = np.inf
    for entry in range(first_genuine(menu, job), menu.start[job + 1]):
        value = menu.cost[entry] + vector_price[menu.vector[entry]]
        if listed == width and value >= reduced[width - 1]:
            left_off = min(left_off, value)
            continue
        if listed == width:
            left_off = min(left_off, reduced[width - 1])
        else:
            listed += 1
        q = listed - 1
        while q > 0 and reduced[q - 1] > value:
            reduced[q] = reduced[q - 1]
            entries[q] = entries[q - 1]
            q -= 1
        reduced[q] = value
        entries[q] = entry
    return listed, left_off


@njit
def price_vectors(counts, prices):
    """(V,) p . c of each count vector."""
    priced = np.zeros(counts.shape[0])
    for v in range(counts.shape[0]):
        for m in range(prices.shape[0]):
            priced[v] += counts[v, m] * prices[m]
    return priced


@njit
def shortlists(menu, prices, width):
    """Every job's ``width`` entries of least reduced cost at ``prices`` (M,), ascending.

    Returns entries (S, Q) int64, reduced costs (S, Q) and how many are listed (S,).
    """
    n_jobs = menu.must.shape[0]
    priced = price_vectors(menu.counts, prices)
    entries = np.zeros((n_jobs, width), np.int64)
    reduced = np.full((n_jobs, width), np.inf)
    listed = np.zeros(n_jobs, np.int64)
    for i in range(n_jobs):
        listed[i] = shorten(menu, i, priced, entries[i], reduced[i])[0]
    return entries, reduced, listed


@njit
def dual_bound(menu, capacity, prices):
    """g(p): no placement costs less than this."""
    priced = price_vectors(menu.counts, prices)
    bound = 0.0
    for i in range(menu.must.shape[0]):
        least = np.inf
        for entry in range(first_genuine(menu, i), menu.start[i + 1]):
            least = min(least, menu.cost[entry] + priced[menu.vector[entry]])
        bound += least
    for m in range(prices.shape[0]):
        bound -= prices[m] * capacity[m]
    return bound


@njit
def ascend_prices(menu, capacity, start_prices, upper, iterations, width):
    """Raise g by Polyak steps ``theta (upper - g) / |z|^2`` along z = demand - capacity; ``upper`` bounds the optimum.

    After some steps without progress theta halves and the search returns to the best prices. Returns the best
    prices (M,) and their g. Each job keeps a short list from its last full scan; since prices p' differ from
    the scan's p, an entry off the list costs at least (best left off) - max_m(p - p')_m * (most GPUs), so the
    list answers exactly until it no longer beats that, and only then is the whole menu read again.
    """
    n_jobs, n_types = menu.must.shape[0], capacity.shape[0]
    entries = np.zeros((n_jobs, width), np.int64)
    reduced = np.zeros((n_jobs, width))
    listed = np.zeros(n_jobs, np.int64)
    left_off = np.full(n_jobs, -np.inf)  # so that the first step scans every menu
    scanned_at = np.zeros((n_jobs, n_types))  # prices of each job's last full scan
    most_gpus = np.zeros(n_jobs)
    for i in range(n_jobs):  # graded order: the last entry is a largest one
        most_gpus[i] = menu.counts[menu.vector[menu.start[i + 1] - 1]].sum()

    prices = start_prices.copy()
    best_prices, best_excess, best_bound = prices.copy(), np.zeros(n_types), -np.inf
    excess = np.zeros(n_types)
    theta, stalls = 1.0, 0
    for _ in range(iterations):
        bound = 0.0
        for m in range(n_types):
            excess[m] = -capacity[m]
            bound -= prices[m] * capacity[m]
        priced = np.zeros(0)
        for i in range(n_jobs):
            fall = 0.0
            for m in range(n_types):
                fall = max(fall, scanned_at[i, m] - prices[m])
            fall *= most_gpus[i]
            least, chosen = np.inf, 0
            for q in range(listed[i]):
                if reduced[i, q] - fall >= least:
                    break
                value = menu.cost[entries[i, q]]
                for m in range(n_types):
                    value += prices[m] * menu.counts[menu.vector[entries[i, q]], m]
                if value < least:
                    least, chosen = value, entries[i, q]
            if least > left_off[i] - fall or listed[i] == 0:
                if priced.shape[0] == 0:
                    priced = price_vectors(menu.counts, prices)
                listed[i], left_off[i] = shorten(menu, i, priced, entries[i], reduced[i])
                scanned_at[i] = prices
                least, chosen = reduced[i, 0], entries[i, 0]
            bound += least
            for m in range(n_types):
                excess[m] += menu.counts[menu.vector[chosen], m]

        if bound > best_bound + 1e-12 * abs(best_bound) or best_bound == -np.inf:
            best_bound = bound
            best_prices[:] = prices
            best_excess[:] = excess
            stalls = 0
        else:
            stalls += 1
            if stalls == 8:
                theta *= 0.5
                stalls = 0
                bound = best_bound
                prices[:] = best_prices
                excess[:] = best_excess
        norm = 0.0
        for m in range(n_types):
            if prices[m] > 0.0 or excess[m] > 0.0:
                norm += excess[m] * excess[m]
        if norm == 0.0 or theta * (upper - best_bound) <= 1e-6 * abs(upper):
            break  # every priced type is sold out exactly, or what a step may still gain is negligible
        step = theta * (upper - bound) / norm
        for m in range(n_types):
            prices[m] = max(0.0, prices[m] + step * excess[m])
    return best_prices, best_bound

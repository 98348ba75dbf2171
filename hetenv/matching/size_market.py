"""The market inside one size category: which GPUs go to which job when every job gets exactly its size.

With additive valuations and fixed demands, GPUs are gross substitutes, so market-clearing prices exist (Shapley and
Shubik 1971; Demange, Gale and Sotomayor 1986). Like GPUs cost the same, so the market is a transportation problem of
jobs and types; it is solved exactly by shortest augmenting paths over the types, and its clearing prices are the
path lengths: epsilon-complementary slackness holds with epsilon = 0 up to rounding.
"""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit


@njit
def _cheapest_moves(valuation, counts, loss, mover):
    """Least loss (M, M) of moving one GPU's worth of demand from type m to n, and the job (M, M) that moves."""
    for m in range(loss.shape[0]):
        for n in range(loss.shape[0]):
            loss[m, n], mover[m, n] = np.inf, -1
    for i in range(counts.shape[0]):
        for m in range(loss.shape[0]):
            if counts[i, m] == 0:
                continue
            for n in range(loss.shape[0]):
                change = valuation[i, m] - valuation[i, n]
                if n != m and change < loss[m, n]:
                    loss[m, n], mover[m, n] = change, i


@njit
def assign_sizes(valuation, sizes, capacity, counts):
    """Write the assignment of most value into ``counts`` (S, M): ``sizes`` (S,) GPUs per job within ``capacity`` (M,).

    ``valuation`` (S, M) is the value of one GPU, -inf where the job cannot run. Every job starts on its best type,
    which is optimal without capacities; demand then moves from overfull types along the paths of least loss.
    Returns False if the sizes cannot be met.
    """
    n_jobs, n_types = valuation.shape
    surplus = -capacity
    counts[:] = 0
    for i in range(n_jobs):
        if sizes[i] == 0:
            continue
        best = np.argmax(valuation[i])
        if valuation[i, best] == -np.inf:
            return False
        counts[i, best] = sizes[i]
        surplus[best] += sizes[i]
    loss = np.empty((n_types, n_types))
    mover = np.empty((n_types, n_types), np.int64)
    distance = np.empty(n_types)
    previous = np.empty(n_types, np.int64)
    while surplus.max() > 0:
        _cheapest_moves(valuation, counts, loss, mover)
        for m in range(n_types):
            distance[m] = 0.0 if surplus[m] > 0 else np.inf
            previous[m] = -1
        for _ in range(n_types - 1):
            for m in range(n_types):
                for n in range(n_types):
                    through = distance[m] + loss[m, n]
                    # overfull types are sources, never passed through; the margin keeps rounding from closing a cycle
                    if surplus[n] <= 0 and through + 1e-12 * abs(through) < distance[n]:
                        distance[n] = through
                        previous[n] = m
        target, nearest = -1, np.inf
        for m in range(n_types):
            if surplus[m] < 0 and distance[m] < nearest:
                target, nearest = m, distance[m]
        if target < 0:
            return False
        amount = -surplus[target]
        n = target
        while previous[n] >= 0:
            amount = min(amount, counts[mover[previous[n], n], previous[n]])
            n = previous[n]
        amount = min(amount, surplus[n])
        surplus[n] -= amount
        surplus[target] += amount
        n = target
        while previous[n] >= 0:
            m = previous[n]
            counts[mover[m, n], m] -= amount
            counts[mover[m, n], n] += amount
            n = m
    return True


@njit
def clearing_prices(valuation, counts, capacity):
    """(M,) prices at which an assignment by ``assign_sizes`` clears the market.

    Every job's GPUs are among those of most ``valuation - price`` to it, and a type with idle GPUs is free. The price
    of a type is the least loss over all ways to hand one of its GPUs' demand on to a type with idle ones;
    without idle GPUs prices are settled up to a constant, and the cheapest type is free.
    """
    n_types = capacity.shape[0]
    loss = np.empty((n_types, n_types))
    mover = np.empty((n_types, n_types), np.int64)
    _cheapest_moves(valuation, counts, loss, mover)
    idle = capacity - counts.sum(axis=0)
    prices = np.where(idle > 0, 0.0, np.inf if idle.max() > 0 else 0.0)
    for _ in range(n_types):
        for m in range(n_types):
            for n in range(n_types):
                prices[m] = min(prices[m], loss[m, n] + prices[n])
    return prices - prices.min()


@njit
def linearised_assignment(work, speed, sizes, capacity, mean_speed, valuation, counts):
    """Write an assignment by the gradient of J into ``counts`` (S, M): Gamma_im = work_i / Rbar_i^2 * speed_im.

    J falls by Gamma_im per GPU of type m near a summed speed of Rbar_i. Rbar starts at the size times ``mean_speed``
    (S,) and is averaged with the speed that the first pass reached for the second and last one. ``work`` (S,) weighted
    samples, ``speed`` (S, M), 0: cannot run. ``valuation`` (S, M) is scratch. Returns False if the sizes cannot be met.
    """
    expected = sizes * mean_speed
    for _ in range(2):
        for i in range(sizes.shape[0]):
            for m in range(capacity.shape[0]):
                if speed[i, m] <= 0.0:
                    valuation[i, m] = -np.inf
                elif sizes[i] > 0:
                    valuation[i, m] = work[i] / expected[i] ** 2 * speed[i, m]
                else:
                    valuation[i, m] = 0.0
        if not assign_sizes(valuation, sizes, capacity, counts):
            return False
        for i in range(sizes.shape[0]):
            reached = 0.0
            for m in range(capacity.shape[0]):
                reached += counts[i, m] * speed[i, m]
            expected[i] = 0.5 * (expected[i] + reached)
    return True

"""Prices per GPU type: the dual of the placement problem and its ascent.

    g(p) = sum_i min_c [J_i(c) + p . c] - p . capacity

is concave, and at any p >= 0 a certified lower bound on every placement's total (weak duality; the constraint
relaxed is that of the GPUs per type). It is piecewise linear, so the ascent smooths it: the minimum becomes the soft
minimum ``-mu_i log sum_c exp(-(J_i(c) + p . c) / mu_i)`` with ``mu_i`` a fraction epsilon of the job's least reduced
cost, and a barrier ``nu sum_m log p_m`` keeps prices positive. Newton steps follow the maximum while epsilon falls.
"""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.menu import first_genuine

SHORTLIST = 12  # entries per job that pairs of jobs choose anew from
NEGLIGIBLE = 18.0  # soft minima leave out weights below exp(-18)
BARRIER = 0.01  # what idle GPUs of a priced type may cost, as a fraction of epsilon times the sum of least costs
SLACK = 0.06  # decrement at which Newton steps give way to a smaller epsilon, as the same fraction
FALL = 0.1  # of epsilon from one smoothing to the next


@njit
def pairwise_sum(values):
    """Sum of ``values`` (N,), added up to 128 of them in the order of NumPy, so that equal totals tie alike."""
    total = 0.0
    for first in range(0, values.shape[0], 128):
        n = min(128, values.shape[0] - first)
        whole, block = n - n % 8, 0.0
        if whole > 0:
            part = np.zeros(8)
            for at in range(first, first + whole, 8):
                for lane in range(8):
                    part[lane] += values[at + lane]
            block = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]))
        for at in range(first + whole, first + n):
            block += values[at]
        total += block
    return total


@njit
def shorten(menu, job, vector_price, entries, reduced):
    """Write the ``job``'s entries of least reduced cost, ascending, into ``entries`` and ``reduced`` (Q,).

    ``vector_price`` (V,) is p . c of each count vector. Returns how many were written.
    """
    width = entries.shape[0]
    listed = 0
    for entry in range(first_genuine(menu, job), menu.start[job + 1]):
        value = menu.cost[entry] + vector_price[menu.vector[entry]]
        if listed == width and value >= reduced[width - 1]:
            continue
        listed = min(listed + 1, width)
        q = listed - 1
        while q > 0 and reduced[q - 1] > value:
            reduced[q] = reduced[q - 1]
            entries[q] = entries[q - 1]
            q -= 1
        reduced[q] = value
        entries[q] = entry
    return listed


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
        listed[i] = shorten(menu, i, priced, entries[i], reduced[i])
    return entries, reduced, listed


@njit
def dual_bound(menu, capacity, prices):
    """g(p) of the menu; no placement costs less than this, if nothing that matters is left off the menu."""
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
def least_listed(menu, prices):
    """(S,) least ``J_i(c) + p . c`` of each job over its menu."""
    least = np.empty(menu.must.shape[0])
    priced = price_vectors(menu.counts, prices)
    for i in range(least.shape[0]):
        least[i] = np.inf
        for entry in range(first_genuine(menu, i), menu.start[i + 1]):
            least[i] = min(least[i], menu.cost[entry] + priced[menu.vector[entry]])
    return least


@njit
def scale_prices(menu, capacity, shape):
    """(M,) the multiple of the prices ``shape`` (M,) at which g over the menu is highest, found by bisection.

    At the highest of the multiples searched all GPUs together cost as much as the dearest categories of all jobs.
    """
    dearest, worth = 0.0, 0.0
    for i in range(menu.must.shape[0]):
        most = 0.0
        for entry in range(first_genuine(menu, i), menu.start[i + 1]):
            most = max(most, abs(menu.cost[entry]))
        dearest += most
    for m in range(shape.shape[0]):
        worth += shape[m] * capacity[m]
    unit = price_vectors(menu.counts, shape)
    highest = max(dearest, 1e-100) / worth
    low, high = -40.0, 0.0  # powers of two
    for _ in range(8):
        middle = 0.5 * (low + high)
        scale, demand = highest * 2.0**middle, 0.0
        for i in range(menu.must.shape[0]):
            least, wanted = np.inf, 0.0
            for entry in range(first_genuine(menu, i), menu.start[i + 1]):
                value = menu.cost[entry] + scale * unit[menu.vector[entry]]
                if value < least:
                    least, wanted = value, unit[menu.vector[entry]]
            demand += wanted
        if demand > worth:
            low = middle
        else:
            high = middle
    return shape * (highest * 2.0 ** (0.5 * (low + high)))


@njit
def _smoothed(menu, counts, capacity, prices, mu, barrier, reduced, gradient, curvature):
    """The smoothed dual at ``prices`` (M,) and g itself.

    ``counts`` (V, M) float64 are the menu's, ``mu`` (S,) and ``barrier`` the smoothing, ``reduced`` scratch of the
    longest menu's length; ``gradient`` (M,) and ``curvature`` (M, M), the negative Hessian, are written.
    """
    n_types = prices.shape[0]
    priced = price_vectors(menu.counts, prices)
    smooth, bound = 0.0, 0.0
    curvature[:] = 0.0
    mean, second = np.empty(n_types), np.empty((n_types, n_types))
    for m in range(n_types):
        smooth += barrier * np.log(prices[m])
        bound -= prices[m] * capacity[m]
        gradient[m] = barrier / prices[m] - capacity[m]
        curvature[m, m] = barrier / prices[m] ** 2
    for i in range(mu.shape[0]):
        first, last = first_genuine(menu, i), menu.start[i + 1]
        least = np.inf
        for entry in range(first, last):
            reduced[entry - first] = menu.cost[entry] + priced[menu.vector[entry]]
            least = min(least, reduced[entry - first])
        total = 0.0
        mean[:] = 0.0
        second[:] = 0.0
        for entry in range(first, last):
            exponent = (least - reduced[entry - first]) / mu[i]
            if exponent > -NEGLIGIBLE:
                weight = np.exp(exponent)
                total += weight
                row = menu.vector[entry]
                for m in range(n_types):
                    if counts[row, m] > 0.0:
                        part = weight * counts[row, m]
                        mean[m] += part
                        for n in range(m + 1):
                            second[m, n] += part * counts[row, n]
        bound += least
        smooth -= mu[i] * np.log(total)
        for m in range(n_types):
            mean[m] /= total
            gradient[m] += mean[m]
            for n in range(m + 1):
                curvature[m, n] += (second[m, n] / total - mean[m] * mean[n]) / mu[i]
    for m in range(n_types):
        for n in range(m):
            curvature[n, m] = curvature[m, n]
    return smooth + bound, bound


@njit
def _solve_positive(matrix, right, solution):
    """Solve ``matrix`` (M, M), symmetric positive, for ``right`` (M,) by Cholesky; a tiny pivot is raised."""
    size = right.shape[0]
    factor = np.zeros((size, size))
    for m in range(size):
        for n in range(m + 1):
            total = matrix[m, n]
            for k in range(n):
                total -= factor[m, k] * factor[n, k]
            if m == n:
                factor[m, m] = np.sqrt(max(total, 1e-12 * matrix[m, m], 1e-300))
            else:
                factor[m, n] = total / factor[n, n]
    for m in range(size):
        solution[m] = right[m]
        for k in range(m):
            solution[m] -= factor[m, k] * solution[k]
        solution[m] /= factor[m, m]
    for m in range(size - 1, -1, -1):
        for k in range(m + 1, size):
            solution[m] -= factor[k, m] * solution[k]
        solution[m] /= factor[m, m]


@njit
def ascend_prices(menu, capacity, start_prices, epsilon, last_epsilon, evaluations):
    """Raise g by Newton steps on the smoothed dual while ``epsilon`` falls to ``last_epsilon``.

    ``capacity`` (M,) may be fractional. Returns the prices (M,) of the highest g among all that were tried, that g,
    and how often g was evaluated, at most ``evaluations`` times.
    """
    n_jobs, n_types = menu.must.shape[0], capacity.shape[0]
    counts = menu.counts.astype(np.float64)
    mu = np.empty(n_jobs)
    prices = start_prices.copy()
    least = least_listed(menu, prices)
    dearest = 0.0
    for entry in range(menu.cost.shape[0]):
        if menu.vector[entry] > 0:
            dearest = max(dearest, abs(menu.cost[entry]))
    unit = max(np.abs(least).mean(), 1e-6 * dearest, 1e-100)  # least costs may all be 0
    # a price of zero has no barrier, and from one far too low the quadratic model sees no gain
    prices = np.maximum(prices, 1e-3 * unit * n_jobs / max(capacity.sum(), 1.0))
    longest = 0
    for i in range(n_jobs):
        longest = max(longest, menu.start[i + 1] - menu.start[i])
    reduced = np.empty(longest)
    trial, direction = np.empty(n_types), np.empty(n_types)
    gradient, curvature = np.empty(n_types), np.empty((n_types, n_types))
    new_gradient, new_curvature = np.empty(n_types), np.empty((n_types, n_types))
    best_prices, best = prices.copy(), -np.inf
    used = 0
    while used < evaluations:
        least = least_listed(menu, prices)
        for i in range(n_jobs):
            mu[i] = epsilon * max(abs(least[i]), 1e-3 * unit)
        barrier = BARRIER * epsilon * unit * n_jobs
        tolerance = SLACK * epsilon * unit * n_jobs
        value, bound = _smoothed(menu, counts, capacity, prices, mu, barrier, reduced, gradient, curvature)
        used += 1
        if bound > best:
            best = bound
            best_prices[:] = prices
        while used < evaluations:
            _solve_positive(curvature, gradient, direction)
            slope, step = 0.0, 1.0
            for m in range(n_types):
                slope += direction[m] * gradient[m]
                if direction[m] < 0.0:
                    step = min(step, -0.9 * prices[m] / direction[m])
            if slope <= tolerance:
                break
            improved = False
            while used < evaluations and step > 1e-6:
                for m in range(n_types):
                    trial[m] = prices[m] + step * direction[m]
                new_value, bound = _smoothed(
                    menu, counts, capacity, trial, mu, barrier, reduced, new_gradient, new_curvature
                )
                used += 1
                if bound > best:
                    best = bound
                    best_prices[:] = trial
                if new_value >= value + 1e-3 * step * slope:
                    improved = True
                    break
                # too far: back to where the slope along the line, taken as linear, is zero
                new_slope = 0.0
                for m in range(n_types):
                    new_slope += direction[m] * new_gradient[m]
                step *= min(0.7, max(0.1, slope / (slope - new_slope))) if new_slope < slope else 0.1
            if not improved:
                break
            value = new_value
            prices, trial = trial, prices
            gradient, new_gradient = new_gradient, gradient
            curvature, new_curvature = new_curvature, curvature
        if epsilon <= last_epsilon:
            break
        epsilon = max(last_epsilon, FALL * epsilon)
    return best_prices, best, used

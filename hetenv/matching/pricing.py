"""Categories by price: each job's few best ones at given prices, found without writing all of them out.

A scan runs through the count vectors of a job size by size, in the order of a lower bound on the reduced cost
J_i(c) + p . c of each size, keeps the Q least, and passes over the sizes that cannot hold any of them. So the least
reduced cost is exact over all categories, and with it the dual bound g(p), while memory holds Q categories a job. What
is left off matters little: a placement that uses category c of job i costs at least g(p) plus the reduced cost of
(i, c) above the job's least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.categories import rows_below
from hetenv.matching.menu import Menu, extend, price_stand_ins, serve_menu
from hetenv.matching.offers import CANNOT_RUN, JobTerms, Offers, check_room, seconds_on
from hetenv.matching.prices import least_listed, price_vectors
from hetenv.matching.problem import PlacementProblem

ROUNDING = 1e-12  # relative, far above that of a few additions


class Scan(NamedTuple):
    """What was found at some prices.

    ``menu`` of the kept categories, ``least`` (J,) least reduced cost of each job, over all its categories,
    ``beyond`` (J,) what no category off the menu costs less than, all at the ``prices`` (M,).
    """

    menu: Menu
    least: np.ndarray
    beyond: np.ndarray
    prices: np.ndarray


class Market(NamedTuple):
    """Who buys what; a tuple, so that kernels take it whole.

    ``capacity`` (M,) GPUs, the ``offers`` to each kind of job, the jobs' ``terms``, in canonical order; ``offset`` (M,)
    seconds per GPU added to the cost of every category: unless it is 0, dominated ones (another one with fewer or equal
    GPUs of each type costs as little) are left out by ``below`` (V, M), see ``rows_below``, since they might become the
    cheapest. ``wanted`` (S,) row of a count vector to keep on the menu, -1 for none. Where costs are explicit, they are
    written out already and stay on the menu ``listed``, which otherwise has no jobs.
    """

    capacity: np.ndarray
    offers: Offers
    terms: JobTerms
    offset: np.ndarray
    below: np.ndarray
    wanted: np.ndarray
    listed: Menu


def open_market(
    problem: PlacementProblem, terms: JobTerms, order: np.ndarray, offset: np.ndarray, wanted: np.ndarray
) -> Market:
    """The market of the jobs ``order`` (S,) of ``problem``, with their ``terms`` and ``wanted`` (S,) in that order.

    Raises:
        InputError: a job that fits nowhere and may not wait, or more GPUs needed than there are.
    """
    listed = no_menu(problem.offers)
    if problem.model is None:
        listed = bend(serve_menu(problem, problem.costs.undominated, terms, order), offset)
    else:
        check_room(problem, terms.must, problem.offers.fewest[terms.kind], order)
    return Market(problem.capacity, problem.offers, terms, offset, rows_below(problem.vectors), wanted, listed)


@njit
def no_menu(offers):
    """The menu of no jobs."""
    nothing = np.zeros(0, np.bool_)
    return Menu(
        np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), nothing,
        offers.counts, offers.key, offers.type_key, offers.limit,
    )  # fmt: skip


@njit
def scan_menus(market, jobs, prices, width):
    """The ``width`` categories of least ``J_i(c) + p . c`` of the ``jobs`` (J,), and what keeps them placeable.

    The latter are the smallest size on each type alone, the category a job holds, and the wanted one. Ties at the
    last place go to the first found.
    """
    if market.listed.must.shape[0] > 0:
        least = least_listed(market.listed, prices)
        return Scan(market.listed, least, np.full(least.shape[0], np.inf), prices)
    offers = market.offers
    start, vector, cost, must, least, beyond = _scan(market, jobs, prices, width)
    menu = Menu(start, vector, cost, must, offers.counts, offers.key, offers.type_key, offers.limit)
    return Scan(menu, least, beyond, prices)


@njit
def scan_again(market, scan, prices, width):
    """The ``scan`` of all jobs at other ``prices``: menus that might lack the best category get ``width`` more.

    A category off the menu has become cheaper by its GPUs times the fall in price at most.
    """
    offers, kind = market.offers, market.terms.kind
    least, beyond = least_listed(scan.menu, prices), scan.beyond.copy()
    change = np.inf
    for m in range(prices.shape[0]):
        if offers.limit[m] > 0:
            change = min(change, prices[m] - scan.prices[m])
    n_unsure = 0
    unsure = np.empty(least.shape[0], np.int64)
    for i in range(least.shape[0]):
        if beyond[i] < np.inf:
            beyond[i] += change * (offers.low[kind[i]] if change > 0.0 else offers.high[kind[i]])
        if least[i] > beyond[i]:
            unsure[n_unsure] = i
            n_unsure += 1
    if n_unsure == 0:
        return Scan(scan.menu, least, beyond, prices)
    unsure = unsure[:n_unsure].copy()
    fresh = scan_menus(market, unsure, prices, width)
    least[unsure], beyond[unsure] = fresh.least, fresh.beyond
    return Scan(extend(scan.menu, fresh.menu, unsure), least, beyond, prices)


@njit
def sample_jobs(market, most):
    """At most ``most`` jobs, ascending, that spread evenly from the shortest to the longest; all explicit ones."""
    terms, offers = market.terms, market.offers
    n_jobs = terms.kind.shape[0]
    if market.listed.must.shape[0] > 0 or n_jobs <= most:
        return np.arange(n_jobs)
    by_work = np.argsort(terms.scale * offers.batch[terms.kind], kind="mergesort")
    chosen = np.zeros(n_jobs, np.bool_)
    for at in range(most):
        chosen[by_work[int((at + 0.5) * n_jobs / most)]] = True
    return np.flatnonzero(chosen)


@njit
def affordable_menu(market, prices, least, slack):
    """All categories whose reduced cost at ``prices`` (M,) is at most the job's ``least`` (S,) plus ``slack``."""
    if market.listed.must.shape[0] > 0:
        start, vector, cost = _cut(market.listed, prices, least + slack)
    else:
        start, vector, cost = _scan_below(market, prices, least + slack)
    offers = market.offers
    return Menu(start, vector, cost, market.terms.must, offers.counts, offers.key, offers.type_key, offers.limit)


def bend(menu: Menu, offset: np.ndarray) -> Menu:
    """``menu`` with ``offset`` (M,) seconds per GPU added to every category, and its stand-ins priced."""
    cost = menu.cost + menu.counts[menu.vector] @ offset
    price_stand_ins(menu.start, cost, menu.must)
    return menu._replace(cost=cost)


@njit
def _cut(menu, prices, bar):
    """Menu arrays without the entries of reduced cost above the job's ``bar`` (S,); the empty ones stay."""
    priced = price_vectors(menu.counts, prices)
    start, vector, cost = np.zeros_like(menu.start), np.empty_like(menu.vector), np.empty_like(menu.cost)
    end = 0
    for i in range(bar.shape[0]):
        for entry in range(menu.start[i], menu.start[i + 1]):
            if entry == menu.start[i] or menu.cost[entry] + priced[menu.vector[entry]] <= bar[i]:
                vector[end], cost[end] = menu.vector[entry], menu.cost[entry]
                end += 1
        start[i + 1] = end
    return start, vector[:end].copy(), cost[:end].copy()


@njit
def _block_seconds(offers, k, n, seconds):
    """Write the seconds of kind ``k``, not measured, on all vectors of ``n`` GPUs into its part of ``seconds`` (V,)."""
    first, last = offers.block[n], offers.block[n + 1]
    out, allreduce = seconds[first:last], offers.allreduce[first:last]  # loops from 0 are turned into vector code
    out[:] = 0.0
    for m in range(offers.speed.shape[1]):
        speed = offers.speed[k, m] if offers.speed[k, m] > 0.0 else CANNOT_RUN
        column = offers.columns[m, first:last]
        for v in range(out.shape[0]):
            out[v] += speed * column[v]
    batch, grad_bytes = offers.batch[k], offers.grad_bytes[k]
    for v in range(out.shape[0]):
        out[v] = batch / out[v] + grad_bytes * allreduce[v] if out[v] > 0.0 else np.inf


@njit
def _dominate(offers, below, k, seconds, cheapest):
    """Set dominated categories of kind ``k`` in ``seconds`` (V,) to inf: one with fewer or equal GPUs costs as little.

    ``cheapest`` (V,) is scratch: the least seconds of a vector and all below it, a prefix minimum.
    """
    first = offers.block[offers.low[k]]
    for v in range(first, offers.block[offers.high[k] + 1]):
        smaller = np.inf
        for m in range(offers.counts.shape[1]):
            if below[v, m] >= first:
                smaller = min(smaller, cheapest[below[v, m]])
        cheapest[v] = min(seconds[v], smaller)
        if seconds[v] >= smaller:
            seconds[v] = np.inf


@njit
def _bound_sizes(offers, terms, i, prices, bounds):
    """Write into ``bounds`` (G + 1,) what no category of job ``i`` costs less than, ``J_i(c) + p . c``, of each size.

    The mean speed x and mean price y of n GPUs lie in the convex hull of the points (speed_m, p_m) of the types.
    ``J = W / (n x) + communication`` with W = scale * batch is convex and falls with x, so ``J + n y`` is least on the
    lower hull, which consists of segments between two types. Along a line of slope s > 0 and intercept h it is least
    at ``x = sqrt(W / s) / n``, where it is ``2 sqrt(W s) + n h + communication``, or if that lies outside the segment
    at an end. The least over all pairs of types, hull or not, is the minimum over the hull: no category has less.
    """
    k = terms.kind[i]
    low, high = offers.low[k], offers.high[k]
    if offers.measured[k]:
        bounds[low : high + 1] = -np.inf
        return
    bounds[low : high + 1] = np.inf
    work = terms.scale[i] * offers.batch[k]
    for a in range(prices.shape[0]):
        x_a = offers.speed[k, a]
        if x_a <= 0.0 or offers.limit[a] == 0:
            continue
        for n in range(low, high + 1):
            bounds[n] = min(bounds[n], work / (n * x_a) + n * prices[a])
        for b in range(a):
            x_b = offers.speed[k, b]
            rise, run = prices[a] - prices[b], x_a - x_b
            if x_b > 0.0 and offers.limit[b] > 0 and rise * run > 0.0:
                slope = rise / run
                root = np.sqrt(work / slope)
                inside, intercept = 2.0 * slope * root, prices[b] - slope * x_b
                for n in range(low, high + 1):
                    if n * min(x_a, x_b) < root < n * max(x_a, x_b):
                        bounds[n] = min(bounds[n], inside + n * intercept)
    for n in range(low, high + 1):
        bounds[n] += terms.scale[i] * offers.grad_bytes[k] * offers.least_allreduce[n] + terms.penalty[i]
        bounds[n] -= ROUNDING * abs(bounds[n])


@njit
def _insert(values, rows, listed, value, row):
    """Put ``value`` into the ascending ``values`` (Q,) of ``listed`` ones, ``row`` alongside; returns their number."""
    q = min(listed, values.shape[0] - 1)
    while q > 0 and values[q - 1] > value:
        values[q], rows[q] = values[q - 1], rows[q - 1]
        q -= 1
    values[q], rows[q] = value, row
    return min(listed + 1, values.shape[0])


@njit
def _scan(market, jobs, prices, width):
    """Menu arrays ``start`` (J + 1,), ``vector``, ``cost`` (O,), ``must`` (J,), then ``least``, ``beyond`` (J,); see
    ``Scan``.

    Sizes whose lower bound is above the ``width``-th least reduced cost found so far are passed over.
    """
    offers, terms, offset = market.offers, market.terms, market.offset
    bent = offset.any()
    prices = prices + offset
    n_jobs, n_vectors, n_types = jobs.shape[0], offers.counts.shape[0], offers.counts.shape[1]
    most = 0
    for i in jobs:
        k = terms.kind[i]
        most += 1 + min(width + n_types + 2, max(0, offers.block[offers.high[k] + 1] - offers.block[offers.low[k]]))
    start = np.zeros(n_jobs + 1, np.int64)
    vector, cost = np.empty(most, np.int32), np.empty(most)
    must, least, beyond = terms.must[jobs], np.empty(n_jobs), np.full(n_jobs, np.inf)
    priced = price_vectors(offers.counts, prices)
    seconds, reduced = np.empty(n_vectors), np.empty(n_vectors)
    values, rows = np.empty(width), np.empty(width + n_types + 2, np.int64)
    bounds = np.empty(offers.block.shape[0])
    ascending, sizes = np.empty(offers.block.shape[0]), np.empty(offers.block.shape[0], np.int64)
    written = np.zeros(offers.block.shape[0], np.bool_)  # sizes whose seconds stand in ``seconds``, of this kind
    extra = np.empty(n_types + 2, np.int64)
    end, kind = 0, -1
    for j in range(n_jobs):
        i = jobs[j]
        k, scale, penalty, held = terms.kind[i], terms.scale[i], terms.penalty[i], terms.held[i]
        allowed = offers.block[offers.low[k]] <= held < offers.block[offers.high[k] + 1]
        if k != kind:
            kind = k
            written[:] = bent
            if bent:
                for n in range(offers.low[k], offers.high[k] + 1):
                    if offers.measured[k]:
                        for v in range(offers.block[n], offers.block[n + 1]):
                            seconds[v] = seconds_on(offers, k, v)
                    else:
                        _block_seconds(offers, k, n, seconds)
                _dominate(offers, market.below, k, seconds, reduced)
        listed = 0
        if allowed:  # without the penalty, and even if dominated
            value = scale * seconds_on(offers, k, held) + priced[held]
            if value < np.inf:
                listed = _insert(values, rows, listed, value, held)
        _bound_sizes(offers, terms, i, prices, bounds)
        n_sizes = 0
        for n in range(offers.low[k], offers.high[k] + 1):
            if offers.block[n + 1] > offers.block[n] and bounds[n] < np.inf:
                n_sizes = _insert(ascending, sizes, n_sizes, bounds[n], n)
        for n in sizes[:n_sizes]:
            if listed == width and bounds[n] >= values[width - 1]:
                break
            bar = values[width - 1] if listed == width else np.inf
            if offers.measured[k]:
                for m in range(n_types):
                    v = offers.single[m, n]
                    if v < 0 or v == held:
                        continue
                    value = scale * (seconds[v] if bent else seconds_on(offers, k, v)) + penalty + priced[v]
                    if value < bar:
                        listed = _insert(values, rows, listed, value, v)
                        bar = values[width - 1] if listed == width else np.inf
                continue
            if not written[n]:
                _block_seconds(offers, k, n, seconds)
                written[n] = True
            first = offers.block[n]
            in_seconds, in_priced = seconds[first : offers.block[n + 1]], priced[first : offers.block[n + 1]]
            for v in range(in_seconds.shape[0]):
                reduced[v] = scale * in_seconds[v] + penalty + in_priced[v]
            for v in range(in_seconds.shape[0]):
                if reduced[v] < bar and first + v != held:
                    listed = _insert(values, rows, listed, reduced[v], first + v)
                    bar = values[width - 1] if listed == width else np.inf
        least[j] = values[0] if listed > 0 else np.inf
        if listed == width:
            beyond[j] = values[width - 1]
        if not terms.must[i]:
            least[j] = min(least[j], terms.empty_cost[i])
        extra[0], extra[1] = held, market.wanted[i]
        extra[2:] = offers.single[:, offers.fewest[k]]  # all -1 if it is 0
        for v in extra:
            if offers.block[offers.low[k]] <= v < offers.block[offers.high[k] + 1]:
                known = seconds_on(offers, k, v) == np.inf
                for q in range(listed):
                    known |= rows[q] == v
                if not known:
                    rows[listed] = v
                    listed += 1
        end = _write(offers, terms, i, offset, rows[:listed], end, vector, cost)
        start[j + 1] = end
    price_stand_ins(start, cost, must)
    return start, vector[:end].copy(), cost[:end].copy(), must, least, beyond


@njit
def _write(offers, terms, i, offset, rows, end, vector, cost):
    """Append the empty category of job ``i`` and those of ``rows`` (Q,), ascending, at ``end``; returns the new end."""
    vector[end] = 0
    cost[end] = terms.empty_cost[i]
    end += 1
    for q in range(1, rows.shape[0]):  # insertion sort: the library's is slower on so few
        v = rows[q]
        while q > 0 and rows[q - 1] > v:
            rows[q] = rows[q - 1]
            q -= 1
        rows[q] = v
    for v in rows:
        vector[end] = v
        cost[end] = terms.scale[i] * seconds_on(offers, terms.kind[i], v)
        cost[end] += 0.0 if v == terms.held[i] else terms.penalty[i]
        for m in range(offset.shape[0]):
            cost[end] += offset[m] * offers.counts[v, m]
        end += 1
    return end


@njit
def _scan_below(market, prices, bar):
    """Menu arrays of all categories with a reduced cost of at most ``bar`` (S,): counted, then written."""
    offers, terms, offset = market.offers, market.terms, market.offset
    n_jobs, n_vectors = terms.kind.shape[0], offers.counts.shape[0]
    start = np.zeros(n_jobs + 1, np.int64)
    vector, cost = np.empty(0, np.int32), np.empty(0)
    prices = prices + offset
    priced = price_vectors(offers.counts, prices)
    seconds, rows, bounds = np.empty(n_vectors), np.empty(n_vectors, np.int64), np.empty(offers.block.shape[0])
    for write in (False, True):
        end = 0
        for i in range(n_jobs):
            k, held = terms.kind[i], terms.held[i]
            found = 0
            _bound_sizes(offers, terms, i, prices, bounds)
            for n in range(offers.low[k], offers.high[k] + 1):
                if bounds[n] > bar[i] and not (held >= 0 and offers.size[held] == n):
                    continue
                if not offers.measured[k]:
                    _block_seconds(offers, k, n, seconds)
                for v in range(offers.block[n], offers.block[n + 1]):
                    spent = seconds_on(offers, k, v) if offers.measured[k] else seconds[v]
                    value = terms.scale[i] * spent + (0.0 if v == held else terms.penalty[i]) + priced[v]
                    if value <= bar[i] and spent < np.inf:
                        rows[found] = v
                        found += 1
            if write:
                end = _write(offers, terms, i, offset, rows[:found], end, vector, cost)
            else:
                end += 1 + found
            start[i + 1] = end
        if not write:
            vector, cost = np.empty(end, np.int32), np.empty(end)
    price_stand_ins(start, cost, terms.must)
    return start, vector, cost

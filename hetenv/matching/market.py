"""The strong market: prices per GPU type on whole categories, then repair and local search."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hetenv.compiled import njit
from hetenv.errors import InputError
from hetenv.matching.inputs import per_type
from hetenv.matching.local_search import force_entries, improve
from hetenv.matching.menu import Menu, fits
from hetenv.matching.offers import OnlineTerms, canonical_order, job_counts, rows_of, settle_terms, take_terms
from hetenv.matching.prices import FALL, SHORTLIST, ascend_prices, pairwise_sum, scale_prices, shortlists
from hetenv.matching.pricing import Market, affordable_menu, open_market, sample_jobs, scan_again, scan_menus
from hetenv.matching.problem import Placement, PlacementProblem
from hetenv.matching.repair import best_responses, relieve, repair, resume
from hetenv.matching.search import search_entries
from hetenv.matching.selection import genuine_entries, place_stranded, select_entries

if TYPE_CHECKING:
    from typing import Unpack

GOOD_ENOUGH = 2e-4  # certified relative gap at which the search for a better placement ends, up to ...
MANY_JOBS = 1000  # ... so many jobs; in proportion above, since searching pairs takes the square of their number
TOO_FAR = 5e-3  # certified relative gap above which a small problem is searched to the end
SMALL = 2_000  # entries of such a problem
MOST_STEPS, MOST_NODES = 200_000, 100  # of that search, a few milliseconds; then of the tree of HiGHS
LEAST_WIDTH, MOST_WIDTH = 20, 64  # categories kept per job: the fewer, the more jobs there are
SAMPLED_WIDTH = 32  # categories kept per job while some of the jobs settle the first prices
SAMPLED_JOBS = 64  # how many of them at least
SETTLED = 1e-4  # relative excess of g over the kept categories at which they suffice, as GOOD_ENOUGH for many jobs
COARSE, FINE = 0.03, 1e-4  # epsilon (see ``prices``) of the first prices, and where its fall ends
ITERATIONS = 300  # evaluations of g at most, unless told otherwise
ROUNDS = 16  # of raising g and keeping more categories; few need more than five


class Cleared(NamedTuple):
    """A cleared market: ``menu`` of the kept categories, ``choice`` (S,) entries, ``prices`` (M,) of the highest
    ``bound`` g found, the ``least`` (S,) reduced costs there, and the ``evaluations`` of g. Jobs in canonical order."""

    menu: Menu
    choice: np.ndarray
    prices: np.ndarray
    bound: float
    least: np.ndarray
    evaluations: int


def solve_market(
    problem: PlacementProblem,
    *,
    price_offset: ArrayLike | None = None,
    start_prices: ArrayLike | None = None,
    start_counts: ArrayLike | None = None,
    iterations: int = ITERATIONS,
    **online: Unpack[OnlineTerms],
) -> Placement:
    """Place the jobs by market prices: near optimal, with a certified gap.

    If every job's best category fits, that is the optimum and all prices are 0. Otherwise Newton ascent on the smoothed
    dual g(p) = sum_i min_c [J_i(c) + p.c] - p.capacity (see ``prices``), first for some of the jobs, then for all, on
    each job's best categories at the prices (see ``pricing``); all jobs take those and move off overfull types at least
    loss; then local search. While the certified gap is above 2e-4 (above 1,000 jobs in proportion to their number),
    repairs by descending cost range at slightly bent prices follow, and at last jobs are forced in where others must
    make room; the best of all is returned. If the gap of a small problem still exceeds 0.5 % and ``iterations`` are
    left, all categories that a better placement could have are searched through, by HiGHS where that takes more than
    200,000 steps. Reconstructed from the abstract and sibling papers; details may differ from the published algorithm.

    The order of the jobs makes no difference, save that jobs alike in everything may exchange places.

    Args:
        problem: the jobs and GPUs.
        price_offset: (M,) seconds per GPU, added to every category's cost during the search, not to ``total``. It
            bends the choice among categories that are not dominated; it brings back none that are.
        start_prices: (M,) seconds per GPU, a warm start, such as ``prices`` of the last epoch's placement; it saves
            the search for first prices. All zeros, as when nothing was short: a cold start.
        start_counts: (S, M) GPUs per type and job, a warm start, such as the last epoch's placement: where its
            categories are allowed and fit, the first local search starts there.
        iterations: most evaluations of g, at least 1.
        online: see ``OnlineTerms``.

    Returns:
        The placement; ``lower_bound`` is g at ``prices``, exact over all categories, or better after a full search.

    Raises:
        InputError: a bad term, or jobs that cannot all be placed and may not wait.
    """
    if iterations < 1 or int(iterations) != iterations:
        raise InputError("iterations", iterations, "give a whole number of at least 1")
    terms = settle_terms(problem, **online)
    order = canonical_order(terms)
    offset = per_type("price_offset", 0.0 if price_offset is None else price_offset, problem.n_types)
    start = per_type("start_prices", 0.0 if start_prices is None else start_prices, problem.n_types, low=0.0)
    wanted = np.full(problem.n_jobs, -1)
    if start_counts is not None:
        wanted = rows_of(problem.offers, job_counts("start_counts", start_counts, problem))[order]
    market = open_market(problem, take_terms(terms, order), order, offset, wanted)
    cleared = clear_market(market, price_shape(problem), start, iterations)
    cleared = cleared._replace(choice=place_stranded(cleared.menu, problem.capacity, cleared.choice))
    cleared, ended = close_gap(market, cleared, iterations, MOST_STEPS)
    if not ended:
        cleared = _close_gap_by_highs(market, cleared)
    menu, choice, prices, bound, _, _ = cleared
    counts, total = menu.counts_of(choice), menu.total(choice)
    if offset.any():
        total -= float((counts @ offset).sum())
        prices = np.maximum(prices + offset, 0.0)  # what a GPU costs in all: true costs have their bound there
        plain = open_market(problem, market.terms, order, np.zeros_like(offset), wanted)
        bound = scan_menus(plain, np.arange(problem.n_jobs), prices, 1).least.sum() - prices @ problem.capacity
    placed = np.empty_like(counts)
    placed[order] = counts
    return Placement(placed, total, min(float(bound), total), prices)


def price_shape(problem: PlacementProblem) -> np.ndarray:
    """(M,) in proportion to which the search for first prices begins: the mean speed."""
    return np.ones(problem.n_types) if problem.model is None else mean_speed(problem.model.speed)


@njit
def mean_speed(speed):
    """(M,) mean of ``speed`` (S, M) over the jobs, nowhere 0; ones if they have no speeds, as measured jobs may."""
    mean = np.zeros(speed.shape[1])
    for i in range(speed.shape[0]):
        for m in range(speed.shape[1]):
            mean[m] += speed[i, m]
    mean /= speed.shape[0]
    return np.maximum(mean, 1e-9 * speed.max()) if mean.any() else np.ones(speed.shape[1])


@njit
def clear_market(market, shape, start_prices, evaluations):
    """Prices, then a placement, which may leave out jobs that must be placed; see ``solve_market``.

    Args:
        market: a ``Market``.
        shape: (M,) first prices are in proportion to it.
        start_prices: (M,), zeros for a cold start.
        evaluations: of g, at most.
    """
    n_jobs = market.terms.kind.shape[0]
    # Every job on its best category, if all fit: then no GPU has a price, and nothing can be better.
    for most in (SAMPLED_JOBS, max(SAMPLED_JOBS, n_jobs)):  # some jobs tell at once that GPUs are short
        jobs = sample_jobs(market, most)
        scan = scan_menus(market, jobs, np.zeros(shape.shape[0]), min(1, n_jobs))  # a literal compiles all once more
        choice = best_responses(scan.menu, scan.prices)
        if not fits(scan.menu, choice, market.capacity * (jobs.shape[0] / n_jobs)):
            break
        if jobs.shape[0] == n_jobs:
            return Cleared(scan.menu, choice, scan.prices, scan.least.sum(), scan.least, 1)
    prices, used = start_prices, 1
    if not start_prices.any():
        prices, used = _first_prices(market, shape, evaluations)
    scan, bound, used = _settle_prices(market, prices, used, evaluations)
    choice = _place(scan.menu, market.capacity, scan.prices, bound, market.wanted)
    return Cleared(scan.menu, choice, scan.prices, bound, scan.least, used)


@njit
def _first_prices(market, shape, evaluations):
    """(M,) prices that are about right for some of the jobs on their share of the GPUs, and how often g was evaluated.

    In proportion to ``shape`` at first, scaled on each job's best and smallest categories, then on its best ones at
    those prices.
    """
    n_jobs = market.terms.kind.shape[0]
    jobs = sample_jobs(market, max(SAMPLED_JOBS, n_jobs // 16))
    share = market.capacity * (jobs.shape[0] / n_jobs)
    prices, menu = np.zeros(share.shape[0]), market.listed
    for width in (1, SAMPLED_WIDTH):
        menu = scan_menus(market, jobs, prices, width).menu
        prices = scale_prices(menu, share, shape)
    if evaluations == 1:
        return prices, 1
    prices, _, spent = ascend_prices(menu, share, prices, COARSE, COARSE, evaluations - 1)
    return prices, 1 + spent


@njit
def _settle_prices(market, prices, used, evaluations):
    """The scan at the prices (M,) of the highest g found, g there, and how often g was evaluated, after ``used`` times
    before.

    Each round raises g over the kept categories, then evaluates it over all and keeps more of them where the best may
    be missing. Once the two agree, epsilon falls.
    """
    capacity, n_jobs = market.capacity.astype(np.float64), market.terms.kind.shape[0]
    width = min(MOST_WIDTH, max(LEAST_WIDTH, 4096 // n_jobs))
    epsilon, last_epsilon = FALL * COARSE, min(1e-3, max(FINE, 5e-7 * n_jobs))
    scan = scan_menus(market, np.arange(n_jobs), prices, width)
    best, best_bound = scan, _bound(scan, capacity)
    for _ in range(ROUNDS):
        if used >= evaluations:
            break
        prices, value, spent = ascend_prices(scan.menu, capacity, prices, epsilon, epsilon, evaluations - used)
        used += spent
        scan = scan_again(market, scan, prices, width)
        bound = _bound(scan, capacity)
        if bound > best_bound:
            best, best_bound = scan, bound
        if value - bound <= SETTLED * max(1.0, n_jobs / MANY_JOBS) * abs(bound):
            if epsilon <= last_epsilon:
                break
            epsilon = max(last_epsilon, FALL * epsilon)
    return best, best_bound, used


@njit
def _bound(scan, capacity):
    """g at the prices of a ``scan`` of all jobs."""
    worth = 0.0
    for m in range(capacity.shape[0]):
        worth += scan.prices[m] * capacity[m]
    return pairwise_sum(scan.least) - worth


@njit
def _place(menu, capacity, prices, bound, wanted):
    """Entries (S,) of the best of several starts, each improved by local search.

    They are the ``wanted`` categories (S,), if any, the best ones relieved, and repairs at the prices, then with one
    type's price bent by a twentieth: repairs there end in other local optima.
    """
    entries, reduced, listed = shortlists(menu, prices, SHORTLIST)
    tolerance = 1e-12 * abs(bound)
    target = bound + GOOD_ENOUGH * max(1.0, menu.must.shape[0] / MANY_JOBS) * abs(bound)
    no_limit = np.full(menu.must.shape[0], capacity.sum())
    best, least = best_responses(menu, prices), np.inf
    for start in range(-2, 1 + 2 * prices.shape[0]):
        if least <= target:
            break
        if start == -2:
            if (wanted < 0).all():
                continue
            choice = resume(menu, capacity, prices, wanted)
        elif start == -1:
            choice = best_responses(menu, prices)
            if not relieve(menu, capacity, choice, entries, reduced, listed):
                continue
        else:
            bent = prices.copy()
            if start > 0:
                bent[(start - 1) // 2] *= 0.95 if start % 2 == 1 else 1.05
            choice = repair(menu, capacity, bent, no_limit)
        improve(menu, capacity, choice, prices, entries, reduced, listed, tolerance, target)
        total = pairwise_sum(menu.cost[choice])
        if total < least:
            best, least = choice, total
    if least > target:
        while force_entries(menu, capacity, best, prices, entries, reduced, listed, bound, tolerance) > 0:
            improve(menu, capacity, best, prices, entries, reduced, listed, tolerance, target)
    return best


@njit
def close_gap(market, cleared, evaluations, most_steps):
    """``cleared`` after a search to the end, if its gap is wide and the problem small, and whether that did end."""
    total = pairwise_sum(cleared.menu.cost[cleared.choice])
    slack = total - cleared.bound
    if slack <= TOO_FAR * abs(cleared.bound) or cleared.evaluations >= evaluations:
        return cleared, True
    menu = affordable_menu(market, cleared.prices, cleared.least, slack)
    if menu.cost.shape[0] - menu.must.sum() > SMALL:
        return cleared, True
    found, ended = search_entries(menu, market.capacity, cleared.prices, total - 1e-9 * abs(total), most_steps)
    choice = cleared.choice
    if not ended:
        return cleared, False
    if found[0] >= 0:
        choice, total = found, menu.cost[found].sum()
    else:
        menu = cleared.menu
    bound = max(cleared.bound, total)
    return Cleared(menu, choice, cleared.prices, bound, cleared.least, cleared.evaluations), True


def _close_gap_by_highs(market: Market, cleared: Cleared) -> Cleared:
    """``cleared`` after HiGHS has chosen among all categories that a better placement could have."""
    total = cleared.menu.total(cleared.choice)
    menu = affordable_menu(market, cleared.prices, cleared.least, total - cleared.bound)
    selected, bound = select_entries(menu, market.capacity, genuine_entries(menu), MOST_NODES)
    cleared = cleared._replace(bound=max(cleared.bound, min(bound, total)))
    if selected is None or menu.total(selected) >= total:
        return cleared
    return cleared._replace(menu=menu, choice=selected)

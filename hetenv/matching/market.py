"""The strong market: prices per GPU type on whole categories, then repair and local search."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hetenv.errors import InputError
from hetenv.matching.inputs import per_type
from hetenv.matching.local_search import force_entries, improve
from hetenv.matching.menu import Menu, fits
from hetenv.matching.offers import OnlineTerms, job_counts, rows_of, settle_terms
from hetenv.matching.prices import FALL, SHORTLIST, ascend_prices, scale_prices, shortlists
from hetenv.matching.pricing import PricedMenus, Scan
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
MOST_STEPS, MOST_NODES = 20_000, 100  # of that search, half a millisecond; then of HiGHS's tree
LEAST_WIDTH, MOST_WIDTH = 20, 64  # categories kept per job: the fewer, the more jobs there are
SAMPLED_WIDTH = 32  # categories kept per job while some of the jobs settle the first prices
SAMPLED_JOBS = 64  # how many of them at least
SETTLED = 1e-4  # relative excess of g over the kept categories at which they suffice, as GOOD_ENOUGH for many jobs
COARSE, FINE = 0.03, 1e-4  # epsilon (see ``prices``) of the first prices, and where its fall ends
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
    iterations: int = 300,
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
    20,000 steps. Reconstructed from the abstract and
    sibling papers; details may differ from the published algorithm.

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
    order = terms.canonical_order()
    terms = terms.take(order)
    offset = per_type("price_offset", 0.0 if price_offset is None else price_offset, problem.n_types)
    start = per_type("start_prices", 0.0 if start_prices is None else start_prices, problem.n_types, low=0.0)
    wanted = np.full(problem.n_jobs, -1, np.int64)
    if start_counts is not None:
        wanted = rows_of(job_counts("start_counts", start_counts, problem), problem)[order]
    menus = PricedMenus(problem, terms, order, offset, wanted)
    cleared = clear_market(menus, problem, start, wanted, iterations)
    menu, choice, prices, bound, least, evaluations = cleared
    total = menu.total(choice)
    if total - bound > TOO_FAR * abs(bound) and evaluations < iterations:
        affordable = menus.affordable(prices, least, total - bound)
        entries = genuine_entries(affordable)
        if len(entries) <= SMALL:
            tolerance = 1e-9 * abs(total)
            found, ended = search_entries(affordable, problem.capacity, prices, total - bound - tolerance, MOST_STEPS)
            selected: np.ndarray | None = found if found[0] >= 0 else None
            proven = total if selected is None else affordable.total(selected)
            if not ended:
                selected, proven = select_entries(affordable, problem.capacity, entries, MOST_NODES)
            bound = max(bound, min(proven, total))
            if selected is not None and affordable.total(selected) < total:
                menu, choice, total = affordable, selected, affordable.total(selected)
    counts = menu.counts_of(choice)
    if offset.any():
        total -= float((counts @ offset).sum())
        prices = np.maximum(prices + offset, 0.0)  # what a GPU costs in all: true costs have their bound there
        plain = PricedMenus(problem, terms, order, np.zeros_like(offset), wanted)
        bound = float(plain.at(prices, 1).least.sum() - prices @ problem.capacity)
    placed = np.empty_like(counts)
    placed[order] = counts
    return Placement(placed, total, min(float(bound), total), prices)


def clear_market(
    menus: PricedMenus, problem: PlacementProblem, start_prices: np.ndarray, wanted: np.ndarray, evaluations: int
) -> Cleared:
    """Prices, then a placement: see ``solve_market``.

    Args:
        menus: of the jobs of ``problem``, in canonical order.
        start_prices: (M,), zeros for a cold start.
        wanted: (S,) rows of the count vectors to start from, -1 for none.
        evaluations: of g, at most.

    Raises:
        InputError: the jobs that must be placed cannot all be.
    """
    if (cleared := _clear_unpriced(menus, problem.capacity)) is not None:
        return cleared
    prices, used = start_prices, 1
    if not start_prices.any():
        prices, used = _first_prices(menus, problem, evaluations)
    scan, prices, bound, used = _settle_prices(menus, problem.capacity.astype(float), prices, used, evaluations)
    choice = _place(scan.menu, problem.capacity, prices, bound, wanted)
    return Cleared(scan.menu, choice, prices, bound, scan.least, used)


def _clear_unpriced(menus: PricedMenus, capacity: np.ndarray) -> Cleared | None:
    """Every job on its best category, if all fit: then no GPU has a price, and nothing can be better."""
    nothing = np.zeros(len(capacity))
    for most in sorted({min(SAMPLED_JOBS, menus.n_jobs), menus.n_jobs}):  # some jobs tell at once that GPUs are short
        jobs = menus.sample(most)
        scan = menus.at(nothing, 1, jobs)
        choice = best_responses(scan.menu, nothing)
        if not fits(scan.menu, choice, capacity * (len(jobs) / menus.n_jobs)):
            return None
    return Cleared(scan.menu, choice, nothing, float(scan.least.sum()), scan.least, 1)


def _first_prices(menus: PricedMenus, problem: PlacementProblem, evaluations: int) -> tuple[np.ndarray, int]:
    """(M,) prices that are about right for some of the jobs on their share of the GPUs, and how often g was evaluated.

    In proportion to mean speed at first, scaled on each job's best and smallest categories, then on its best ones at
    those prices.
    """
    jobs = menus.sample(max(SAMPLED_JOBS, problem.n_jobs // 16))
    share = problem.capacity * (len(jobs) / problem.n_jobs)
    shape = np.ones(problem.n_types)
    if problem.model is not None and problem.model.speed.any():  # measured jobs may have none
        shape = np.maximum(problem.model.speed.mean(axis=0), 1e-9 * problem.model.speed.max())
    prices = scale_prices(menus.at(np.zeros(problem.n_types), 1, jobs).menu, share, shape)
    menu = menus.at(prices, SAMPLED_WIDTH, jobs).menu
    prices = scale_prices(menu, share, shape)
    if evaluations == 1:
        return prices, 1
    prices, _, spent = ascend_prices(menu, share, prices, COARSE, COARSE, evaluations - 1)
    return prices, 1 + spent


def _settle_prices(
    menus: PricedMenus, capacity: np.ndarray, prices: np.ndarray, used: int, evaluations: int
) -> tuple[Scan, np.ndarray, float, int]:
    """The menus and least reduced costs at the prices (M,) of the highest g found, these prices, g there,
    and how often g was evaluated, after ``used`` times before.

    Each round raises g over the kept categories, then evaluates it over all and keeps more of them where the best may
    be missing. Once the two agree, epsilon falls.
    """
    n_jobs = menus.n_jobs
    width = min(MOST_WIDTH, max(LEAST_WIDTH, 4096 // n_jobs))
    epsilon, last_epsilon = FALL * COARSE, min(1e-3, max(FINE, 5e-7 * n_jobs))
    scan = menus.at(prices, width)
    best, best_bound = scan, float(scan.least.sum() - prices @ capacity)
    for _ in range(ROUNDS):
        if used >= evaluations:
            break
        prices, value, spent = ascend_prices(scan.menu, capacity, prices, epsilon, epsilon, evaluations - used)
        used += spent
        scan = menus.again(scan, prices, width)
        bound = float(scan.least.sum() - prices @ capacity)
        if bound > best_bound:
            best, best_bound = scan, bound
        if value - bound <= SETTLED * max(1.0, n_jobs / MANY_JOBS) * abs(bound):
            if epsilon <= last_epsilon:
                break
            epsilon = max(last_epsilon, FALL * epsilon)
    return best, best.prices, best_bound, used


def _place(menu: Menu, capacity: np.ndarray, prices: np.ndarray, bound: float, wanted: np.ndarray) -> np.ndarray:
    """Entries (S,) of the best of several starts, each improved by local search."""
    entries, reduced, listed = shortlists(menu, prices, SHORTLIST)
    tolerance = 1e-12 * abs(bound)
    target = bound + GOOD_ENOUGH * max(1.0, menu.n_jobs / MANY_JOBS) * abs(bound)
    no_limit = np.full(menu.n_jobs, capacity.sum())
    starts: Iterator[np.ndarray] = (repair(menu, capacity, at_prices, no_limit) for at_prices in _around(prices))
    relieved = best_responses(menu, prices)
    if relieve(menu, capacity, relieved, entries, reduced, listed):
        starts = chain([relieved], starts)
    if (wanted >= 0).any():
        starts = chain([resume(menu, capacity, prices, wanted)], starts)
    best = next(starts)
    improve(menu, capacity, best, prices, entries, reduced, listed, tolerance, target)
    while menu.total(best) > target and (choice := next(starts, None)) is not None:
        improve(menu, capacity, choice, prices, entries, reduced, listed, tolerance, target)
        best = min((best, choice), key=menu.total)
    if menu.total(best) > target:
        while force_entries(menu, capacity, best, prices, entries, reduced, listed, bound, tolerance) > 0:
            improve(menu, capacity, best, prices, entries, reduced, listed, tolerance, target)
    return place_stranded(menu, capacity, best)


def _around(prices: np.ndarray) -> Iterator[np.ndarray]:
    """``prices`` (M,), then with one type's price bent by a twentieth: repairs there end in other local optima."""
    yield prices
    for m in range(len(prices)):
        for factor in (0.95, 1.05):
            bent = prices.copy()
            bent[m] *= factor
            yield bent

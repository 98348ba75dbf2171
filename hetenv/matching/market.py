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
from hetenv.matching.menu import Menu
from hetenv.matching.offers import JobTerms, OnlineTerms, check_room, job_counts, rows_of, settle_terms
from hetenv.matching.prices import SHORTLIST, ascend_prices, shortlists
from hetenv.matching.pricing import PricedMenus, Scan
from hetenv.matching.problem import Placement, PlacementProblem
from hetenv.matching.repair import repair, resume
from hetenv.matching.selection import genuine_entries, place_stranded, select_entries

if TYPE_CHECKING:
    from typing import Unpack

GOOD_ENOUGH = 2e-4  # certified relative gap at which the search for a better placement ends, up to ...
MANY_JOBS = 1000  # ... so many jobs; in proportion above, since searching pairs takes the square of their number
TOO_FAR = 5e-3  # certified relative gap above which a small problem goes to HiGHS
SMALL, MOST_NODES = 2_000, 100  # entries of such a problem, and nodes of its search tree
LEAST_WIDTH, MOST_WIDTH = 24, 64  # categories kept per job: the fewer, the more jobs there are
SAMPLED_WIDTH = 64  # categories kept per job while some of the jobs settle the first prices
SAMPLED_JOBS = 64  # how many of them at least
SETTLED = (
    5e-5  # relative difference of g over the kept categories and over all at which the former suffice, up to MANY_JOBS
)
COARSE = 0.03  # epsilon at the end of the ascent on the sampled jobs


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

    Newton ascent on the smoothed dual g(p) = sum_i min_c [J_i(c) + p.c] - p.capacity (see ``prices``), first for some
    of the jobs, then for all, on each job's best categories at the prices (see ``pricing``); a repair by descending
    cost range, then local search. While the certified gap is above 2e-4 (above 1,000 jobs in proportion to their
    number), repairs at slightly bent prices follow, and at last jobs are forced in where others must make room; the
    best of all is returned. If the gap of a small problem still exceeds 0.5 % and ``iterations`` are left, HiGHS
    chooses among all categories that a better placement could have. Reconstructed from the abstract and sibling
    papers; details may differ from the published algorithm.

    The order of the jobs makes no difference, save that jobs alike in everything may exchange places.

    Args:
        problem: the jobs and GPUs.
        price_offset: (M,) seconds per GPU, added to every category's cost during the search, not to ``total``. It
            bends the choice among categories that are not dominated; it brings back none that are.
        start_prices: (M,) seconds per GPU, a warm start, such as ``prices`` of the last epoch's placement; it saves
            the search for first prices. All zeros: a cold start.
        start_counts: (S, M) GPUs per type and job, a warm start, such as the last epoch's placement: where its
            categories are allowed and fit, the first local search starts there.
        iterations: most evaluations of g, at least 1.
        online: see ``OnlineTerms``.

    Returns:
        The placement; ``lower_bound`` is g at ``prices``, exact over all categories, or HiGHS's bound where better.

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
    cleared = clear_market(menus, problem, terms, order, start, wanted, iterations)
    menu, choice, prices, bound, least, evaluations = cleared
    total = menu.total(choice)
    if total - bound > TOO_FAR * abs(bound) and evaluations < iterations:
        affordable = menus.affordable(prices, least, total - bound)
        entries = genuine_entries(affordable)
        if len(entries) <= SMALL:
            selected, milp_bound = select_entries(affordable, problem.capacity, entries, MOST_NODES)
            bound = max(bound, min(milp_bound, total))
            if selected is not None and affordable.total(selected) < total:
                menu, choice, total = affordable, selected, affordable.total(selected)
    counts = menu.counts_of(choice)
    if offset.any():
        total -= float((counts @ offset).sum())
        prices = np.maximum(prices + offset, 0.0)  # what a GPU costs in all: true costs have their bound there
        plain = PricedMenus(problem, terms, order, np.zeros_like(offset), wanted)
        bound = plain.at(prices, 1).bound(prices, problem.capacity)
    placed = np.empty_like(counts)
    placed[order] = counts
    return Placement(placed, total, min(float(bound), total), prices)


def clear_market(
    menus: PricedMenus,
    problem: PlacementProblem,
    terms: JobTerms,
    order: np.ndarray,
    start_prices: np.ndarray,
    wanted: np.ndarray,
    evaluations: int,
) -> Cleared:
    """Prices, then a placement: see ``solve_market``.

    Args:
        menus: of the jobs of ``problem``, with their ``terms``, in canonical order, ``order`` (S,).
        start_prices: (M,), zeros for a cold start.
        wanted: (S,) rows of the count vectors to start from, -1 for none.
        evaluations: of g, at most.

    Raises:
        InputError: the jobs that must be placed cannot all be.
    """
    scan, prices, bound, used = _find_prices(menus, problem, terms, order, start_prices, evaluations)
    choice = _place(scan.menu, problem.capacity, prices, bound, wanted)
    return Cleared(scan.menu, choice, prices, bound, scan.least, used)


def _find_prices(
    menus: PricedMenus,
    problem: PlacementProblem,
    terms: JobTerms,
    order: np.ndarray,
    start_prices: np.ndarray,
    evaluations: int,
) -> tuple[Scan, np.ndarray, float, int]:
    """The menus and least reduced costs at the prices (M,) of the highest g found, these prices, g there,
    and how often g was evaluated.

    Each round raises g over the kept categories, then g over all is evaluated at the new prices; if the two differ,
    the categories kept are chosen anew and another round follows.
    """
    capacity = problem.capacity.astype(float)
    width = min(MOST_WIDTH, max(LEAST_WIDTH, 4096 // problem.n_jobs))
    used, fine = 1, min(1e-3, max(1e-4, 5e-7 * problem.n_jobs))
    if start_prices.any():
        prices, epsilon = start_prices, 10.0 * fine
    else:
        prices, epsilon = _first_prices(menus, problem), 0.3
        sample = menus.sample(max(SAMPLED_JOBS, problem.n_jobs // 16))
        if evaluations > 1 and len(sample) < problem.n_jobs:
            share = capacity * len(sample) / problem.n_jobs
            menu = menus.at(prices, SAMPLED_WIDTH, sample).menu
            prices, _, spent = ascend_prices(menu, share, prices, epsilon, COARSE, evaluations - 1)
            used, epsilon = used + spent, COARSE
    scan = menus.at(prices, width)
    if problem.model is not None:
        check_room(problem, terms.must, scan.smallest, order)
    best, best_prices, best_bound = scan, prices, scan.bound(prices, capacity)
    for _ in range(8):
        if used >= evaluations:
            break
        prices, value, spent = ascend_prices(scan.menu, capacity, prices, epsilon, fine, evaluations - used)
        used += spent
        exact = menus.at(prices, 1)
        bound = exact.bound(prices, capacity)
        settled = value - bound <= SETTLED * max(1.0, problem.n_jobs / MANY_JOBS) * abs(bound)
        scan = scan._replace(least=exact.least) if settled else menus.at(prices, width)
        if bound > best_bound:
            best, best_prices, best_bound = scan, prices, bound
        if settled:
            break
        epsilon = 10.0 * fine
    return best, best_prices, best_bound, used


def _first_prices(menus: PricedMenus, problem: PlacementProblem) -> np.ndarray:
    """(M,) prices in proportion to mean speed, scaled to the highest g of some of the jobs, to half an octave."""
    jobs = menus.sample(SAMPLED_JOBS // 2)
    share = problem.capacity * (len(jobs) / problem.n_jobs)
    shape = np.ones(problem.n_types)
    if problem.model is not None and problem.model.speed.any():  # measured jobs may have none
        shape = np.maximum(problem.model.speed.mean(axis=0), 1e-9 * problem.model.speed.max())
    scan = menus.at(np.zeros(problem.n_types), 1, jobs)
    level = float(np.abs(scan.least[np.isfinite(scan.least)]).sum())
    if level == 0.0:  # all may wait or run for nothing
        level = float(np.abs(scan.menu.cost[np.isfinite(scan.menu.cost)]).sum()) or 1.0
    bounds: dict[int, float] = {}

    def bound(step: int) -> float:
        if step not in bounds:
            prices = unit * 2.0 ** (step / 4)
            bounds[step] = menus.at(prices, 1, jobs).bound(prices, share)
        return bounds[step]

    unit = shape * (level / float(shape @ share))
    best, stride = 0, 8
    while stride >= 2 and abs(best) < 100:
        better = max((best, best - stride, best + stride), key=bound)
        if better == best:
            stride //= 2
        best = better
    return unit * 2.0 ** (best / 4)


def _place(menu: Menu, capacity: np.ndarray, prices: np.ndarray, bound: float, wanted: np.ndarray) -> np.ndarray:
    """Entries (S,) of the best of several starts, each improved by local search."""
    entries, reduced, listed = shortlists(menu, prices, SHORTLIST)
    tolerance = 1e-12 * abs(bound)
    target = bound + GOOD_ENOUGH * max(1.0, menu.n_jobs / MANY_JOBS) * abs(bound)
    no_limit = np.full(menu.n_jobs, capacity.sum())
    starts: Iterator[np.ndarray] = (repair(menu, capacity, at_prices, no_limit) for at_prices in _around(prices))
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

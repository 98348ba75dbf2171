"""The strong market: prices per GPU type on whole categories, then repair and local search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hetenv.matching.inputs import per_type
from hetenv.matching.local_search import force_entries, improve, move_single_gpus
from hetenv.matching.menu import Menu, OnlineTerms, build_menu
from hetenv.matching.prices import SHORTLIST, ascend_prices, dual_bound, shortlists
from hetenv.matching.problem import Placement, PlacementProblem
from hetenv.matching.repair import repair, smallest_sizes
from hetenv.matching.selection import place_stranded

if TYPE_CHECKING:
    from typing import Unpack

GOOD_ENOUGH = 1e-4  # certified relative gap at which the search for a better repair ends


def solve_market(
    problem: PlacementProblem,
    *,
    price_offset: ArrayLike | None = None,
    start_prices: ArrayLike | None = None,
    iterations: int = 300,
    **online: Unpack[OnlineTerms],
) -> Placement:
    """Place the jobs by market prices: near optimal, with a certified gap.

    Polyak's subgradient ascent on g(p) = sum_i min_c [J_i(c) + p.c] - p.capacity, with greedy marginal gains + local
    search as the upper bound; at the best prices a repair by descending cost range, then local search. While the
    certified gap is above 1e-4, repairs at slightly bent prices follow, and at last jobs are forced in where others
    must make room; the best of all is returned. Reconstructed from the abstract and sibling papers; details may
    differ from the published algorithm.

    Args:
        problem: the jobs and GPUs.
        price_offset: (M,) seconds per GPU, added to every category's cost during the search, not to ``total``. It
            bends the choice among categories that are not dominated; it brings back none that are.
        start_prices: (M,) seconds per GPU, a warm start.
        iterations: most price steps.
        online: see ``OnlineTerms``.

    Returns:
        The placement; ``lower_bound`` is g at ``prices``.

    Raises:
        InputError: a bad term, or jobs that cannot all be placed and may not wait.
    """
    menu = build_menu(problem, problem.costs.undominated, **online)
    offset = per_type("price_offset", 0.0 if price_offset is None else price_offset, problem.n_types)
    start = per_type("start_prices", 0.0 if start_prices is None else start_prices, problem.n_types, low=0.0)
    if not offset.any():
        choice, prices, bound = clear_market(menu, problem.capacity, start, iterations)
    else:
        bent = menu._replace(cost=menu.cost + menu.counts[menu.vector] @ offset)
        choice, prices, _ = clear_market(bent, problem.capacity, start, iterations)
        prices = np.maximum(prices + offset, 0.0)  # what a GPU costs in all: true costs have their bound there
        bound = dual_bound(menu, problem.capacity, prices)
    total = menu.total(choice)
    return Placement(menu.counts_of(choice), total, min(float(bound), total), prices)


def clear_market(
    menu: Menu, capacity: np.ndarray, start_prices: np.ndarray, iterations: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Chosen entries (S,), prices (M,) and the dual bound there.

    Raises:
        InputError: the jobs that must be placed cannot all be.
    """
    greedy = repair(menu, capacity, np.zeros(len(capacity)), smallest_sizes(menu))
    tolerance = 1e-12 * float(np.abs(menu.cost[greedy]).sum())
    move_single_gpus(menu, capacity, greedy, 0, tolerance)
    prices, bound = ascend_prices(menu, capacity, start_prices, menu.total(greedy), iterations, SHORTLIST)
    entries, reduced, listed = shortlists(menu, prices, SHORTLIST)
    best, no_limit = greedy.copy(), np.full(menu.n_jobs, capacity.sum())
    for at_prices in _around(prices):
        choice = repair(menu, capacity, at_prices, no_limit)
        improve(menu, capacity, choice, prices, entries, reduced, listed, tolerance)
        best = min((best, choice), key=menu.total)
        if menu.total(best) - bound <= GOOD_ENOUGH * abs(bound):
            break
    else:
        for choice in (best, greedy):
            improve(menu, capacity, choice, prices, entries, reduced, listed, tolerance)
            while force_entries(menu, capacity, choice, prices, entries, reduced, listed, bound, tolerance) > 0:
                improve(menu, capacity, choice, prices, entries, reduced, listed, tolerance)
        best = min((best, greedy), key=menu.total)
    return place_stranded(menu, capacity, best), prices, bound


def _around(prices: np.ndarray) -> Iterator[np.ndarray]:
    """``prices`` (M,), then with one type's price bent by a twentieth: repairs there end in other local optima."""
    yield prices
    for m in range(len(prices)):
        for factor in (0.95, 1.05):
            bent = prices.copy()
            bent[m] *= factor
            yield bent

"""The exact reference: a small integer program, after prices have ruled out most categories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hetenv.matching.market import ITERATIONS, clear_market, price_shape
from hetenv.matching.offers import OnlineTerms, canonical_order, settle_terms, take_terms
from hetenv.matching.pricing import affordable_menu, open_market
from hetenv.matching.problem import Placement, PlacementProblem
from hetenv.matching.selection import genuine_entries, place_stranded, select_entries

if TYPE_CHECKING:
    from typing import Unpack


def solve_exact(problem: PlacementProblem, **online: Unpack[OnlineTerms]) -> Placement:
    """Place the jobs at least total cost, to a relative 1e-6.

    Reduced-cost fixing: at prices p, a placement that uses category c for job i costs at least g(p) plus the
    reduced cost of (i, c), so only categories with a reduced cost of at most (upper bound - g(p)) can be in a
    better placement than the market's. HiGHS solves what is left.

    Args:
        problem: the jobs and GPUs.
        online: see ``OnlineTerms``.

    Returns:
        The placement; ``lower_bound`` is the better of the dual bound and that of HiGHS.

    Raises:
        InputError: a bad term, or jobs that cannot all be placed and may not wait.
        RuntimeError: HiGHS gave up.
    """
    terms = settle_terms(problem, **online)
    order = canonical_order(terms)
    nothing = np.zeros(problem.n_types)
    market = open_market(problem, take_terms(terms, order), order, nothing, np.full(problem.n_jobs, -1))
    menu, choice, prices, bound, least, _ = clear_market(market, price_shape(problem), nothing, ITERATIONS)
    choice = place_stranded(menu, problem.capacity, choice)
    total, counts = menu.total(choice), menu.counts_of(choice)
    tolerance = 1e-9 * abs(total)
    if total - bound > tolerance:
        affordable = affordable_menu(market, prices, least, total - bound + tolerance)
        selected, milp_bound = select_entries(affordable, problem.capacity, genuine_entries(affordable))
        bound = max(bound, min(milp_bound, total))
        if selected is not None and affordable.total(selected) < total:
            total, counts = affordable.total(selected), affordable.counts_of(selected)
    placed = np.empty_like(counts)
    placed[order] = counts
    return Placement(placed, total, min(bound, total), prices)

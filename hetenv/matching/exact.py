"""The exact reference: a small integer program, after prices have ruled out most categories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hetenv.matching.market import clear_market
from hetenv.matching.offers import OnlineTerms, settle_terms
from hetenv.matching.pricing import PricedMenus
from hetenv.matching.problem import Placement, PlacementProblem
from hetenv.matching.selection import genuine_entries, select_entries

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
    capacity = problem.capacity
    terms = settle_terms(problem, **online)
    order = terms.canonical_order()
    terms, nothing = terms.take(order), np.full(problem.n_jobs, -1, np.int64)
    menus = PricedMenus(problem, terms, order, np.zeros(problem.n_types), nothing)
    menu, choice, prices, bound, least, _ = clear_market(menus, problem, np.zeros(problem.n_types), nothing, 300)
    total, counts = menu.total(choice), menu.counts_of(choice)
    tolerance = 1e-9 * abs(total)
    if total - bound > tolerance:
        affordable = menus.affordable(prices, least, total - bound + tolerance)
        selected, milp_bound = select_entries(affordable, capacity, genuine_entries(affordable))
        bound = max(bound, min(milp_bound, total))
        if selected is not None and affordable.total(selected) < total:
            total, counts = affordable.total(selected), affordable.counts_of(selected)
    placed = np.empty_like(counts)
    placed[order] = counts
    return Placement(placed, total, min(bound, total), prices)

"""The exact reference: a small integer program, after prices have ruled out most categories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hetenv.matching.market import clear_market
from hetenv.matching.menu import OnlineTerms, build_menu
from hetenv.matching.prices import price_vectors
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
    menu, capacity = build_menu(problem, problem.costs.undominated, **online), problem.capacity
    choice, prices, bound = clear_market(menu, capacity, np.zeros(len(capacity)), 300)
    upper = menu.total(choice)
    tolerance = 1e-9 * abs(upper)
    if upper - bound > tolerance:
        entries = genuine_entries(menu)
        priced = menu.cost[entries] + price_vectors(menu.counts, prices)[menu.vector[entries]]
        job = np.searchsorted(menu.start, entries, side="right") - 1
        least = np.minimum.reduceat(priced, np.searchsorted(job, np.arange(menu.n_jobs)))
        selected, milp_bound = select_entries(menu, capacity, entries[priced - least[job] <= upper - bound + tolerance])
        choice = min((choice, selected), key=menu.total)
        bound = max(bound, min(milp_bound, upper))
    total = menu.total(choice)
    return Placement(menu.counts_of(choice), total, min(float(bound), total), prices)

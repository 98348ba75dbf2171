"""An epoch of the price market in one compiled call: what ``plan_epoch`` makes of ``solve_market``, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetenv.compiled import njit, njit_unlocked
from hetenv.epoch import OnlineObjective, plan_epoch
from hetenv.matching import OnlineTerms, Placement, PlacementProblem, solve_market
from hetenv.matching.categories import rows_below, tabulate_vectors, vectors_fault
from hetenv.matching.kinds import sort_kinds
from hetenv.matching.market import ITERATIONS, MOST_STEPS, clear_market, close_gap, mean_speed
from hetenv.matching.offers import canonical_order, make_terms, offer, take_terms
from hetenv.matching.pricing import Market, no_menu
from hetenv.posing import carry_out, finish_plan, open_epoch, pose, value_waiting
from hetenv.scheduler import Plan, Snapshot

NOBODY, SOLVED, UNSOLVED = range(3)  # nobody competes; the market has cleared; it takes HiGHS, or has an error to tell


def plan_market(
    snapshot: Snapshot,
    objective: OnlineObjective,
    offset_s: np.ndarray | None = None,
    start_prices: np.ndarray | None = None,
) -> tuple[Plan, np.ndarray | None, float]:
    """The plan of one epoch of the market.

    Args:
        objective: see ``hetenv.epoch``.
        offset_s: (M,) added to the price of a GPU, in seconds of a job of median weight; none by default.
        start_prices: (M,) where the search for prices begins, such as those of the last epoch; by default afresh.

    Returns:
        The plan, the prices (M,) per GPU, None where nobody competed, and their unit: the median weight.
    """
    nothing = np.zeros(len(snapshot.total))
    offset_s = nothing if offset_s is None else offset_s
    start_prices = nothing if start_prices is None else start_prices
    simulator = snapshot.simulator
    outcome, jobs, counts, prices, unit = decide(
        simulator.fixed, simulator.state, simulator.exclusive_s, simulator.running_may_change,
        objective, offset_s, start_prices,
    )  # fmt: skip
    if outcome == UNSOLVED:
        return _plan_in_python(snapshot, objective, offset_s, start_prices)
    return Plan(jobs, counts), prices if outcome == SOLVED else None, unit


def _plan_in_python(
    snapshot: Snapshot, objective: OnlineObjective, offset_s: np.ndarray, start_prices: np.ndarray
) -> tuple[Plan, np.ndarray | None, float]:
    """``plan_market`` with what compiled code cannot do: ask HiGHS, and say what is wrong."""
    found: dict[str, Any] = {}

    def solve(problem: PlacementProblem, terms: OnlineTerms) -> Placement:
        unit = float(np.median(np.asarray(terms["weights"])))
        placement = solve_market(problem, price_offset=offset_s * unit, start_prices=start_prices, **terms)
        found.update(prices=placement.prices, unit=unit)
        return placement

    plan = plan_epoch(snapshot, objective, solve)
    return plan, found["prices"], found["unit"]


@njit_unlocked
def decide(fixed, state, exclusive_s, running_may_change, objective, offset_s, start_prices):
    """The outcome, jobs (n,) and counts (n, M) of the plan, prices (M,) and their unit; see ``plan_market``.

    Unless the outcome is ``UNSOLVED``: then nothing is settled.
    """
    prices, unit = start_prices, 1.0
    opening, sketch = open_epoch(fixed, state, running_may_change)
    outcome, sound = NOBODY, True
    if opening.competes.any():
        posed = pose(fixed, state, exclusive_s, opening, objective.max_jobs, objective.restart_factor)
        if posed.rows.shape[0] > 0:
            outcome = UNSOLVED
            kinds = sort_kinds(posed.model)
            limit = np.minimum(posed.capacity, kinds.high.max())
            if vectors_fault(limit, kinds.sizes) == 0:
                vectors = tabulate_vectors(limit, kinds.sizes)
                offers = offer(posed.model, kinds, vectors)
                worth = value_waiting(
                    fixed, state, opening, posed, offers, kinds.of_job,
                    objective.waiting_factor, objective.weight_exponent, objective.fairness_exponent,
                )  # fmt: skip
                unit = _median(worth.weights)
                offset = offset_s * unit
                below = rows_below(vectors) if offset.any() else np.zeros((0, 0), np.int32)
                current = opening.counts[posed.rows]
                scale = worth.weights * posed.model.iterations
                terms = make_terms(offers, kinds.of_job, scale, worth.restart_penalty, worth.waiting, current)
                order = canonical_order(terms)
                wanted = np.full(order.shape[0], -1)
                market = Market(
                    posed.capacity, offers, take_terms(terms, order), offset, below, wanted, no_menu(offers)
                )
                cleared = clear_market(market, mean_speed(posed.model.speed), start_prices, ITERATIONS)
                if not _anyone_stranded(market, cleared):
                    cleared, ended = close_gap(market, cleared, ITERATIONS, MOST_STEPS)
                    if ended:
                        outcome = SOLVED
                        counts = np.empty_like(current)
                        for i in range(order.shape[0]):
                            counts[order[i]] = offers.counts[cleared.menu.vector[cleared.choice[i]]]
                        prices = np.maximum(cleared.prices + offset, 0.0)
                        sound = carry_out(fixed, state, opening, posed.rows, counts, sketch)
    jobs, counts = finish_plan(fixed, state, sketch, sound)
    return outcome, jobs, counts, prices, unit


@njit
def _anyone_stranded(market, cleared):
    """Whether a job that must be placed is not."""
    for i in range(market.terms.must.shape[0]):
        if market.terms.must[i] and cleared.choice[i] == cleared.menu.start[i]:
            return True
    return False


@njit
def _median(values):
    ordered = values[np.argsort(values, kind="mergesort")]
    return 0.5 * (ordered[(ordered.shape[0] - 1) // 2] + ordered[ordered.shape[0] // 2])

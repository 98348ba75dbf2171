"""Exact against independent optima; bounds, heuristics and invariances against exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.errors import InputError
from hetenv.matching import PlacementProblem, solve_exact, solve_jps, solve_market
from hetenv.matching.local_search import force_entries, move_single_gpus, rechoose_pairs
from hetenv.matching.menu import build_menu
from hetenv.matching.prices import SHORTLIST, ascend_prices, dual_bound, shortlists
from hetenv.matching.repair import best_responses, relieve, repair
from tests.matching.oracles import (
    brute_force_optimum,
    cost_tables,
    lattice_optimum,
    problem_of,
    random_problem,
    small_instances,
)  # fmt: skip

SOLVERS = [solve_exact, solve_market, solve_jps]


@settings(max_examples=60, deadline=None)
@given(small_instances(most_jobs=6, most_gpus=4))
def test_exact_is_the_lattice_optimum(instance):
    capacity, jobs = instance
    placement = solve_exact(problem_of(capacity, jobs))
    assert placement.total == pytest.approx(lattice_optimum(capacity, cost_tables(capacity, jobs)), rel=2e-6)
    assert placement.lower_bound <= placement.total


@settings(max_examples=40, deadline=None)
@given(small_instances(most_jobs=4, most_gpus=2))
def test_exact_is_the_brute_force_optimum(instance):
    capacity, jobs = instance
    tables = cost_tables(capacity, jobs)
    assert solve_exact(problem_of(capacity, jobs)).total == pytest.approx(
        brute_force_optimum(capacity, tables), rel=2e-6
    )


@pytest.mark.parametrize("seed", range(6))
def test_exact_is_the_lattice_optimum_of_rigid_jobs_that_may_wait(seed):
    rng = np.random.default_rng(seed)
    capacity = [3, 4]
    jobs = [
        {
            "speed": rng.uniform(1, 9, 2).tolist(),
            "batch": 8.0,
            "iterations": float(rng.integers(1, 30)),
            "grad_bytes": 0.5,
            "min_gpus": size,
            "max_gpus": size,
            "bandwidth": 2.0,
        }
        for size in rng.integers(1, 5, 6).tolist()
    ]
    waiting = rng.uniform(20, 300, 6)
    tables = cost_tables(capacity, jobs)
    for table, cost in zip(tables, waiting, strict=True):
        table[0, 0] = cost
    optimum = lattice_optimum(capacity, tables)
    assert solve_exact(problem_of(capacity, jobs), waiting=waiting).total == pytest.approx(optimum, rel=2e-6)
    assert solve_market(problem_of(capacity, jobs), waiting=waiting).total <= optimum * 1.02
    assert solve_jps(problem_of(capacity, jobs), waiting=waiting, samples=300).total <= optimum * 1.1


@settings(max_examples=50, deadline=None)
@given(small_instances(most_jobs=5, most_gpus=4), st.integers(0, 5))
def test_bounds_enclose_the_optimum_and_no_gpu_is_sold_twice(instance, seed):
    capacity, jobs = instance
    problem = problem_of(capacity, jobs)
    exact, market, sampled = solve_exact(problem), solve_market(problem), solve_jps(problem, 20, seed)
    tolerance = 2e-6 * exact.total
    assert market.lower_bound <= exact.total + tolerance
    assert exact.lower_bound >= exact.total - tolerance
    for placement in (exact, market, sampled):
        assert placement.total >= exact.total - tolerance
        assert (placement.counts >= 0).all()
        assert (placement.counts.sum(axis=0) <= capacity).all()
        sizes = placement.counts.sum(axis=1)
        assert ((sizes >= 1) & (sizes <= [job["max_gpus"] for job in jobs])).all()
        costs = [problem.cost_s(i, counts) for i, counts in enumerate(placement.counts)]
        assert placement.total == pytest.approx(sum(costs))


@settings(max_examples=30, deadline=None)
@given(small_instances(most_jobs=5, most_gpus=4), st.lists(st.floats(0, 500), min_size=3, max_size=3))
def test_any_prices_give_a_lower_bound(instance, prices):
    capacity, jobs = instance
    problem = problem_of(capacity, jobs)
    menu = build_menu(problem, problem.costs.undominated)
    bound = dual_bound(menu, problem.capacity, np.array(prices[: len(capacity)]))
    assert bound <= lattice_optimum(capacity, cost_tables(capacity, jobs)) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_ascent_knows_g_at_its_prices(seed):
    problem = random_problem(seed, 20, [16, 16, 16])
    menu = build_menu(problem, problem.costs.undominated)
    prices, bound, _ = ascend_prices(menu, problem.capacity.astype(float), np.zeros(3), 0.3, 1e-4, 300)
    assert bound == pytest.approx(dual_bound(menu, problem.capacity, prices), rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_local_search_never_raises_the_total(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, 8, [5, 6, 7])
    menu = build_menu(problem, problem.costs.undominated, waiting=rng.uniform(50, 5000, 8))
    prices = rng.uniform(0, 200, 3)
    choice = repair(menu, problem.capacity, prices, rng.integers(0, 9, 8))
    totals = [menu.total(choice)]
    for search in (
        lambda: move_single_gpus(menu, problem.capacity, choice, 1, 1e-9),
        lambda: move_single_gpus(menu, problem.capacity, choice, 0, 1e-9),
        lambda: rechoose_pairs(menu, problem.capacity, choice, prices, *shortlists(menu, prices, SHORTLIST), 1e-9),
    ):
        search()
        totals.append(menu.total(choice))
        assert (menu.counts_of(choice).sum(axis=0) <= problem.capacity).all()
    assert (np.diff(totals) <= 0).all()
    assert totals[-1] < totals[0]


def test_forcing_lets_a_large_rigid_job_replace_small_ones():
    """No move of one GPU or two jobs leads there: the job of 4 must push three others aside."""
    counts = [[[0], [4]], [[0], [1]], [[0], [1]], [[0], [2]]]
    problem = PlacementProblem.from_costs([4], counts, [[100, 0], [10, 0], [10, 0], [20, 0]])
    menu = build_menu(problem, problem.costs.undominated)
    choice = menu.start[:-1] + np.array([0, 1, 1, 1])
    none, price = 1e-9, np.zeros(1)
    lists = shortlists(menu, price, SHORTLIST)
    assert move_single_gpus(menu, problem.capacity, choice, 0, none) == 0
    assert rechoose_pairs(menu, problem.capacity, choice, price, *lists, none) == 0
    assert force_entries(menu, problem.capacity, choice, price, *lists, -np.inf, none) == 1
    assert menu.counts_of(choice).ravel().tolist() == [4, 0, 0, 0]


@pytest.mark.parametrize("seed", range(10))
def test_one_gpu_moves_stop_where_no_move_helps(seed):
    """Every neighbour, tried one by one with plain loops, costs at least as much."""
    problem = random_problem(seed, 5, [3, 4, 4], max_gpus=5)
    menu = build_menu(problem, problem.costs.undominated)
    choice = repair(menu, problem.capacity, np.full(3, 100.0), np.full(5, 2))
    move_single_gpus(menu, problem.capacity, choice, 0, 1e-9)
    counts = menu.counts_of(choice)

    def total(x):
        return sum(problem.cost_s(i, row) if row.any() else np.inf for i, row in enumerate(x))

    steps = [np.zeros(3, int), *np.eye(3, dtype=int)]
    for i, j in np.ndindex(6, 6):  # index 5 is the pool
        for give, take in ((g, t) for g in steps for t in steps if not np.array_equal(g, t)):
            moved = np.vstack([counts, problem.capacity - counts.sum(axis=0)])
            moved[i] += take - give
            moved[j] += give - take
            if i != j and (moved >= 0).all():
                assert total(moved[:5]) >= total(counts) - 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_relabelling_types_and_jobs_keeps_the_optimum(seed):
    rng = np.random.default_rng(seed)
    speed, capacity, batch = rng.uniform(1, 9, (5, 3)), np.array([2, 3, 4]), rng.integers(5, 90, 5)
    types, jobs = rng.permutation(3), rng.permutation(5)
    original = solve_exact(PlacementProblem(capacity, speed, batch, 3, 0.5, 2.0))
    relabelled = solve_exact(PlacementProblem(capacity[types], speed[jobs][:, types], batch[jobs], 3, 0.5, 2.0))
    assert relabelled.total == pytest.approx(original.total, rel=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_splitting_a_type_into_two_alike_keeps_the_optimum(seed):
    """GPUs of one type are interchangeable: calling some of them by another name changes nothing."""
    rng = np.random.default_rng(seed)
    speed, batch = rng.uniform(1, 9, (4, 2)), rng.integers(5, 90, 4)
    whole = solve_exact(PlacementProblem([5, 3], speed, batch, 3, 0.5, 2.0))
    split = solve_exact(PlacementProblem([2, 3, 3], speed[:, [0, 0, 1]], batch, 3, 0.5, 2.0))
    assert split.total == pytest.approx(whole.total, rel=2e-6)


@pytest.mark.parametrize("solve", SOLVERS)
def test_the_same_call_gives_the_same_bytes(solve):
    first, second = (solve(random_problem(0, 6, [5, 5, 5])) for _ in range(2))
    assert first.counts.tobytes() == second.counts.tobytes()
    assert first.total == second.total


def test_the_market_is_within_a_twentieth_of_a_percent_on_average():
    gaps = []
    for seed in range(8):
        problem = random_problem(seed, 16, [16] * 4)
        gaps.append(solve_market(problem).total / solve_exact(problem).total - 1)
    assert np.mean(gaps) <= 5e-4


def test_the_certified_gap_is_small_on_a_large_cluster():
    placement = solve_market(random_problem(1, 100, [64] * 4))
    assert placement.gap <= 1e-3


def test_jobs_that_only_together_fit_are_placed_or_refused():
    """Rigid pairs confined to one type each: no reservation by totals can see that the third has no room."""
    counts = [[[2, 0]], [[2, 0], [0, 2]], [[0, 2], [2, 0]]]
    cost = [[9], [1, 50], [1, 2]]
    placement = solve_market(PlacementProblem.from_costs([4, 2], counts, cost))
    assert placement.total == 11
    with pytest.raises(InputError, match="pass waiting values"):
        solve_market(PlacementProblem.from_costs([3, 3], [[[2, 0]], [[2, 0]]], [[1], [1]]))


@pytest.mark.parametrize("seed", range(6))
def test_relief_fits_all_jobs_at_the_loss_of_its_steps(seed):
    problem = random_problem(seed, 20, [12, 12, 12])
    menu = build_menu(problem, problem.costs.undominated)
    prices, _, _ = ascend_prices(menu, problem.capacity.astype(float), np.zeros(3), 0.3, 1e-2, 300)
    entries, reduced, listed = shortlists(menu, prices, SHORTLIST)
    choice = best_responses(menu, prices)
    np.testing.assert_allclose(menu.total(choice) + menu.counts_of(choice).sum(axis=0) @ prices, reduced[:, 0].sum())
    assert relieve(menu, problem.capacity, choice, entries, reduced, listed)
    assert (menu.counts_of(choice).sum(axis=0) <= problem.capacity).all()
    assert menu.total(choice) <= solve_exact(problem).total * 1.05
    assert not relieve(menu, np.zeros(3, np.int64), choice, entries, reduced, listed)

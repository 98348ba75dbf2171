"""The worked examples E1 to E9 of the scheduler's specification, each with its right answer."""

from __future__ import annotations

import numpy as np
import pytest

from hetenv.matching import PlacementProblem, exclusive_share_s, jain_index, solve_exact, solve_jps, solve_market
from hetenv.matching.categories import count_compositions, count_size_vectors, count_vectors
from hetenv.matching.menu import build_menu
from hetenv.matching.prices import ascend_prices, dual_bound
from hetenv.matching.size_market import assign_sizes, clearing_prices
from hetenv.performance import iteration_s, proportional_shares

SOLVERS = [solve_exact, solve_market, solve_jps]
solvers = pytest.mark.parametrize("solve", SOLVERS, ids=lambda solve: solve.__name__)


def simple_problem(capacity, speed, work, **options):
    """T = 1, D = 0, B = work."""
    return PlacementProblem(capacity, speed, work, 1, 0, 1.0, **options)


def linear_program_value(problem, waiting=None):
    """Value of the linear relaxation, by scipy on all categories of all jobs."""
    from scipy.optimize import linprog

    menu = build_menu(problem, problem.costs.undominated, waiting=waiting)
    first = [menu.start[i] + menu.must[i] for i in range(menu.n_jobs)]
    entries = np.concatenate([np.arange(first[i], menu.start[i + 1]) for i in range(menu.n_jobs)])
    job = np.searchsorted(menu.start, entries, side="right") - 1
    one_each = (job[None, :] == np.arange(menu.n_jobs)[:, None]).astype(float)
    result = linprog(
        menu.cost[entries],
        A_ub=menu.counts[menu.vector[entries]].T,
        b_ub=problem.capacity,
        A_eq=one_each,
        b_eq=np.ones(menu.n_jobs),
    )
    return result.fun


def market_clears(problem, prices, waiting=None):
    """Whether some choice of every job's cheapest priced categories sells each priced type exactly, none too often."""
    menu = build_menu(problem, problem.costs.undominated, waiting=waiting)
    demands = {tuple(np.zeros(problem.n_types, int))}
    for i in range(menu.n_jobs):
        entries = np.arange(menu.start[i] + menu.must[i], menu.start[i + 1])
        priced = menu.cost[entries] + menu.counts[menu.vector[entries]] @ np.asarray(prices)
        chosen = menu.counts[menu.vector[entries[priced <= priced.min() + 1e-9]]]
        demands = {tuple(np.add(demand, counts)) for demand in demands for counts in chosen}
    sold_out = np.asarray(prices) > 0
    return any(
        (demand <= problem.capacity).all() and (demand == problem.capacity)[sold_out].all()
        for demand in map(np.array, demands)
    )


def test_e1_proportional_split_and_ring_all_reduce():
    speed = np.array([100.0, 200.0, 300.0])
    assert proportional_shares(600, speed).tolist() == [100, 200, 300]
    ones = np.ones(3, np.int64)
    assert iteration_s(ones, speed, 600.0, 0.0, 1.2e9, False) == pytest.approx(1.0)
    assert iteration_s(ones, speed, 600.0, 0.3e9, 1.2e9, False) == pytest.approx(4 / 3)
    assert 10 * iteration_s(ones, speed, 600.0, 0.3e9, 1.2e9, True) == pytest.approx(23.3333, abs=1e-4)
    problem = PlacementProblem([1, 1, 1], [speed], 600, 10, 0.3e9, 1.2e9, min_gpus=3)
    assert problem.cost_s(0, [1, 1, 1]) == pytest.approx(13.3333, abs=1e-4)
    assert solve_exact(problem).total == pytest.approx(13.3333, abs=1e-4)


@solvers
def test_e2_comparative_speed_decides(solve):
    placement = solve(simple_problem([1, 1], [[4, 1], [3, 2]], [12, 12]))
    assert placement.total == pytest.approx(9)
    assert placement.counts.tolist() == [[1, 0], [0, 1]]


@solvers
def test_e3_the_faster_job_takes_the_slower_gpu(solve):
    placement = solve(simple_problem([1, 1], [[10, 6], [3, 1]], [30, 30]))
    assert placement.total == pytest.approx(15)
    assert placement.counts.tolist() == [[0, 1], [1, 0]]


def test_e3_valuations_by_speed_mislead_and_by_gradient_do_not():
    speed, work, capacity = np.array([[10.0, 6.0], [3.0, 1.0]]), np.array([30.0, 30.0]), np.array([1, 1])
    problem = simple_problem(capacity, speed, work)
    mean_speed = speed.mean(axis=1, keepdims=True)
    totals = []
    for valuation in (speed, work[:, None] / mean_speed**2 * speed):
        counts = np.zeros((2, 2), np.int64)
        assert assign_sizes(valuation, np.array([1, 1]), capacity, counts)
        totals.append(sum(problem.cost_s(i, counts[i]) for i in range(2)))
    assert totals == pytest.approx([33, 15])


@solvers
def test_e4_sizes_grow_with_the_square_root_of_the_work(solve):
    placement = solve(simple_problem([6], [[1], [1], [1]], [12, 48, 108]))
    assert placement.total == pytest.approx(72)
    assert placement.counts.ravel().tolist() == [1, 2, 3]


def test_e4_prices_clear_exactly_between_9_and_18():
    problem = simple_problem([6], [[1], [1], [1]], [12, 48, 108])
    assert sum(problem.cost_s(i, [2]) for i in range(3)) == pytest.approx(84)
    assert [market_clears(problem, [p]) for p in (8.9, 9, 13.5, 18, 18.1)] == [False, True, True, True, False]
    placement = solve_market(problem)
    assert 9 - 1e-6 <= placement.prices[0] <= 18 + 1e-6
    assert placement.lower_bound == pytest.approx(72)
    assert count_compositions(6, 3) == 10


@solvers
def test_e5_a_slow_network_makes_one_gpu_faster_than_two(solve):
    problem = PlacementProblem([2], [[1]], 1, 1, 3, 2)
    assert [problem.cost_s(0, [n]) for n in (1, 2)] == pytest.approx([1, 2])
    assert solve(problem).counts.tolist() == [[1]]


def test_e6_no_price_clears_a_rigid_pair_against_a_single():
    problem = PlacementProblem.from_costs([2], [[[0], [2]], [[0], [1]]], [[8, 0], [5, 0]])
    for solve in (solve_exact, solve_market):
        placement = solve(problem)
        assert 13 - placement.total == pytest.approx(8)
        assert placement.counts.tolist() == [[2], [0]]
    assert 13 - linear_program_value(problem) == pytest.approx(9)
    assert not any(market_clears(problem, [price]) for price in np.linspace(0, 9, 91))


@solvers
def test_e6_with_speeds_and_waiting_values(solve):
    problem = simple_problem([2], [[1], [1]], [2, 1], min_gpus=[2, 1], max_gpus=[2, 1])
    placement = solve(problem, waiting=[1 + 8, 1 + 5])
    assert placement.counts.tolist() == [[2], [0]]
    assert placement.total == pytest.approx(1 + 6)


@solvers
def test_e7_multi_unit_demand_without_clearing_prices(solve):
    placement = solve(simple_problem([2, 2], [[1, 2], [3, 1], [4, 3]], [6, 60, 60]))
    assert placement.counts.tolist() == [[0, 1], [1, 0], [1, 1]]
    assert placement.total == pytest.approx(31.5714, abs=1e-4)


def test_e7_the_linear_program_lies_below_and_its_prices_do_not_clear():
    problem = simple_problem([2, 2], [[1, 2], [3, 1], [4, 3]], [6, 60, 60])
    assert linear_program_value(problem) == pytest.approx(30.5)
    menu = build_menu(problem, problem.costs.undominated)
    assert dual_bound(menu, problem.capacity, np.array([10.0, 7.5])) == pytest.approx(30.5)
    assert ascend_prices(menu, problem.capacity.astype(float), np.zeros(2), 0.3, 1e-4, 300)[1] == pytest.approx(
        30.5, rel=1e-3
    )
    assert not market_clears(problem, [10.0, 7.5])


@solvers
def test_e8_equal_shares_are_fair_and_optimal(solve):
    problem = simple_problem([2, 2], [[1, 3], [1, 2]], [24, 24])
    assert solve(problem).total == pytest.approx(14)  # also reached by the unfair [[0, 1], [2, 1]]
    share_s = exclusive_share_s(problem)
    assert share_s == pytest.approx([6, 8])
    cost_s = np.array([problem.cost_s(i, [1, 1]) for i in range(2)])
    assert cost_s.sum() == pytest.approx(14)
    rho = cost_s / share_s
    assert rho == pytest.approx([1, 1])
    assert jain_index(rho) == pytest.approx(1)


def test_e8_a_fair_objective_picks_the_equal_shares_of_the_two_optima():
    problem = simple_problem([2, 2], [[1, 3], [1, 2]], [24, 24])
    assert solve_jps(problem, beta=0.5).counts.tolist() == [[1, 1], [1, 1]]


def test_e8_jain_index_of_1_2_3():
    assert jain_index([1, 2, 3]) == pytest.approx(6 / 7)


def test_e9_numbers_of_categories():
    assert count_compositions(15, 4) == 364
    assert count_size_vectors(15, 4) == 1365
    for cap, number in ((8, 494), (16, 4844)):
        vectors = count_vectors(np.full(4, 16), np.arange(1, cap + 1))
        assert len(vectors.key) - 1 == number  # without the empty one


def test_prices_of_a_size_market_clear_it():
    rng = np.random.default_rng(3)
    valuation, sizes, capacity = rng.uniform(0, 9, (5, 3)), np.array([1, 2, 2, 3, 4]), np.array([4, 4, 5])
    counts = np.zeros((5, 3), np.int64)
    assert assign_sizes(valuation, sizes, capacity, counts)
    prices = clearing_prices(valuation, counts, capacity)
    net = valuation - prices
    used = counts > 0
    for i in range(5):
        cheapest_used, dearest_rest = net[i][used[i]].min(), net[i].max()
        assert cheapest_used >= dearest_rest - 1e-9
    assert (prices >= 0).all()
    assert (prices[counts.sum(axis=0) < capacity] == 0).all()

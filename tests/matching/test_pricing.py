"""Categories by price against whole menus; order of the jobs, warm starts, memory."""

from __future__ import annotations

import numpy as np
import pytest

from hetenv.errors import InputError
from hetenv.matching import PlacementProblem, solve_exact, solve_jps, solve_market
from hetenv.matching.menu import serve_menu
from hetenv.matching.offers import settle_terms
from hetenv.matching.prices import price_vectors
from hetenv.matching.pricing import affordable_menu, open_market, scan_again, scan_menus
from tests.matching.oracles import random_problem


def online_problem(seed, n_jobs=12, measured=True):
    """Jobs of the formula, some unable to use a type, and measured ones, with all online terms."""
    rng = np.random.default_rng(seed)
    capacity = [5, 0, 7, 4]
    speed = rng.uniform(1, 9, (n_jobs, 4)) * (rng.random((n_jobs, 4)) < 0.8)
    rate = np.full((n_jobs, 4, 5), np.nan)
    if measured:
        rate[: n_jobs // 3] = rng.uniform(0, 3, (n_jobs // 3, 4, 5))
    smallest = rng.integers(1, 3, n_jobs)
    problem = PlacementProblem(
        capacity, speed, rng.integers(5, 90, n_jobs), rng.lognormal(2, 1, n_jobs), rng.uniform(0, 3, n_jobs), 2.0,
        smallest, smallest + rng.integers(0, 4, n_jobs), measured_rate=rate, local_bandwidth=9.0, node_gpus=2,
    )  # fmt: skip
    terms = {
        "weights": rng.uniform(0.5, 2, n_jobs),
        "waiting": rng.uniform(5, 900, n_jobs),
        "current": rng.integers(0, 3, (n_jobs, 4)) * (rng.random((n_jobs, 1)) < 0.5),
        "restart_penalty": rng.uniform(0, 50, n_jobs),
    }
    return problem, terms


@pytest.mark.parametrize("bent", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_pricing_keeps_the_best_of_all_categories(seed, bent):
    problem, online = online_problem(seed)
    rng = np.random.default_rng(seed)
    n_jobs, width = problem.n_jobs, 5
    terms, order = settle_terms(problem, **online), np.arange(problem.n_jobs)
    offset = rng.uniform(-30, 30, 4) if bent else np.zeros(4)
    market = open_market(problem, terms, order, offset, np.full(n_jobs, -1))
    kept = problem.costs.undominated if bent else np.ones(len(problem.costs.cost), bool)
    whole = serve_menu(problem, kept, terms, order)
    prices = rng.uniform(0, 40, 4) * (rng.random(4) < 0.8)
    scan = scan_menus(market, order, prices, width)
    reduced = whole.cost + price_vectors(whole.counts, prices + offset)[whole.vector]
    for i in range(n_jobs):
        own = slice(whole.start[i] + 1, whole.start[i + 1])
        listed = slice(scan.menu.start[i] + 1, scan.menu.start[i + 1])
        costs = dict(zip(whole.vector[own].tolist(), reduced[own].tolist(), strict=True))
        rows = scan.menu.vector[listed].tolist()
        assert rows == sorted(set(rows))
        assert min([*costs.values(), terms.empty_cost[i]]) == pytest.approx(scan.least[i])
        best = sorted(costs.values())[:width]
        assert sorted(costs[row] for row in rows if row in costs)[: len(best)] == pytest.approx(best)
        assert len(rows) <= width + problem.n_types + 2
        priced = scan.menu.cost[listed] + scan.menu.counts[scan.menu.vector[listed]] @ prices
        expected = [costs[row] for row in rows if row in costs]
        assert [value for value, row in zip(priced, rows, strict=True) if row in costs] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_affordable_categories_are_those_of_reduced_cost_up_to_the_bar(seed):
    problem, online = online_problem(seed)
    terms, order = settle_terms(problem, **online), np.arange(problem.n_jobs)
    market = open_market(problem, terms, order, np.zeros(4), np.full(problem.n_jobs, -1))
    prices = np.random.default_rng(seed).uniform(0, 20, 4)
    bar = scan_menus(market, order, prices, 1).least + 60.0
    menu = affordable_menu(market, prices, bar - 60.0, 60.0)
    whole = serve_menu(problem, np.ones(len(problem.costs.cost), bool), terms, order)
    reduced = whole.cost + price_vectors(whole.counts, prices)[whole.vector]
    for i in range(problem.n_jobs):
        own = np.arange(whole.start[i] + 1, whole.start[i + 1])
        expected = whole.vector[own[reduced[own] <= bar[i]]]
        assert menu.vector[menu.start[i] + 1 : menu.start[i + 1]].tolist() == expected.tolist()


@pytest.mark.parametrize("solve", [solve_exact, solve_market, solve_jps])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_jobs_makes_no_difference(solve, seed):
    problem, online = online_problem(seed, measured=False)
    jobs = np.random.default_rng(seed).permutation(problem.n_jobs)
    model = problem.model
    shuffled = PlacementProblem(
        problem.capacity, model.speed[jobs], model.batch[jobs], model.iterations[jobs], model.grad_bytes[jobs],
        model.bandwidth, model.min_gpus[jobs], model.max_gpus[jobs], local_bandwidth=9.0, node_gpus=2,
    )  # fmt: skip
    first = solve(problem, **online)
    second = solve(shuffled, **{name: value[jobs] for name, value in online.items()})
    assert second.counts.tolist() == first.counts[jobs].tolist()
    assert second.total == first.total


@pytest.mark.parametrize("seed", range(5))
def test_a_warm_start_keeps_the_quality(seed):
    """The next epoch: a tenth of every job done, one job gone and another in its place."""
    capacity, rng = [16, 16, 16], np.random.default_rng(seed)
    last = random_problem(seed, 30, capacity)
    model, iterations = last.model, 0.9 * last.model.iterations
    iterations[3] = rng.lognormal(6, 1.2)
    problem = PlacementProblem(
        capacity, model.speed, model.batch, iterations, model.grad_bytes, model.bandwidth, max_gpus=8
    )  # fmt: skip
    before = solve_market(last)
    warm = solve_market(problem, start_prices=before.prices, start_counts=before.counts)
    optimum = solve_exact(problem).total
    assert warm.lower_bound <= optimum * (1 + 1e-9)
    assert warm.lower_bound >= optimum * (1 - 2e-3)
    assert warm.total <= optimum * (1 + 1e-3)


def test_start_counts_are_where_the_search_starts():
    """One evaluation at useless prices: what is found is the optimum only because the search starts there."""
    problem = random_problem(3, 30, [16, 16, 16])
    optimal = solve_exact(problem)
    useless = {"start_prices": [1e-6, 1e3, 1e-6], "iterations": 1}
    started = solve_market(problem, start_counts=optimal.counts, **useless)
    assert started.total <= optimal.total * (1 + 1e-6)
    assert solve_market(problem, **useless).total > optimal.total * (1 + 1e-6)


def test_start_counts_that_no_longer_fit_do_no_harm():
    problem = random_problem(3, 12, [8, 8, 8])
    placement = solve_market(problem, start_counts=np.full((12, 3), 2))
    assert (placement.counts.sum(axis=0) <= 8).all()
    assert placement.gap <= 5e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start_counts": np.ones((2, 2))}, "start_counts"),
        ({"start_counts": [[1], [-1]]}, "start_counts of job 1 on type 0"),
        ({"start_counts": [[1], [0.5]]}, "start_counts of job 1 on type 0"),
        ({"iterations": 0}, "iterations"),
        ({"iterations": 2.5}, "iterations"),
    ],
)
def test_bad_starts_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        solve_market(PlacementProblem([3], [[1], [1]], [12, 12], 1, 0, 1.0), **change)


@pytest.mark.parametrize("seed", range(8))
def test_rigid_jobs_that_leave_no_room_to_move(seed):
    """Four-GPU jobs on types of four to six, one type a job: prices say little, one-GPU moves nothing."""
    rng = np.random.default_rng(seed)
    capacity, sizes = [5, 6, 4, 4], [4, 4, 4, 2, 3]
    rate = np.zeros((5, 4, 5))
    rate[:, :, 1:] = rng.uniform(0.5, 4, (5, 4, 1)) * np.arange(1, 5) ** 0.9
    problem = PlacementProblem(
        capacity, np.ones((5, 4)), 20, rng.lognormal(3, 1.2, 5), 0, 1.0, sizes, sizes, measured_rate=rate
    )  # fmt: skip
    placement = solve_market(problem)
    assert placement.total <= solve_exact(problem).total * (1 + 5e-3)
    assert placement.gap <= 5e-3


def test_a_large_market_keeps_few_categories_and_tabulates_none():
    rng = np.random.default_rng(0)
    n_jobs, capacity = 1500, [500] * 6
    speed = np.array([0.2, 0.5, 1.0, 1.7, 2.5, 4.0]) * rng.lognormal(0, 0.3, (n_jobs, 6))
    problem = PlacementProblem(
        capacity, speed, 64, rng.lognormal(6, 1.2, n_jobs), rng.uniform(0, 1e9, n_jobs), 1e9, max_gpus=8
    )  # fmt: skip
    placement = solve_market(problem)
    assert placement.gap <= 1e-3
    assert (placement.counts.sum(axis=0) <= capacity).all()
    assert "costs" not in vars(problem)
    terms, order = settle_terms(problem), np.arange(n_jobs)
    market = open_market(problem, terms, order, np.zeros(6), np.full(n_jobs, -1))
    assert len(scan_menus(market, order, placement.prices, 24).menu.cost) <= n_jobs * (24 + 6 + 3)


@pytest.mark.parametrize("solve", [solve_market, solve_exact])
def test_measured_jobs_without_any_speed_are_placed(solve):
    problem = PlacementProblem(
        [1, 1], [[0.0, 0.0]], 1, 100, 0, [1e9, 1e9], 1, 1, measured_rate=[[[0.0, 0.5], [0.0, 0.1]]]
    )
    placement = solve(problem)
    assert placement.counts.tolist() == [[1, 0]]
    assert placement.total == pytest.approx(200.0)


@pytest.mark.parametrize("bent", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_scan_carried_to_other_prices_is_exact(seed, bent):
    """From prices far off, where menus lack the best categories, and from near ones, where they do not."""
    problem, online = online_problem(seed)
    rng = np.random.default_rng(seed)
    terms, order = settle_terms(problem, **online), np.arange(problem.n_jobs)
    offset = rng.uniform(-30, 30, 4) if bent else np.zeros(4)
    market = open_market(problem, terms, order, offset, np.full(problem.n_jobs, -1))
    prices = rng.uniform(0, 40, 4)
    scan = scan_menus(market, order, np.zeros(4), 2)
    for at_prices in (prices, prices * 1.01, prices * 0.1):
        scan = scan_again(market, scan, at_prices, 2)
        np.testing.assert_allclose(scan.least, scan_menus(market, order, at_prices, 1).least, rtol=1e-12)
        for i in range(problem.n_jobs):
            assert (np.diff(scan.menu.vector[scan.menu.start[i] : scan.menu.start[i + 1]]) > 0).all()


@pytest.mark.parametrize("solve", [solve_market, solve_exact])
def test_gpus_cost_nothing_where_all_have_their_best(solve):
    """Two GPUs are slower than one: each job takes one, and two are left over."""
    placement = solve(PlacementProblem([2, 3], [[2.0, 1.0], [1.0, 2.0], [1.0, 2.0]], 4, 10, 9.0, 1.0))
    assert placement.counts.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert placement.total == placement.lower_bound == 60.0
    assert not placement.prices.any()

"""Weights, waiting, current counts with restarts, price offsets and warm starts."""

from __future__ import annotations

import numpy as np
import pytest

from hetenv.errors import InputError
from hetenv.matching import PlacementProblem, solve_exact, solve_jps, solve_market
from tests.matching.oracles import lattice_optimum, random_problem

SOLVERS = [solve_exact, solve_market, solve_jps]
solvers = pytest.mark.parametrize("solve", SOLVERS, ids=lambda solve: solve.__name__)


def two_jobs_one_type():
    return PlacementProblem([3], [[1], [1]], [12, 12], 1, 0, 1.0)


@solvers
def test_weights_draw_gpus_to_a_job(solve):
    problem = two_jobs_one_type()
    assert solve(problem, weights=[1, 3]).counts.ravel().tolist() == [1, 2]
    assert solve(problem, weights=[3, 1]).counts.ravel().tolist() == [2, 1]
    assert solve(problem, weights=[3, 1]).total == pytest.approx(3 * 6 + 12)


@solvers
def test_a_cheap_wait_leaves_gpus_to_the_other(solve):
    placement = solve(two_jobs_one_type(), waiting=[5, np.inf])
    assert placement.counts.ravel().tolist() == [0, 3]
    assert placement.total == pytest.approx(5 + 4)


@solvers
def test_more_jobs_than_gpus_need_waiting_values(solve):
    problem = PlacementProblem([2], np.ones((4, 1)), [1, 2, 3, 4], 1, 0, 1.0)
    with pytest.raises(InputError, match="pass waiting values"):
        solve(problem)
    placement = solve(problem, waiting=[10, 10, 10, 10])
    assert placement.counts.ravel().tolist() == [1, 1, 0, 0]
    assert placement.total == pytest.approx(23)


@solvers
def test_a_restart_penalty_keeps_the_current_category(solve):
    problem = PlacementProblem([2, 2], [[2, 1]], 12, 1, 0, 1.0, max_gpus=2)
    held = [[0, 2]]  # 6 s against 3 s on the faster type
    assert solve(problem, current=held, restart_penalty=4.0).counts.tolist() == held
    assert solve(problem, current=held, restart_penalty=4.0).total == pytest.approx(6)
    moved = solve(problem, current=held, restart_penalty=[2.0])
    assert moved.counts.tolist() == [[2, 0]]
    assert moved.total == pytest.approx(3 + 2)


@solvers
def test_a_job_that_holds_nothing_starts_without_penalty(solve):
    placement = solve(two_jobs_one_type(), current=[[0], [1]], restart_penalty=100.0)
    assert placement.counts.ravel().tolist() == [2, 1]
    assert placement.total == pytest.approx(6 + 12)


@solvers
def test_a_dominated_current_category_stays_on_offer(solve):
    """Two GPUs are slower than one (2 s against 1 s), yet moving costs more than staying."""
    problem = PlacementProblem([2], [[1]], 1, 1, 3, 2)
    assert solve(problem, current=[[2]], restart_penalty=5.0).counts.tolist() == [[2]]
    assert solve(problem, current=[[2]], restart_penalty=0.5).counts.tolist() == [[1]]


@solvers
def test_a_current_category_above_the_capacity_is_no_offer(solve):
    placement = solve(PlacementProblem([1, 1], [[1, 1]], 6, 1, 0, 1.0), current=[[0, 2]], restart_penalty=1.0)
    assert placement.counts.tolist() == [[1, 1]]
    assert placement.total == pytest.approx(3 + 1)


@pytest.mark.parametrize("seed", range(6))
def test_all_terms_together_against_the_lattice(seed):
    rng = np.random.default_rng(seed)
    capacity, n_jobs = [3, 4], 5
    problem = PlacementProblem(capacity, rng.uniform(1, 9, (n_jobs, 2)), 20, rng.integers(1, 30, n_jobs), 1.0, 2.0)
    weights, waiting = rng.uniform(0.5, 3, n_jobs), rng.uniform(10, 300, n_jobs)
    current, penalty = rng.integers(0, 2, (n_jobs, 2)), rng.uniform(0, 20, n_jobs)
    tables = []
    for i in range(n_jobs):
        table = {(0, 0): waiting[i]}
        for counts in np.ndindex(4, 5):
            if any(counts):
                moves = current[i].any() and tuple(current[i]) != counts
                table[counts] = weights[i] * problem.cost_s(i, counts) + (penalty[i] if moves else 0.0)
        tables.append(table)
    terms = {"weights": weights, "waiting": waiting, "current": current, "restart_penalty": penalty}
    optimum = lattice_optimum(capacity, tables)
    assert solve_exact(problem, **terms).total == pytest.approx(optimum, rel=2e-6)
    market = solve_market(problem, **terms)
    assert market.lower_bound <= optimum * (1 + 1e-9)
    assert market.total <= optimum * 1.01
    assert solve_jps(problem, samples=300, local_search=True, **terms).total <= optimum * 1.02
    for solve in (solve_exact, solve_market, solve_jps):
        placement = solve(problem, **terms)
        held = [tables[i][tuple(counts)] for i, counts in enumerate(placement.counts.tolist())]
        assert placement.total == pytest.approx(sum(held))


def test_a_price_offset_steers_away_from_a_type_and_stays_out_of_the_total():
    problem = PlacementProblem([2, 2], [[3, 2]], 12, 1, 0, 1.0, max_gpus=1)
    placement = solve_market(problem, price_offset=[5.0, 0.0])
    assert placement.counts.tolist() == [[0, 1]]
    assert placement.total == pytest.approx(6)
    assert placement.lower_bound <= 4 + 1e-9  # the optimum without the offset


def test_zero_offsets_change_nothing():
    problem = random_problem(2, 10, [8, 8, 8])
    plain, offset = solve_market(problem), solve_market(problem, price_offset=[0, 0, 0])
    assert plain.counts.tobytes() == offset.counts.tobytes()


def test_a_warm_start_reaches_the_same_bound_in_fewer_steps():
    problem = random_problem(4, 30, [16, 16, 16])
    cold = solve_market(problem)
    warm = solve_market(problem, start_prices=cold.prices, iterations=1)
    assert warm.lower_bound == pytest.approx(cold.lower_bound, rel=1e-9)
    assert solve_market(problem, iterations=1).lower_bound < warm.lower_bound


@pytest.mark.parametrize(
    "terms",
    [
        {"weights": [1, -1]},
        {"weights": [1, 2, 3]},
        {"waiting": [float("nan"), 1]},
        {"waiting": [-float("inf"), 1]},
        {"current": [[1, 0], [0, 1]]},
        {"current": [[-1], [0]]},
        {"restart_penalty": -1.0},
    ],
)
@solvers
def test_bad_terms_are_refused(solve, terms):
    with pytest.raises(InputError, match=next(iter(terms))):
        solve(two_jobs_one_type(), **terms)


@pytest.mark.parametrize(
    "terms", [{"price_offset": [1.0, 2.0]}, {"start_prices": [float("nan")]}, {"start_prices": [-1]}]
)
def test_bad_prices_are_refused(terms):
    with pytest.raises(InputError, match=next(iter(terms))):
        solve_market(two_jobs_one_type(), **terms)


def measured_problem():
    """Job 0 measured on 1 and 2 GPUs of type 0 and on 1 of type 1; job 1 by the formula."""
    rate = np.full((2, 2, 3), np.nan)
    rate[0] = [[0, 1.0, 1.5], [0, 2.0, 0.0]]
    return PlacementProblem([2, 2], [[1, 1], [4, 4]], 12, 30, 0, 1.0, measured_rate=rate)


def test_measured_rates_replace_the_formula():
    problem = measured_problem()
    assert problem.cost_s(0, [2, 0]) == pytest.approx(20)
    assert problem.cost_s(0, [0, 1]) == pytest.approx(15)
    assert problem.cost_s(0, [0, 2]) == np.inf  # rate 0
    assert problem.cost_s(0, [1, 1]) == np.inf  # never measured across types
    assert problem.cost_s(1, [1, 1]) == pytest.approx(30 * 12 / 8)


@solvers
def test_measured_jobs_are_placed_on_one_type(solve):
    placement = solve(measured_problem())
    assert placement.counts.tolist() == [[0, 1], [2, 1]]
    assert placement.total == pytest.approx(15 + 30)


@pytest.mark.parametrize("seed", range(4))
def test_measured_streams_with_waiting_against_the_lattice(seed):
    rng = np.random.default_rng(seed)
    capacity, n_jobs = [6, 6, 6], 10
    sizes = rng.choice([1, 2, 4], n_jobs)
    rate = np.zeros((n_jobs, 3, 5))
    rate[..., 1:] = rng.uniform(0.5, 4, (n_jobs, 3, 1)) * np.arange(1, 5) ** 0.9
    waiting, iterations = rng.uniform(100, 900, n_jobs), rng.integers(100, 900, n_jobs)
    problem = PlacementProblem(
        capacity, np.ones((n_jobs, 3)), 1, iterations, 0, 1.0, sizes, sizes, measured_rate=rate
    )  # fmt: skip
    tables = []
    for i in range(n_jobs):
        table = {(0, 0, 0): waiting[i]}
        for m in range(3):
            counts = tuple(int(sizes[i]) if n == m else 0 for n in range(3))
            table[counts] = iterations[i] / rate[i, m, sizes[i]]
        tables.append(table)
    optimum = lattice_optimum(capacity, tables)
    assert solve_exact(problem, waiting=waiting).total == pytest.approx(optimum, rel=2e-6)
    assert solve_market(problem, waiting=waiting).total <= optimum * 1.03
    sampled, searched = (solve_jps(problem, waiting=waiting, local_search=on).total for on in (False, True))
    assert optimum * (1 - 1e-9) <= searched <= sampled
    assert searched <= optimum * 1.1

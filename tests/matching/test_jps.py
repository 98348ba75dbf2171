"""The sampling scheduler: quality against the optimum, seeds, fairness, arguments."""

from __future__ import annotations

import numpy as np
import pytest

from hetenv.errors import InputError
from hetenv.matching import PlacementProblem, exclusive_share_s, jain_index, solve_exact, solve_jps
from hetenv.matching.size_market import assign_sizes
from tests.matching.oracles import random_problem


@pytest.mark.parametrize(("local_search", "most"), [(False, 0.0204), (True, 0.005)])
def test_the_mean_gap_on_the_papers_scale(local_search, most):
    """4 and 5 jobs on 5 + 5 + 5 GPUs with 100 samples."""
    gaps = []
    for seed in range(20):
        problem = random_problem(seed, 4 + seed % 2, [5, 5, 5], max_gpus=15)
        sampled = solve_jps(problem, 100, seed, local_search=local_search)
        gaps.append(sampled.total / solve_exact(problem).total - 1)
    assert np.mean(gaps) <= most


def test_local_search_helps_where_sampling_falls_short():
    problem = random_problem(0, 20, [16, 16, 16])
    optimum = solve_exact(problem).total
    plain, searched = (solve_jps(problem, 50, local_search=on).total / optimum - 1 for on in (False, True))
    assert searched <= min(plain, 0.02)


def test_more_samples_never_hurt():
    problem = random_problem(5, 6, [5, 5, 5])
    totals = [solve_jps(problem, samples=4 * n, seed=3).total for n in (1, 25, 250)]
    assert totals[2] <= totals[1] <= totals[0]


def test_seeds_decide_the_samples():
    problem = random_problem(5, 12, [8, 8, 8])
    totals = [solve_jps(problem, samples=4, seed=seed).total for seed in (0, 0, 1, 2)]
    assert totals[0] == totals[1]
    assert len(set(totals)) == 3


def test_alpha_skips_small_leading_jobs():
    """One sample of the later half of the list: the longest job never gets the fewest GPUs."""
    problem = PlacementProblem([4], [[1], [1]], [100, 10], 1, 0, 1.0)
    firsts = {int(solve_jps(problem, 1, seed, alpha=0.5).counts[0, 0]) for seed in range(40)}
    assert firsts == {2, 3}
    assert 1 in {int(solve_jps(problem, 1, seed).counts[0, 0]) for seed in range(40)}


def test_a_lower_beta_trades_time_for_fairness():
    jain, total = [], []
    for beta in (1.0, 0.0):
        fairness = []
        totals = []
        for seed in range(6):
            problem = random_problem(seed, 5, [5, 5, 5], max_gpus=15)
            placement = solve_jps(problem, 200, beta=beta)
            cost_s = np.array([problem.cost_s(i, counts) for i, counts in enumerate(placement.counts)])
            fairness.append(jain_index(cost_s / exclusive_share_s(problem)))
            totals.append(placement.total)
        jain.append(np.mean(fairness))
        total.append(np.mean(totals))
    assert jain[1] > jain[0]
    assert total[1] > total[0]


@pytest.mark.parametrize("seed", range(8))
def test_the_size_market_is_an_optimal_assignment(seed):
    """Against the Hungarian method on single GPUs."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(seed)
    n_jobs, n_types = 6, 3
    sizes, capacity = rng.integers(0, 4, n_jobs), np.array([5, 6, 7])
    valuation = rng.uniform(0, 9, (n_jobs, n_types))
    counts = np.zeros((n_jobs, n_types), np.int64)
    assert assign_sizes(valuation, sizes, capacity, counts)
    assert (counts.sum(axis=1) == sizes).all()
    assert (counts.sum(axis=0) <= capacity).all()
    matrix = np.repeat(np.repeat(valuation, sizes, axis=0), capacity, axis=1)
    best = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    assert (valuation * counts).sum() == pytest.approx(best)


def test_the_size_market_respects_types_that_a_job_cannot_use():
    valuation = np.array([[5.0, -np.inf], [4.0, 3.0]])
    counts = np.zeros((2, 2), np.int64)
    assert assign_sizes(valuation, np.array([2, 2]), np.array([2, 2]), counts)
    assert counts.tolist() == [[2, 0], [0, 2]]
    assert not assign_sizes(valuation, np.array([3, 0]), np.array([2, 2]), counts)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"samples": 0}, "samples"), ({"beta": 1.5}, "beta"), ({"alpha": 0.6}, "alpha"), ({"alpha": -0.1}, "alpha")],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        solve_jps(random_problem(0, 3, [4]), **options)


def test_explicit_costs_have_no_speeds_to_sample_with():
    with pytest.raises(InputError, match="speeds"):
        solve_jps(PlacementProblem.from_costs([1], [[[1]]], [[1]]))


def test_a_job_is_placed_even_when_no_sample_is_feasible():
    """Both jobs only fit with one GPU on their own type; one sample rarely finds that, the fallback must."""
    problem = PlacementProblem([1, 6], [[1, 0], [1, 0], [0, 1]], 4, 1, 0, 1.0)
    placement = solve_jps(problem, samples=1, waiting=[9, 9, np.inf])
    assert placement.counts[2].sum() >= 1
    assert placement.counts[:2].sum() <= 1

"""The problem: costs by the performance model, explicit costs, dominated categories, refusal of bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from hetenv.errors import InputError
from hetenv.matching import PlacementProblem, solve_exact, solve_jps, solve_market
from hetenv.performance import category_link, iteration_s
from tests.matching.oracles import cost_tables, problem_of, small_instances


@settings(max_examples=25, deadline=None)
@given(small_instances())
def test_costs_are_those_of_the_performance_model(instance):
    capacity, jobs = instance
    problem = problem_of(capacity, jobs)
    for i, table in enumerate(cost_tables(capacity, jobs)):
        for counts, cost in table.items():
            assert problem.cost_s(i, counts) == pytest.approx(cost)


def test_the_link_inside_a_node_serves_what_fits_into_one():
    local, network, node = np.array([8e9, 4e9]), np.array([1e9, 2e9]), np.array([2, 4])
    problem = PlacementProblem(
        [4, 4], [[100, 200]], 512, 7, 1e9, network, local_bandwidth=local, node_gpus=node
    )  # fmt: skip
    for counts in ([2, 0], [3, 0], [0, 4], [1, 1], [1, 0]):
        each = np.array(counts)
        link = category_link(each, local, network, node)
        expected = 7 * iteration_s(each, np.array([100.0, 200.0]), 512.0, 1e9, link, False)
        assert problem.cost_s(0, counts) == pytest.approx(expected)


def test_dominated_categories_are_dropped_from_explicit_costs():
    problem = PlacementProblem.from_costs([3, 3], [[[1, 0], [1, 1], [2, 0], [0, 2], [1, 2]]], [[5, 5, 4, 7, 3]])
    kept = problem.vectors.counts[problem.costs.vector[problem.costs.undominated]]
    assert kept.tolist() == [[1, 0], [0, 2], [2, 0], [1, 2]]


def test_dominated_categories_of_the_formula_are_those_of_explicit_costs():
    problem = PlacementProblem([3, 3], [[1, 4]], 8, 1, 1.0, 1.0)
    counts = problem.vectors.counts[problem.costs.vector]
    explicit = PlacementProblem.from_costs([3, 3], [counts], [problem.costs.cost])
    assert problem.costs.undominated.tolist() == explicit.costs.undominated.tolist()
    assert 0 < problem.costs.undominated.sum() < len(counts)


def test_jobs_that_differ_in_length_only_share_one_row_set():
    problem = PlacementProblem([4], [[1], [1], [2]], 8, [1, 5, 1], 0, 1.0)
    assert len(problem.costs.start) - 1 == 2
    assert [problem.cost_s(i, [2]) for i in range(3)] == [4, 20, 2]


def test_of_equal_explicit_categories_the_cheapest_counts():
    problem = PlacementProblem.from_costs([2], [[[1], [1], [0]]], [[5, 3, 9]])
    assert problem.cost_s(0, [1]) == 3
    assert problem.cost_s(0, [0]) == 9


def test_a_type_without_free_gpus_is_legal():
    problem = PlacementProblem([0, 2], [[9, 1], [9, 1]], 4, 1, 0, 1.0)
    for solve in (solve_exact, solve_market, solve_jps):
        assert solve(problem).counts.tolist() == [[0, 1], [0, 1]]


GOOD = {
    "capacity": [2, 2],
    "speed": [[1, 2], [3, 4]],
    "batch": 8,
    "iterations": [1, 2],
    "grad_bytes": 0,
    "bandwidth": 1.0,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": [2, -1]}, "capacity of type 1"),
        ({"capacity": [0, 0]}, "capacity"),
        ({"capacity": [2, 1.5]}, "capacity of type 1"),
        ({"capacity": []}, "capacity"),
        ({"speed": [[1, 2], [-3, 4]]}, "speed of job 1 on type 0"),
        ({"speed": [[1, float("nan")], [3, 4]]}, "speed of job 0 on type 1"),
        ({"speed": np.zeros((0, 2))}, "speed"),
        ({"speed": [[1, 2, 3]]}, "speed"),
        ({"speed": [[1, 2], [3]]}, "speed"),
        ({"batch": [8, 0]}, "batch of job 1"),
        ({"batch": [8, 8, 8]}, "batch"),
        ({"iterations": [-1, 2]}, "iterations of job 0"),
        ({"iterations": [1, float("nan")]}, "iterations of job 1"),
        ({"grad_bytes": -1.0}, "grad_bytes of job 0"),
        ({"bandwidth": [1.0, 0.0]}, "bandwidth of type 1"),
        ({"local_bandwidth": float("nan")}, "local_bandwidth of type 0"),
        ({"node_gpus": [2, -1]}, "node_gpus of type 1"),
        ({"min_gpus": [1, 3], "max_gpus": [4, 2]}, "min_gpus of job 1"),
        ({"max_gpus": 0}, "max_gpus of job 0"),
        ({"min_gpus": 1.5}, "min_gpus of job 0"),
        ({"measured_rate": np.ones((2, 3, 4))}, "measured_rate"),
        ({"measured_rate": -np.ones((2, 2, 3))}, "measured_rate of job 0 on type 0"),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    with pytest.raises(InputError, match=message):
        PlacementProblem(**{**GOOD, **change})


@pytest.mark.parametrize("solve", [solve_exact, solve_market, solve_jps])
def test_a_job_that_fits_nowhere_is_an_error_unless_it_may_wait(solve):
    problem = PlacementProblem(**{**GOOD, "speed": [[1, 2], [0, 0]]})
    with pytest.raises(InputError, match="job 1: fits nowhere"):
        solve(problem)
    assert solve(problem, waiting=[np.inf, 7.0]).counts[1].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("counts", "cost"),
    [
        ([], []),
        ([[[1]]], [[1, 2]]),
        ([[[1]]], [[float("nan")]]),
        ([[[-1]]], [[1]]),
        ([np.zeros((0, 1))], [[]]),
    ],
)
def test_bad_explicit_costs_are_refused(counts, cost):
    with pytest.raises(InputError):
        PlacementProblem.from_costs([2], counts, cost)

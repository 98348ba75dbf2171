"""Jain's index and the exclusive share."""

from __future__ import annotations

import numpy as np
import pytest

from hetenv.errors import InputError
from hetenv.matching import PlacementProblem, exclusive_share_s, jain_index


def test_jain_index_limits():
    assert jain_index([2.0, 2.0, 2.0]) == pytest.approx(1)
    assert jain_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(1 / 4)
    assert jain_index([0.0, 0.0]) == 1


@pytest.mark.parametrize("values", [[], [1.0, -1.0], [float("nan")]])
def test_jain_index_refuses_what_has_no_index(values):
    with pytest.raises(InputError):
        jain_index(values)


def test_a_share_above_one_gpu_pays_the_all_reduce():
    problem = PlacementProblem([4, 4], [[1, 1], [1, 1]], 8, 10, 6.0, [2.0, 3.0])
    # 4 GPUs: 8 / 4 s of compute, 2 * 3/4 * 6 / 2 s of all-reduce over the slower link
    assert exclusive_share_s(problem) == pytest.approx([65, 65])


def test_a_share_below_one_gpu_has_no_communication():
    problem = PlacementProblem([1], [[2], [2]], 8, 10, 6.0, 1.0)
    assert exclusive_share_s(problem) == pytest.approx([80, 80])


def test_a_share_is_cut_at_max_gpus_and_leaves_out_types_it_cannot_use():
    problem = PlacementProblem([4, 4], [[2, 0]], 8, 1, 0, 1.0, max_gpus=2)
    assert exclusive_share_s(problem) == pytest.approx([2])


def test_a_measured_share_takes_the_best_single_type():
    rate = np.zeros((2, 2, 4))
    rate[:, 0] = [0, 1, 2, 3]
    rate[:, 1] = [0, 4, 5, 6]
    problem = PlacementProblem([4, 3], np.ones((2, 2)), 1, 18, 0, 1.0, measured_rate=rate)
    assert exclusive_share_s(problem) == pytest.approx([18 / 4.5, 18 / 4.5])


def test_explicit_costs_have_no_share():
    with pytest.raises(InputError, match="speeds"):
        exclusive_share_s(PlacementProblem.from_costs([1], [[[1]]], [[1]]))

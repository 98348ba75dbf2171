"""Batch split, iteration time, links and measured tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetenv.errors import InputError
from hetenv.performance import MeasuredTable, category_link, iteration_s, proportional_shares, ring_allreduce_s

SPEED = np.array([100.0, 200.0, 300.0])  # worked example E1 of the paper: one GPU of each type, 600 samples
ONE_EACH = np.array([1, 1, 1])
GRAD_BYTES, LINK = 0.3e9, 1.2e9


def test_shares_of_the_worked_example():
    assert proportional_shares(600, SPEED).tolist() == [100, 200, 300]


@given(st.integers(1, 10**6), st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=20))
def test_shares_sum_to_the_batch_and_stay_within_one_sample_of_proportion(batch, speed):
    shares = proportional_shares(batch, np.array(speed))
    assert shares.sum() == batch
    assert (np.abs(shares - batch * np.array(speed) / np.sum(speed)) < 1 + 1e-6).all()


def test_remainder_goes_to_the_largest_fraction():
    assert proportional_shares(10, np.array([1.0, 1.0, 2.0])).tolist() == [3, 2, 5]


@pytest.mark.parametrize(
    ("batch", "speed"), [(0, [1.0]), (1.5, [1.0]), (4, []), (4, [1.0, 0.0]), (4, [1.0, np.nan]), (4, [np.inf])]
)
def test_shares_refuse_what_cannot_be_split(batch, speed):
    with pytest.raises(InputError):
        proportional_shares(batch, np.array(speed))


def test_iteration_time_of_the_worked_example():
    assert 10 * iteration_s(ONE_EACH, SPEED, 600.0, GRAD_BYTES, LINK, False) == pytest.approx(13.3333, abs=5e-5)
    assert 10 * iteration_s(ONE_EACH, SPEED, 600.0, GRAD_BYTES, LINK, True) == pytest.approx(23.3333, abs=5e-5)


def test_one_gpu_does_not_communicate():
    assert ring_allreduce_s(1, GRAD_BYTES, LINK) == 0
    assert iteration_s(np.array([0, 1, 0]), SPEED, 600.0, GRAD_BYTES, LINK, False) == 3.0


def test_iteration_is_endless_without_gpus_or_on_a_type_that_cannot_run():
    assert iteration_s(np.zeros(3, int), SPEED, 600.0, 0.0, LINK, False) == np.inf
    assert iteration_s(ONE_EACH, np.array([1.0, 0.0, 1.0]), 600.0, 0.0, LINK, False) == np.inf


@pytest.mark.parametrize(
    ("counts", "link"),
    [((4, 0), 50.0), ((5, 0), 10.0), ((0, 2), 60.0), ((1, 1), 5.0)],
    ids=["fits one node", "needs two nodes", "other type", "mixed types use the slower network"],
)
def test_link_of_a_category(counts, link):
    got = category_link(np.array(counts), np.array([50.0, 60.0]), np.array([10.0, 5.0]), np.array([4, 4]))
    assert got == link


RATE = np.array([[[[0, 0], [5, np.nan], [8, 3], [np.nan, np.nan]], [[0, 0], [0, 0], [2, 1], [3, 3]]]], float)


def test_measured_table_by_cluster_types():
    table = MeasuredTable(("m",), ("a", "b"), RATE)
    rate = table.for_types(("b", "unknown", "a"))
    assert rate.shape == (1, 3, 4, 2)
    assert (rate[0, 0] == RATE[0, 1]).all()
    assert (rate[0, 1] == 0).all()
    assert rate[0, 2].tolist() == [[0, 0], [5, 5], [8, 3], [0, 0]]  # a spread gap takes the consolidated figure


def test_measured_table_names_an_unknown_model():
    table = MeasuredTable(("m",), ("a", "b"), RATE)
    assert table.row("m") == 0
    with pytest.raises(InputError, match=r"'x'.*table has m"):
        table.row("x")


@pytest.mark.parametrize("rate", [RATE[:, :1], RATE[..., :1], -RATE, np.full_like(RATE, np.inf)])
def test_measured_table_refuses_bad_arrays(rate):
    with pytest.raises(InputError, match="measured rate"):
        MeasuredTable(("m",), ("a", "b"), rate)

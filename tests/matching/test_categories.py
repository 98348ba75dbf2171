"""Counting, unranking and the table of count vectors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.errors import InputError
from hetenv.matching.categories import count_compositions, count_vectors, rows_below, unrank_composition
from hetenv.matching.size_vectors import count_ways, jitter_sizes, unrank_sizes


def test_unranking_lists_all_compositions_in_lexicographic_order():
    listed = [unrank_composition(rank, 8, 4) for rank in range(count_compositions(8, 4))]
    expected = [sizes for sizes in itertools.product(range(1, 9), repeat=4) if sum(sizes) == 8]
    assert listed == expected


@pytest.mark.parametrize("rank", [-1, 10])
def test_a_rank_outside_the_list_is_refused(rank):
    with pytest.raises(InputError, match="rank"):
        unrank_composition(rank, 6, 3)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.sets(st.integers(1, 9), min_size=1))
def test_count_vectors_are_all_of_the_sizes_in_key_order(limit, sizes):
    vectors = count_vectors(np.array(limit), np.array(sorted(sizes)))
    box = itertools.product(*(range(n + 1) for n in limit))
    expected = sorted((sum(counts), counts) for counts in box if sum(counts) in sizes or not any(counts))
    assert [tuple(row) for row in vectors.counts.tolist()] == [counts for _, counts in expected]
    assert (np.diff(vectors.key) > 0).all()
    row_of = {tuple(row): v for v, row in enumerate(vectors.counts.tolist())}
    below = rows_below(vectors)
    for v, m in np.ndindex(*vectors.counts.shape):
        less = vectors.counts[v].copy()
        less[m] -= 1
        assert below[v, m] == row_of.get(tuple(less.tolist()), -1)


def test_a_table_that_would_not_fit_names_the_remedy():
    with pytest.raises(InputError, match="lower max_gpus"):
        count_vectors(np.full(8, 64), np.arange(1, 65))


def draw_sizes(smallest, largest, may_wait, n_gpus, skipped, draws):
    ways = count_ways(np.array(smallest), np.array(largest), np.array(may_wait), n_gpus)
    rng, sizes = np.random.default_rng(1), np.zeros(len(smallest), np.int64)
    for _ in range(draws):
        unrank_sizes(ways, np.array(smallest), np.array(largest), np.array(may_wait), skipped, rng, sizes)
        yield tuple(sizes.tolist())


def test_uniform_draws_reach_every_size_vector_equally_often():
    allowed = [
        (a, b, c) for a in (0, 2, 3) for b in range(1, 4) for c in (0, 1, 2) if a + b + c <= 6
    ]  # fmt: skip
    draws = list(draw_sizes([2, 1, 1], [3, 3, 2], [True, False, True], 6, 0.0, 4000))
    assert set(draws) == set(allowed)
    frequency = np.array([draws.count(sizes) for sizes in allowed]) / len(draws)
    assert frequency == pytest.approx(1 / len(allowed), abs=5 * np.sqrt(1 / len(allowed) / len(draws)))


def test_alpha_skips_the_leading_part_of_the_list():
    everything = sorted(set(draw_sizes([1, 1], [5, 5], [False, False], 6, 0.0, 2000)))
    later = sorted(set(draw_sizes([1, 1], [5, 5], [False, False], 6, 0.5, 2000)))
    assert len(everything) == 15
    assert later == everything[7:]  # rank 7.5 of 15 lies inside vector 7


def test_jitter_keeps_limits_and_moves():
    smallest, largest, may_wait = np.array([2, 1, 1]), np.array([4, 3, 6]), np.array([True, False, False])
    incumbent, sizes, rng = np.array([2, 1, 3]), np.zeros(3, np.int64), np.random.default_rng(0)
    seen = set()
    for _ in range(300):
        jitter_sizes(incumbent, smallest, largest, may_wait, 6, rng, sizes)
        assert sizes.sum() <= 6
        assert (sizes <= largest).all()
        assert ((sizes >= smallest) | (may_wait & (sizes == 0))).all()
        seen.add(tuple(sizes.tolist()))
    assert {(0, 1, 3), (3, 1, 2), (2, 2, 2), (0, 2, 3)} <= seen

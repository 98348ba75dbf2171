"""Categories: how many there are, the i-th one, and the table of all count vectors.

A category in the paper's sense is a size vector (GPUs per job), a composition of the GPU total; in the
configuration sense it is one job's GPUs per type. Both are counted here and never enumerated unless
a table is what is wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from hetenv.compiled import njit
from hetenv.errors import InputError

MOST_VECTORS = 4_000_000  # a table beyond this would need gigabytes; the caller wants a smaller max_gpus


def count_compositions(total: int, parts: int) -> int:
    """Ways to write ``total`` as an ordered sum of ``parts`` positive integers: C(total - 1, parts - 1)."""
    return comb(total - 1, parts - 1) if total >= parts >= 1 else 0


def count_size_vectors(gpus: int, jobs: int) -> int:
    """Size vectors of at least one GPU per job when some GPUs may idle: C(gpus, jobs)."""
    return comb(gpus, jobs)


def unrank_composition(rank: int, total: int, parts: int) -> tuple[int, ...]:
    """Composition number ``rank`` (from 0, lexicographic) of ``total`` into ``parts`` positive integers.

    Raises:
        InputError: a rank outside ``0 <= rank < count_compositions(total, parts)``.
    """
    n_compositions = count_compositions(total, parts)
    if not 0 <= rank < n_compositions:
        raise InputError("rank", rank, f"give a number from 0 to {n_compositions - 1}")
    sizes = []
    for left in range(parts - 1, 0, -1):
        size = 1
        while rank >= (block := count_compositions(total - size, left)):
            rank -= block
            size += 1
        sizes.append(size)
        total -= size
    return (*sizes, total)


@dataclass(frozen=True, eq=False)
class CountVectors:
    """Count vectors in graded order (by size, then lexicographic); row 0 is the empty one.

    The key of a vector is ``counts @ type_key``: it rises along the rows, and moving one GPU from type a
    to type b just adds ``type_key[b] - type_key[a]``, so that neighbours need no table.

    Args:
        counts: (V, M) int64, GPUs per type, each at most ``limit``.
        key: (V,) int64, ascending.
        type_key: (M,) int64.
        limit: (M,) int64, the most GPUs of a type in any row.
        below: (V, M) int32, row of the vector with one GPU of type m less; -1 if it is not in the table.
        size: (V,) int64, GPUs of each vector.
        block: (G + 2,) int64, first row of each size 0..G, and the end of the table.
        single: (M, G + 1) int64, row of the vector of n GPUs of type m alone, -1 without one.
        columns: (M, V) float64, the counts once more, for loops along the vectors.
    """

    counts: np.ndarray
    key: np.ndarray
    type_key: np.ndarray
    limit: np.ndarray
    below: np.ndarray
    size: np.ndarray
    block: np.ndarray
    single: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(
        cls, counts: np.ndarray, key: np.ndarray, type_key: np.ndarray, limit: np.ndarray, below: np.ndarray
    ) -> CountVectors:
        """The vectors with what follows from them."""
        size = counts.sum(axis=1)
        block = np.searchsorted(size, np.arange(size[-1] + 2))
        single = np.full((counts.shape[1], size[-1] + 1), -1)
        alone = np.flatnonzero((counts.max(axis=1) == size) & (size > 0))
        single[counts[alone].argmax(axis=1), size[alone]] = alone
        columns = np.ascontiguousarray(counts.T, float)
        vectors = cls(counts, key, type_key, limit, below, size, block, single, columns)
        for array in vars(vectors).values():
            array.setflags(write=False)
        return vectors

    def __len__(self) -> int:
        return len(self.key)

    def rows_between(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First rows (C,) of at least ``low`` (C,) GPUs, and of more than ``high`` (C,)."""
        return self.block[np.minimum(low, len(self.block) - 1)], self.block[np.minimum(high + 1, len(self.block) - 1)]


def type_keys(limit: np.ndarray) -> np.ndarray:
    """(M,) key increments: one digit per type in mixed radix ``limit + 1``, under a leading digit for the size."""
    radix = [int(bound) + 1 for bound in limit]
    place = [1]
    for base in reversed(radix[1:]):
        place.append(place[-1] * base)
    span = place[-1] * radix[0]
    if span * (sum(radix) + 1) >= 2**62:
        raise InputError("count vectors", f"{len(radix)} types of up to {max(limit)} GPUs", "lower max_gpus")
    return np.array([span + digit for digit in reversed(place)], np.int64)


def count_vectors(limit: np.ndarray, sizes: np.ndarray) -> CountVectors:
    """All count vectors of the given total ``sizes``, ascending, with at most ``limit`` (M,) GPUs per type, and the
    empty one.

    Tables are kept for the last few calls, since an online caller asks for the same ones at each event.

    Raises:
        InputError: more than four million vectors.
    """
    return _cached_vectors(tuple(limit.tolist()), tuple(sizes.tolist()))


@lru_cache(maxsize=16)
def _cached_vectors(limits: tuple[int, ...], sizes: tuple[int, ...]) -> CountVectors:
    limit = np.array(limits, np.int64)
    possible = [n for n in sizes if 0 < n <= sum(limits)]
    ways = _count_of_sizes(limits)
    n_vectors = 1 + sum(ways[n] for n in possible)
    if n_vectors > MOST_VECTORS:
        raise InputError("max_gpus", f"{n_vectors} ways to choose GPUs", "lower max_gpus or merge types")
    counts = _fill_vectors(limit, np.array(possible, np.int64), n_vectors)
    type_key = type_keys(limit)
    key = counts @ type_key
    return CountVectors.of(counts, key, type_key, limit, _rows_below(counts, key, type_key))


def _count_of_sizes(limits: tuple[int, ...]) -> list[int]:
    """Number of count vectors of each total 0..sum(limits), in exact integers."""
    ways = [1]
    for bound in limits:
        longer = [0] * (len(ways) + bound)
        for total, number in enumerate(ways):
            for n in range(bound + 1):
                longer[total + n] += number
        ways = longer
    return ways


@njit
def _fill_vectors(limit, sizes, n_vectors):
    """(n_vectors, M) rows in graded order; ``sizes`` ascending."""
    n_types = limit.shape[0]
    counts = np.zeros((n_vectors, n_types), np.int64)
    row = 1
    vector = np.zeros(n_types, np.int64)
    for size in sizes:
        left = size
        for m in range(n_types - 1, -1, -1):  # lexicographically first: everything as far right as it goes
            vector[m] = min(left, limit[m])
            left -= vector[m]
        while True:
            counts[row] = vector
            row += 1
            tail = 0  # GPUs to the right of m; the rightmost m that can take one of them moves on
            m = n_types - 1
            while m >= 0 and (tail == 0 or vector[m] == limit[m]):
                tail += vector[m]
                m -= 1
            if m < 0:
                break
            vector[m] += 1
            left = tail - 1
            for right in range(n_types - 1, m, -1):
                vector[right] = min(left, limit[right])
                left -= vector[right]
    return counts


@njit
def find_key(key, wanted):
    """Row of ``wanted`` in the ascending ``key`` (V,), or -1."""
    low, high = 0, key.shape[0]
    while low < high:
        middle = (low + high) // 2
        if key[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < key.shape[0] and key[low] == wanted:
        return low
    return -1


@njit
def _rows_below(counts, key, type_key):
    below = np.full(counts.shape, -1, np.int32)
    for v in range(counts.shape[0]):
        for m in range(counts.shape[1]):
            if counts[v, m] > 0:
                below[v, m] = find_key(key, key[v] - type_key[m])
    return below

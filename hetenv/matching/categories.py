"""Categories: how many there are, the i-th one, and the table of all count vectors.

A category in the paper's sense is a size vector (GPUs per job), a composition of the GPU total; in the
configuration sense it is one job's GPUs per type. Both are counted here and never enumerated unless
a table is what is wanted.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from hetenv.compiled import njit
from hetenv.errors import InputError

MOST_VECTORS = 4_000_000  # a table beyond this would need gigabytes; the caller wants a smaller max_gpus
TOO_MANY, TOO_LONG = 1, 2  # vectors, keys


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


class CountVectors(NamedTuple):
    """Count vectors in graded order (by size, then lexicographic); row 0 is the empty one.

    The key of a vector is ``counts @ type_key``: it rises along the rows, and moving one GPU from type a
    to type b just adds ``type_key[b] - type_key[a]``, so that neighbours need no table.

    Args:
        counts: (V, M) int64, GPUs per type, each at most ``limit``.
        key: (V,) int64, ascending.
        type_key: (M,) int64.
        limit: (M,) int64, the most GPUs of a type in any row.
        size: (V,) int64, GPUs of each vector.
        block: (G + 2,) int64, first row of each size 0..G, and the end of the table.
        single: (M, G + 1) int64, row of the vector of n GPUs of type m alone, -1 without one.
        columns: (M, V) float64, the counts once more, for loops along the vectors.
    """

    counts: np.ndarray
    key: np.ndarray
    type_key: np.ndarray
    limit: np.ndarray
    size: np.ndarray
    block: np.ndarray
    single: np.ndarray
    columns: np.ndarray


def type_keys(limit: np.ndarray) -> np.ndarray:
    """(M,) key increments: one digit per type in mixed radix ``limit + 1``, under a leading digit for the size.

    Raises:
        InputError: keys beyond 64 bits.
    """
    refuse_vectors(vectors_fault(limit, np.zeros(0, np.int64)), limit)
    return place_values(limit)


def count_vectors(limit: np.ndarray, sizes: np.ndarray) -> CountVectors:
    """All count vectors of the given total ``sizes``, ascending, with at most ``limit`` (M,) GPUs per type, and the
    empty one.

    Raises:
        InputError: more than four million vectors.
    """
    refuse_vectors(vectors_fault(limit, sizes), limit)
    return tabulate_vectors(limit, sizes)


def refuse_vectors(fault: int, limit: np.ndarray) -> None:
    """Raise InputError for what ``vectors_fault`` found, unless it is 0."""
    if fault == TOO_MANY:
        raise InputError("max_gpus", f"over {MOST_VECTORS} ways to choose GPUs", "lower max_gpus or merge types")
    if fault == TOO_LONG:
        raise InputError("count vectors", f"{len(limit)} types of up to {max(limit)} GPUs", "lower max_gpus")


@njit
def vectors_fault(limit, sizes):
    """Why there is no table of the count vectors within ``limit`` (M,) of the ``sizes``, ascending; 0 if there is."""
    span, digits = 1.0, 1.0
    for bound in limit:
        span *= bound + 1.0
        digits += bound + 1.0
    if span * digits >= 2.0**62:
        return TOO_LONG
    return TOO_MANY if _number_of_vectors(limit, sizes) > MOST_VECTORS else 0


@njit
def tabulate_vectors(limit, sizes):
    """The ``CountVectors`` within ``limit`` (M,) of the ``sizes``, ascending, in which ``vectors_fault`` found none."""
    return index_vectors(_fill_vectors(limit, sizes, _number_of_vectors(limit, sizes)), limit)


@njit
def index_vectors(counts, limit):
    """The ``CountVectors`` of ``counts`` (V, M) in graded order, row 0 empty, each entry at most ``limit`` (M,)."""
    n_vectors, n_types = counts.shape
    type_key = place_values(limit)
    key, size = np.zeros(n_vectors, np.int64), np.zeros(n_vectors, np.int64)
    columns = np.empty((n_types, n_vectors))
    for v in range(n_vectors):
        for m in range(n_types):
            key[v] += counts[v, m] * type_key[m]
            size[v] += counts[v, m]
            columns[m, v] = counts[v, m]
    largest = size[n_vectors - 1]
    block, single = np.zeros(largest + 2, np.int64), np.full((n_types, largest + 1), -1)
    n = 0
    for v in range(n_vectors):
        while n < size[v]:
            n += 1
            block[n] = v
        for m in range(n_types):
            if counts[v, m] == size[v] and size[v] > 0:
                single[m, size[v]] = v
    block[largest + 1] = n_vectors
    return CountVectors(counts, key, type_key, limit, size, block, single, columns)


@njit
def place_values(limit):
    """(M,) key increments; see ``type_keys``."""
    keys = np.empty(limit.shape[0], np.int64)
    place = 1
    for m in range(limit.shape[0] - 1, -1, -1):
        keys[m] = place
        place *= limit[m] + 1
    return keys + place


@njit
def _number_of_vectors(limit, sizes):
    """Of the given ``sizes``, ascending, and the empty one. Within keys of 64 bits the numbers are too."""
    largest = min(sizes[-1], limit.sum()) if sizes.shape[0] > 0 else 0
    ways = np.zeros(largest + 1, np.int64)  # count vectors of each size within the types so far
    ways[0] = 1
    for bound in limit:
        up_to = np.cumsum(ways)
        for n in range(largest + 1):
            ways[n] = up_to[n] - (up_to[n - bound - 1] if n > bound else 0)
    total = 1
    for n in sizes:
        if 0 < n <= largest:
            total += ways[n]
    return total


@njit
def _fill_vectors(limit, sizes, n_vectors):
    """(n_vectors, M) rows in graded order; ``sizes`` ascending."""
    n_types = limit.shape[0]
    counts = np.zeros((n_vectors, n_types), np.int64)
    row = 1
    vector = np.zeros(n_types, np.int64)
    for size in sizes:
        if not 0 < size <= limit.sum():
            continue
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
def rows_below(vectors):
    """(V, M) int32, row of the vector with one GPU of type m less; -1 if it is not in the table."""
    below = np.full(vectors.counts.shape, np.int32(-1))
    for m in range(vectors.counts.shape[1]):
        row = 0  # the keys looked for ascend too
        for v in range(vectors.counts.shape[0]):
            if vectors.counts[v, m] > 0:
                wanted = vectors.key[v] - vectors.type_key[m]
                while vectors.key[row] < wanted:
                    row += 1
                if vectors.key[row] == wanted:
                    below[v, m] = row
    return below

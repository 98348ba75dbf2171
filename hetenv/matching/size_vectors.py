"""Drawing size vectors: uniformly by combinatorial unranking, or near one that did well.

A job's size is 0 if it may wait, or between its fewest and most GPUs; GPUs may idle. A counting table gives the
number of ways to go on from each (job, GPUs left), so that a rank is turned into its size vector digit by digit and
the list is never written out.
"""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit


@njit
def count_ways(smallest, largest, may_wait, n_gpus):
    """(S + 1, n_gpus + 1) size vectors of the jobs i.. within n GPUs, each row divided by its largest entry."""
    n_jobs = smallest.shape[0]
    ways = np.zeros((n_jobs + 1, n_gpus + 1))
    ways[n_jobs] = 1.0
    for i in range(n_jobs - 1, -1, -1):
        for left in range(n_gpus + 1):
            if may_wait[i]:
                ways[i, left] = ways[i + 1, left]
            for size in range(smallest[i], min(largest[i], left) + 1):
                ways[i, left] += ways[i + 1, left - size]
        top = ways[i].max()
        if top > 0.0:
            ways[i] /= top
    return ways


@njit
def unrank_sizes(ways, smallest, largest, may_wait, skipped, rng, sizes):
    """Write into ``sizes`` (S,) a uniformly drawn size vector of rank >= ``skipped`` (fraction) in lexicographic order.

    The rank is drawn digit by digit: a fresh uniform per job keeps 53 bits for each, however many jobs there are.
    """
    left = ways.shape[1] - 1
    for i in range(sizes.shape[0]):
        weight = ways[i + 1, left] if may_wait[i] else 0.0
        for size in range(smallest[i], min(largest[i], left) + 1):
            weight += ways[i + 1, left - size]
        target = (skipped + (1.0 - skipped) * rng.random()) * weight
        boundary = skipped * weight
        below, digit, digit_weight = 0.0, 0, 0.0
        if may_wait[i]:
            digit_weight = ways[i + 1, left]
        size = smallest[i]
        while (digit_weight == 0.0 or below + digit_weight <= target) and size <= min(largest[i], left):
            below += digit_weight
            digit, digit_weight = size, ways[i + 1, left - size]
            size += 1
        # the skipped part ends inside this digit's block, or before it
        skipped = max(0.0, (boundary - below) / digit_weight) if digit_weight > 0.0 else 0.0
        skipped = min(skipped, 1.0)
        sizes[i] = digit
        left -= digit


@njit
def jitter_sizes(incumbent, smallest, largest, may_wait, n_gpus, rng, sizes):
    """Write the ``incumbent`` (S,) into ``sizes`` (S,) after random transfers of GPUs between jobs and the pool.

    Entering and leaving a job that may wait transfers its fewest GPUs at once. Each further transfer follows
    with probability one half.
    """
    n_jobs = sizes.shape[0]
    sizes[:] = incumbent
    idle = n_gpus - sizes.sum()
    for _ in range(16 * (n_jobs + 1)):  # many transfers are impossible; none at all may be possible
        giver, taker = int(rng.random() * (n_jobs + 1)), int(rng.random() * (n_jobs + 1))
        if giver == taker:
            continue
        given, taken = 1, 1
        if giver < n_jobs and sizes[giver] <= smallest[giver]:
            if sizes[giver] == 0 or not may_wait[giver]:
                continue
            given = sizes[giver]
        if taker < n_jobs:
            if sizes[taker] >= largest[taker]:
                continue
            taken = 1 if sizes[taker] > 0 else smallest[taker]
        released = idle + (given if giver < n_jobs else 0)
        if taker < n_jobs and taken > released:
            continue
        if giver < n_jobs:
            sizes[giver] -= given
            idle += given
        if taker < n_jobs:
            sizes[taker] += taken
            idle -= taken
        if rng.random() < 0.5:
            return

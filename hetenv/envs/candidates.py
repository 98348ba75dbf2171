"""Which categories a job is offered: the paper's sparsification, a few good ones and a few sampled mixes.

Candidates depend on the job and the whole cluster only, so they are made once, when a job first
comes into view; whether one can be taken now is a matter of the free GPUs.
"""

import numpy as np

from hetenv.compiled import njit
from hetenv.simulator.fastest import fastest_counts
from hetenv.simulator.kernels import job_rate

CANDIDATE = np.dtype(
    [
        ("rate", "f8"),  # iterations/s, packed onto as few nodes as possible
        ("same_size", "f8"),  # rate / rate of the fastest category of this size, (0, 1]
        ("n_gpus", "i4"),  # 0: no candidate in this place
        ("one_node", "i4"),
    ],
    align=True,
)


@njit
def packed_rate(fixed, job, counts):
    """Iterations/s of ``job`` on ``counts`` (M,) packed onto empty nodes, and whether one node suffices."""
    used = 0
    one_node = False
    for m in range(counts.shape[0]):
        if counts[m] > 0:
            used += 1
            one_node = counts[m] <= fixed.types[m].largest_node
            if fixed.jobs[job].measured_row < 0 and fixed.speed[job, m] <= 0.0:
                return 0.0, False
    one_node = one_node and used == 1
    return job_rate(fixed, job, counts, 1 if one_node else 2), one_node


@njit
def _offer(fixed, job, counts, kept, candidates, n_kept):
    """Keep ``counts`` as the next candidate if it can run and is not kept already; returns the new number."""
    if n_kept == candidates.shape[0]:
        return n_kept
    for s in range(n_kept):
        same = True
        for m in range(counts.shape[0]):
            same = same and kept[s, m] == counts[m]
        if same:
            return n_kept
    rate, one_node = packed_rate(fixed, job, counts)
    if rate <= 0.0:
        return n_kept
    for m in range(counts.shape[0]):
        kept[n_kept, m] = counts[m]
    candidates[n_kept].rate = rate
    candidates[n_kept].n_gpus = counts.sum()
    candidates[n_kept].one_node = one_node
    return n_kept + 1


@njit
def _offer_single_types(fixed, job, n_gpus, counts, kept, candidates, n_kept):
    """Offer ``n_gpus`` of each type alone."""
    for m in range(counts.shape[0]):
        if n_gpus <= fixed.types[m].total:
            counts[:] = 0
            counts[m] = n_gpus
            n_kept = _offer(fixed, job, counts, kept, candidates, n_kept)
    return n_kept


@njit
def propose_candidates(fixed, job, draws, kept, candidates):
    """Fill ``kept`` (S, M) and ``candidates`` (S,) with up to S distinct categories for ``job``.

    In this order: the fastest category of the least size, which an idle cluster always has; the least
    size on each single type, so that a job can start wherever something is free; the fastest category of
    each doubled size up to the most; each doubled size on each single type, for when the fastest is taken;
    then mixes drawn from ``draws`` (S, M + 1), uniform in [0, 1).
    """
    spec = fixed.jobs[job]
    n_types = fixed.types.shape[0]
    n_kept = 0
    counts = np.zeros(n_types, np.int64)
    total = fixed.types.total.astype(np.int64)
    room = fixed.types.largest_node.astype(np.int64)
    least = spec.min_gpus
    while fastest_counts(fixed, job, least, least, total, room, counts) == np.inf:
        least += 1  # sizes that were not measured; the simulator refuses jobs without any
    n_kept = _offer(fixed, job, counts, kept, candidates, n_kept)
    n_kept = _offer_single_types(fixed, job, least, counts, kept, candidates, n_kept)
    n_gpus = least
    while n_gpus < spec.max_gpus:
        n_gpus = min(2 * n_gpus, spec.max_gpus)
        if fastest_counts(fixed, job, n_gpus, n_gpus, total, room, counts) < np.inf:
            n_kept = _offer(fixed, job, counts, kept, candidates, n_kept)
    n_gpus = least
    while n_gpus < spec.max_gpus:
        n_gpus = min(2 * n_gpus, spec.max_gpus)
        n_kept = _offer_single_types(fixed, job, n_gpus, counts, kept, candidates, n_kept)
    for s in range(draws.shape[0]):
        _draw_mix(fixed, job, draws[s], least, counts)
        n_kept = _offer(fixed, job, counts, kept, candidates, n_kept)
    for s in range(n_kept):
        n_gpus = candidates[s].n_gpus
        ideal_s = fastest_counts(fixed, job, n_gpus, n_gpus, total, room, counts)
        candidates[s].same_size = min(1.0, candidates[s].rate * ideal_s)


@njit
def _draw_mix(fixed, job, draw, least, counts):
    """A random category: size uniform in least..most, GPUs spread over the types by random weights."""
    spec = fixed.jobs[job]
    n_types = counts.shape[0]
    room = 0
    for m in range(n_types):
        if fixed.speed[job, m] > 0.0:
            room += fixed.types[m].total
    left = min(least + int(draw[n_types] * (spec.max_gpus - least + 1)), room)
    counts[:] = 0
    while left > 0:
        chosen = -1
        for m in range(n_types):
            if fixed.speed[job, m] <= 0.0 or counts[m] == fixed.types[m].total:
                continue
            if chosen < 0 or draw[m] / (counts[m] + 1) > draw[chosen] / (counts[chosen] + 1):
                chosen = m
        counts[chosen] += 1
        left -= 1

"""Which categories a job is offered: the paper's sparsification, a few good ones and a few sampled mixes.

Candidates depend on the job and the whole cluster only, so they are made once, when a job first
comes into view; whether one can be taken now is a matter of the free GPUs.
"""

import numpy as np

from hetenv.compiled import njit_in_place as njit
from hetenv.performance import ring_allreduce_s
from hetenv.simulator.fastest import order_types
from hetenv.simulator.kernels import job_rate

# Record types have no padding, so that equal states have equal bytes.
CANDIDATE = np.dtype(
    [
        ("rate", "f8"),  # iterations/s, packed onto as few nodes as possible
        ("same_size", "f8"),  # rate / rate of the fastest category of this size, (0, 1]
        ("n_gpus", "i4"),  # 0: no candidate in this place
        ("one_node", "i4"),
    ],
    align=True,
)
IDEAL = np.dtype([("iteration_s", "f8"), ("types", "i8")], align=True)  # the fastest category of one size; a bit a type


@njit
def _packed_rate(fixed, job, counts):
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
def propose_candidates(fixed, job, draws, kept, candidates, ideal, scratch):
    """Fill ``kept`` (S, M) and ``candidates`` (S,) with up to S distinct categories for ``job``; returns how many.

    In this order: the fastest category of the least size, which an idle cluster always has; the least
    size on each single type, so that a job can start wherever something is free; the fastest category of
    each doubled size up to the most; each doubled size on each single type, for when the fastest is taken;
    then mixes drawn from ``draws`` (S, M + 1), uniform in [0, 1).

    Room to work in: ``ideal`` (most GPUs + 1,) IDEAL and ``scratch`` (2, M) int64.
    """
    spec = fixed.jobs[job]
    n_kept = 0
    fastest_first, counts = scratch[0], scratch[1]
    order_types(fixed.speed[job], fastest_first)
    for n_gpus in range(spec.max_gpus + 1):
        ideal[n_gpus].iteration_s = np.inf
    if spec.measured_row >= 0:
        _rank_measured(fixed, job, ideal)
    else:
        _rank_by_speed(fixed, job, fastest_first, False, ideal)

    least = spec.min_gpus
    while ideal[least].iteration_s == np.inf:
        least += 1  # sizes that were not measured; the simulator refuses jobs without any
    _ideal_counts(fixed, fastest_first, ideal[least].types, least, counts)
    n_kept = _offer(fixed, job, counts, least, kept, candidates, n_kept)
    n_kept = _offer_single_types(fixed, job, least, kept, candidates, n_kept)
    n_gpus = least
    while n_gpus < spec.max_gpus and n_kept < candidates.shape[0]:
        n_gpus = min(2 * n_gpus, spec.max_gpus)
        if ideal[n_gpus].iteration_s < np.inf:
            _ideal_counts(fixed, fastest_first, ideal[n_gpus].types, n_gpus, counts)
            n_kept = _offer(fixed, job, counts, n_gpus, kept, candidates, n_kept)
    n_gpus = least
    while n_gpus < spec.max_gpus and n_kept < candidates.shape[0]:
        n_gpus = min(2 * n_gpus, spec.max_gpus)
        n_kept = _offer_single_types(fixed, job, n_gpus, kept, candidates, n_kept)
    if n_kept < candidates.shape[0] and spec.max_gpus > 1:
        if spec.measured_row < 0:
            _rank_by_speed(fixed, job, fastest_first, True, ideal)
        for s in range(draws.shape[0]):
            if n_kept == candidates.shape[0]:
                break
            n_gpus = _draw_mix(fixed, job, draws[s], least, counts)
            if n_gpus > 1:  # one GPU of each type is offered already
                n_kept = _offer(fixed, job, counts, n_gpus, kept, candidates, n_kept)
    for s in range(n_kept):
        candidates[s].same_size = min(1.0, candidates[s].rate * ideal[candidates[s].n_gpus].iteration_s)
    return n_kept


@njit
def _offer(fixed, job, counts, n_gpus, kept, candidates, n_kept):
    """Keep ``counts`` as the next candidate if it can run and is not kept already; returns the new number."""
    for s in range(n_kept):
        same = candidates[s].n_gpus == n_gpus
        for m in range(counts.shape[0]):
            same = same and kept[s, m] == counts[m]
        if same:
            return n_kept
    rate, one_node = _packed_rate(fixed, job, counts)
    if rate <= 0.0:
        return n_kept
    for m in range(counts.shape[0]):
        kept[n_kept, m] = counts[m]
    candidates[n_kept].rate = rate
    candidates[n_kept].n_gpus = n_gpus
    candidates[n_kept].one_node = one_node
    return n_kept + 1


@njit
def _offer_single_types(fixed, job, n_gpus, kept, candidates, n_kept):
    """Offer ``n_gpus`` of each type alone, as ``_offer`` would."""
    for m in range(fixed.types.shape[0]):
        if n_kept == candidates.shape[0]:
            break
        if n_gpus > fixed.types[m].total:
            continue
        same = False
        for s in range(n_kept):
            same = same or (candidates[s].n_gpus == n_gpus and kept[s, m] == n_gpus)
        if same:
            continue
        one_node = n_gpus <= fixed.types[m].largest_node
        rate = _rate_on_type(fixed, job, m, n_gpus, one_node)
        if rate <= 0.0:
            continue
        for other in range(fixed.types.shape[0]):
            kept[n_kept, other] = 0
        kept[n_kept, m] = n_gpus
        candidates[n_kept].rate = rate
        candidates[n_kept].n_gpus = n_gpus
        candidates[n_kept].one_node = one_node
        n_kept += 1
    return n_kept


@njit
def _rate_on_type(fixed, job, m, n_gpus, one_node):
    """Iterations/s of ``job`` on ``n_gpus`` of type ``m`` alone, as ``job_rate`` has it."""
    spec = fixed.jobs[job]
    if spec.measured_row >= 0:
        if n_gpus >= fixed.measured.shape[2]:
            return 0.0
        return fixed.measured[spec.measured_row, m, n_gpus, 0 if one_node else 1]
    speed = fixed.speed[job, m]
    if speed <= 0.0:
        return 0.0
    link = fixed.types[m].intra_bytes_per_s if one_node else fixed.types[m].nic_bytes_per_s
    return 1.0 / (spec.batch / (n_gpus * speed) + ring_allreduce_s(n_gpus, spec.grad_bytes, link))


@njit
def _rank_by_speed(fixed, job, fastest_first, every_size, ideal):
    """Least iteration time on the whole cluster, and the types (a bit each) that give it, for several sizes at once.

    The sizes are all up to the most, or only the least one and its doubles. As ``hetenv.simulator.fastest``: every
    set of types; the set settles the link, so within it speed decides, one GPU of each type, then the fastest left. Of
    equally fast sets the one of the lowest number wins. Sets that hold a type whose network makes them slower than
    single types, whatever their GPUs, are left out: most of them.
    """
    speed, n_types = fixed.speed[job], fixed.types.shape[0]
    for m in range(n_types):
        if speed[m] > 0.0:
            _rank_set(fixed, job, fastest_first, every_size, 1 << m, 1, ideal)
    nic_needed = _least_nic(fixed, job, fastest_first, every_size, ideal)
    worth = 0
    for m in range(n_types):
        if speed[m] > 0.0 and fixed.types[m].nic_bytes_per_s >= nic_needed:
            worth |= 1 << m
    chosen = -worth & worth
    while chosen > 0:
        n_chosen = 0
        for m in range(n_types):
            n_chosen += chosen >> m & 1
        if 1 < n_chosen <= fixed.jobs[job].max_gpus:
            _rank_set(fixed, job, fastest_first, every_size, chosen, n_chosen, ideal)
        chosen = (chosen - worth) & worth  # the next subset


@njit
def _next_size(spec, size, every_size):
    return size + 1 if every_size else min(2 * size, spec.max_gpus)


@njit
def _rank_set(fixed, job, fastest_first, every_size, chosen, n_chosen, ideal):
    """Compare the ``n_chosen`` types that ``chosen`` has bits of with what ``ideal`` knows, size by size."""
    speed, spec, even_split = fixed.speed[job], fixed.jobs[job], fixed.rules[0].even_split
    n_types, most = fixed.types.shape[0], spec.max_gpus
    only = 0
    total_speed, slowest, nic = 0.0, np.inf, np.inf
    for m in range(n_types):
        if chosen >> m & 1:
            only = m
            total_speed += speed[m]
            slowest = min(slowest, speed[m])
            nic = min(nic, fixed.types[m].nic_bytes_per_s)
    n_gpus = n_chosen
    asked = spec.min_gpus  # next size to rank
    rank, added = 0, 1  # GPUs of the type fastest_first[rank] taken so far
    while n_gpus <= most:
        while asked < n_gpus:
            asked = _next_size(spec, asked, every_size)
        if asked == n_gpus:
            compute_s = spec.batch / (n_gpus * slowest) if even_split else spec.batch / total_speed
            if compute_s <= ideal[n_gpus].iteration_s:  # before the network, which costs most of the time here
                one_node = n_chosen == 1 and n_gpus <= fixed.types[only].largest_node
                link = fixed.types[only].intra_bytes_per_s if one_node else nic
                step_s = compute_s + ring_allreduce_s(n_gpus, spec.grad_bytes, link)
                best = ideal[n_gpus]
                if step_s < best.iteration_s or (step_s == best.iteration_s and chosen < best.types):
                    best.iteration_s = step_s
                    best.types = chosen
        while rank < n_types and (
            not chosen >> fastest_first[rank] & 1 or added == fixed.types[fastest_first[rank]].total
        ):
            rank += 1
            added = 1
        if rank == n_types:
            break
        n_gpus += 1
        added += 1
        total_speed += speed[fastest_first[rank]]


@njit
def _least_nic(fixed, job, fastest_first, every_size, ideal):
    """Bytes/s of the slowest network over which several types may be as fast as ``ideal`` at some size; inf if none.

    However they are mixed, n GPUs compute no faster than the n fastest of the cluster. Rounding is allowed for.
    """
    speed, spec = fixed.speed[job], fixed.jobs[job]
    needed = np.inf
    asked = spec.min_gpus
    n_gpus = 0
    total_speed = 0.0
    for m in fastest_first:
        for _ in range(fixed.types[m].total):
            if n_gpus == spec.max_gpus or speed[m] <= 0.0:
                return needed
            n_gpus += 1
            total_speed += speed[m]
            if n_gpus < asked or n_gpus == 1:
                continue
            left_s = ideal[n_gpus].iteration_s * (1.0 + 1e-9) - spec.batch / total_speed
            if left_s > 0.0:
                moved = 2.0 * (n_gpus - 1) / n_gpus * spec.grad_bytes
                needed = min(needed, moved / left_s * (1.0 - 1e-6))
            asked = _next_size(spec, n_gpus, every_size)
    return needed


@njit
def _rank_measured(fixed, job, ideal):
    """The same for a measured job, which runs on one type at a time."""
    spec = fixed.jobs[job]
    rate = fixed.measured[spec.measured_row]  # (M, G + 1, 2)
    for m in range(rate.shape[0]):
        for n_gpus in range(1, min(spec.max_gpus, fixed.types[m].total, rate.shape[1] - 1) + 1):
            found = rate[m, n_gpus, 0 if n_gpus <= fixed.types[m].largest_node else 1]
            if found > 0.0 and 1.0 / found < ideal[n_gpus].iteration_s:
                ideal[n_gpus].iteration_s = 1.0 / found
                ideal[n_gpus].types = 1 << m


@njit
def _ideal_counts(fixed, fastest_first, chosen, n_gpus, counts):
    """The category (M,) of ``n_gpus`` on the set ``chosen``: one of each type, then the fastest left."""
    left = n_gpus
    for m in range(counts.shape[0]):
        counts[m] = chosen >> m & 1
        left -= counts[m]
    for m in fastest_first:
        if chosen >> m & 1:
            more = min(left, fixed.types[m].total - 1)
            counts[m] += more
            left -= more


@njit
def _draw_mix(fixed, job, draw, least, counts):
    """A random category: size uniform in least..most, GPUs spread over the types by random weights; its size."""
    spec = fixed.jobs[job]
    n_types = counts.shape[0]
    room = 0
    for m in range(n_types):
        if fixed.speed[job, m] > 0.0:
            room += fixed.types[m].total
    n_gpus = min(least + int(draw[n_types] * (spec.max_gpus - least + 1)), room)
    counts[:] = 0
    if n_gpus == 1:
        return n_gpus
    for _ in range(n_gpus):
        chosen = -1
        for m in range(n_types):
            if fixed.speed[job, m] <= 0.0 or counts[m] == fixed.types[m].total:
                continue
            if chosen < 0 or draw[m] / (counts[m] + 1) > draw[chosen] / (counts[chosen] + 1):
                chosen = m
        counts[chosen] += 1
    return n_gpus

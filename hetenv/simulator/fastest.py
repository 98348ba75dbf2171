"""The allocation of free GPUs on which a job runs fastest."""

import numpy as np

from hetenv.compiled import njit, njit_in_place
from hetenv.performance import ring_allreduce_s


@njit
def can_use(fixed, job, m):
    """Whether ``job`` runs on type m at any size."""
    row = fixed.jobs[job].measured_row
    return fixed.measured[row, m].max() > 0.0 if row >= 0 else fixed.speed[job, m] > 0.0


@njit
def fastest_counts(fixed, job, least, most, free, room, counts):
    """Write into ``counts`` (M,) the category of ``least`` to ``most`` GPUs with the least iteration time.

    Args:
        free: (M,) GPUs that may be used of each type.
        room: (M,) free GPUs of the freest node of each type; up to so many share the link of one node.

    Returns:
        Seconds of one iteration; inf and zero counts when nothing fits. Of equally fast categories the
        one with the fewest GPUs wins, then the one of the earlier types.
    """
    counts[:] = 0
    if free.sum() < least:
        return np.inf
    if fixed.jobs[job].measured_row >= 0:
        return _fastest_measured(fixed, job, least, most, free, room, counts)
    return _fastest_by_speed(fixed, job, least, most, free, room, counts)


@njit_in_place
def order_types(speed, order):
    """Write into ``order`` (M,) the types from the fastest to the slowest, equal ones in their order."""
    for m in range(order.shape[0]):
        at = m
        while at > 0 and speed[order[at - 1]] < speed[m]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = m


@njit
def _fastest_measured(fixed, job, least, most, free, room, counts):
    """Measured jobs run on one type at a time: try every type and size."""
    rate = fixed.measured[fixed.jobs[job].measured_row]  # (M, G + 1, 2)
    best_rate, best_type, best_gpus = 0.0, 0, 0
    for m in range(free.shape[0]):
        for n_gpus in range(least, min(most, free[m], rate.shape[1] - 1) + 1):
            found = rate[m, n_gpus, 0 if n_gpus <= room[m] else 1]
            if found > best_rate or (found == best_rate and 0 < n_gpus < best_gpus):
                best_rate, best_type, best_gpus = found, m, n_gpus
    if best_gpus == 0:
        return np.inf
    counts[best_type] = best_gpus
    return 1.0 / best_rate


@njit
def _fastest_by_speed(fixed, job, least, most, free, room, counts):
    """Try every set of types at every size.

    The set settles the link, so within it speed decides: one GPU of each type, then the fastest left.
    """
    speed, spec, even_split = fixed.speed[job], fixed.jobs[job], fixed.rules[0].even_split
    n_types = free.shape[0]
    fastest_first = np.empty(n_types, np.int64)
    order_types(speed, fastest_first)
    best_s, best_set, best_gpus = np.inf, 0, 0
    following = 1
    while following < 2**n_types:
        chosen = following
        usable = True
        n_gpus, only = 0, 0
        total_speed, slowest, nic = 0.0, np.inf, np.inf
        for m in range(n_types):
            if chosen >> m & 1:
                usable = usable and free[m] > 0 and speed[m] > 0.0
                n_gpus += 1
                only = m
                total_speed += speed[m]
                slowest = min(slowest, speed[m])
                nic = min(nic, fixed.types[m].nic_bytes_per_s)
        following += 1 if n_gpus < most else chosen & -chosen  # no set of more than ``most`` types
        if not usable:
            continue
        one_type = n_gpus == 1
        rank, added = 0, 1  # GPUs of the type fastest_first[rank] taken so far
        while n_gpus <= most:
            if n_gpus >= least:
                link = fixed.types[only].intra_bytes_per_s if one_type and n_gpus <= room[only] else nic
                compute_s = spec.batch / (n_gpus * slowest) if even_split else spec.batch / total_speed
                step_s = compute_s + ring_allreduce_s(n_gpus, spec.grad_bytes, link)
                if step_s < best_s or (step_s == best_s and n_gpus < best_gpus):
                    best_s, best_set, best_gpus = step_s, chosen, n_gpus
            while rank < n_types and (not chosen >> fastest_first[rank] & 1 or added == free[fastest_first[rank]]):
                rank += 1
                added = 1
            if rank == n_types:
                break
            n_gpus += 1
            added += 1
            total_speed += speed[fastest_first[rank]]
    if best_gpus == 0:
        return np.inf
    left = best_gpus
    for m in range(n_types):
        if best_set >> m & 1:
            counts[m] = 1
            left -= 1
    for m in fastest_first:
        if best_set >> m & 1:
            more = min(left, free[m] - 1)
            counts[m] += more
            left -= more
    return best_s

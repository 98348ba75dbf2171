"""Local search on a placement: moves of one GPU, and the joint re-choice of two jobs.

One-GPU moves: a job adds a free GPU, drops one, retypes one (swaps it for a free one), a GPU is transferred
from one job to another, or two jobs exchange GPUs of different types. All five are one move: job i gives
type a and takes type b, and a partner, job or pool of free GPUs, does the reverse; type 0 stands for "no GPU".
"""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.menu import find_entry, find_from, free_gpus


@njit
def _exchanges(menu, smallest_slot):
    """(X, 3) int64: every exchange (a, b), give type a - 1 and take type b - 1, by what it adds to the key."""
    slots = menu.type_key.shape[0] + 1
    exchanges = np.empty((slots * slots, 3), np.int64)
    end = 0
    for a in range(smallest_slot, slots):
        for b in range(smallest_slot, slots):
            if a != b:
                added = (menu.type_key[b - 1] if b > 0 else 0) - (menu.type_key[a - 1] if a > 0 else 0)
                at = end
                while at > 0 and exchanges[at - 1, 2] > added:
                    exchanges[at] = exchanges[at - 1]
                    at -= 1
                exchanges[at] = a, b, added
                end += 1
    return exchanges[:end]


@njit
def _savings(menu, choice, job, exchanges, saving):
    """Write what ``job`` gains or loses by each of the ``exchanges`` into ``saving`` (M + 1, M + 1, S).

    ``saving[a, b, i]``: change of cost when job i gives type a - 1 and takes type b - 1, inf if it cannot. Exchanges
    and menu both ascend by key, so that one walk along the menu finds them all.
    """
    current = choice[job]
    row, last = menu.vector[current], menu.start[job + 1]
    entry = find_from(menu, job, menu.key[row] + exchanges[0, 2]) if len(exchanges) > 0 else last
    for x in range(exchanges.shape[0]):
        a, b, wanted = exchanges[x, 0], exchanges[x, 1], menu.key[row] + exchanges[x, 2]
        saving[a, b, job] = np.inf
        while entry < last and menu.key[menu.vector[entry]] < wanted:
            entry += 1
        if entry == last or menu.key[menu.vector[entry]] > wanted:
            continue
        if (a == 0 or menu.counts[row, a - 1] > 0) and (b == 0 or menu.counts[row, b - 1] < menu.limit[b - 1]):
            saving[a, b, job] = menu.cost[entry] - menu.cost[current]


@njit
def _play(saving, tree, a, b, node):
    """Settle one match of the tournament of exchange (a, b): the earlier job wins a tie."""
    left, right = tree[a, b, 2 * node], tree[a, b, 2 * node + 1]
    if right < 0 or (left >= 0 and saving[a, b, left] <= saving[a, b, right]):
        tree[a, b, node] = left
    else:
        tree[a, b, node] = right


@njit
def _refresh(menu, choice, job, exchanges, saving, tree, leaves):
    """Recompute the savings of ``job`` and the matches above it.

    ``tree`` (M + 1, M + 1, 2 * leaves): per exchange a tournament of jobs; node 1 holds the job of least change.
    """
    _savings(menu, choice, job, exchanges, saving)
    for x in range(exchanges.shape[0]):
        a, b = exchanges[x, 0], exchanges[x, 1]
        node = (leaves + job) // 2
        while node >= 1:
            _play(saving, tree, a, b, node)
            node //= 2


@njit
def _best_other(saving, tree, leaves, a, b, winner):
    """Least change of exchange (a, b) among jobs other than the ``winner``; returns it and the job (-1: none)."""
    change, job = np.inf, -1
    node = leaves + winner
    while node > 1:
        rival = tree[a, b, node ^ 1]
        if rival >= 0 and saving[a, b, rival] < change:
            change, job = saving[a, b, rival], rival
        node //= 2
    return change, job


@njit
def _take(menu, choice, job, a, b):
    wanted = menu.key[menu.vector[choice[job]]]
    if a > 0:
        wanted -= menu.type_key[a - 1]
    if b > 0:
        wanted += menu.type_key[b - 1]
    choice[job] = find_entry(menu, job, wanted)


@njit
def move_single_gpus(menu, capacity, choice, smallest_slot, tolerance):
    """Make the best one-GPU move until none saves more than ``tolerance``; changes ``choice`` (S,) in place.

    ``smallest_slot`` 0 allows all moves, 1 only those that keep every job's size (retype and exchange).
    Savings sit in tournament trees, so a move costs O(M^2 log S). Returns the number of moves.
    """
    n_jobs, slots = choice.shape[0], capacity.shape[0] + 1
    leaves = 1
    while leaves < n_jobs:
        leaves *= 2
    saving = np.full((slots, slots, n_jobs), np.inf)
    tree = np.full((slots, slots, 2 * leaves), -1, np.int32)
    exchanges = _exchanges(menu, smallest_slot)
    for i in range(n_jobs):
        _savings(menu, choice, i, exchanges, saving)
    for x in range(exchanges.shape[0]):
        a, b = exchanges[x, 0], exchanges[x, 1]
        for i in range(n_jobs):
            tree[a, b, leaves + i] = i
        for node in range(leaves - 1, 0, -1):
            _play(saving, tree, a, b, node)
    free = free_gpus(menu, choice, capacity)
    moves = 0
    while True:
        best, best_a, best_b, giver, taker = -tolerance, 0, 0, -1, -1
        for a in range(smallest_slot, slots):
            for b in range(smallest_slot, slots):
                if a == b:
                    continue
                i = tree[a, b, 1]
                change = saving[a, b, i]
                if change < best and (b == 0 or free[b - 1] > 0):  # the pool is the partner
                    best, best_a, best_b, giver, taker = change, a, b, i, -1
                if a < b:
                    continue
                j = tree[b, a, 1]
                if i != j:
                    if change + saving[b, a, j] < best:
                        best, best_a, best_b, giver, taker = change + saving[b, a, j], a, b, i, j
                elif change < np.inf and saving[b, a, j] < np.inf:
                    second, other = _best_other(saving, tree, leaves, a, b, i)
                    if second + saving[b, a, j] < best:
                        best, best_a, best_b, giver, taker = second + saving[b, a, j], a, b, other, j
                    second, other = _best_other(saving, tree, leaves, b, a, j)
                    if change + second < best:
                        best, best_a, best_b, giver, taker = change + second, a, b, i, other
        if giver < 0:
            return moves
        _take(menu, choice, giver, best_a, best_b)
        _refresh(menu, choice, giver, exchanges, saving, tree, leaves)
        if taker >= 0:
            _take(menu, choice, taker, best_b, best_a)
            _refresh(menu, choice, taker, exchanges, saving, tree, leaves)
        else:
            if best_a > 0:
                free[best_a - 1] += 1
            if best_b > 0:
                free[best_b - 1] -= 1
        moves += 1


@njit
def _fits(counts, row, pool):
    short = False
    for m in range(pool.shape[0]):
        short |= counts[row, m] > pool[m]
    return not short


@njit
def rechoose_pairs(menu, capacity, choice, prices, entries, reduced, listed, tolerance):
    """Let one or two jobs choose anew from their short lists on their own and the free GPUs; in place.

    With r_i(c) = J_i(c) + p . c and the excess of a job r_i(chosen) - min r_i, two jobs can save at most the sum
    of their excesses plus p . free (no entry costs less than min r_i): pairs below that are never looked at,
    which leaves few of them near the optimum. ``entries``, ``reduced`` (S, Q), ``listed`` (S,) are the short lists at
    ``prices``. Returns the number of changes.
    """
    n_jobs, n_types = choice.shape[0], capacity.shape[0]
    free = free_gpus(menu, choice, capacity)
    pool, rest = np.zeros(n_types, np.int64), np.zeros(n_types, np.int64)
    paid = np.zeros(n_jobs)  # reduced cost of the chosen entry
    for i in range(n_jobs):
        paid[i] = menu.cost[choice[i]]
        for m in range(n_types):
            paid[i] += prices[m] * menu.counts[menu.vector[choice[i]], m]
    changes = 0
    while True:
        changes_before = changes
        excess = paid - reduced[:, 0]
        by_excess = np.argsort(-excess, kind="mergesort")
        for i in by_excess:
            idle_value = 0.0
            for m in range(n_types):
                idle_value += prices[m] * free[m]
            best, best_a, partner, best_b = -tolerance, -1, -1, -1
            for place in range(-1, n_jobs):  # alone first, then with each other job
                j = by_excess[place] if place >= 0 else i
                if place >= 0 and j == i:
                    continue
                slack = idle_value + (excess[j] if j != i else 0.0)
                if paid[i] - reduced[i, 0] + slack <= -best:
                    if place >= 0:
                        break  # the jobs that follow have less excess
                    continue
                for m in range(n_types):
                    pool[m] = free[m] + menu.counts[menu.vector[choice[i]], m]
                    if j != i:
                        pool[m] += menu.counts[menu.vector[choice[j]], m]
                for qa in range(listed[i]):
                    if paid[i] - reduced[i, qa] + slack <= -best:
                        break
                    a = entries[i, qa]
                    if not _fits(menu.counts, menu.vector[a], pool):
                        continue
                    change_a = menu.cost[a] - menu.cost[choice[i]]
                    if j == i:
                        if change_a < best:
                            best, best_a, partner, best_b = change_a, a, -1, -1
                        continue
                    for m in range(n_types):
                        rest[m] = pool[m] - menu.counts[menu.vector[a], m]
                    for qb in range(listed[j]):
                        b = entries[j, qb]
                        if paid[i] - reduced[i, qa] + paid[j] - reduced[j, qb] + idle_value <= -best:
                            break
                        change = change_a + menu.cost[b] - menu.cost[choice[j]]
                        if change < best and _fits(menu.counts, menu.vector[b], rest):
                            best, best_a, partner, best_b = change, a, j, b
            if best_a < 0:
                continue
            changes += 1
            for job, entry in ((i, best_a), (partner, best_b)):
                if job < 0:
                    continue
                paid[job] = menu.cost[entry]
                for m in range(n_types):
                    free[m] += menu.counts[menu.vector[choice[job]], m] - menu.counts[menu.vector[entry], m]
                    paid[job] += prices[m] * menu.counts[menu.vector[entry], m]
                choice[job] = entry
        if changes == changes_before:
            return changes


@njit
def _force(menu, capacity, choice, prices, job, entry, trial):
    """Write into ``trial`` (S,) what follows when ``job`` takes ``entry``: others make room, then take what is left.

    In each type short of GPUs those jobs go first that lose least per GPU; all without GPUs then choose, the
    dearest to leave so first, the fitting entry of least ``cost + p . c``.
    """
    n_jobs, n_types = choice.shape[0], capacity.shape[0]
    trial[:] = choice
    trial[job] = entry
    free = free_gpus(menu, trial, capacity)
    for m in range(n_types):
        while free[m] < 0:
            victim, least = -1, np.inf
            for j in range(n_jobs):
                held = menu.counts[menu.vector[trial[j]], m]
                if j != job and held > 0:
                    loss = (menu.cost[menu.start[j]] - menu.cost[trial[j]]) / min(held, -free[m])
                    if loss < least:
                        victim, least = j, loss
            free += menu.counts[menu.vector[trial[victim]]]
            trial[victim] = menu.start[victim]
    empty = menu.start[:-1]
    without = np.flatnonzero((trial == empty) & (empty != entry))
    for j in without[np.argsort(-menu.cost[empty[without]], kind="mergesort")]:
        if free.sum() == 0:
            break
        least = np.inf
        for other in range(menu.start[j], menu.start[j + 1]):
            row = menu.vector[other]
            value = menu.cost[other]
            for m in range(n_types):
                value += prices[m] * menu.counts[row, m]
            if value < least and _fits(menu.counts, row, free):
                least, trial[j] = value, other
        free -= menu.counts[menu.vector[trial[j]]]


@njit
def force_entries(menu, capacity, choice, prices, entries, reduced, listed, bound, tolerance):
    """Force listed entries on jobs, let others make room, and keep what saves more than ``tolerance``; in place.

    It reaches what one-GPU moves and pairs cannot: a large rigid job that takes the place of several small ones.
    No placement with an entry costs less than ``bound`` (the dual bound at ``prices``) plus the entry's reduced cost
    above its job's least, so entries beyond the present total are not tried. Returns the number of changes.
    """
    total = menu.cost[choice].sum()
    trial = choice.copy()
    changes = 0
    for i in range(choice.shape[0]):
        for q in range(listed[i]):
            if bound + reduced[i, q] - reduced[i, 0] >= total - tolerance:
                break
            if entries[i, q] == choice[i]:
                continue
            _force(menu, capacity, choice, prices, i, entries[i, q], trial)
            cost = menu.cost[trial].sum()
            if cost < total - tolerance:
                total = cost
                choice[:] = trial
                changes += 1
    return changes


@njit
def improve(menu, capacity, choice, prices, entries, reduced, listed, tolerance, target):
    """Both searches in turn until neither saves more than ``tolerance`` or the total is within ``target``; in place."""
    move_single_gpus(menu, capacity, choice, 0, tolerance)
    while menu.cost[choice].sum() > target:
        if rechoose_pairs(menu, capacity, choice, prices, entries, reduced, listed, tolerance) == 0:
            break
        if move_single_gpus(menu, capacity, choice, 0, tolerance) == 0:
            break

"""From prices to a placement: jobs take, one after another, the best priced category that still fits."""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit
from hetenv.matching.menu import first_genuine, free_gpus
from hetenv.matching.prices import price_vectors


@njit
def repair(menu, capacity, prices, largest):
    """Entries (S,): by descending cost range each job takes the fitting entry of least ``cost + p . c``.

    An entry may have at most ``largest`` (S,) GPUs, and leaves as many free as the jobs still to come need that may
    not wait. A job that finds nothing gets its empty entry.
    """
    n_jobs = menu.must.shape[0]
    priced = price_vectors(menu.counts, prices)
    cost_range = np.zeros(n_jobs)
    reserve = np.zeros(n_jobs, np.int64)
    for i in range(n_jobs):
        low, high = np.inf, -np.inf
        for entry in range(first_genuine(menu, i), menu.start[i + 1]):
            low, high = min(low, menu.cost[entry]), max(high, menu.cost[entry])
        cost_range[i] = high - low
        if menu.must[i]:
            reserve[i] = menu.counts[menu.vector[menu.start[i] + 1]].sum()
    to_come = reserve.sum()
    choice = menu.start[:-1].copy()
    free = capacity.copy()
    for i in np.argsort(-cost_range, kind="mergesort"):
        to_come -= reserve[i]
        spare = free.sum() - to_come
        least = np.inf
        for entry in range(first_genuine(menu, i), menu.start[i + 1]):
            row = menu.vector[entry]
            value = menu.cost[entry] + priced[row]
            if value >= least:
                continue
            size = 0
            fits = True
            for m in range(free.shape[0]):
                size += menu.counts[row, m]
                fits = fits and menu.counts[row, m] <= free[m]
            if fits and size <= spare and size <= largest[i]:
                least, choice[i] = value, entry
        for m in range(free.shape[0]):
            free[m] -= menu.counts[menu.vector[choice[i]], m]
    return choice


@njit
def best_responses(menu, prices):
    """Entries (S,) of least ``cost + p . c`` of each job, whether or not all of them fit."""
    priced = price_vectors(menu.counts, prices)
    choice = menu.start[:-1].copy()
    for i in range(choice.shape[0]):
        least = np.inf
        for entry in range(first_genuine(menu, i), menu.start[i + 1]):
            value = menu.cost[entry] + priced[menu.vector[entry]]
            if value < least:
                least, choice[i] = value, entry
    return choice


@njit
def relieve(menu, capacity, choice, entries, reduced, listed):
    """Move jobs off overfull types until all fit; changes ``choice`` (S,), each job's best entry at first, in place.

    Each step is to the listed entry of least rise in reduced cost per GPU of excess that it relieves. ``entries``,
    ``reduced`` (S, Q) and ``listed`` (S,) are the short lists, ascending. At the prices of highest g little is
    overfull, so little is lost. Returns whether all fit; there may be no step that relieves.
    """
    n_types = capacity.shape[0]
    free = free_gpus(menu, choice, capacity)
    paid = reduced[:, 0].copy()
    while True:
        excess = 0
        for m in range(n_types):
            excess += max(0, -free[m])
        if excess == 0:
            return True
        least, job, place = np.inf, -1, -1
        for i in range(choice.shape[0]):
            held = menu.counts[menu.vector[choice[i]]]
            overfull = False
            for m in range(n_types):
                overfull |= held[m] > 0 and free[m] < 0
            if not overfull:
                continue
            for q in range(listed[i]):
                wanted, after = menu.counts[menu.vector[entries[i, q]]], 0
                for m in range(n_types):
                    after += max(0, wanted[m] - held[m] - free[m])
                if after < excess and reduced[i, q] - paid[i] < least * (excess - after):
                    least, job, place = (reduced[i, q] - paid[i]) / (excess - after), i, q
        if job < 0:
            return False
        free += menu.counts[menu.vector[choice[job]]] - menu.counts[menu.vector[entries[job, place]]]
        choice[job], paid[job] = entries[job, place], reduced[job, place]


@njit
def smallest_sizes(menu):
    """(S,) GPUs of the smallest category of each job that must be placed, 0 for one that may wait."""
    sizes = np.zeros(menu.must.shape[0], np.int64)
    for i in range(sizes.shape[0]):
        sizes[i] = menu.counts[menu.vector[first_genuine(menu, i)]].sum()
    return sizes


@njit
def resume(menu, capacity, prices, rows):
    """Entries (S,): each job the category of count vector ``rows`` (S,) where it is on the menu and still fits.

    All others, -1 or without room, then take the fitting entry of least ``cost + p . c``, in the order of the jobs.
    """
    priced = price_vectors(menu.counts, prices)
    choice = menu.start[:-1].copy()
    free = capacity.copy()
    for again in (False, True):
        for i in range(choice.shape[0]):
            if again and choice[i] > menu.start[i]:
                continue
            least, chosen = np.inf, menu.start[i]
            for entry in range(first_genuine(menu, i), menu.start[i + 1]):
                row = menu.vector[entry]
                value = menu.cost[entry] + priced[row]
                if value < least and (again or row == rows[i]) and (menu.counts[row] <= free).all():
                    least, chosen = value, entry
            choice[i] = chosen
            free -= menu.counts[menu.vector[chosen]]
    return choice

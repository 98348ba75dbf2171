"""JPS in the paper's form: sample size categories, clear a market in each, keep the best.

Reconstructed from the abstract and sibling papers; details may differ from the published algorithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hetenv.compiled import njit
from hetenv.errors import InputError
from hetenv.matching.fairness import exclusive_share_s
from hetenv.matching.local_search import force_entries, move_single_gpus, rechoose_pairs
from hetenv.matching.menu import find_entry, first_genuine, serve_menu
from hetenv.matching.offers import OnlineTerms, canonical_order, settle_terms, take_terms
from hetenv.matching.problem import Placement, PlacementProblem
from hetenv.matching.repair import repair, smallest_sizes
from hetenv.matching.selection import place_stranded
from hetenv.matching.size_market import linearised_assignment
from hetenv.matching.size_vectors import count_ways, jitter_sizes, unrank_sizes

if TYPE_CHECKING:
    from typing import Unpack


def solve_jps(
    problem: PlacementProblem,
    samples: int = 100,
    seed: int = 0,
    *,
    beta: float = 1.0,
    alpha: float = 0.0,
    local_search: bool = False,
    **online: Unpack[OnlineTerms],
) -> Placement:
    """Place the jobs by sampling size vectors (GPUs per job) and a matching market inside each.

    Jobs are sorted longest first. A quarter of the samples are uniform over all size vectors, idle GPUs included; the
    others move single GPUs between the jobs of the best one so far. In each, GPUs are matched to jobs by linearised
    valuations (see ``size_market``), and jobs exchange GPUs while that helps. Two things no additive valuation can
    say are settled before the market: a job whose size stays and for which keeping its GPUs is the cheapest way
    keeps them, and a job with measured rates takes its cheapest fitting type, largest job first, to be swapped
    later with that of another one.

    Args:
        problem: the jobs and GPUs, with speeds.
        samples: size vectors to try.
        seed: of the sampling; the same seed gives the same placement.
        beta: the best sample is the one of least ``beta * mean J + (1 - beta) * (1 - Jain(rho)) * mean J`` with
            rho = J / J_eq (see ``fairness``); 1: mean J alone.
        alpha: fraction, at most 0.5, of the lexicographic list of size vectors that uniform draws skip.
        local_search: improve the best sample on mean J, by one-GPU moves and by letting a job push others aside for
            its smallest size. Off in the paper's form; with 100 samples, the more jobs the more it gains.
        online: see ``OnlineTerms``.

    Raises:
        InputError: a bad argument or term, explicit costs without speeds, or jobs that cannot all be placed and may
            not wait.
    """
    if samples < 1 or int(samples) != samples:
        raise InputError("samples", samples, "give a whole number of at least 1")
    if not 0.0 <= beta <= 1.0:
        raise InputError("beta", beta, "give a number from 0 to 1")
    if not 0.0 <= alpha <= 0.5:
        raise InputError("alpha", alpha, "give a number from 0 to 0.5")
    model = problem.model
    if model is None:
        raise InputError("problem", "explicit costs without speeds", "build it with PlacementProblem(...)")
    terms = settle_terms(problem, **online)
    order = canonical_order(terms)
    menu = serve_menu(problem, np.ones(len(problem.costs.cost), bool), take_terms(terms, order), order)
    weights = online.get("weights")
    work = model.batch * model.iterations * (1.0 if weights is None else np.asarray(weights, float))
    share_s = exclusive_share_s(problem) if beta < 1.0 else np.ones(problem.n_jobs)
    current = online.get("current")
    held = np.zeros((problem.n_jobs, problem.n_types), np.int64) if current is None else np.asarray(current, np.int64)
    choice = _sample(
        menu, problem.capacity, model.speed[order], work[order], model.measured[order], held[order], share_s[order],
        samples, beta, alpha, np.random.default_rng(seed),
    )  # fmt: skip
    if local_search:
        _polish(menu, problem.capacity, choice, 1e-12 * abs(menu.total(choice)))
    choice = place_stranded(menu, problem.capacity, choice)
    counts = np.empty_like(menu.counts_of(choice))
    counts[order] = menu.counts_of(choice)
    return Placement(counts, menu.total(choice))


@njit
def _sample(menu, capacity, speed, work, measured, held, share_s, samples, beta, alpha, rng):
    """The best sample's entries (S,); without any feasible sample, smallest categories by repair."""
    n_jobs = work.shape[0]
    smallest, largest = np.zeros(n_jobs, np.int64), np.zeros(n_jobs, np.int64)
    may_wait, shortest_s = ~menu.must, np.zeros(n_jobs)
    for i in range(n_jobs):
        first, last = menu.start[i] + 1, menu.start[i + 1] - 1
        if last >= first:  # graded order: sizes ascend; a job that can only wait keeps size 0
            smallest[i] = menu.counts[menu.vector[first]].sum()
            largest[i] = menu.counts[menu.vector[last]].sum()
            shortest_s[i] = menu.cost[first : last + 1].min()
    # priority: longest first; all per-job arrays of the sampling follow this order
    order = np.argsort(-shortest_s, kind="mergesort")
    smallest, largest, may_wait = smallest[order], largest[order], may_wait[order]
    mean_speed = np.zeros(n_jobs)
    for i in range(n_jobs):
        runnable = 0
        for m in range(capacity.shape[0]):
            if speed[i, m] > 0.0:
                runnable += capacity[m]
                mean_speed[i] += speed[i, m] * capacity[m]
        mean_speed[i] /= max(runnable, 1)

    n_gpus = capacity.sum()
    ways = count_ways(smallest, largest, may_wait, n_gpus)
    sizes, best_sizes = np.zeros(n_jobs, np.int64), np.zeros(n_jobs, np.int64)
    tried = np.empty((samples, n_jobs), np.int64)
    size_of_job, additive_sizes = np.zeros(n_jobs, np.int64), np.zeros(n_jobs, np.int64)
    choice = np.zeros(n_jobs, np.int64)
    counts, valuation = np.zeros((n_jobs, capacity.shape[0]), np.int64), np.zeros(speed.shape)
    settled = np.zeros(n_jobs, np.bool_)
    single_type, swaps = np.zeros((n_jobs, capacity.shape[0]), np.int64), np.zeros(n_jobs, np.int64)
    swap_cost = np.full((n_jobs, capacity.shape[0]), np.inf)
    free_of_charge = np.zeros(capacity.shape[0])
    best, best_choice = np.inf, repair(menu, capacity, np.zeros(capacity.shape[0]), smallest_sizes(menu))
    for sample in range(samples):
        if best == np.inf or sample < samples // 4:
            unrank_sizes(ways, smallest, largest, may_wait, alpha, rng, sizes)
        else:
            jitter_sizes(best_sizes, smallest, largest, may_wait, n_gpus, rng, sizes)
        tried[sample] = sizes
        if _known(tried, sample):  # the same sizes end in the same placement
            continue
        size_of_job[order] = sizes
        left = capacity.copy()
        _keep_current(menu, order, held, size_of_job, left, choice, settled)
        _list_cheapest(menu, measured, size_of_job, single_type, swap_cost, swaps)
        largest_first = order[np.argsort(-size_of_job[order], kind="mergesort")]  # big blocks find room before singles
        if not _place_measured(menu, largest_first, measured, single_type, swaps, left, choice, settled):
            continue
        additive_sizes[:] = np.where(settled, 0, size_of_job)
        if not linearised_assignment(work, speed, additive_sizes, left, mean_speed, valuation, counts):
            continue
        if not _look_up(menu, settled, counts, choice):
            continue
        tolerance = 1e-12 * abs(menu.cost[choice].sum())
        rechoose_pairs(menu, capacity, choice, free_of_charge, single_type, swap_cost, swaps, tolerance)
        move_single_gpus(menu, capacity, choice, 1, tolerance)
        value = _objective(menu.cost[choice], share_s, beta)
        if value < best:
            best = value
            best_sizes[:] = sizes
            best_choice[:] = choice
    return best_choice


@njit
def _known(tried, sample):
    """Whether row ``sample`` of ``tried`` (N, S) equals an earlier one."""
    for earlier in range(sample):
        i = 0
        while i < tried.shape[1] and tried[earlier, i] == tried[sample, i]:
            i += 1
        if i == tried.shape[1]:
            return True
    return False


@njit
def _keep_current(menu, order, held, sizes, left, choice, settled):
    """Settle, by priority, the jobs for which keeping ``held`` (S, M) is the cheapest way to have their size.

    Takes the GPUs out of ``left`` (M,).
    """
    for i in order:
        settled[i] = False
        if sizes[i] == 0 or held[i].sum() != sizes[i] or (held[i] > left).any():
            continue
        stay = find_entry(menu, i, (held[i] * menu.type_key).sum())
        if stay < 0:
            continue
        cheapest = True
        for entry in range(menu.start[i] + 1, menu.start[i + 1]):
            if menu.cost[entry] < menu.cost[stay] and menu.counts[menu.vector[entry]].sum() == sizes[i]:
                cheapest = False
                break
        if cheapest:
            settled[i] = True
            choice[i] = stay
            left -= held[i]


@njit
def _list_cheapest(menu, wanted, sizes, entries, cost, listed):
    """List the cheapest categories of size ``sizes`` (S,) of the ``wanted`` (S,) jobs, ascending.

    Fills ``entries`` and ``cost`` (S, Q) with at most Q each, and their number ``listed`` (S,).
    """
    for i in range(sizes.shape[0]):
        listed[i] = 0
        if not wanted[i]:
            continue
        for entry in range(first_genuine(menu, i), menu.start[i + 1]):
            if menu.counts[menu.vector[entry]].sum() != sizes[i]:
                continue
            q = min(listed[i], cost.shape[1] - 1)
            if listed[i] == cost.shape[1] and cost[i, q] <= menu.cost[entry]:
                continue
            listed[i] = q + 1
            while q > 0 and cost[i, q - 1] > menu.cost[entry]:
                cost[i, q], entries[i, q] = cost[i, q - 1], entries[i, q - 1]
                q -= 1
            cost[i, q], entries[i, q] = menu.cost[entry], entry


@njit
def _polish(menu, capacity, choice, tolerance):
    """One-GPU moves and forced smallest categories in turn until neither helps; changes ``choice`` (S,) in place.

    Forcing lets waiting and rigid jobs in, which one-GPU moves cannot.
    """
    n_jobs, n_types = choice.shape[0], capacity.shape[0]
    smallest = np.zeros(n_jobs, np.int64)
    for i in range(n_jobs):
        if menu.start[i + 1] > menu.start[i] + 1:
            smallest[i] = menu.counts[menu.vector[menu.start[i] + 1]].sum()
    entries, listed = np.zeros((n_jobs, n_types), np.int64), np.zeros(n_jobs, np.int64)
    cost = np.full((n_jobs, n_types), np.inf)
    _list_cheapest(menu, smallest > 0, smallest, entries, cost, listed)
    move_single_gpus(menu, capacity, choice, 0, tolerance)
    while force_entries(menu, capacity, choice, np.zeros(n_types), entries, cost, listed, -np.inf, tolerance) > 0:
        move_single_gpus(menu, capacity, choice, 0, tolerance)


@njit
def _place_measured(menu, order, measured, entries, listed, left, choice, settled):
    """Settle each measured job, in the given order, on its cheapest listed category that fits; False if one finds none.

    Takes the GPUs out of ``left`` (M,).
    """
    for i in order:
        if settled[i] or not measured[i]:
            continue
        for q in range(listed[i]):
            if (menu.counts[menu.vector[entries[i, q]]] <= left).all():
                settled[i] = True
                choice[i] = entries[i, q]
                left -= menu.counts[menu.vector[choice[i]]]
                break
        if not settled[i]:
            return False
    return True


@njit
def _look_up(menu, settled, counts, choice):
    """Write the entries of ``counts`` (S, M) into ``choice`` (S,), but for settled jobs; False if one is missing."""
    for i in range(choice.shape[0]):
        if not settled[i]:
            choice[i] = find_entry(menu, i, (counts[i] * menu.type_key).sum())
            if choice[i] < first_genuine(menu, i):
                return False
    return True


@njit
def _objective(cost_s, share_s, beta):
    """``beta * mean J + (1 - beta) * (1 - Jain(rho)) * mean J`` of ``cost_s`` (S,), rho = cost_s / share_s."""
    mean_s = cost_s.mean()
    if beta == 1.0:
        return mean_s
    rho = cost_s / share_s
    jain = rho.sum() ** 2 / (rho.shape[0] * (rho**2).sum())
    return beta * mean_s + (1.0 - beta) * (1.0 - jain) * mean_s

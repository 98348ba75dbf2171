"""``PairScorer``: a policy of some three hundred numbers, scored in compiled code; what the evolution strategy breeds.

    score of a pair = -ln(fastest remaining time / time scale) - k * regret + network(inputs of the pair)
    score of waiting = -k * t + network(inputs of waiting)

The regret of a candidate is ln(T n^a) less that of the job's cheapest candidate, as in ``agents.heuristic``; k, t and
the two numbers behind a are weights here. Both networks have one small hidden layer. All weights are shared over jobs,
candidates and types, so that one scorer serves any window and cluster. ``PairScorer.initial`` plays the heuristic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from agents.heuristic import COLUMNS, LEAST_GAIN, LEAST_SIZE_EXPONENT, REGRET_WEIGHT, TOLERATED_REGRET
from agents.squashed import log_scaled_time, scaled_time
from hetenv.compiled import njit_in_place as njit

RULE = ("ln k", "a of an empty queue", "growth of a with the queue", "t")
# In the order in which the kernels below fill them. Times enter as ln(t / time scale), one alone as a third of it.
PAIR_INPUTS = (
    "bias",
    # the state
    "waiting jobs, squashed",
    "running jobs / GPUs",
    "free GPUs",
    "finished jobs / all jobs",
    "next release",
    "gap between arrivals",
    # the job
    "fastest time",
    "age, squashed",
    "progress bound",
    "running",
    "share of the window's jobs with less time",
    "next release against the fastest time",
    "wait for its cheapest candidate against the time under it",
    # the candidate
    "regret",
    "regret against the job's cheapest candidate that can be taken",
    "finish against the job's soonest, waits for GPUs included",
    "slowdown against the job's fastest candidate",
    "GPUs",
    "GPUs / most GPUs",
    "efficiency",
    "rate / best rate of its size",
    "scarcity",
    "fits one node",
    "gain",
)
WAIT_INPUTS = (
    *PAIR_INPUTS[:7],
    "time since the last arrival",
    "lead of the best pair over waiting",
    "best pair: fastest time",
    "best pair: regret",
    "best pair: finish against the job's soonest",
    "best pair: wait for its job's cheapest candidate",
    "best pair: scarcity",
    "least regret of all pairs",
)
MOST_LEAD = 5.0


class Shape(NamedTuple):
    """Sizes of the hidden layers."""

    pair: int = 6
    wait: int = 4

    @property
    def n_weights(self) -> int:
        return len(RULE) + self.pair * (len(PAIR_INPUTS) + 1) + self.wait * (len(WAIT_INPUTS) + 1)


class Layers(NamedTuple):
    """Weights by their place: of one scorer, or of P with a leading axis."""

    rule: np.ndarray  # (4,)
    pair_in: np.ndarray  # (H, len(PAIR_INPUTS))
    pair_out: np.ndarray  # (H,)
    wait_in: np.ndarray  # (G, len(WAIT_INPUTS))
    wait_out: np.ndarray  # (G,)


def as_layers(weights: np.ndarray, shape: Shape) -> Layers:
    """``weights`` (..., n_weights) by their place."""
    lead = weights.shape[:-1]
    shapes = [
        (len(RULE),),
        (shape.pair, len(PAIR_INPUTS)),
        (shape.pair,),
        (shape.wait, len(WAIT_INPUTS)),
        (shape.wait,),
    ]
    ends = np.cumsum([np.prod(own) for own in shapes])
    parts = np.split(weights, ends[:-1], axis=-1)
    return Layers(*(np.ascontiguousarray(part.reshape(*lead, *own)) for part, own in zip(parts, shapes, strict=True)))


class PairScorer:
    """A greedy policy for the observations of ``hetenv/Placement-v0``.

    Args:
        weights: (shape.n_weights,) float64.
    """

    def __init__(self, weights: np.ndarray, shape: Shape) -> None:
        self.weights, self.shape = np.array(weights, np.float64), shape
        self._layers = as_layers(self.weights, shape)

    @classmethod
    def initial(cls, shape: Shape) -> PairScorer:
        """Plays the heuristic: both networks are all zeros."""
        weights = np.zeros(shape.n_weights)
        weights[: len(RULE)] = np.log(REGRET_WEIGHT), LEAST_SIZE_EXPONENT, 1.0, TOLERATED_REGRET
        return cls(weights, shape)

    def greedy_actions(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """(B,) the action of highest score for each of a batch of observations."""
        actions = np.empty(len(observations["jobs"]), np.int64)
        choose_all(
            observations["jobs"],
            observations["candidates"],
            observations["globals"],
            observations["action_mask"] > 0.5,
            self._layers,
            COLUMNS,
            make_inputs(observations["candidates"].shape[2]),
            actions,
        )
        return actions


def make_inputs(n_places: int) -> np.ndarray:
    """(3, n) room for the inputs of a pair, those of waiting, and the costs of a job's S candidates."""
    return np.zeros((3, max(len(PAIR_INPUTS), len(WAIT_INPUTS), n_places)))


@njit
def choose_all(jobs, candidates, globals_, masks, layers, columns, inputs, actions):
    for b in range(actions.shape[0]):
        actions[b] = choose(jobs[b], candidates[b], globals_[b], masks[b], layers, columns, inputs)


@njit
def choose(jobs, candidates, globals_, mask, layers, columns, inputs):
    """The allowed action of highest score, the first of equals; ``jobs`` (W, Fj), ``candidates`` (W, S, Fc)."""
    n_jobs, n_places = candidates.shape[0], candidates.shape[1]
    pair, wait, cost = inputs[0], inputs[1], inputs[2]
    pair[0] = wait[0] = 1.0  # the bias
    x, z = pair[1:], wait[1:]
    k = np.exp(layers.rule[0])
    exponent = layers.rule[1] + layers.rule[2] * globals_[columns.queue]
    wait_rule = -k * layers.rule[3]
    fill_state(globals_, columns, x)
    fill_state(globals_, columns, z)
    best, best_score, least_regret = n_jobs * n_places, -np.inf, MOST_LEAD
    for w in range(n_jobs):
        first = w * n_places
        any_allowed = False
        for s in range(n_places):
            any_allowed = any_allowed or mask[first + s]
        if not any_allowed:
            continue
        outlook = job_outlook(candidates[w], mask[first : first + n_places], exponent, columns, cost)
        log_fastest = fill_job(jobs, w, globals_, outlook, columns, x)
        for s in range(n_places):
            if not mask[first + s]:
                continue
            candidate = candidates[w, s]
            regret = fill_candidate(candidate, cost[s], outlook, columns, x)
            if jobs[w, columns.running] > 0.0:
                score = wait_rule + k * (candidate[columns.gain] - LEAST_GAIN)
            else:
                score = -log_fastest - k * regret
            score += _network(pair, layers.pair_in, layers.pair_out)
            least_regret = min(least_regret, regret)
            if score > best_score:
                best, best_score = first + s, score
                fill_best(x, z)
    if not mask[n_jobs * n_places]:
        return best
    if best_score == -np.inf:
        return n_jobs * n_places
    fill_lead(globals_, best_score - wait_rule, least_regret, columns, z)
    wait_score = wait_rule + _network(wait, layers.wait_in, layers.wait_out)
    return best if best_score > wait_score else n_jobs * n_places


# --- inputs: PAIR_INPUTS in ``x`` and WAIT_INPUTS in ``z``, both without the bias -------------------------


@njit
def fill_state(globals_, columns, x):
    """The inputs that a pair and waiting have in common."""
    x[0] = globals_[columns.queue]
    x[1] = globals_[columns.busy]
    x[2] = globals_[columns.free]
    x[3] = globals_[columns.finished]
    x[4] = log_scaled_time(globals_[columns.next_release]) / 3.0
    x[5] = log_scaled_time(globals_[columns.gap]) / 3.0


@njit
def fill_job(jobs, w, globals_, outlook, columns, x):
    """The inputs of the job at place ``w`` of ``jobs`` (W, Fj); returns the logarithm of its fastest time."""
    job = jobs[w]
    log_fastest = log_scaled_time(job[columns.fastest])
    n_present, n_shorter = 0, 0
    for other in range(jobs.shape[0]):
        n_present += jobs[other, columns.present] > 0.0
        n_shorter += jobs[other, columns.present] > 0.0 and jobs[other, columns.fastest] < job[columns.fastest]
    x[6] = log_fastest / 3.0
    x[7] = job[columns.age]
    x[8] = job[columns.bound]
    x[9] = job[columns.running]
    x[10] = n_shorter / max(n_present, 1)
    x[11] = (log_scaled_time(globals_[columns.next_release]) - log_fastest) / 3.0
    x[12] = outlook.wait_for_cheapest
    return log_fastest


@njit
def fill_candidate(candidate, log_cost, outlook, columns, x):
    """The inputs of one of the job's candidates; returns its regret."""
    gpus = candidate[columns.gpus]
    regret = 0.0
    x[13:19] = 0.0
    if gpus > 0.0:
        regret = log_cost - outlook.least
        x[13] = regret
        x[14] = log_cost - outlook.least_allowed
        x[15] = log_scaled_time(candidate[columns.time]) - outlook.soonest
        x[16] = -np.log(max(candidate[columns.speed], 1e-4))
        x[17] = np.log(gpus) / 3.0
        x[18] = candidate[columns.gpus_of_most]
    x[19] = candidate[columns.efficiency]
    x[20] = candidate[columns.same_size]
    x[21] = candidate[columns.scarcity]
    x[22] = candidate[columns.one_node]
    x[23] = candidate[columns.gain]
    return regret


@njit
def fill_best(x, z):
    """What waiting is told of the best pair so far, that of ``x``."""
    z[8] = x[6]
    z[9] = x[13]
    z[10] = x[15]
    z[11] = x[12]
    z[12] = x[21]


@njit
def fill_lead(globals_, lead, least_regret, columns, z):
    """What waiting is told besides: of the time, of the best pair's ``lead`` over it, and of the least regret."""
    z[6] = log_scaled_time(globals_[columns.since_arrival]) / 3.0
    z[7] = min(max(lead, -MOST_LEAD), MOST_LEAD) / 3.0
    z[13] = least_regret


class Outlook(NamedTuple):
    """What a job can expect of all its candidates, whether their GPUs are free or not."""

    least: float  # logarithm of the least cost
    least_allowed: float  # of those that can be taken
    soonest: float  # logarithm of the soonest finish, waits for GPUs included
    wait_for_cheapest: float  # of the time under it


@njit
def job_outlook(candidates, allowed, exponent, columns, cost):
    """The ``Outlook`` of a job with ``candidates`` (S, Fc), of which the ``allowed`` (S,) can be taken.

    Writes the logarithms of their costs into ``cost`` (S,).
    """
    least, least_allowed, soonest, wait_for_cheapest = np.inf, np.inf, np.inf, 0.0
    for s in range(candidates.shape[0]):
        candidate = candidates[s]
        cost[s] = 0.0
        if candidate[columns.gpus] > 0.0:  # neither an empty place nor "give all back"
            log_time = log_scaled_time(candidate[columns.time])
            cost[s] = log_time + exponent * np.log(candidate[columns.gpus])
            relative_wait = scaled_time(candidate[columns.wait]) / np.exp(log_time)
            soonest = min(soonest, log_time + np.log1p(relative_wait))
            if allowed[s]:
                least_allowed = min(least_allowed, cost[s])
            if cost[s] < least:
                least = cost[s]
                wait_for_cheapest = np.log1p(relative_wait)
    return Outlook(least, least_allowed, soonest, wait_for_cheapest)


@njit
def _network(inputs, first, last):
    """One hidden layer of tanh units, no output bias."""
    out = 0.0
    for h in range(first.shape[0]):
        unit = 0.0
        for i in range(first.shape[1]):
            unit += first[h, i] * inputs[i]
        out += last[h] * np.tanh(unit)
    return out

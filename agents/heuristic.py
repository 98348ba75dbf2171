"""The rule that an untrained policy plays: a score for each placement and one for waiting.

A candidate that takes T seconds on n GPUs costs ``T * n ** a`` with ``a = 0.25 + n_waiting / (n_waiting + W)``:
an idle cluster gives GPUs away to finish a job sooner, a busy one counts GPU-seconds. The *regret* of a
candidate is the logarithm of its cost over that of the job's cheapest candidate, free now or not. Then

    score of a placement = -ln(fastest remaining time / time scale) - 4 * regret
    score of waiting     = -4 * 0.6

so that short jobs go first and take almost anything, while long ones wait for GPUs that suit them. A job that
runs already is changed only for a large gain over what it holds, and GPUs are given back for nothing.

The constants were chosen by greedy play of this rule alone on ``online``, on episodes of small seeds, which
no evaluation uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from agents.squashed import log_scaled_time
from hetenv.compiled import njit
from hetenv.envs.view import CANDIDATE_FEATURES, GLOBAL_FEATURES, JOB_FEATURES

LEAST_SIZE_EXPONENT = 0.25
REGRET_WEIGHT = 4.0
TOLERATED_REGRET = 0.6  # of a job whose fastest remaining time is one time scale
LEAST_GAIN = 0.2  # for which a running job is changed: the remaining time falls by a third


def feature(names: tuple[str, ...], start: str) -> int:
    """Position of the one feature whose name begins with ``start``."""
    (position,) = (at for at, name in enumerate(names) if name.startswith(start))
    return position


class Columns(NamedTuple):
    """Where kernels find features; an argument of theirs, so that none has a number of its own for them."""

    # of a job
    present: int
    fastest: int
    age: int
    bound: int
    running: int
    # of a candidate
    gpus_of_most: int
    gpus: int
    time: int
    speed: int
    efficiency: int
    same_size: int
    scarcity: int
    one_node: int
    gain: int
    wait: int
    # of the state
    queue: int
    busy: int
    free: int
    finished: int
    next_release: int
    gap: int
    since_arrival: int


COLUMNS = Columns(
    present=feature(JOB_FEATURES, "present"),
    fastest=feature(JOB_FEATURES, "work"),
    age=feature(JOB_FEATURES, "age"),
    bound=feature(JOB_FEATURES, "progress bound"),
    running=feature(JOB_FEATURES, "running"),
    gpus_of_most=feature(CANDIDATE_FEATURES, "GPUs / most"),
    gpus=feature(CANDIDATE_FEATURES, "GPUs / cluster"),
    time=feature(CANDIDATE_FEATURES, "remaining time"),
    speed=feature(CANDIDATE_FEATURES, "speed"),
    efficiency=feature(CANDIDATE_FEATURES, "efficiency"),
    same_size=feature(CANDIDATE_FEATURES, "same size"),
    scarcity=feature(CANDIDATE_FEATURES, "scarcity"),
    one_node=feature(CANDIDATE_FEATURES, "fits one node"),
    gain=feature(CANDIDATE_FEATURES, "gain"),
    wait=feature(CANDIDATE_FEATURES, "wait"),
    queue=feature(GLOBAL_FEATURES, "waiting jobs"),
    busy=feature(GLOBAL_FEATURES, "running jobs"),
    free=feature(GLOBAL_FEATURES, "free GPUs"),
    finished=feature(GLOBAL_FEATURES, "finished jobs"),
    next_release=feature(GLOBAL_FEATURES, "next release"),
    gap=feature(GLOBAL_FEATURES, "mean gap"),
    since_arrival=feature(GLOBAL_FEATURES, "time since"),
)


class Scores(NamedTuple):
    """What the rule makes of B observations, float32; entries of empty places mean nothing."""

    pairs: np.ndarray  # (B, W, S)
    wait: np.ndarray  # (B,)
    regret: np.ndarray  # (B, W, S), 0 for the cheapest candidate of a job


def score(observations: Mapping[str, np.ndarray]) -> Scores:
    """Scores for a batch of observations of ``hetenv/Placement-v0``."""
    jobs, candidates = observations["jobs"], observations["candidates"]
    n_batch, n_jobs, n_places = candidates.shape[:3]
    scores = Scores(
        pairs=np.zeros((n_batch, n_jobs, n_places), np.float32),
        wait=np.full(n_batch, -REGRET_WEIGHT * TOLERATED_REGRET, np.float32),
        regret=np.zeros((n_batch, n_jobs, n_places), np.float32),
    )
    _fill(jobs, candidates, observations["globals"], COLUMNS, scores)
    return scores


def greedy_action(observation: Mapping[str, np.ndarray]) -> int:
    """The allowed action with the highest score, for one observation."""
    scores = score({key: value[None] for key, value in observation.items()})
    flat = np.append(scores.pairs, scores.wait)
    return int(np.where(observation["action_mask"] > 0.5, flat, -np.inf).argmax())


@njit
def _fill(jobs, candidates, globals_, columns, scores):
    n_batch, n_jobs, n_places = candidates.shape[:3]
    for b in range(n_batch):
        exponent = LEAST_SIZE_EXPONENT + globals_[b, columns.queue]
        for w in range(n_jobs):
            least = np.inf
            for s in range(n_places):
                gpus = candidates[b, w, s, columns.gpus]
                if gpus > 0.0:  # neither an empty place nor "give all back"
                    scores.regret[b, w, s] = log_scaled_time(candidates[b, w, s, columns.time]) + exponent * np.log(
                        gpus
                    )
                    least = min(least, scores.regret[b, w, s])
            log_time = log_scaled_time(jobs[b, w, columns.fastest])
            for s in range(n_places):
                if candidates[b, w, s, columns.gpus] > 0.0:
                    scores.regret[b, w, s] -= least
                if jobs[b, w, columns.running] > 0.0:
                    gain = candidates[b, w, s, columns.gain]
                    scores.pairs[b, w, s] = scores.wait[b] + REGRET_WEIGHT * (gain - LEAST_GAIN)
                else:
                    scores.pairs[b, w, s] = -log_time - REGRET_WEIGHT * scores.regret[b, w, s]

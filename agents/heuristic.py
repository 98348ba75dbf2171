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
import torch

from hetenv.envs.view import CANDIDATE_FEATURES, GLOBAL_FEATURES, JOB_FEATURES

LEAST_SIZE_EXPONENT = 0.25
REGRET_WEIGHT = 4.0
TOLERATED_REGRET = 0.6  # of a job whose fastest remaining time is one time scale
LEAST_GAIN = 0.2  # for which a running job is changed: the remaining time falls by a third

LONGEST = 1e4  # time scales; where a squashed time of 1, infinity, is cut off
SHORTEST = 1e-4


def feature(names: tuple[str, ...], start: str) -> int:
    """Position of the one feature whose name begins with ``start``."""
    (position,) = (at for at, name in enumerate(names) if name.startswith(start))
    return position


FASTEST = feature(JOB_FEATURES, "work")
_RUNNING = feature(JOB_FEATURES, "running")
_TIME = feature(CANDIDATE_FEATURES, "remaining time")
_GPUS = feature(CANDIDATE_FEATURES, "GPUs / cluster")
_GAIN = feature(CANDIDATE_FEATURES, "gain")
_QUEUE = feature(GLOBAL_FEATURES, "waiting jobs")


class Scores(NamedTuple):
    """What the rule makes of B observations."""

    pairs: torch.Tensor  # (B, W, S)
    wait: torch.Tensor  # (B,)
    regret: torch.Tensor  # (B, W, S), 0 for the cheapest candidate of a job


def score(observation: Mapping[str, torch.Tensor]) -> Scores:
    """Scores for a batch of observations of ``hetenv/Placement-v0``; those of empty places mean nothing."""
    jobs, candidates = observation["jobs"], observation["candidates"]
    exponent = LEAST_SIZE_EXPONENT + observation["globals"][:, _QUEUE, None, None]
    gpus = candidates[..., _GPUS]
    is_placement = gpus > 0  # neither an empty place nor "give all back"
    log_cost = log_time(candidates[..., _TIME]) + exponent * gpus.clamp(min=1e-9).log()
    least = torch.where(is_placement, log_cost, torch.inf).amin(dim=2, keepdim=True)
    regret = torch.where(is_placement, log_cost - least, 0.0)

    start = -log_time(jobs[..., FASTEST])[..., None] - REGRET_WEIGHT * regret
    wait = torch.full_like(gpus[:, 0, 0], -REGRET_WEIGHT * TOLERATED_REGRET)
    change = wait[:, None, None] + REGRET_WEIGHT * (candidates[..., _GAIN] - LEAST_GAIN)
    return Scores(torch.where(jobs[..., _RUNNING, None] > 0, change, start), wait, regret)


@torch.no_grad()
def greedy_action(observation: Mapping[str, np.ndarray]) -> int:
    """The allowed action with the highest score, for one observation."""
    scores = score({key: torch.as_tensor(value)[None] for key, value in observation.items()})
    flat = torch.cat([scores.pairs.flatten(), scores.wait])
    return int(torch.where(torch.as_tensor(observation["action_mask"]) > 0.5, flat, -torch.inf).argmax())


def log_time(squashed: torch.Tensor) -> torch.Tensor:
    """ln(t / time scale) of times that enter observations as f = t / (t + time scale); finite for f in [0, 1]."""
    return (squashed / (1.0 - squashed).clamp(min=1.0 / LONGEST)).clamp(SHORTEST, LONGEST).log()

"""What the network sees: inputs derived from observations, for the pairs that the mask allows and no others.

They are those of ``agents.scorer``, under the constants of ``agents.heuristic``; its lists say what each is. A tenth or
so of all pairs is allowed, so a few kilobytes of inputs replace the fourteen of an observation: the rollout
buffer keeps them instead, and they are computed once for all epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from agents.heuristic import COLUMNS, LEAST_GAIN, LEAST_SIZE_EXPONENT, REGRET_WEIGHT, TOLERATED_REGRET
from agents.scorer import (
    MOST_LEAD,
    PAIR_INPUTS,
    WAIT_INPUTS,
    fill_best,
    fill_candidate,
    fill_job,
    fill_lead,
    fill_state,
    job_outlook,
)
from agents.squashed import log_scaled_time
from hetenv.compiled import njit
from hetenv.envs.view import JOB_FEATURES, TYPE_FEATURES

# All but the bias, which the layers of the network have of their own.
N_PAIR, N_WAIT = len(PAIR_INPUTS) - 1, len(WAIT_INPUTS) - 1
N_STATE = N_WAIT + len(JOB_FEATURES) + 1 + len(TYPE_FEATURES)


class Inputs(NamedTuple):
    """Of B observations with E allowed pairs in all; the pairs of an observation follow one another."""

    pairs: np.ndarray  # (E, N_PAIR) float32
    score: np.ndarray  # (E,) float32, the heuristic's
    row: np.ndarray  # (E,) int64, the observation that a pair belongs to, ascending
    action: np.ndarray  # (E,) int64
    wait: np.ndarray  # (B, N_WAIT) float32; its best pair is the heuristic's
    may_wait: np.ndarray  # (B,) bool
    state: np.ndarray  # (B, N_STATE) float32: those of waiting, means over the jobs and over the types
    n_actions: int  # W * S + 1, the last is to wait

    @classmethod
    def of(cls, observations: Mapping[str, np.ndarray]) -> Inputs:
        """From a batch of observations of ``hetenv/Placement-v0``."""
        jobs, candidates = observations["jobs"], observations["candidates"]
        mask = observations["action_mask"] > 0.5
        row, action = mask[:, :-1].nonzero()
        n_batch, n_pairs = len(mask), len(row)
        inputs = cls(
            pairs=np.empty((n_pairs, N_PAIR), np.float32),
            score=np.empty(n_pairs, np.float32),
            row=row,
            action=action,
            wait=np.empty((n_batch, N_WAIT), np.float32),
            may_wait=mask[:, -1].copy(),
            state=np.empty((n_batch, N_STATE), np.float32),
            n_actions=mask.shape[1],
        )
        room = np.empty((2, max(N_PAIR, candidates.shape[2])))
        _derive(
            jobs,
            candidates,
            observations["types"],
            observations["globals"],
            mask,
            COLUMNS,
            room,
            inputs.pairs,
            inputs.score,
            inputs.wait,
            inputs.state,
        )
        return inputs

    @classmethod
    def concatenate(cls, parts: Sequence[Inputs]) -> Inputs:
        """Of all observations of ``parts``, in order; they have equally many actions."""
        firsts = np.cumsum([0] + [len(part.wait) for part in parts])
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in cls._fields[:-1]}
        joined["row"] = np.concatenate([part.row + first for part, first in zip(parts, firsts, strict=False)])
        return cls(**joined, n_actions=parts[0].n_actions)

    def take(self, chosen: np.ndarray) -> Inputs:
        """Of the observations ``chosen`` (n,), in this order."""
        first = np.searchsorted(self.row, np.arange(len(self.wait) + 1))
        count = (first[1:] - first[:-1])[chosen]
        row = np.repeat(np.arange(len(chosen)), count)
        at = np.arange(len(row)) + np.repeat(first[chosen] - (np.cumsum(count) - count), count)
        return Inputs(
            pairs=self.pairs[at],
            score=self.score[at],
            row=row,
            action=self.action[at],
            wait=self.wait[chosen],
            may_wait=self.may_wait[chosen],
            state=self.state[chosen],
            n_actions=self.n_actions,
        )


@njit
def _derive(jobs, candidates, types, globals_, masks, columns, room, pairs, scores, waits, states):
    """Fill the inputs of B observations; ``room`` (2, n) is for the inputs of a pair and the costs of S candidates."""
    n_batch, n_jobs, n_places = candidates.shape[:3]
    n_wait, n_job = waits.shape[1], jobs.shape[2]
    wait_rule = -REGRET_WEIGHT * TOLERATED_REGRET
    x, cost = room[0, : pairs.shape[1]], room[1]
    e = 0
    for b in range(n_batch):
        mask, state, z = masks[b], globals_[b], waits[b]
        exponent = LEAST_SIZE_EXPONENT + state[columns.queue]
        z[:] = 0.0
        fill_state(state, columns, x)
        fill_state(state, columns, z)
        pooled = states[b, n_wait:]
        pooled[:] = 0.0
        n_present = 0
        for w in range(n_jobs):
            if jobs[b, w, columns.present] > 0.0:
                n_present += 1
                for f in range(n_job):
                    pooled[f] += jobs[b, w, f]
                pooled[n_job] += log_scaled_time(jobs[b, w, columns.fastest]) / 3.0
        pooled[: n_job + 1] /= max(n_present, 1)
        for m in range(types.shape[1]):
            for f in range(types.shape[2]):
                pooled[n_job + 1 + f] += types[b, m, f] / types.shape[1]
        best_score, least_regret = -np.inf, MOST_LEAD
        for w in range(n_jobs):
            allowed = mask[w * n_places : (w + 1) * n_places]
            if not allowed.any():
                continue
            outlook = job_outlook(candidates[b, w], allowed, exponent, columns, cost)
            log_fastest = fill_job(jobs[b], w, state, outlook, columns, x)
            for s in range(n_places):
                if not allowed[s]:
                    continue
                regret = fill_candidate(candidates[b, w, s], cost[s], outlook, columns, x)
                pairs[e] = x
                if jobs[b, w, columns.running] > 0.0:
                    score = wait_rule + REGRET_WEIGHT * (candidates[b, w, s, columns.gain] - LEAST_GAIN)
                else:
                    score = -log_fastest - REGRET_WEIGHT * regret
                least_regret = min(least_regret, regret)
                if score > best_score:
                    best_score = score
                    fill_best(x, z)
                scores[e] = score
                e += 1
        fill_lead(state, best_score - wait_rule, least_regret, columns, z)
        states[b, :n_wait] = z

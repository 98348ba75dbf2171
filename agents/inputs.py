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
from agents.scorer import PAIR_INPUTS, WAIT_INPUTS, job_outlook
from agents.squashed import log_scaled_time
from hetenv.compiled import njit
from hetenv.envs.view import JOB_FEATURES, TYPE_FEATURES

# All but the bias, which the layers of the network have of their own.
N_PAIR, N_WAIT = len(PAIR_INPUTS) - 1, len(WAIT_INPUTS) - 1
N_STATE = N_WAIT + len(JOB_FEATURES) + 1 + len(TYPE_FEATURES)
_MOST_LEAD = 5.0


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
        cost = np.empty(candidates.shape[2])
        _derive(
            jobs,
            candidates,
            observations["types"],
            observations["globals"],
            mask,
            COLUMNS,
            cost,
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
def _derive(jobs, candidates, types, globals_, masks, columns, cost, pairs, scores, waits, states):
    """Fill the inputs of B observations; ``cost`` is room for a job's S candidates."""
    n_batch, n_jobs, n_places = candidates.shape[:3]
    n_wait, n_job = waits.shape[1], jobs.shape[2]
    wait_rule = -REGRET_WEIGHT * TOLERATED_REGRET
    e = 0
    for b in range(n_batch):
        mask, state, z = masks[b], globals_[b], waits[b]
        exponent = LEAST_SIZE_EXPONENT + state[columns.queue]
        release = log_scaled_time(state[columns.next_release])
        z[:] = 0.0
        z[0] = state[columns.queue]
        z[1] = state[columns.busy]
        z[2] = state[columns.free]
        z[3] = state[columns.finished]
        z[4] = release / 3.0
        z[5] = log_scaled_time(state[columns.gap]) / 3.0
        z[6] = log_scaled_time(state[columns.since_arrival]) / 3.0
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
        best_score, least_regret = -np.inf, _MOST_LEAD
        for w in range(n_jobs):
            first = w * n_places
            any_allowed = False
            for s in range(n_places):
                any_allowed = any_allowed or mask[first + s]
            if not any_allowed:
                continue
            job = jobs[b, w]
            least, least_allowed, soonest, wait_for_cheapest = job_outlook(
                candidates[b, w], mask[first : first + n_places], exponent, columns, cost
            )
            log_fastest = log_scaled_time(job[columns.fastest])
            n_shorter = 0
            for other in range(n_jobs):
                shorter = jobs[b, other, columns.fastest] < job[columns.fastest]
                n_shorter += jobs[b, other, columns.present] > 0.0 and shorter
            for s in range(n_places):
                if not mask[first + s]:
                    continue
                candidate, x = candidates[b, w, s], pairs[e]
                x[:6] = z[:6]
                x[6] = log_fastest / 3.0
                x[7] = job[columns.age]
                x[8] = job[columns.bound]
                x[9] = job[columns.running]
                x[10] = n_shorter / max(n_present, 1)
                x[11] = (release - log_fastest) / 3.0
                x[12] = wait_for_cheapest
                x[13:19] = 0.0
                gpus = candidate[columns.gpus]
                if gpus > 0.0:
                    x[13] = cost[s] - least
                    x[14] = cost[s] - least_allowed
                    x[15] = log_scaled_time(candidate[columns.time]) - soonest
                    x[16] = -np.log(max(candidate[columns.speed], 1e-4))
                    x[17] = np.log(gpus) / 3.0
                    x[18] = candidate[columns.gpus_of_most]
                x[19] = candidate[columns.efficiency]
                x[20] = candidate[columns.same_size]
                x[21] = candidate[columns.scarcity]
                x[22] = candidate[columns.one_node]
                x[23] = candidate[columns.gain]
                if job[columns.running] > 0.0:
                    scores[e] = wait_rule + REGRET_WEIGHT * (candidate[columns.gain] - LEAST_GAIN)
                else:
                    scores[e] = -log_fastest - REGRET_WEIGHT * x[13]
                least_regret = min(least_regret, x[13])
                if scores[e] > best_score:
                    best_score = scores[e]
                    z[8] = x[6]
                    z[9] = x[13]
                    z[10] = x[15]
                    z[11] = x[12]
                    z[12] = x[21]
                e += 1
        z[7] = min(max(best_score - wait_rule, -_MOST_LEAD), _MOST_LEAD) / 3.0
        z[13] = least_regret
        states[b, :n_wait] = z

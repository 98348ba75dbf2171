"""Arrivals replicated in groups: an input-dependent baseline (Mao et al., ICLR 2019) for advantages.

Environments of a group replay the same jobs with other sampled actions. What the critic failed to foresee for all of
them alike at one simulated time is the doing of the arrivals to come, which it cannot see: the others' mean
advantage at that time is subtracted from that of each. It does not depend on the action, so that the gradient stays
unbiased.
"""

from __future__ import annotations

import numpy as np


def less_group_mean(advantages: np.ndarray, time_s: np.ndarray, episode: np.ndarray, group_size: int) -> np.ndarray:
    """(T, N) advantages less those of the rest of the group at the same time of the same episode.

    Args:
        advantages: (T, N) of T steps of N environments.
        time_s: (T, N) simulated time of each decision.
        episode: (T, N) number of the episode, counted alike by all environments of a group.
        group_size: consecutive environments a group; where a step has no other at its time, it stays as it is.
    """
    total, n_others = np.zeros_like(advantages), np.zeros(advantages.shape)
    for env in range(advantages.shape[1]):
        first = env - env % group_size
        for other in range(first, first + group_size):
            if other == env:
                continue
            for number in np.intersect1d(episode[:, env], episode[:, other]):
                theirs = episode[:, other] == number
                known_s = time_s[theirs, other]
                own_s = time_s[:, env]
                rows = np.flatnonzero((episode[:, env] == number) & (own_s >= known_s[0]) & (own_s <= known_s[-1]))
                total[rows, env] += np.interp(own_s[rows], known_s, advantages[theirs, other])
                n_others[rows, env] += 1.0
    return advantages - total / np.maximum(n_others, 1.0)

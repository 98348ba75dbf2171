"""The slow-server problem (Lin and Kumar, IEEE TAC 1984): one fast and one slow server, one queue, no preemption.

Arrivals are Poisson, sizes exponential and unknown. The optimal policy keeps the fast server busy and sends a job to
the slow one only while a threshold of jobs wait; what a threshold is worth follows from the Markov chain.
"""

from __future__ import annotations

import numpy as np

from hetenv.cluster import Cluster
from hetenv.scheduler import Plan, Snapshot

LONGEST_QUEUE = 80  # where the chain is cut


def mean_time_s(arrival_rate: float, fast_rate: float, slow_rate: float, threshold: int) -> float:
    """Mean seconds in the system when the slow server is used only while ``threshold`` jobs or more wait.

    Solves for the stationary distribution of (waiting, fast busy, slow busy); rates are per second.
    """
    index = {state: at for at, state in enumerate(np.ndindex(LONGEST_QUEUE + 1, 2, 2))}
    rates = np.zeros((len(index), len(index)))

    def flow(state: tuple[int, int, int], then: tuple[int, int, int], rate: float) -> None:
        rates[index[_decide(*state, threshold)], index[_decide(*then, threshold)]] += rate

    for q, f, s in index:
        if _decide(q, f, s, threshold) != (q, f, s):
            continue
        if q < LONGEST_QUEUE:
            flow((q, f, s), (q + 1, f, s), arrival_rate)
        if f:
            flow((q, f, s), (q, 0, s), fast_rate)
        if s:
            flow((q, f, s), (q, f, 0), slow_rate)
    visited = rates.any(axis=1)
    kept = rates[np.ix_(visited, visited)]
    balance = kept.T - np.diag(kept.sum(axis=1))
    balance[0] = 1.0  # one equation is the sum of the others; the probabilities sum to 1
    probability = np.linalg.solve(balance, np.eye(len(kept))[0])
    jobs = np.array([sum(state) for state in index])[visited]
    return float(probability @ jobs) / arrival_rate  # Little's law


def optimal_threshold(arrival_rate: float, fast_rate: float, slow_rate: float) -> int:
    """The best threshold of 1, which never waits, to 12."""
    return min(range(1, 13), key=lambda threshold: mean_time_s(arrival_rate, fast_rate, slow_rate, threshold))


def _decide(q: int, f: int, s: int, threshold: int) -> tuple[int, int, int]:
    """The state after the policy has acted."""
    if q and not f:
        q, f = q - 1, 1
    if q >= threshold and not s:
        q, s = q - 1, 1
    return q, f, s


class Threshold:
    """First in, first out: the head takes the fast GPU, and the slow one only if ``threshold`` jobs or more wait."""

    name = "threshold"
    decides = frozenset({"place"})

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold

    def reset(self, cluster: Cluster, seed: int) -> None:
        """Keeps no state."""

    def plan(self, snapshot: Snapshot) -> Plan:
        queue, rows = snapshot.queue().tolist(), []
        if queue and snapshot.free[0]:
            rows.append((queue.pop(0), 1, 0))
        if len(queue) >= self.threshold and snapshot.free[1]:
            rows.append((queue.pop(0), 0, 1))
        plan = np.array(rows, np.int64).reshape(-1, 3)
        return Plan(plan[:, 0], plan[:, 1:])

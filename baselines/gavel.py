"""Gavel: shares of time on each type by a linear program, kept by rounds."""

from __future__ import annotations

import numpy as np

from baselines.fifo_perf import rate_by_type
from baselines.memory import carry_over
from baselines.options import number, one_of
from baselines.rounds import Ledger, carry_out
from baselines.shares import SharedCluster
from hetenv.cluster import Cluster
from hetenv.scheduler import Plan, Snapshot

POLICIES = ("max-min", "makespan", "finish-time-fairness")


class Gavel:
    """The heterogeneity-aware policies and the round mechanism of "Heterogeneity-Aware Cluster Scheduling Policies
    for Deep Learning Workloads" (Narayanan et al., OSDI 2020), without sharing of GPUs between jobs.

    A linear program gives each job shares of time on each GPU type, set again when jobs came or went. Between that,
    each epoch deals out all GPUs by priority, the share of a type / the time received on it, so that received time
    follows the shares. Made for simulators with ``round_s`` and ``preemptive=True``, where every round is an epoch.

    Our decisions: jobs run at their least size, on one type at a time. Of the optimal shares, which are many once
    the least job cannot gain, the solver's are taken. All jobs weigh the same. Without preemption running jobs
    keep what they hold, and only the waiting ones are dealt the free GPUs.

    Args:
        policy: what the shares are for. "max-min": the least effective throughput, per GPU and relative to equal
            time on every GPU, is as large as can be. "makespan": the last finish comes as soon as can be.
            "finish-time-fairness": the worst ratio of time to the finish to that on a part of the cluster of one's
            own is as small as can be.
        round_s: seconds of a round; half of it is what a job without any received time is taken to have had.
        reset_s: least seconds between two settings of the shares; one at time 0 does not count, as in Gavel.
    """

    name = "gavel"
    decides = frozenset({"place", "preempt", "migrate"})

    def __init__(self, policy: str = "max-min", round_s: float = 360.0, reset_s: float = 1920.0) -> None:
        self._policy = one_of("policy", policy, POLICIES)
        self._round_s = number("round_s", round_s, least=1e-9)
        self._reset_s = number("reset_s", reset_s, least=0.0)

    def reset(self, cluster: Cluster, seed: int) -> None:
        self._ledger = Ledger(len(cluster.types), self._round_s)
        self._stale = False  # jobs came or went since the shares were set
        self._shared = np.empty(0, np.int64)  # the jobs that the shares were last set for, and of each:
        self._remaining, self._isolated_rate, self._isolated_s = np.empty(0), np.empty(0), np.empty(0)

    def plan(self, snapshot: Snapshot) -> Plan:
        gpus = snapshot.size_limits[0]
        rate = np.where(gpus[:, None] <= snapshot.total, rate_by_type(snapshot), 0.0)
        self._stale |= self._ledger.observe(snapshot)
        set_s = self._ledger.set_s
        if self._stale and (not set_s or snapshot.time_s - set_s >= self._reset_s):
            self._ledger.set_shares(self._shares(snapshot, rate, gpus))
            self._stale = False
        rows = np.arange(len(snapshot.jobs)) if snapshot.preemptive else np.flatnonzero(snapshot.waiting)
        free = snapshot.total if snapshot.preemptive else snapshot.free
        return carry_out(snapshot, rows, self._ledger.deal(rows, free, rate, gpus))

    def _shares(self, snapshot: Snapshot, rate: np.ndarray, gpus: np.ndarray) -> np.ndarray:
        """(A, M) shares by the policy; none for jobs that no type alone can hold."""
        shares = np.zeros_like(rate)
        able = rate.any(axis=1)
        if not able.any():
            return shares
        cluster = SharedCluster(rate[able], gpus[able], snapshot.total)
        remaining = np.maximum(snapshot.remaining[able], 1e-9)  # rounding may leave 0
        if self._policy == "max-min":
            shares[able] = cluster.max_min()
        elif self._policy == "makespan":
            shares[able] = cluster.makespan(remaining)
        else:
            isolated_s = self._isolate(snapshot.jobs[able], remaining, cluster.isolated_rate)
            shares[able] = cluster.finish_time_fairness(remaining, snapshot.age_s[able], isolated_s)
        return shares

    def _isolate(self, jobs: np.ndarray, remaining: np.ndarray, isolated_rate: np.ndarray) -> np.ndarray:
        """(A,) seconds that what each job has done would have taken in isolation, at the rates of its time."""
        known = self._shared
        left = carry_over(self._remaining, known, jobs, np.nan)
        done_s = (left - remaining) / carry_over(self._isolated_rate, known, jobs, np.nan)
        self._isolated_s = carry_over(self._isolated_s, known, jobs, 0.0) + np.nan_to_num(done_s)
        self._shared, self._remaining, self._isolated_rate = jobs, remaining, isolated_rate
        return self._isolated_s

"""Shares of time on each GPU type, by the linear programs of Gavel (Narayanan et al., OSDI 2020).

A share ``X[j, m]`` is the fraction of time that job j is to hold its GPUs on type m; the job's effective
throughput is then ``sum_m rate[j, m] X[j, m]``. All policies maximise the least effective throughput relative to some
demand of each job, and differ in the demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

CONVERGED = 1e-3  # relative; no further step in search of the least finish-time fairness


@dataclass(frozen=True, eq=False)
class SharedCluster:
    """Who shares which GPUs.

    Args:
        rate: (A, M) iterations/s of each job while it holds its GPUs on one type, positive somewhere; 0 where it
            cannot run.
        gpus: (A,) GPUs of each job, on any type.
        total: (M,) GPUs of each type.
    """

    rate: np.ndarray
    gpus: np.ndarray
    total: np.ndarray

    @cached_property
    def isolated_rate(self) -> np.ndarray:
        """(A,) iterations/s of each job on an equal part of every type, which it uses one at a time."""
        share = self.total / (len(self.rate) * self.gpus[:, None])
        return (self.rate * share).sum(axis=1) / np.maximum(share.sum(axis=1), 1.0)

    def max_min(self) -> np.ndarray:
        """(A, M) shares of max-min fairness: the least throughput is as large as can be.

        A job's throughput counts per GPU and relative to that of equal time on every GPU of the cluster.
        """
        return self.serve(self.rate @ self.total / self.total.sum() / self.gpus)

    def makespan(self, remaining: np.ndarray) -> np.ndarray:
        """(A, M) shares by which the last job finishes as soon as can be, ``remaining`` (A,) iterations each."""
        return self.serve(remaining)

    def finish_time_fairness(self, remaining: np.ndarray, age_s: np.ndarray, isolated_s: np.ndarray) -> np.ndarray:
        """(A, M) shares with the least of the worst rho, expected time to the finish / the same in isolation (Themis).

        For a given rho the demand of each job is the throughput that finishes it in time. The worst rho of the
        shares that serve this demand best is no larger, and equal only at the optimum.

        Args:
            remaining: (A,) iterations.
            age_s: (A,) seconds since arrival.
            isolated_s: (A,) seconds that what is done has taken or would have taken in isolation.
        """
        alone_s = isolated_s + remaining / self.isolated_rate
        shares, rho = self.max_min(), np.inf
        while True:
            throughput = (self.rate * shares).sum(axis=1)
            worst = float(((age_s + remaining / throughput) / alone_s).max())
            if not worst < (1 - CONVERGED) * rho:
                return shares
            rho = worst
            shares = self.serve(remaining / (rho * alone_s - age_s))

    def serve(self, demand: np.ndarray) -> np.ndarray:
        """(A, M) shares that maximise the least effective throughput / ``demand`` (A,), both in iterations/s.

        The program: maximise z with ``sum_m rate X >= z demand`` and ``sum_m X <= 1`` for each job, and
        ``sum_j gpus X <= total`` for each type.

        Raises:
            RuntimeError: HiGHS gave up.
        """
        from scipy.optimize import LinearConstraint, milp
        from scipy.sparse import csr_array, hstack, vstack

        n_jobs, n_types = self.rate.shape
        job, m = np.nonzero(self.rate)
        pair = np.arange(len(job))  # one variable each, and z
        most = self.rate.max(axis=1)
        wanted = demand / most  # rows in units of each job's best rate, z of the largest demand
        served = csr_array((-self.rate[job, m] / most[job], (job, pair)), (n_jobs, len(pair)))
        timed = csr_array((np.ones(len(pair)), (job, pair)), (n_jobs, len(pair)))
        held = csr_array((self.gpus[job].astype(float), (m, pair)), (n_types, len(pair)))
        z = csr_array(np.append(wanted / wanted.max(), np.zeros(n_jobs + n_types))[:, None])
        limits = np.concatenate([np.zeros(n_jobs), np.ones(n_jobs), self.total])
        found = milp(  # without whole numbers, a linear program
            np.append(np.zeros(len(pair)), -1.0),
            constraints=LinearConstraint(hstack([vstack([served, timed, held]), z]), ub=limits),
        )
        if found.x is None:
            raise RuntimeError(f"HiGHS stopped without an optimum: {found.message}")
        shares = np.zeros_like(self.rate)
        shares[job, m] = found.x[:-1]
        return shares

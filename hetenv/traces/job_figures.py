"""The figures that describe one source of jobs: GPU counts, durations, outcomes, rhythm and bursts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

SHORTEST_S = 1.0  # traces count whole seconds


class DurationLaw(Protocol):
    """Run times of the jobs of each GPU count."""

    def quantile_s(self, size: np.ndarray, n_gpus: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """(J,) seconds at ``rank`` (J,) in (0, 1) among the jobs of the same row ``size`` (J,), of ``n_gpus`` (J,)."""


@dataclass(frozen=True, eq=False)
class QuantileTable:
    """Measured quantiles, log-linear between them.

    Args:
        rank: (Q,) from 0 to 1, ascending.
        duration_s: (S, Q) seconds, one row a GPU count.
    """

    rank: np.ndarray
    duration_s: np.ndarray

    def quantile_s(self, size: np.ndarray, n_gpus: np.ndarray, rank: np.ndarray) -> np.ndarray:
        duration_s = np.empty(len(rank))
        for row, quantiles in enumerate(np.log(self.duration_s)):
            of_size = size == row
            duration_s[of_size] = np.exp(np.interp(rank[of_size], self.rank, quantiles))
        return duration_s


@dataclass(frozen=True)
class GrowingLognormal:
    """Lognormal durations whose median grows with the job: ``median_s * n_gpus ** growth``.

    Three numbers, for three figures that sources publish: the median and the mean duration, and the
    mean GPU time of a job, which tells how much longer the large jobs run.

    Args:
        median_s: median of the jobs of one GPU.
        growth: exponent of the GPU count.
        sigma: standard deviation of the log.
        longest_s: what longer draws are cut to.
    """

    median_s: float
    growth: float
    sigma: float
    longest_s: float = np.inf

    def quantile_s(self, size: np.ndarray, n_gpus: np.ndarray, rank: np.ndarray) -> np.ndarray:
        median_s = self.median_s * n_gpus**self.growth
        return np.clip(median_s * np.exp(self.sigma * ndtri(rank)), SHORTEST_S, self.longest_s)


@dataclass(frozen=True, eq=False)
class Chance:
    """The chance of an outcome, linear in the rank of the duration among the jobs of the same GPU count.

    Args:
        shortest: at rank 0; a number, or (S,) one a GPU count.
        longest: at rank 1.
    """

    shortest: float | np.ndarray
    longest: float | np.ndarray

    def of(self, size: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """(J,) chance of each job."""
        shortest, longest = (
            end if np.ndim(end) == 0 else np.asarray(end)[size] for end in (self.shortest, self.longest)
        )
        return shortest * (1 - rank) + longest * rank


NEVER = Chance(0.0, 0.0)


@dataclass(frozen=True, eq=False)
class JobFigures:
    """What a generator knows of one source.

    Args:
        n_gpus: (S,) GPUs of each row, ascending.
        share: (S,) jobs of each row, on any scale.
        duration: run times on reference GPUs.
        failed, killed: chance of each outcome.
        week: (168,) relative submission rate of each hour from Monday 0 h.
        gap_cv: coefficient of variation of the gaps between arrivals, the week taken out.
    """

    n_gpus: np.ndarray
    share: np.ndarray
    duration: DurationLaw
    failed: Chance
    killed: Chance
    week: np.ndarray
    gap_cv: float

    def draw_sizes(self, n_jobs: int, rng: np.random.Generator) -> np.ndarray:
        """(J,) rows, in proportion to ``share``."""
        return np.searchsorted(np.cumsum(self.share) / self.share.sum(), rng.random(n_jobs), side="right")

    def draw_outcomes(self, size: np.ndarray, rank: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(J,) completed, failed or killed."""
        draw = rng.random(len(rank))
        failed = self.failed.of(size, rank)
        killed = self.killed.of(size, rank)
        outcome = np.full(len(rank), "completed", object)
        outcome[draw < failed + killed] = "killed"
        outcome[draw < failed] = "failed"
        return outcome

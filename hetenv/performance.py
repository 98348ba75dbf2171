"""How fast a job runs on an allocation: batch split, ring all-reduce, measured throughputs.

Sources: proportional split and iteration time follow the model of the multi-job placement paper
(DOI 10.1109/TPDS.2024.3390109) as reconstructed in the README; the ring all-reduce term moves
``2 (n - 1) / n`` of the gradient bytes over the slowest link (Patarasu and Yuan, 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hetenv.compiled import njit_in_place as njit
from hetenv.errors import InputError


@njit
def ring_allreduce_s(n_gpus, grad_bytes, link_bytes_per_s):
    """Seconds to sum ``grad_bytes`` of gradients over a ring of ``n_gpus``; none for one GPU."""
    if n_gpus <= 1 or grad_bytes == 0.0:
        return 0.0
    return 2.0 * (n_gpus - 1) / n_gpus * grad_bytes / link_bytes_per_s


@njit
def iteration_s(counts, speed, batch, grad_bytes, link_bytes_per_s, even_split):
    """Seconds of one iteration on ``counts`` (M,) GPUs of ``speed`` (M,) samples/s; inf if it cannot run.

    Proportional split: all workers finish together after ``batch / sum(speed)``. Even split: the
    slowest worker holds the others up, ``batch / n / min(speed)``.
    """
    n_gpus = 0
    total_speed = 0.0
    slowest = np.inf
    for m in range(counts.shape[0]):
        if counts[m] > 0:
            if speed[m] <= 0.0:
                return np.inf
            n_gpus += counts[m]
            total_speed += counts[m] * speed[m]
            slowest = min(slowest, speed[m])
    if n_gpus == 0:
        return np.inf
    compute_s = batch / (n_gpus * slowest) if even_split else batch / total_speed
    return compute_s + ring_allreduce_s(n_gpus, grad_bytes, link_bytes_per_s)


@njit
def category_link(counts, intra_bytes_per_s, nic_bytes_per_s, node_gpus):
    """Slowest link (bytes/s) that ``counts`` (M,) needs when packed onto as few empty nodes as possible.

    GPUs of one type that fit into one of its nodes (``node_gpus`` (M,)) use the link inside the node,
    all others the slowest network link among the types used.
    """
    used = 0
    link = np.inf
    for m in range(counts.shape[0]):
        if counts[m] > 0:
            used += 1
            link = min(link, nic_bytes_per_s[m])
    if used == 1:
        for m in range(counts.shape[0]):
            if 0 < counts[m] <= node_gpus[m]:
                return intra_bytes_per_s[m]
    return link


def proportional_shares(batch: int, worker_speed: np.ndarray) -> np.ndarray:
    """Whole samples per worker (n,), in proportion to ``worker_speed`` (n,), by largest remainder.

    Raises:
        InputError: a batch below one sample, no workers, or a speed that is not positive.
    """
    speed = np.asarray(worker_speed, float)
    if batch < 1 or int(batch) != batch:
        raise InputError("batch", batch, "give a whole number of samples of at least 1")
    if speed.size == 0 or not (np.isfinite(speed).all() and (speed > 0).all()):
        raise InputError("worker_speed", speed.tolist(), "give one positive speed per worker")
    ideal = batch * speed / speed.sum()
    shares = np.floor(ideal).astype(np.int64)
    missing = int(batch) - int(shares.sum())
    shares[np.argsort(-(ideal - shares), kind="stable")[:missing]] += 1
    return shares


MOST_MEASURED_GPUS = 65_536  # of one job; a table has a place for every number of GPUs up to its largest


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Measured throughputs: whole-job iterations/s by model, type, GPUs and consolidation.

    Args:
        models: names of the R rows.
        types: names of the M types.
        rate: (R, M, G + 1, 2) iterations/s on 0..G GPUs of one type; the last axis is consolidated
            (one node), spread. 0: cannot run; NaN: not measured, and so never offered. A spread
            figure that was not measured takes the consolidated one.
    """

    models: tuple[str, ...]
    types: tuple[str, ...]
    rate: np.ndarray

    def __post_init__(self) -> None:
        if self.rate.ndim != 4 or self.rate.shape[:2] != (len(self.models), len(self.types)) or self.rate.shape[3] != 2:
            raise InputError("measured rate", self.rate.shape, "give shape (models, types, GPUs + 1, 2)")
        if (self.rate < 0).any() or np.isinf(self.rate).any():
            raise InputError(
                "measured rate", "a negative or infinite value", "give iterations/s, 0 where a model cannot run"
            )

    def row(self, model: str) -> int:
        """Row of ``model``; raises InputError when the table does not know it."""
        try:
            return self.models.index(model)
        except ValueError:
            raise InputError(
                "model", repr(model), f"the throughput table has {', '.join(self.models[:4])}, ..."
            ) from None

    def for_types(self, types: Sequence[str]) -> np.ndarray:
        """The rates with the type axis in the order ``types``; a type not measured cannot run (0).

        Returns (R, M', G + 1, 2) float64 without NaN, spread gaps filled from the consolidated figure.
        """
        rate = np.zeros((len(self.models), len(types), *self.rate.shape[2:]))
        for m, name in enumerate(types):
            if name in self.types:
                rate[:, m] = self.rate[:, self.types.index(name)]
        rate[..., 1] = np.where(np.isnan(rate[..., 1]), rate[..., 0], rate[..., 1])
        return np.nan_to_num(rate, nan=0.0)

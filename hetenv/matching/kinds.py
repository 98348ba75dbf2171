"""Kinds of jobs: those alike in all but their iterations share one row set of every table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetenv.compiled import njit


class JobModel(NamedTuple):
    """What the cost formula reads: per job ``speed`` (S, M), ``batch``, ``iterations``, ``grad_bytes``, ``min_gpus``,
    ``max_gpus`` (S,), ``measured_rate`` (S, M, G + 1) with ``measured`` (S,) bool; per type ``bandwidth``,
    ``local_bandwidth``, ``node_gpus`` (M,)."""

    speed: np.ndarray
    batch: np.ndarray
    iterations: np.ndarray
    grad_bytes: np.ndarray
    min_gpus: np.ndarray
    max_gpus: np.ndarray
    measured_rate: np.ndarray
    measured: np.ndarray
    bandwidth: np.ndarray
    local_bandwidth: np.ndarray
    node_gpus: np.ndarray


class Kinds(NamedTuple):
    """C kinds of jobs, in ascending order of their parameters.

    ``of_job`` (S,) the kind of each job, ``example`` (C,) a job of each kind, ``low`` and ``high`` (C,) its fewest and
    most GPUs, ``sizes`` (N,) all numbers of GPUs that some job may have, ascending.
    """

    of_job: np.ndarray
    example: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sizes: np.ndarray


def no_model(n_jobs: int, n_types: int) -> JobModel:
    """Jobs that run nowhere, for problems whose costs are written out."""
    nothing, links = np.zeros(n_jobs), np.ones(n_types)
    sizes = np.zeros(n_jobs, np.int64)
    return JobModel(
        speed=np.zeros((n_jobs, n_types)),
        batch=nothing,
        iterations=nothing,
        grad_bytes=nothing,
        min_gpus=sizes,
        max_gpus=sizes,
        measured_rate=np.zeros((n_jobs, n_types, 1)),
        measured=np.zeros(n_jobs, bool),
        bandwidth=links,
        local_bandwidth=links,
        node_gpus=links,
    )


def no_kinds(n_jobs: int) -> Kinds:
    """Each job of its own kind, of no sizes."""
    each, sizes = np.arange(n_jobs), np.zeros(n_jobs, np.int64)
    return Kinds(each, each, sizes, sizes, sizes[:0])


@njit
def sort_kinds(model):
    """The ``Kinds`` of the jobs of a ``JobModel``."""
    n_jobs, n_types = model.speed.shape
    features = np.empty((n_jobs, 5 + n_types + n_types * model.measured_rate.shape[2]))
    for i in range(n_jobs):
        features[i, :n_types] = model.speed[i]
        features[i, n_types] = model.batch[i]
        features[i, n_types + 1] = model.grad_bytes[i]
        features[i, n_types + 2] = model.min_gpus[i]
        features[i, n_types + 3] = model.max_gpus[i]
        features[i, n_types + 4] = model.measured[i]
        features[i, n_types + 5 :] = model.measured_rate[i].ravel()
    order = sorted_rows(features)
    of_job, example = np.empty(n_jobs, np.int64), np.empty(n_jobs, np.int64)
    n_kinds = 0
    for at in range(n_jobs):
        if at == 0 or _precedes(features, order[at - 1], order[at]):
            example[n_kinds] = order[at]
            n_kinds += 1
        of_job[order[at]] = n_kinds - 1
    example = example[:n_kinds].copy()
    low, high = model.min_gpus[example], model.max_gpus[example]
    begun = np.zeros(high.max() + 2, np.int64)  # kinds whose sizes begin at n, less those that ended below n
    for k in range(n_kinds):
        if low[k] <= high[k]:
            begun[low[k]] += 1
            begun[high[k] + 1] -= 1
    return Kinds(of_job, example, low, high, np.flatnonzero(np.cumsum(begun)))


@njit
def _precedes(features, i, j):
    """Whether row ``i`` of ``features`` (S, F) comes before row ``j`` in lexicographic order."""
    for f in range(features.shape[1]):
        if features[i, f] != features[j, f]:
            return features[i, f] < features[j, f]
    return False


@njit
def sorted_rows(features):
    """(S,) rows of ``features`` (S, F) in lexicographic order, equal ones as they come: a merge sort."""
    n_rows = features.shape[0]
    order, merged = np.arange(n_rows), np.empty(n_rows, np.int64)
    width = 1
    while width < n_rows:
        for first in range(0, n_rows, 2 * width):
            middle, last = min(first + width, n_rows), min(first + 2 * width, n_rows)
            left, right = first, middle
            for at in range(first, last):
                if left < middle and (right == last or not _precedes(features, order[right], order[left])):
                    merged[at] = order[left]
                    left += 1
                else:
                    merged[at] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order

"""What schedulers remember of jobs from one epoch to the next."""

from __future__ import annotations

import numpy as np


def carry_over(values: np.ndarray, known: np.ndarray, jobs: np.ndarray, fresh: float) -> np.ndarray:
    """Rows (A, ...) for ``jobs`` (A,): those of ``values`` (n, ...) for ``known`` jobs (n,), ``fresh`` for others.

    Both lists of jobs ascend, as those of snapshots do.
    """
    carried = np.full((len(jobs), *values.shape[1:]), fresh)
    stays = np.isin(known, jobs, assume_unique=True)
    carried[np.searchsorted(jobs, known[stays])] = values[stays]
    return carried

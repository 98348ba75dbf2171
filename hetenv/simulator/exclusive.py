"""The fastest a job can go: alone on the whole cluster, on the best allocation there is."""

from __future__ import annotations

import numpy as np

from hetenv.compiled import njit
from hetenv.simulator.fastest import fastest_counts
from hetenv.simulator.state import Fixed


def exclusive_best_s(fixed: Fixed) -> np.ndarray:
    """(J,) seconds each job needs alone on the cluster with its best allocation.

    No schedule beats it: where several nodes serve a job better than one (a network link faster than
    the one inside a node, or a measurement that says so), it counts on them.
    """
    best_case = fixed._replace(types=fixed.types.copy(), measured=fixed.measured.copy())
    several = fixed.types["end_node"] - fixed.types["first_node"] > 1
    faster_link = np.maximum(fixed.types["intra_bytes_per_s"], fixed.types["nic_bytes_per_s"])
    best_case.types["intra_bytes_per_s"][several] = faster_link[several]
    consolidated = best_case.measured[..., 0]  # (R, M, G + 1), a view
    consolidated[:, several, 2:] = fixed.measured[:, several, 2:].max(axis=-1)
    return _run_alone_s(best_case)


@njit
def _run_alone_s(fixed):
    free = fixed.types.total.astype(np.int64)
    room = fixed.types.largest_node.astype(np.int64)
    counts = np.zeros(free.shape[0], np.int64)
    best_s = np.empty(fixed.jobs.shape[0])
    for job in range(best_s.shape[0]):
        spec = fixed.jobs[job]
        best_s[job] = spec.iterations * fastest_counts(fixed, job, spec.min_gpus, spec.max_gpus, free, room, counts)
    return best_s

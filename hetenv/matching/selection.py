"""The selection program: one category per job within the GPUs of each type, solved by HiGHS."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from hetenv.errors import InputError
from hetenv.matching.menu import Menu

_ONE_AT_A_TIME = threading.Lock()  # of all threads: there is one stdout to give back


def select_entries(
    menu: Menu, capacity: np.ndarray, entries: np.ndarray, most_nodes: int | None = None
) -> tuple[np.ndarray | None, float]:
    """Optimal entries (S,) among the given ``entries`` (N,) and a lower bound on their cost.

        min sum cost_ic x_ic   s.t.  sum_c x_ic = 1,  sum_ic c_m x_ic <= capacity_m,  x binary

    Costs are divided by their mean; the relative gap is 1e-6. With ``most_nodes`` the search tree may be cut short: the
    entries are the best found, None if there are none, and the bound still holds.

    Raises:
        InputError: no selection fits the capacity.
        RuntimeError: HiGHS gave up.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    job = np.searchsorted(menu.start, entries, side="right") - 1
    column = np.arange(len(entries))
    one_each = csr_array((np.ones(len(entries)), (job, column)), shape=(menu.n_jobs, len(entries)))
    gpus = csr_array(menu.counts[menu.vector[entries]].T.astype(float))
    cost = menu.cost[entries]
    unit = float(np.abs(cost).mean()) or 1.0
    with _ONE_AT_A_TIME, _quiet_stdout():
        result = milp(
            cost / unit,
            integrality=np.ones(len(entries), np.int64),
            bounds=Bounds(0, 1),
            constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(gpus, -np.inf, capacity)],
            options={"mip_rel_gap": 1e-6} if most_nodes is None else {"mip_rel_gap": 1e-6, "node_limit": most_nodes},
        )
    if result.status == 2:
        raise InputError("jobs to place", "no placement fits the GPUs of each type", "pass waiting values")
    if most_nodes is not None and result.status in (1, 4):  # a limit; of nodes, for which scipy may have no name
        bound = -np.inf if result.mip_dual_bound is None else float(result.mip_dual_bound) * unit
        if result.x is None:
            return None, bound
    elif result.status != 0:
        raise RuntimeError(f"HiGHS stopped without an optimum: {result.message}")
    chosen = entries[result.x > 0.5]
    return chosen[np.argsort(job[result.x > 0.5])], float(result.mip_dual_bound) * unit


@contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Keep HiGHS from printing: some of its debugging lines go straight to file descriptor 1, log or no log."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what the C library still buffers must not come out later
        os.dup2(kept, 1)
        os.close(kept)


def genuine_entries(menu: Menu) -> np.ndarray:
    """All entries but the stand-ins of jobs that must be placed."""
    genuine = np.ones(len(menu.cost), bool)
    genuine[menu.start[:-1][menu.must]] = False
    return np.flatnonzero(genuine)


def place_stranded(menu: Menu, capacity: np.ndarray, choice: np.ndarray) -> np.ndarray:
    """``choice`` (S,) if it places every job that must be; otherwise the optimal selection, which settles it.

    Raises:
        InputError: no placement of all those jobs exists.
    """
    if len(menu.unplaced(choice)) > 0:
        selected, _ = select_entries(menu, capacity, genuine_entries(menu))
        assert selected is not None
        return selected
    return choice

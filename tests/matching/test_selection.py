"""HiGHS, asked for a selection: its prints stay out of the way, its limits are no errors."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from hetenv.matching import PlacementProblem, market, solve_exact, solve_market
from hetenv.matching.selection import _quiet_stdout


def test_prints_of_the_c_library_are_swallowed_and_later_ones_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    c_library = ctypes.CDLL(None)
    with _quiet_stdout():
        c_library.printf(b"noise\n")
    print("news", flush=True)
    assert capfd.readouterr().out == "news\n"


def test_a_search_cut_short_gives_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rigid jobs are a knapsack; its gap is wide, so that HiGHS is asked, and stops at its first node."""
    monkeypatch.setattr(market, "MOST_NODES", 1)
    rng = np.random.default_rng(0)
    cut_short = 0
    for _ in range(30):
        gpus, cost = rng.integers(1, 9, (14, 3)), rng.uniform(1, 100, 14)
        waiting = cost + 20 * gpus.sum(axis=1) + rng.integers(0, 9, 14)
        problem = PlacementProblem.from_costs(
            gpus.sum(axis=0) // 3, [[[0, 0, 0], row] for row in gpus], np.column_stack([waiting, cost])
        )
        placement, best = solve_market(problem), solve_exact(problem).total
        assert placement.lower_bound is not None
        assert placement.lower_bound <= best * (1 + 1e-6) <= placement.total * (1 + 2e-6)
        cut_short += placement.total > placement.lower_bound * (1 + 1e-6)
    assert cut_short > 0

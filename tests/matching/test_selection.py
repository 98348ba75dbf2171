"""HiGHS, asked for a selection: its prints stay out of the way, its limits are no errors."""

from __future__ import annotations

import ctypes
import os
import threading
import time

import numpy as np
import pytest
import scipy.optimize

from hetenv.matching import PlacementProblem, market, solve_exact, solve_market
from hetenv.matching.menu import Menu, build_menu
from hetenv.matching.search import search_entries
from hetenv.matching.selection import _quiet_stdout, genuine_entries, select_entries
from tests.matching.oracles import random_problem


def test_prints_of_the_c_library_are_swallowed_and_later_ones_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    c_library = ctypes.CDLL(None)
    with _quiet_stdout():
        c_library.printf(b"noise\n")
    print("news", flush=True)
    assert capfd.readouterr().out == "news\n"


def test_threads_that_ask_at_once_leave_stdout_as_it_was(monkeypatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The second thread would find the first one's stdout, and give that back in the end."""
    problem = random_problem(0, 4, [3, 4])
    menu = build_menu(problem, np.ones(len(problem.costs.cost), bool))
    entered, left, solve = threading.Event(), threading.Event(), scipy.optimize.milp

    def slow(*arguments, **options):
        if not entered.is_set():
            entered.set()
            time.sleep(0.2)
        else:
            left.wait(timeout=60.0)
        return solve(*arguments, **options)

    def ask() -> None:
        select_entries(menu, problem.capacity, genuine_entries(menu))
        left.set()

    monkeypatch.setattr(scipy.optimize, "milp", slow)
    first, second = threading.Thread(target=ask), threading.Thread(target=ask)
    first.start()
    assert entered.wait(timeout=60.0)
    second.start()
    first.join()
    second.join()
    os.write(1, b"news\n")
    assert capfd.readouterr().out == "news\n"


def test_a_search_cut_short_gives_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rigid jobs are a knapsack; its gap is wide, so that HiGHS is asked, and stops at its first node."""
    monkeypatch.setattr(market, "MOST_STEPS", 1)
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


def small_menu(seed: int) -> tuple[Menu, np.ndarray]:
    """Five jobs, of which some may wait, on GPUs of three types, and these GPUs."""
    problem = random_problem(seed, 5, [3, 2, 4], max_gpus=3)
    waiting = np.random.default_rng(seed).choice([np.inf, 1e4], 5)
    return build_menu(problem, np.ones(len(problem.costs.cost), bool), waiting=waiting), problem.capacity


@pytest.mark.parametrize("seed", range(10))
def test_a_search_to_the_end_finds_what_highs_finds(seed: int) -> None:
    menu, capacity = small_menu(seed)
    prices = np.random.default_rng(seed).uniform(0, 500, 3)
    best, _ = select_entries(menu, capacity, genuine_entries(menu))
    assert best is not None
    total = menu.total(best)
    found, ended = search_entries(menu, capacity, prices, total * (1 + 1e-9), 10**7)
    assert ended
    assert menu.total(found) == pytest.approx(total, rel=1e-9)
    assert (menu.counts_of(found).sum(axis=0) <= capacity).all()
    none, ended = search_entries(menu, capacity, prices, total * (1 - 1e-5), 10**7)
    assert ended
    assert (none == -1).all()
    assert not search_entries(menu, capacity, prices, total * (1 + 1e-9), 4)[1]

"""Threads: every environment in one share, the shares at the same time."""

from __future__ import annotations

import threading

import pytest

from hetenv.envs.threads import Threads


@pytest.mark.parametrize(("num_envs", "num_threads"), [(1, 1), (5, 1), (1, 3), (2, 3), (100, 2), (513, 4)])
def test_every_environment_is_in_one_share(num_envs: int, num_threads: int) -> None:
    threads, served = Threads(num_envs, num_threads), list[int]()
    threads.share(lambda first, end: served.extend(range(first, end)))
    assert sorted(served) == list(range(num_envs))
    threads.close()


def test_the_shares_are_worked_on_at_the_same_time() -> None:
    threads, all_at_work = Threads(8, 3), threading.Barrier(3, timeout=30)
    threads.share(lambda first, end: all_at_work.wait())
    threads.close()


def test_an_error_in_another_thread_arrives() -> None:
    threads = Threads(64, 2)

    def work(first: int, end: int) -> None:
        if first > 0:
            raise ValueError("out of reach")

    with pytest.raises(ValueError, match="out of reach"):
        threads.share(work)
    threads.close()

"""Threads that share the environments of a batch out among them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from hetenv.errors import InputError


class Threads:
    """The calling thread and ``num_threads - 1`` others, each with its share of ``num_envs`` environments."""

    def __init__(self, num_envs: int, num_threads: int) -> None:
        for name, value in (("num_envs", num_envs), ("num_threads", num_threads)):
            if value < 1:
                raise InputError(name, value, "give a whole number of at least 1")
        ends = np.linspace(0, num_envs, min(num_envs, num_threads) + 1).astype(int).tolist()
        self._shares = list(pairwise(ends))
        self._pool = ThreadPoolExecutor(len(self._shares) - 1) if len(self._shares) > 1 else None

    def share(self, work: Callable[[int, int], object]) -> None:
        """Do ``work(first, end)`` for each share, all at the same time."""
        others = [self._pool.submit(work, *ends) for ends in self._shares[1:]] if self._pool else []
        work(*self._shares[0])
        for other in others:
            other.result()

    def close(self) -> None:
        """End the other threads."""
        if self._pool is not None:
            self._pool.shutdown()

"""Whole episodes of ``hetenv/Market-v0``: many benders on the same jobs, in several processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np

from agents.bender import Inputs, MarketBender
from agents.figures import Figures
from hetenv.config import Scenario
from hetenv.envs.market import MarketEnv
from hetenv.evaluation.workers import ignoring_interrupts, worker_died
from hetenv.workload import Workload


class BentEpisodes:
    """Plays workloads of a scenario under benders. What comes of them does not depend on ``workers``.

    Args:
        workers: processes to play in; 1 for this one.
    """

    def __init__(self, scenario: Scenario, inputs: Inputs, workers: int) -> None:
        self._scenario, self._inputs, self._pool = scenario, inputs, None
        if workers > 1:
            context = multiprocessing.get_context("spawn")  # a fork would copy the locks that threads of torch hold
            self._pool = ProcessPoolExecutor(workers, context, initializer=_end_with_parent)
            with ignoring_interrupts():  # each of the first submissions starts a process
                for _ in range(workers):
                    self._pool.submit(int)

    def play(self, workloads: Sequence[Workload], weights: np.ndarray) -> tuple[np.ndarray, int]:
        """(P, E, 4) ``Figures`` of the benders of ``weights`` (P, n_weights), and the steps they took in all.

        Raises:
            InputError: a process died.
        """
        tasks = [(self._scenario, workload, own, self._inputs) for own in weights for workload in workloads]
        if self._pool is None:
            played = [play_bent(*task) for task in tasks]
        else:
            try:
                futures: list[Future[tuple[Figures, int]]] = [self._pool.submit(play_bent, *task) for task in tasks]
                played = [future.result() for future in futures]
            except BrokenProcessPool:
                raise worker_died() from None
        figures = np.array([own for own, _ in played]).reshape(len(weights), len(workloads), -1)
        return figures, sum(steps for _, steps in played)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


# --- in a worker process ---------------------------------------------------------------------------


def _end_with_parent() -> None:
    """Have this process end when the one that started it is gone: if that was killed, no one else stops it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def play_bent(scenario: Scenario, workload: Workload, weights: np.ndarray, inputs: Inputs) -> tuple[Figures, int]:
    """Figures of one episode under the bender of ``weights`` (n_weights,), and the steps it took."""
    env, policy = MarketEnv(scenario), MarketBender(weights, inputs)
    observation, _ = env.reset(seed=0, options={"workload": workload})
    n_steps, ended, info = 0, env.simulator.done, env.figures()
    while not ended:
        action = policy.greedy_actions({name: array[None] for name, array in observation.items()})[0]
        observation, _, ended, _, info = env.step(action)
        n_steps += 1
    queued_s = float((env.simulator.state.jobs["start_s"] - workload.arrival_s).sum())
    return Figures.of_episode(info, queued_s), n_steps

"""Whole episodes in compiled code: many scorers on the same jobs, without a return to Python at every decision."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from agents.figures import Figures
from agents.heuristic import COLUMNS
from agents.scorer import Layers, choose, make_inputs
from hetenv.compiled import njit, njit_threaded
from hetenv.config import Scenario
from hetenv.envs.episode import episode_figures
from hetenv.envs.stepping import BEGIN, step
from hetenv.envs.view import begin_view, make_observation, make_view
from hetenv.errors import StallError
from hetenv.simulator import Simulator
from hetenv.simulator.state import SEGMENT
from hetenv.workload import Workload

_UNRECORDED = np.zeros(0, SEGMENT)


class Played(NamedTuple):
    """What P scorers made of J jobs on M GPU types."""

    finish_s: np.ndarray  # (P, J)
    queued_s: np.ndarray  # (P,), from arrival to first start, summed over the jobs
    ended: np.ndarray  # (P, 1 + M), the time of the end and busy GPU-seconds by type
    steps: int  # of all scorers


class Episode:
    """One workload for scorers to play from its first arrival to its last finish, all offered the same candidates.

    Args:
        simulator: of the scenario; lends its cluster and rules and is reset.
        rng: draws the sampled candidates.
    """

    def __init__(self, scenario: Scenario, simulator: Simulator, workload: Workload, rng: np.random.Generator) -> None:
        simulator.reset(rng, workload)
        self.cluster, self._fixed, self._start = simulator.cluster, simulator.fixed, simulator.state
        n_types = len(simulator.cluster.types)
        self._view = make_view(scenario, len(workload), n_types, simulator.cluster.n_gpus)
        begin_view(self._view, scenario, self._fixed, rng)
        self._observation = make_observation(scenario, n_types)

    def play(self, layers: Layers) -> tuple[list[Figures], int]:
        """Figures of each of P scorers of ``layers`` (P, ...), and the steps they took in all."""
        played = self.finish_times(layers)
        arrival_s = self._fixed.jobs["arrival_s"]
        figures = []
        for finish_s, queued_s, end in zip(played.finish_s, played.queued_s, played.ended, strict=True):
            own = episode_figures(self.cluster, arrival_s, finish_s, float(end[0]), end[1:])
            figures.append(Figures.of_episode(own, float(queued_s)))
        return figures, played.steps

    def finish_times(self, layers: Layers) -> Played:
        """How the jobs fare under each of P scorers of ``layers`` (P, ...).

        Raises:
            StallError: a scorer left jobs waiting on an idle cluster.
        """
        n_scorers, n_jobs = len(layers.rule), len(self._fixed.jobs)
        finish_s, queued_s = np.empty((n_scorers, n_jobs)), np.zeros(n_scorers)
        ended = np.empty((n_scorers, 1 + len(self.cluster.types)))
        steps = _play_all(
            self._fixed,
            self._start,
            self._start.copy(),
            _UNRECORDED,
            self._view,
            self._observation,
            layers,
            COLUMNS,
            make_inputs(self._observation.candidates.shape[1]),
            finish_s,
            queued_s,
            ended,
        )
        if steps < 0:
            raise StallError("jobs wait on an idle cluster, and nothing will arrive")
        return Played(finish_s, queued_s, ended, steps)


def play_episodes(episodes: Iterable[Episode], layers: Layers, pool: ThreadPoolExecutor) -> tuple[np.ndarray, int]:
    """(P, E, 4) ``Figures`` of P scorers on E episodes, and the steps they took in all."""
    played = list(pool.map(lambda episode: episode.play(layers), episodes))
    return np.array([figures for figures, _ in played]).swapaxes(0, 1), sum(steps for _, steps in played)


@njit_threaded
def _play_all(fixed, start, state, timeline, view, observation, layers, columns, inputs, finish_s, queued_s, ended):
    """Fill the arrays of ``Played``, ``queued_s`` from zeros; returns the steps, -1 when stalled."""
    n_steps = 0
    for p in range(finish_s.shape[0]):
        own = Layers(layers.rule[p], layers.pair_in[p], layers.pair_out[p], layers.wait_in[p], layers.wait_out[p])
        _begin(start, state, view, observation)
        action = BEGIN
        while True:
            step(fixed, state, timeline, view, observation, action)
            if view.agent[0].stalled:
                return -1
            if state.clock[0].n_done == fixed.jobs.shape[0]:
                break
            action = choose(
                observation.jobs, observation.candidates, observation.globals, view.mask, own, columns, inputs
            )
            n_steps += 1
        for job in range(fixed.jobs.shape[0]):
            finish_s[p, job] = state.jobs[job].finish_s
            queued_s[p] += state.jobs[job].start_s - fixed.jobs[job].arrival_s
        ended[p, 0] = state.clock[0].time_s
        for m in range(state.uses.shape[0]):
            ended[p, 1 + m] = state.uses[m].busy_gpu_s
    return n_steps


@njit
def _begin(start, state, view, observation):
    """Back to the first state; candidates that were made for a job stay."""
    state.jobs[:] = start.jobs
    state.counts[:] = start.counts
    state.nodes[:] = start.nodes
    state.uses[:] = start.uses
    state.holds[:] = start.holds
    state.running[:] = start.running
    state.clock[:] = start.clock
    view.agent[0].epoch = 0
    view.agent[0].stalled = 0
    for job in range(view.seen.shape[0]):
        view.seen[job].changed_at = -1
    observation.rows[:] = -2

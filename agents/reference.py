"""What the heuristic would have lost meanwhile: an input-dependent baseline (Mao et al., ICLR 2019) for the rewards.

Most of the noise in a return is the luck of the arrivals. The heuristic works through each training episode when it
begins, in compiled code; what it loses in a span of time is added to the reward that an agent gets for that span.
The return becomes the sum of the heuristic's JCTs less that of the agent's, over the time scale: the best policy
stays the same.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from agents.playing import Episode
from agents.scorer import PairScorer, Shape, as_layers
from hetenv.config import Scenario
from hetenv.workload import Workload

_SHAPE = Shape(1, 1)
_HEURISTIC = as_layers(PairScorer.initial(_SHAPE).weights[None], _SHAPE)


class HeuristicReference:
    """The heuristic's way through the episodes that N environments play."""

    def __init__(self, scenario: Scenario, num_envs: int) -> None:
        self._scenario, self._simulator = scenario, scenario.make_simulator()
        self._spans = np.zeros((2, num_envs, 0))  # arrivals and finishes (N, J), equal where there is no job

    def begin(self, env: int, workload: Workload, rng: np.random.Generator) -> None:
        """Play the next episode of environment ``env``; ``rng``, which will draw its candidates, is left as it was."""
        episode = Episode(self._scenario, self._simulator, workload, copy.deepcopy(rng))
        finish_s = episode.finish_times(_HEURISTIC).finish_s[0]
        n_jobs = len(workload)
        if n_jobs > self._spans.shape[2]:
            self._spans = np.pad(self._spans, ((0, 0), (0, 0), (0, n_jobs - self._spans.shape[2])))
        self._spans[:, env] = 0.0
        self._spans[:, env, :n_jobs] = workload.arrival_s, finish_s

    def job_seconds(self, time_s: np.ndarray) -> np.ndarray:
        """(N,) seconds that all jobs have spent in the heuristic's system until ``time_s`` (N,)."""
        arrival_s, finish_s = np.minimum(self._spans, time_s[:, None])
        total: np.ndarray = (finish_s - arrival_s).sum(axis=1)
        return total

    def get_state(self) -> Any:
        return self._spans.copy()

    def set_state(self, state: Any) -> None:
        self._spans = state.copy()

"""What the evolution strategy can breed: numbers that become policies, and how many of those play whole episodes.

Scorers of ``hetenv/Placement-v0`` play in compiled code, in several threads; benders of ``hetenv/Market-v0`` in several
processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from agents.bender import Inputs, MarketBender, constants_of
from agents.bending import BentEpisodes
from agents.config import BenderConfig, EvolutionConfig, ScorerConfig
from agents.playing import Episode, play_episodes
from agents.saving import Bred
from agents.scorer import PairScorer, Shape, as_layers
from baselines.market_tuned import tuned_for, tuned_parameters
from hetenv.config import Scenario
from hetenv.workload import Workload


class Breed(Protocol):
    """
    Attributes:
        first: (n_weights,) where the search begins.
    """

    first: np.ndarray

    def policy(self, weights: np.ndarray) -> Bred:
        """What ``weights`` (n_weights,) stand for."""

    def episode(self, workload: Workload, rng: np.random.Generator) -> Any:
        """An episode to play, once or again and again; ``rng`` draws what is random in it beside its jobs."""

    def play(self, episodes: Sequence[Any], weights: np.ndarray) -> tuple[np.ndarray, int]:
        """(P, E, 4) ``Figures`` of the policies of ``weights`` (P, n_weights), and the steps they took in all."""

    def close(self) -> None:
        """Stop threads and processes."""


class Scorers:
    """Of ``agents.scorer``; the first one plays the heuristic."""

    def __init__(self, config: ScorerConfig, scenario: Scenario) -> None:
        self._scenario, self._simulator = scenario, scenario.make_simulator()
        self._shape = Shape(**config.policy_kwargs.model_dump())
        self._pool = ThreadPoolExecutor(config.threads)
        self.first = PairScorer.initial(self._shape).weights

    def policy(self, weights: np.ndarray) -> PairScorer:
        return PairScorer(weights, self._shape)

    def episode(self, workload: Workload, rng: np.random.Generator) -> Episode:
        return Episode(self._scenario, self._simulator, workload, rng)

    def play(self, episodes: Sequence[Episode], weights: np.ndarray) -> tuple[np.ndarray, int]:
        return play_episodes(episodes, as_layers(weights, self._shape), self._pool)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class Benders:
    """Of ``agents.bender``; unless told otherwise the first one plays market-tuned, tuned for the scenario or else for
    all of them."""

    def __init__(self, config: BenderConfig, scenario: Scenario) -> None:
        self._inputs = Inputs(**config.policy_kwargs.model_dump())
        self._episodes = BentEpisodes(scenario, self._inputs, config.workers)
        constants: Sequence[float] | None = config.start
        if constants is None:
            constants = constants_of(tuned_parameters(tuned_for(scenario.name)))
        self.first = MarketBender.constant(self._inputs, constants).weights
        self.play, self.close = self._episodes.play, self._episodes.close

    def policy(self, weights: np.ndarray) -> MarketBender:
        return MarketBender(weights, self._inputs)

    def episode(self, workload: Workload, rng: np.random.Generator) -> Workload:
        return workload


def make_breed(config: EvolutionConfig, scenario: Scenario) -> Breed:
    """What the configuration names."""
    if isinstance(config, BenderConfig):
        return Benders(config, scenario)
    assert isinstance(config, ScorerConfig)
    return Scorers(config, scenario)

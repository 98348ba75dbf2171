"""Evolution strategy: CMA-ES (Hansen and Ostermeier, Evolutionary Computation 2001) on the weights of a policy.

Every generation plays a population of policies on the same fresh training episodes and moves towards those of least
mean JCT. ``agents.breeds`` says what can be bred.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cma
import numpy as np

from agents.breeds import Breed, make_breed
from agents.config import EvolutionConfig
from agents.episodes import TRAINING_SPAWN_KEY
from agents.figures import Figures
from agents.held_out import HeldOut
from agents.runs import Run
from agents.saving import save_bred
from hetenv.config import Scenario
from hetenv.errors import InputError
from hetenv.files import replace_file


def evolve(run: Run, progress: Callable[[int, int], object]) -> None:
    """Breed a policy, or go on breeding it; see ``agents.training``.

    The policy of a generation is the mean of its population's distribution.
    """
    config = run.config
    assert isinstance(config, EvolutionConfig)
    scenario = config.load_scenario()
    with closing(make_breed(config, scenario)) as breed:
        _evolve(run, config, scenario, breed, progress)


def _evolve(
    run: Run, config: EvolutionConfig, scenario: Scenario, breed: Breed, progress: Callable[[int, int], object]
) -> None:
    held_out_episodes = seeded_episodes(scenario, breed, config.evaluation.seeds)
    state_path = run.folder / "strategy.pickle"
    state = State.read(state_path) if run.history else State.first(config, breed.first)
    strategy = state.strategy

    def mean_figures() -> Figures:
        figures, _ = breed.play(held_out_episodes, strategy.mean[None])
        return Figures.mean(figures[0])

    start = None
    if not run.history:
        start = mean_figures()
        run.begin()
    held_out = HeldOut(
        run,
        state.n_steps,
        lambda: breed.policy(strategy.mean),
        lambda path: save_bred(breed.policy(strategy.mean), run.origin, path),
        ".npz",
        lambda: state.write(state_path),
    )
    logger = held_out.events.logger
    try:
        if start is not None:
            held_out.keep(0, start, {})
        run.budget.start()
        while run.budget.share_left(state.n_steps) > 0.0:
            if held_out.due(state.n_steps):
                held_out.keep(state.n_steps, mean_figures(), {})
            weights = np.array(strategy.ask())  # (P, n_weights)
            drawn = [breed.episode(scenario.draw_workload(state.rng), state.rng) for _ in range(config.episodes)]
            figures, played = breed.play(drawn, weights)
            jct_s = figures[..., 0].mean(axis=1)  # (P,)
            strategy.tell(weights, jct_s.tolist())
            state.n_steps += played
            for name, value in _generation(strategy, jct_s).items():
                logger.record(name, value)
            logger.dump(state.n_steps)
            progress(round(100 * (1.0 - run.budget.share_left(state.n_steps))), 100)
        if run.history[-1][0] < state.n_steps:
            held_out.keep(state.n_steps, mean_figures(), {})
        held_out.end(state.n_steps)
    except KeyboardInterrupt:
        held_out.end(state.n_steps, interrupted=True)
    finally:
        held_out.events.close()


@dataclass
class State:
    """All that the future of a run depends on.

    Attributes:
        rng: draws the training episodes.
        n_steps: environment steps taken.
    """

    strategy: cma.CMAEvolutionStrategy
    rng: np.random.Generator
    n_steps: int = 0

    @classmethod
    def first(cls, config: EvolutionConfig, weights: np.ndarray) -> State:
        """
        Args:
            weights: (n_weights,) where to begin.
        """
        options = {"popsize": config.population, "seed": config.seed + 1, "verbose": -9}  # 0 would take the clock
        strategy = cma.CMAEvolutionStrategy(weights, config.sigma, options)
        stream = np.random.SeedSequence(config.seed, spawn_key=(TRAINING_SPAWN_KEY,))
        return cls(strategy, np.random.default_rng(stream))

    @classmethod
    def read(cls, path: Path) -> State:
        """From a file that ``write`` made in the folder of one's own run: a pickle, which could run any code."""
        try:
            state, generator = pickle.loads(path.read_bytes())
        except (OSError, pickle.UnpicklingError, EOFError):
            raise InputError(str(path), "no state of a strategy", "start the run anew") from None
        np.random.set_state(generator)  # noqa: NPY002, what the strategy draws from
        assert isinstance(state, cls)
        return state

    def write(self, path: Path) -> None:
        with replace_file(path, "wb") as file:
            pickle.dump((self, np.random.get_state()), file)  # noqa: NPY002


def seeded_episodes(scenario: Scenario, breed: Breed, seeds: range) -> list[Any]:
    """The episodes that ``scripts/evaluate.py`` plays under ``seeds``."""
    return [
        breed.episode(scenario.draw_workload(np.random.default_rng(seed)), np.random.default_rng(seed))
        for seed in seeds
    ]


def _generation(strategy: cma.CMAEvolutionStrategy, jct_s: np.ndarray) -> dict[str, float]:
    return {
        "evolution/generation": float(strategy.countiter),
        "evolution/sigma": float(strategy.sigma),
        "rollout/mean_jct_s": float(jct_s.mean()),
        "rollout/best_jct_s": float(jct_s.min()),
    }

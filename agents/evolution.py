"""Evolution strategy: CMA-ES (Hansen and Ostermeier, Evolutionary Computation 2001) on the weights of a ``PairScorer``.

Every generation plays a population of scorers on the same fresh training episodes and moves towards those of least
mean JCT. Whole episodes run in compiled code, in several threads: the quickest learner here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cma
import numpy as np

from agents.config import EvolutionConfig
from agents.episodes import TRAINING_SPAWN_KEY
from agents.figures import Figures
from agents.held_out import HeldOut
from agents.playing import Episode, play_episodes
from agents.runs import Run
from agents.saving import save_scorer
from agents.scorer import PairScorer, Shape, as_layers
from hetenv.config import Scenario
from hetenv.errors import InputError
from hetenv.files import replace_file


def evolve(run: Run, progress: Callable[[int, int], object]) -> None:
    """Breed a scorer, or go on breeding it; see ``agents.training``.

    The policy of a generation is the mean of its population's distribution.
    """
    config = run.config
    assert isinstance(config, EvolutionConfig)
    scenario = config.load_scenario()
    shape = Shape(**config.policy_kwargs.model_dump())
    held_out_episodes = list(seeded_episodes(scenario, config.evaluation.seeds))
    state_path = run.folder / "strategy.pickle"
    state = State.read(state_path) if run.history else State.first(config, shape)
    strategy = state.strategy
    training = training_episodes(scenario, state.rng)
    pool = ThreadPoolExecutor(config.threads)

    def mean_figures() -> Figures:
        figures, _ = play_episodes(held_out_episodes, as_layers(strategy.mean[None], shape), pool)
        return Figures.mean(figures[0])

    start = None
    if not run.history:
        start = mean_figures()
        run.begin()
    held_out = HeldOut(
        run,
        state.n_steps,
        lambda: PairScorer(strategy.mean, shape),
        lambda path: save_scorer(PairScorer(strategy.mean, shape), run.origin, path),
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
            drawn = [next(training) for _ in range(config.episodes)]
            figures, played = play_episodes(drawn, as_layers(weights, shape), pool)
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
        pool.shutdown(cancel_futures=True)
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
    def first(cls, config: EvolutionConfig, shape: Shape) -> State:
        options = {"popsize": config.population, "seed": config.seed + 1, "verbose": -9}  # 0 would take the clock
        strategy = cma.CMAEvolutionStrategy(PairScorer.initial(shape).weights, config.sigma, options)
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


def seeded_episodes(scenario: Scenario, seeds: range) -> Iterator[Episode]:
    """The episodes that ``scripts/evaluate.py`` plays under ``seeds``."""
    simulator = scenario.make_simulator()
    for seed in seeds:
        workload = scenario.draw_workload(np.random.default_rng(seed))
        yield Episode(scenario, simulator, workload, np.random.default_rng(seed))


def training_episodes(scenario: Scenario, rng: np.random.Generator) -> Iterator[Episode]:
    """An endless stream of episodes."""
    simulator = scenario.make_simulator()
    while True:
        yield Episode(scenario, simulator, scenario.draw_workload(rng), rng)


def _generation(strategy: cma.CMAEvolutionStrategy, jct_s: np.ndarray) -> dict[str, float]:
    return {
        "evolution/generation": float(strategy.countiter),
        "evolution/sigma": float(strategy.sigma),
        "rollout/mean_jct_s": float(jct_s.mean()),
        "rollout/best_jct_s": float(jct_s.min()),
    }

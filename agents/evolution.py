"""Evolution strategy: CMA-ES (Hansen and Ostermeier, Evolutionary Computation 2001) on the weights of a ``PairScorer``.

Every generation plays a population of scorers on the same fresh training episodes and moves towards those of least
mean JCT. Whole episodes run in compiled code, in several threads: the quickest learner here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cma
import numpy as np

from agents.budget import Budget
from agents.config import EvolutionConfig
from agents.episodes import TRAINING_SPAWN_KEY, Figures
from agents.held_out import HeldOut
from agents.playing import Episode, play_episodes
from agents.runs import Run, begin_folder, end_folder, event_logger, require_empty
from agents.saving import Origin, save_scorer
from agents.scorer import PairScorer, Shape, as_layers
from hetenv.config import Scenario


def evolve(
    config: EvolutionConfig,
    folder: Path,
    baseline_jct_s: Mapping[str, float],
    progress: Callable[[int, int], object],
) -> Run:
    """Breed a scorer and leave in ``folder`` what came of it; see ``agents.training.train``.

    The policy of a generation is the mean of its population's distribution.
    """
    require_empty(folder)
    scenario = config.load_scenario()
    budget = Budget(config.n_timesteps, config.max_minutes)
    shape = Shape(**config.policy_kwargs.model_dump())
    origin = Origin(algorithm=config.algorithm, network=shape._asdict(), **config.env_kwargs.model_dump())
    strategy = _strategy(config, shape)
    training = training_episodes(scenario, config.seed)
    pool = ThreadPoolExecutor(config.threads)
    held_out_episodes = list(seeded_episodes(scenario, config.evaluation.seeds))

    def mean_figures() -> Figures:
        figures, _ = play_episodes(held_out_episodes, as_layers(strategy.mean[None], shape), pool)
        return Figures(*figures[0].mean(axis=0).tolist())

    start = mean_figures()
    begin_folder(folder, config)
    logger = event_logger(folder)
    held_out = HeldOut(
        config.evaluation.every_steps,
        lambda path: save_scorer(PairScorer(strategy.mean, shape), origin, path),
        folder,
        ".npz",
        logger,
        baseline_jct_s,
    )
    held_out.keep(0, start, {})
    n_steps, interrupted = 0, False
    try:
        budget.start()
        while budget.share_left(n_steps) > 0.0:
            weights = np.array(strategy.ask())  # (P, n_weights)
            drawn = [next(training) for _ in range(config.episodes)]
            figures, played = play_episodes(drawn, as_layers(weights, shape), pool)
            jct_s = figures[..., 0].mean(axis=1)  # (P,)
            strategy.tell(weights, jct_s.tolist())
            n_steps += played
            for name, value in _generation(strategy, jct_s).items():
                logger.record(name, value)
            logger.dump(n_steps)
            progress(round(100 * (1.0 - budget.share_left(n_steps))), 100)
            if held_out.due(n_steps):
                held_out.keep(n_steps, mean_figures(), {})
        if held_out.history[-1][0] < n_steps:
            held_out.keep(n_steps, mean_figures(), {})
    except KeyboardInterrupt:
        interrupted = True
        held_out.save(held_out.last_path)
    finally:
        pool.shutdown(cancel_futures=True)
        logger.close()
    return end_folder(folder, config, held_out, n_steps, budget.elapsed_s, interrupted)


def seeded_episodes(scenario: Scenario, seeds: range) -> Iterator[Episode]:
    """The episodes that ``scripts/evaluate.py`` plays under ``seeds``."""
    simulator = scenario.make_simulator()
    for seed in seeds:
        workload = scenario.draw_workload(np.random.default_rng(seed))
        yield Episode(scenario, simulator, workload, np.random.default_rng(seed))


def training_episodes(scenario: Scenario, seed: int) -> Iterator[Episode]:
    """An endless stream of episodes that no plain integer seed gives."""
    simulator = scenario.make_simulator()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(TRAINING_SPAWN_KEY,)))
    while True:
        yield Episode(scenario, simulator, scenario.draw_workload(rng), rng)


def _strategy(config: EvolutionConfig, shape: Shape) -> cma.CMAEvolutionStrategy:
    options = {"popsize": config.population, "seed": config.seed + 1, "verbose": -9}  # 0 would take the clock
    return cma.CMAEvolutionStrategy(PairScorer.initial(shape).weights, config.sigma, options)


def _generation(strategy: cma.CMAEvolutionStrategy, jct_s: np.ndarray) -> dict[str, float]:
    return {
        "evolution/generation": float(strategy.countiter),
        "evolution/sigma": float(strategy.sigma),
        "rollout/mean_jct_s": float(jct_s.mean()),
        "rollout/best_jct_s": float(jct_s.min()),
    }

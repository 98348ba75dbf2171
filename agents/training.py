"""``train``: one training run, from a configuration to a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import baselines
from agents.config import EvolutionConfig, RunSettings, TrainConfig
from agents.evolution import evolve
from agents.on_policy import train_network
from agents.runs import Run
from hetenv.evaluation import evaluate


def train(
    config: RunSettings,
    folder: Path,
    baseline_jct_s: Mapping[str, float] | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Run:
    """Train a policy and leave in ``folder`` what came of it.

    The folder then holds config.yaml, versions.json, TensorBoard events, the best and the last policy, and
    evaluation.json. Ctrl-C ends the training early and keeps what was learned. The same configuration gives the same
    weights, unless ``max_minutes`` ends the run.

    Args:
        folder: new or empty.
        baseline_jct_s: what ``play_baselines`` found, for comparison.
        progress: called with percents of the budget used, and 100.

    Raises:
        InputError: bad configuration, or a folder that holds something; nothing has been written then.
        KeyboardInterrupt: before there was anything to keep; likewise.
    """
    if isinstance(config, EvolutionConfig):
        return evolve(config, folder, baseline_jct_s or {}, progress)
    assert isinstance(config, TrainConfig)
    return train_network(config, folder, baseline_jct_s or {}, progress)


def play_baselines(config: RunSettings, progress: Callable[[int, int], object]) -> dict[str, float]:
    """Mean JCT in seconds of the configured baselines on the held-out episodes.

    Args:
        progress: called with the episodes played, over all baselines, and their number.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C.
    """
    settings = config.evaluation
    if not settings.baselines:
        return {}
    evaluation = evaluate(
        config.load_scenario(),
        {name: partial(baselines.make, name) for name in settings.baselines},
        episodes=settings.episodes,
        seed=settings.seed,
        progress=progress,
    )
    if evaluation.interrupted:
        raise KeyboardInterrupt
    figures = evaluation.summary()["schedulers"]
    return {name: figures[name]["mean_jct_s"] for name in settings.baselines}

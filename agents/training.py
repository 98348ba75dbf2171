"""``train``: one training run, from a configuration to a folder; ``resume`` goes on with one that was stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import baselines
from agents.config import EvolutionConfig, RunSettings
from agents.events import failed_writes_told_once
from agents.evolution import evolve
from agents.figures import Figures
from agents.on_policy import train_network
from agents.runs import Run, require_empty
from hetenv.evaluation import evaluate
from hetenv.files import cannot_write

Progress = Callable[[int, int], object]


def train(
    config: RunSettings,
    folder: Path,
    baseline_figures: Mapping[str, Figures] | None = None,
    progress: Progress = lambda done, total: None,
) -> Run:
    """Train a policy and leave in ``folder`` what came of it.

    The folder then holds config.yaml, versions.json, TensorBoard events, the best and the last policy, and
    evaluation.json. Ctrl-C ends the training early and keeps what was learned. The same configuration gives the same
    weights, unless ``max_minutes`` ends the run.

    Args:
        folder: new or empty.
        baseline_figures: what ``play_baselines`` found, for comparison.
        progress: called with percents of the budget used, and 100.

    Raises:
        InputError: bad configuration, or a folder that holds something: nothing has been written then. Or a write
            that failed: what had been written before is whole, and ``resume`` goes on from there.
        KeyboardInterrupt: before there was anything to keep; nothing has been written.
    """
    require_empty(folder)
    return _learn(Run(folder, config, baseline_figures or {}), progress)


def resume(run: Run, progress: Progress = lambda done, total: None) -> Run:
    """Go on with a run that ``Run.read`` found, from its last evaluation, until its budget is used up.

    An evolution strategy goes on as if nothing had happened. PPO and A2C go on with their weights, optimizer and
    schedules, in fresh episodes from a random stream that follows from seed and step: two runs stopped at the same
    step go on alike, but not like one that was never stopped.
    """
    return _learn(run, progress)


def _learn(run: Run, progress: Progress) -> Run:
    learn = evolve if isinstance(run.config, EvolutionConfig) else train_network
    try:
        with failed_writes_told_once():
            learn(run, progress)
    except OSError as error:  # of the event files; all others say it themselves
        raise cannot_write(run.folder, error) from None
    return run


def play_baselines(config: RunSettings, progress: Progress) -> dict[str, Figures]:
    """Figures of the configured baselines, tuned for the scenario if they can be, on the held-out episodes.

    Args:
        progress: called with the episodes played, over all baselines, and their number.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C.
    """
    settings = config.evaluation
    if not settings.baselines:
        return {}
    scenario = config.load_scenario()
    evaluation = evaluate(
        scenario,
        {name: partial(baselines.make_for, scenario.name, name) for name in settings.baselines},
        episodes=settings.episodes,
        seed=settings.seed,
        progress=progress,
    )
    if evaluation.interrupted:
        raise KeyboardInterrupt
    return {
        name: Figures.mean(
            [Figures.of_episode(trial.figures, float(trial.jobs["queueing_s"].sum())) for trial in trials]
        )
        for name, trials in evaluation.trials.items()
    }

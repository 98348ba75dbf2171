"""``evaluate``: several schedulers on the same episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from hetenv.config import Scenario, load_scenario
from hetenv.errors import InputError
from hetenv.evaluation.report import Evaluation
from hetenv.evaluation.trials import SchedulerFactory, Task, Trial, run_here
from hetenv.evaluation.workers import run_in_workers


def evaluate(
    scenario: str | Path | Scenario,
    schedulers: Mapping[str, SchedulerFactory],
    *,
    episodes: int,
    seed: int,
    reference: str | None = None,
    workers: int = 1,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Evaluation:
    """Let every scheduler work through the same episodes.

    The jobs of episode k are drawn once, with ``numpy.random.default_rng(seed + k)``, and every scheduler
    is reset with ``seed + k`` too. The outcome does not depend on ``workers``. After Ctrl-C the evaluation
    holds the episodes that every scheduler had finished, and its ``interrupted`` is true.

    Args:
        scenario: see ``hetenv.load_scenario``.
        schedulers: name -> what makes the scheduler, called once a process; to be pickled for ``workers`` > 1.
        reference: the scheduler that ratios refer to; by default "jps" if there is one, else the first.
        workers: processes to run in.
        progress: called with the trials done and their number, after each trial and at the start.

    Raises:
        InputError: an argument out of range, or jobs that cannot be drawn or cannot run on the cluster.
        PlanError, StallError: a scheduler asked for the impossible, or left jobs waiting on an idle cluster.
        KeyboardInterrupt: before the first episode was complete.
    """
    scenario = load_scenario(scenario)
    if not schedulers:
        raise InputError("schedulers", "none", "name at least one")
    for name, value, least in (("episodes", episodes, 1), ("workers", workers, 1), ("seed", seed, 0)):
        if value < least:
            raise InputError(name, value, f"give a whole number of at least {least}")
    if reference is None:
        reference = "jps" if "jps" in schedulers else next(iter(schedulers))
    if reference not in schedulers:
        raise InputError("reference", repr(reference), f"use one of {', '.join(schedulers)}")

    built = {name: build() for name, build in schedulers.items()}  # also for workers, so that faults show at once
    tasks = _tasks(scenario, list(schedulers), episodes, seed)
    trials = run_here(tasks, scenario, built) if workers == 1 else run_in_workers(tasks, scenario, schedulers, workers)
    done: dict[tuple[str, int], Trial] = {}
    total = episodes * len(schedulers)
    try:
        with closing(trials):
            progress(0, total)
            for trial in trials:
                done[trial.scheduler, trial.episode] = trial
                progress(len(done), total)
    except KeyboardInterrupt:
        pass  # what is done is worth keeping
    complete = [k for k in range(episodes) if all((name, k) in done for name in schedulers)]
    if not complete:
        raise KeyboardInterrupt
    return Evaluation(
        scenario=scenario.name,
        seed=seed,
        requested=episodes,
        reference=reference,
        episodes=complete,
        trials={name: [done[name, k] for k in complete] for name in schedulers},
    )


def _tasks(scenario: Scenario, schedulers: list[str], episodes: int, seed: int) -> Iterator[Task]:
    for episode in range(episodes):
        workload = scenario.draw_workload(np.random.default_rng(seed + episode))
        for name in schedulers:
            yield Task(episode, name, workload, seed + episode)

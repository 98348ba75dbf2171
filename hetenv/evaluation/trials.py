"""Trials: one scheduler through one episode each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hetenv.config import Scenario
from hetenv.scheduler import Scheduler
from hetenv.simulator import simulate
from hetenv.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

SchedulerFactory = Callable[[], Scheduler]


class Task(NamedTuple):
    """What to run: a scheduler by name, on the jobs of an episode."""

    episode: int
    scheduler: str
    workload: Workload
    seed: int


class Trial(NamedTuple):
    """One scheduler through one episode.

    Attributes:
        episode: its number.
        scheduler: name of the scheduler in the comparison.
        jobs: the job table, see ``hetenv.Result.jobs``.
        figures: the summary of the run, see ``hetenv.metrics.summarize``.
        decision_s: (D,) wall-clock seconds of each decision.
    """

    episode: int
    scheduler: str
    jobs: pd.DataFrame
    figures: dict[str, Any]
    decision_s: np.ndarray


TrialStream = Generator[Trial, None, None]


def run_trial(task: Task, scenario: Scenario, scheduler: Scheduler) -> Trial:
    """Simulate one task to its end."""
    options = scenario.simulator.model_dump()
    result = simulate(task.workload, scenario.cluster, scheduler, seed=task.seed, **options)
    return Trial(task.episode, task.scheduler, result.jobs, result.summary(), result.decision_s)


def run_here(tasks: Iterable[Task], scenario: Scenario, schedulers: Mapping[str, Scheduler]) -> TrialStream:
    """The trials of ``tasks``, one after the other."""
    for task in tasks:
        yield run_trial(task, scenario, schedulers[task.scheduler])

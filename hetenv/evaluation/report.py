"""The outcome of a comparison: summary, job table, table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hetenv.evaluation import files
from hetenv.evaluation.figures import bootstrap_interval, pool_episodes, ratio_of_means
from hetenv.evaluation.trials import Trial

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The episodes that every scheduler finished.

    Attributes:
        scenario: its name.
        seed: of episode 0; episode k has ``seed + k``.
        requested: episodes asked for; fewer are held after an interruption.
        reference: name of the scheduler that ratios refer to.
        episodes: numbers of the K episodes held, ascending.
        trials: scheduler -> its K trials, in the order of ``episodes``.
    """

    scenario: str
    seed: int
    requested: int
    reference: str
    episodes: Sequence[int]
    trials: Mapping[str, Sequence[Trial]]

    @property
    def interrupted(self) -> bool:
        """Whether episodes are missing because the run was interrupted (Ctrl-C)."""
        return len(self.episodes) < self.requested

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """Every job under every scheduler: scheduler, episode, seed, then the columns of ``hetenv.Result.jobs``."""
        import pandas as pd

        tables = []
        for trial in (trial for trials in self.trials.values() for trial in trials):
            origin = {"scheduler": trial.scheduler, "episode": trial.episode, "seed": self.seed + trial.episode}
            tables.append(pd.concat([pd.DataFrame(origin, index=trial.jobs.index), trial.jobs], axis=1))
        return pd.concat(tables, ignore_index=True)

    def summary(self) -> dict[str, Any]:
        """The content of ``summary.json``.

        ``{"scenario", "episodes" (held), "seed", "reference", "schedulers": {name: figures}, "ratios"}``. The figures
        of a scheduler are pooled over the episodes as follows:

        - mean_jct_s: mean over episodes of each episode's mean; ci95: its interval [low, high];
        - p50_jct_s, p95_jct_s, p99_jct_s: percentiles over all jobs of all episodes;
        - makespan_s, queueing_s, utilization, jain, restarts_per_job: mean over episodes;
        - max_rho: the largest JCT / exclusive time of any job;
        - decision_ms: {p50, p99} over all decisions of all episodes, milliseconds of wall-clock time;
        - ratio_to_reference: mean_jct_s / that of the reference; ratio_ci95: its interval.

        "ratios": {name: {other: {ratio, ci95}}} has the same ratio to every other scheduler.

        Intervals are 95 % bootstrap intervals over episodes, because the jobs of one episode depend on each
        other; that of a ratio draws the same episodes for both schedulers. They are None for one episode.
        All but decision_ms depends on the scenario, the schedulers and the seed alone.
        """
        schedulers = {}
        for name, trials in self.trials.items():
            jct_s = self._mean_jct_s(name)
            to_reference = self._ratio(name, self.reference)
            pooled = pool_episodes(trials)
            schedulers[name] = {
                "mean_jct_s": pooled.pop("mean_jct_s"),
                "ci95": bootstrap_interval(np.mean, jct_s),
                **pooled,
                "ratio_to_reference": to_reference["ratio"],
                "ratio_ci95": to_reference["ci95"],
            }
        return {
            "scenario": self.scenario,
            "episodes": len(self.episodes),
            "seed": self.seed,
            "reference": self.reference,
            "schedulers": schedulers,
            "ratios": {
                name: {other: self._ratio(name, other) for other in schedulers if other != name} for name in schedulers
            },
        }

    def _ratio(self, name: str, other: str) -> dict[str, Any]:
        """Mean JCT of ``name`` over that of ``other``, and its interval."""
        own_s, other_s = self._mean_jct_s(name), self._mean_jct_s(other)
        return {
            "ratio": float(ratio_of_means(own_s, other_s)),
            "ci95": bootstrap_interval(ratio_of_means, own_s, other_s),
        }

    def _mean_jct_s(self, scheduler: str) -> np.ndarray:
        """(K,) mean JCT of each episode."""
        return np.array([trial.figures["mean_jct_s"] for trial in self.trials[scheduler]])

    def table(self) -> Table:
        """The summary for people, one row a scheduler."""
        from rich.markup import escape
        from rich.table import Table

        held = f"{len(self.episodes)} of {self.requested}" if self.interrupted else len(self.episodes)
        interrupted = ", interrupted" if self.interrupted else ""
        table = Table(
            title=escape(f"{self.scenario}: episodes {held}, seed {self.seed}{interrupted}"),
            caption=escape("[95 % interval over episodes]") if len(self.episodes) > 1 else None,
        )
        table.add_column("scheduler", overflow="fold")
        for heading in (
            "mean JCT (s)",
            f"ratio to {escape(self.reference)}",
            "p95 JCT (s)",
            "queueing (s)",
            "utilisation",
            "Jain",
            "max rho",
            "restarts/job",
            "decision p50 (ms)",
        ):
            table.add_column(heading, justify="right")
        for name, figures in self.summary()["schedulers"].items():
            table.add_row(
                escape(name),
                _with_interval(figures["mean_jct_s"], figures["ci95"], ",.0f"),
                _with_interval(figures["ratio_to_reference"], figures["ratio_ci95"], ".3f"),
                f"{figures['p95_jct_s']:,.0f}",
                f"{figures['queueing_s']:,.0f}",
                f"{figures['utilization']:.1%}",
                f"{figures['jain']:.3f}",
                f"{figures['max_rho']:,.1f}",
                f"{figures['restarts_per_job']:.2f}",
                f"{figures['decision_ms']['p50']:.3g}",
            )
        return table

    def save(self, folder: Path | str) -> Path | None:
        """Write ``summary.json``, ``summary.csv``, ``jobs.csv`` and TensorBoard scalars into ``folder``.

        The scalars are ``evaluation/<figure>``, in ``tensorboard/<scheduler>``; the value at step k pools
        the first k episodes, so that the last one is that of ``summary.json``. All is written under a
        temporary name inside ``folder`` and then renamed: a failure leaves no partial file and spares the
        files of an earlier evaluation.

        Returns:
            The TensorBoard folder; None, and no scalars, where torch or tensorboard is not installed.

        Raises:
            InputError: the folder cannot be written.
        """
        return files.save(self, Path(folder))


def _with_interval(value: float, interval: Sequence[float] | None, form: str) -> str:
    low_high = f" [{interval[0]:{form}}, {interval[1]:{form}}]" if interval else ""
    return f"{value:{form}}{low_high}"

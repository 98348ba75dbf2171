"""The held-out evaluations of a run: logged as ``heldout/...``, and the best and the last policy kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import Logger

from agents.episodes import Figures


class HeldOut:
    """What a learner calls between its updates, whatever it learns.

    The best policy is the one with the least held-out mean JCT. The held-out episodes choose it, so they flatter
    it a little: report results on other seeds.

    Args:
        every_steps: environment steps between two evaluations.
        save: writes the policy as it stands to a path.
        folder: for the files ``best`` and ``last``.
        suffix: of these files.
        baseline_jct_s: mean JCT in seconds of other schedulers on the same episodes; logged as ratios to them.
    """

    def __init__(
        self,
        every_steps: int,
        save: Callable[[Path], None],
        folder: Path,
        suffix: str,
        logger: Logger,
        baseline_jct_s: Mapping[str, float],
    ) -> None:
        self.every_steps, self.save, self.logger, self.baseline_jct_s = every_steps, save, logger, baseline_jct_s
        self.best_path, self.last_path = folder / f"best{suffix}", folder / f"last{suffix}"
        self.history: list[tuple[int, Figures]] = []  # (step, figures) of each evaluation

    @property
    def best(self) -> tuple[int, Figures]:
        """Step and figures of the best policy."""
        return min(self.history, key=lambda entry: entry[1].mean_jct_s)

    def due(self, step: int) -> bool:
        return step >= self.history[-1][0] + self.every_steps

    def keep(self, step: int, figures: Figures, scalars: Mapping[str, Any]) -> None:
        """Log ``figures`` of the policy as it stands, and other ``scalars`` of it, and save it."""
        self.history.append((step, figures))
        ratios = {f"ratio_to_{name}": figures.mean_jct_s / jct_s for name, jct_s in self.baseline_jct_s.items()}
        for name, value in (figures._asdict() | ratios | dict(scalars)).items():
            self.logger.record(f"heldout/{name}", value)
        self.logger.dump(step)
        self.save(self.last_path)
        if self.best == self.history[-1]:
            self.save(self.best_path)

"""Callbacks of a training run: held-out evaluation with saving, episode figures, the end of the budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from agents.budget import Budget
from agents.episodes import Figures, HeldOutEpisodes
from agents.network import PairNetwork
from agents.policy import PairPolicy
from agents.saving import Origin, save_model


class HeldOutCallback(BaseCallback):
    """Plays the held-out episodes between updates, logs ``heldout/...``, and keeps ``best.zip`` and ``last.zip``.

    The best model is the one with the least held-out mean JCT. The held-out episodes choose it, so they flatter
    it a little: report results on other seeds.

    ``keep(play())`` before the training gives it the start to improve on.

    Args:
        baseline_jct_s: mean JCT in seconds of other schedulers on the same episodes; logged as ratios to them.
    """

    def __init__(
        self,
        episodes: HeldOutEpisodes,
        every_steps: int,
        folder: Path,
        origin: Origin,
        baseline_jct_s: Mapping[str, float],
    ) -> None:
        super().__init__()
        self.episodes, self.every_steps = episodes, every_steps
        self.folder, self.origin, self.baseline_jct_s = folder, origin, baseline_jct_s
        self.history: list[tuple[int, Figures]] = []  # (step, figures) of each evaluation

    @property
    def best(self) -> tuple[int, Figures]:
        """Step and figures of ``best.zip``."""
        return min(self.history, key=lambda entry: entry[1].mean_jct_s)

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self.history[-1][0] + self.every_steps:
            self.keep(self.play())

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self.keep(self.play())

    @property
    def network(self) -> PairNetwork:
        policy = self.model.policy
        assert isinstance(policy, PairPolicy)
        return policy.network

    def play(self) -> Figures:
        """The held-out figures of the model as it stands."""
        return self.episodes.play(self.network)

    def keep(self, figures: Figures) -> None:
        """Log the figures of the model as it stands, and save it."""
        self.history.append((self.num_timesteps, figures))
        scalars: dict[str, Any] = figures._asdict() | {"beta": self.network.beta}
        for name, jct_s in self.baseline_jct_s.items():
            scalars[f"ratio_to_{name}"] = figures.mean_jct_s / jct_s
        for name, value in scalars.items():
            self.logger.record(f"heldout/{name}", value)
        self.logger.dump(self.num_timesteps)
        self.save_last()
        if self.best == self.history[-1]:
            save_model(self.model, self.origin, self.folder / "best.zip")

    def save_last(self) -> None:
        save_model(self.model, self.origin, self.folder / "last.zip")


class EpisodeCallback(BaseCallback):
    """Logs ``rollout/mean_jct_s`` and ``rollout/utilization``: means over the latest training episodes."""

    def __init__(self, n_latest: int = 100) -> None:
        super().__init__()
        self._latest: deque[tuple[float, float]] = deque(maxlen=n_latest)

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "mean_jct_s" in info:
                self._latest.append((info["mean_jct_s"], info["utilization"]))
        return True

    def _on_rollout_end(self) -> None:
        if self._latest:
            jct_s, utilization = np.mean(self._latest, axis=0).tolist()
            self.logger.record("rollout/mean_jct_s", jct_s)
            self.logger.record("rollout/utilization", utilization)


class BudgetCallback(BaseCallback):
    """Ends the run with its budget, and tells ``progress`` of the percents used and 100."""

    def __init__(self, budget: Budget, progress: Callable[[int, int], object]) -> None:
        super().__init__()
        self.budget, self.progress = budget, progress

    def _on_training_start(self) -> None:
        self.budget.start()

    def _on_step(self) -> bool:
        left = self.budget.share_left(self.num_timesteps)
        self.progress(round(100 * (1.0 - left)), 100)
        return self.budget.elapsed_s < self.budget.max_s

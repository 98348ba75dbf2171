"""Callbacks of a training run: held-out evaluation, episode figures, the end of the budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from agents.budget import Budget
from agents.episodes import Figures, HeldOutEpisodes
from agents.held_out import HeldOut
from agents.network import PairNetwork
from agents.policy import PairPolicy


class HeldOutCallback(BaseCallback):
    """Plays the held-out episodes between updates, for ``HeldOut`` to log and to keep.

    ``keep(play())`` before the training gives it the start to improve on.
    """

    def __init__(self, episodes: HeldOutEpisodes, held_out: HeldOut) -> None:
        super().__init__()
        self.episodes, self.held_out = episodes, held_out

    def _on_rollout_start(self) -> None:
        if self.held_out.due(self.num_timesteps):
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
        self.held_out.keep(self.num_timesteps, figures, {"beta": self.network.beta})


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

"""The held-out evaluations of a run: logged as ``heldout/...``, and the best and the last policy kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agents.events import Events
from agents.figures import Figures
from agents.runs import Run
from agents.saving import GreedyPolicy
from agents.showcase import Showcase
from agents.zoo import MARKET
from hetenv.envs.market import MarketEnv
from hetenv.envs.placement import PlacementEnv


class HeldOut:
    """What a learner calls between its updates, whatever it learns.

    The best policy is the one with the least held-out mean JCT. The held-out episodes choose it, so they flatter
    it a little: report results on other seeds.

    Args:
        run: begun, or read from its folder.
        step: where the learner stands: 0, or behind where an earlier session was killed.
        policy: the policy as it stands.
        save: writes it to a path.
        suffix: of the files ``best`` and ``last``.
        save_state: writes what a later session needs beside the last policy.
    """

    def __init__(
        self,
        run: Run,
        step: int,
        policy: Callable[[], GreedyPolicy],
        save: Callable[[Path], None],
        suffix: str,
        save_state: Callable[[], None] = lambda: None,
    ) -> None:
        self.run, self.policy, self.save, self.save_state = run, policy, save, save_state
        self.best_path, self.last_path = run.folder / f"best{suffix}", run.folder / f"last{suffix}"
        env = MarketEnv if run.config.env == MARKET else PlacementEnv
        self._showcase = Showcase(env, run.config.load_scenario(), run.config.evaluation.seed)
        purge_step = None
        if run.history:
            run.resumed_at.append(step)
            evaluated = run.history[-1][0] == step
            purge_step = step + evaluated  # what was logged after the state that goes on will be logged again
        self.events = Events(run.folder, run.baselines, purge_step)

    def due(self, step: int) -> bool:
        return step >= self.run.history[-1][0] + self.run.config.evaluation.every_steps

    def keep(self, step: int, figures: Figures, scalars: Mapping[str, Any]) -> None:
        """Log ``figures`` of the policy as it stands, and other ``scalars`` of it, and save it."""
        run = self.run
        self.events.evaluated(step, figures, scalars, *self._showcase.play(self.policy()))
        self.save(self.last_path)
        if not run.history or figures.mean_jct_s < run.best[1].mean_jct_s:
            self.save(self.best_path)
        self.save_state()
        run.history.append((step, figures))
        run.steps = step
        run.write()

    def end(self, step: int, interrupted: bool = False) -> None:
        """Conclude the run, or this session of it after Ctrl-C, which keeps the policy as it stands.

        Raises:
            KeyboardInterrupt: that Ctrl-C came before the first evaluation was kept.
        """
        run = self.run
        if not run.history:
            raise KeyboardInterrupt
        if interrupted:
            self.save(self.last_path)
        run.steps, run.interrupted = step, interrupted
        self.events.ended(step, *run.best, run.config.model_dump())
        run.write()

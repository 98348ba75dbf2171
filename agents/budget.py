"""How long a run may go on: steps, minutes or both."""

from __future__ import annotations

import math
import time


class Budget:
    """Counts down from the moment of ``start``.

    Args:
        n_timesteps: environment steps; None for any number.
        max_minutes: wall-clock minutes; None for any time.
        used_s: seconds that the run took before it was stopped and resumed.
    """

    def __init__(self, n_timesteps: int | None, max_minutes: float | None, used_s: float = 0.0) -> None:
        self.n_timesteps, self.used_s = n_timesteps, used_s
        self.max_s = math.inf if max_minutes is None else 60.0 * max_minutes
        self.start()

    def start(self) -> None:
        self._start_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return self.used_s + time.monotonic() - self._start_s

    def share_left(self, step: int) -> float:
        """Share of the budget left at ``step``, from 1 to 0: of steps or of time, whichever is less."""
        steps_left = 1.0 if self.n_timesteps is None else 1.0 - step / self.n_timesteps
        return max(0.0, min(steps_left, 1.0 - self.elapsed_s / self.max_s))

"""How long a run may go on: steps, minutes or both."""

from __future__ import annotations

import math
import time


class Budget:
    """Counts down from the moment of ``start``.

    Args:
        n_timesteps: environment steps; None for any number.
        max_minutes: wall-clock minutes; None for any time.
    """

    def __init__(self, n_timesteps: int | None, max_minutes: float | None) -> None:
        self.n_timesteps = n_timesteps
        self.max_s = math.inf if max_minutes is None else 60.0 * max_minutes
        self.start()

    def start(self) -> None:
        self._start_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._start_s

    def share_left(self, step: int) -> float:
        """Share of the budget left at ``step``, from 1 to 0: of steps or of time, whichever is less."""
        steps_left = 1.0 if self.n_timesteps is None else 1.0 - step / self.n_timesteps
        return max(0.0, min(steps_left, 1.0 - self.elapsed_s / self.max_s))

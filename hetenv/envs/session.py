"""One agent deciding placement by placement on one simulator.

The environment and the learned schedulers share this: window, candidates, mask, observation and the
decision epoch, beside whichever simulator state they are about.
"""

from __future__ import annotations

import numpy as np

from hetenv.config import Scenario
from hetenv.envs.view import make_observation, make_view, observe, refresh_mask, take_action
from hetenv.simulator import Simulator


class PlacementSession:
    """The agent's side of ``simulator``; see ``hetenv.envs.placement.PlacementEnv`` for what it sees and does.

    Args:
        simulator: in its first state; its number of jobs and types sizes the view.
        scenario: gives window, time scale and whether all jobs must be placed in one shot.
        rng: draws the sampled candidates.
    """

    def __init__(self, simulator: Simulator, scenario: Scenario, rng: np.random.Generator) -> None:
        self.simulator = simulator
        window, n_types = scenario.window, len(simulator.cluster.types)
        self.view = make_view(len(simulator.workload), n_types, window.jobs, window.candidates, rng)
        self.epoch = 0
        self._one_shot, self._time_scale_s = scenario.one_shot, scenario.time_scale_s
        self._buffers = make_observation(n_types, window.jobs, window.candidates)

    @property
    def mask(self) -> np.ndarray:
        """(W * S + 1,) bool, what can be done now; the last one waits."""
        return self.view.mask

    def refresh(self) -> bool:
        """Choose the window and the mask for the simulator as it stands; whether any placement is possible."""
        return refresh_mask(self.simulator.fixed, self.simulator.state, self.view, self.epoch, self._one_shot)

    def place(self, action: int) -> int:
        """Carry out a placement that the mask allows; returns the job it changed."""
        job = int(self.view.window[action // self.view.candidates.shape[1]])
        self.simulator.change(take_action, self.view, action, self.epoch)
        return job

    def pass_epoch(self) -> None:
        """Let time move to the next decision epoch."""
        self.simulator.advance()
        self.epoch += 1

    def settle(self) -> None:
        """Let time pass until something can be placed or all is done."""
        while not self.refresh() and not self.simulator.done:
            self.pass_epoch()

    def observation(self) -> dict[str, np.ndarray]:
        """Fresh float32 arrays, as the observation space of ``hetenv/Placement-v0`` describes."""
        simulator, buffers = self.simulator, self._buffers
        observe(simulator.fixed, simulator.state, self.view, buffers, self.epoch, self._time_scale_s)
        return {
            "jobs": buffers.jobs.copy(),
            "candidates": buffers.candidates.copy(),
            "types": buffers.types.copy(),
            "globals": buffers.globals.copy(),
            "action_mask": self.view.mask.astype(np.float32),
        }

"""One agent deciding placement by placement on one simulator.

The environment and the learned schedulers share this: window, candidates, mask, observation and the
decision epoch, beside whichever simulator state they are about.
"""

from __future__ import annotations

import numpy as np

from hetenv.config import Scenario
from hetenv.envs.addresses import address_table
from hetenv.envs.choices import refresh_mask, take_action
from hetenv.envs.observing import observe
from hetenv.envs.stepping import BEGIN, step_many
from hetenv.envs.view import begin_view, make_observation, make_view
from hetenv.simulator import Simulator
from hetenv.simulator.state import Fixed, State

_NOWHERE = np.zeros(0, np.int64)  # copies are made in Python


class PlacementSession:
    """The agent's side of ``simulator``; see ``hetenv.envs.placement.PlacementEnv`` for what it sees and does.

    Args:
        simulator: in its first state; its number of jobs and types sizes the view.
        scenario: gives window, time scale and whether all jobs must be placed in one shot.
        rng: draws the sampled candidates.
    """

    def __init__(self, simulator: Simulator, scenario: Scenario, rng: np.random.Generator) -> None:
        self.simulator = simulator
        cluster = simulator.cluster
        self.view = make_view(scenario, len(simulator.workload), len(cluster.types), cluster.n_gpus)
        begin_view(self.view, scenario, simulator.fixed, rng)
        self._buffers = make_observation(scenario, len(cluster.types))
        self._action = np.zeros(1, np.int64)
        self._addressed: tuple[np.ndarray, State] | None = None  # timeline and state that the table points to

    @property
    def epoch(self) -> int:
        """Decision epochs that have passed; a job changes at most once in each."""
        return int(self.view.agent["epoch"][0])

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.view.agent["epoch"] = epoch

    @property
    def mask(self) -> np.ndarray:
        """(W * S + 1,) bool, what can be done now; the last one waits."""
        return self.view.mask

    def refresh(self) -> bool:
        """Choose the window and the mask for the simulator as it stands; whether any placement is possible."""
        return refresh_mask(self.simulator.fixed, self.simulator.state, self.view)

    def place(self, action: int) -> int:
        """Carry out a placement that the mask allows; returns the job it changed."""
        return int(self.simulator.change(take_action, self.view, action))

    def begin(self) -> None:
        """From time 0 on, let time pass until something can be placed, and observe."""
        self._carry_out(BEGIN)

    def step(self, action: int) -> None:
        """Act and settle; what came of it is in ``view.agent``. One outside the mask, such as -1, does nothing."""
        self._carry_out(max(action, -1))

    def _carry_out(self, action: int) -> None:
        self._action[0] = action
        self.simulator.change(self._step)
        self._check()

    def observation(self) -> dict[str, np.ndarray]:
        """Fresh float32 arrays, as the observation space of ``hetenv/Placement-v0`` describes, after ``refresh``."""
        observe(self.simulator.fixed, self.simulator.state, self.view, self._buffers)
        return self.settled_observation()

    def settled_observation(self) -> dict[str, np.ndarray]:
        """The same after ``begin`` or ``step``, which have observed already."""
        return {name: buffer.copy() for name, buffer in self._buffers.arrays().items()}

    def _check(self) -> None:
        if self.view.agent["stalled"][0]:
            self.simulator.advance()  # says who waits

    def _step(self, fixed: Fixed, state: State, timeline: np.ndarray) -> None:
        step_many(self._table(fixed, state, timeline), self._action, _NOWHERE, 0, 1)

    def _table(self, fixed: Fixed, state: State, timeline: np.ndarray) -> np.ndarray:
        """(1,) ADDRESS of all arrays, made anew when the simulator has replaced some."""
        if self._addressed is None or timeline is not self._addressed[0] or state is not self._addressed[1]:
            n_jobs = np.array([len(state.jobs)])
            self._addresses = address_table(fixed, state, self.view, self._buffers, timeline, n_jobs)
            self._addressed = (timeline, state)
        return self._addresses

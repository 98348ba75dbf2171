"""N environments of ``hetenv/Market-v0`` with common observation buffers.

A step is a few hundred microseconds of compiled code that lets go of the interpreter lock, so that a loop in Python
costs little and threads gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hetenv.config import Scenario
from hetenv.envs.batch import NOWHERE, Copies, EpisodeSource
from hetenv.envs.episode import finished_figures
from hetenv.envs.market_session import Bend, MarketSession, bends_of
from hetenv.envs.market_view import MarketObservation, make_observation
from hetenv.envs.threads import Threads


class MarketBatch:
    """N environments in one state, without a policy of when to begin the next episode.

    Args:
        scenario: what every environment plays.
        num_envs: N.
        episodes: may be replaced between episodes; of what they draw only the jobs are used.
        num_threads: threads that share the environments out among them; the results do not depend on it.

    Attributes:
        observation: private buffers by name, (N, ...) float32, kept up to date in place.
    """

    def __init__(self, scenario: Scenario, num_envs: int, episodes: EpisodeSource, num_threads: int = 1) -> None:
        self._threads = Threads(num_envs, num_threads)
        self.scenario, self.num_envs, self.episodes = scenario, num_envs, episodes
        buffers = make_observation(len(scenario.cluster.types), (num_envs,))
        self.observation, self._reward = buffers._asdict(), np.zeros(num_envs)
        simulator = scenario.make_simulator()
        self.sessions = [
            MarketSession(
                simulator.clone(), scenario.time_scale_s, MarketObservation(*(array[env] for array in buffers))
            )
            for env in range(num_envs)
        ]

    # --- reading ---------------------------------------------------------------------------------

    @property
    def reward(self) -> np.ndarray:
        """(N,) of the last step; fresh."""
        return self._reward.copy()

    @property
    def done(self) -> np.ndarray:
        """(N,) bool, whether every job has finished; fresh."""
        return np.array([session.simulator.done for session in self.sessions])

    @property
    def time_s(self) -> np.ndarray:
        """(N,) simulated time; fresh."""
        return np.array([session.simulator.time_s for session in self.sessions])

    def figures(self, env: int) -> dict[str, float]:
        """What came of the episode that environment ``env`` has finished."""
        return finished_figures(self.sessions[env].simulator)

    # --- moving ----------------------------------------------------------------------------------

    def begin(self, chosen: np.ndarray, episodes: EpisodeSource | None = None, copies: Copies = NOWHERE) -> None:
        """New episodes, of ``episodes`` if given, for the environments ``chosen`` (n,); up to the first decision.

        Of ``copies`` only the rows ``chosen`` are written.
        """
        for env in chosen.tolist():
            workload, _ = (episodes or self.episodes).draw(env)
            self.sessions[env].begin(workload)
        for name, array in copies.arrays.items():
            array[chosen] = self.observation[name][chosen]

    def step(self, actions: np.ndarray, copies: Copies = NOWHERE) -> None:
        """One action (M + 4,) for each environment; those that have ended stay as they are.

        ``copies`` are filled with what ``observation`` holds then.

        Raises:
            ValueError: see ``bends_of``.
        """
        bends = bends_of(actions, len(self.scenario.cluster.types), self.scenario.time_scale_s)
        self._threads.share(partial(self._step_some, bends))
        for name, array in copies.arrays.items():
            array[:] = self.observation[name]

    def room(self) -> Copies:
        """Fresh arrays for the observations of a step."""
        return Copies({name: np.empty_like(array) for name, array in self.observation.items()}, NOWHERE.addresses)

    def _step_some(self, bends: Sequence[Bend], first: int, end: int) -> None:
        for env in range(first, end):
            self._reward[env] = self.sessions[env].step(bends[env])

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    # --- memory ----------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """All that the future depends on, generators included."""
        return {
            "sessions": [(session.simulator.clone(), session.price_s) for session in self.sessions],
            "observation": {name: array.copy() for name, array in self.observation.items()},
            "episodes": self.episodes.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave, of this batch or of one made with the same arguments."""
        for session, (simulator, price_s) in zip(self.sessions, state["sessions"], strict=True):
            session.simulator, session.price_s = simulator.clone(), price_s
        for name, array in self.observation.items():
            array[:] = state["observation"][name]
        self.episodes.set_state(state["episodes"])

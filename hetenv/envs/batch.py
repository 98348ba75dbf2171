"""N environments of ``hetenv/Placement-v0`` in flat arrays, stepped by one compiled call.

Gymnasium's ``VectorEnv`` and Stable-Baselines3's ``VecEnv`` are thin adapters of this. Every array of the simulator,
the view and the observation has a leading axis of N here; environment by environment the same machine code
runs as in ``PlacementEnv``, so that trajectories are equal to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from hetenv.config import Scenario
from hetenv.envs.addresses import SHARED, address_table
from hetenv.envs.episode import episode_figures
from hetenv.envs.stepping import BEGIN, SKIP, step_many
from hetenv.envs.threads import Threads
from hetenv.envs.view import CACHE_LINE, View, aligned_zeros, make_observation, make_view, set_constants
from hetenv.errors import InputError, StallError
from hetenv.simulator.state import JOB_SPEC, SEGMENT, Fixed, State, describe_jobs, initial_state
from hetenv.workload import Workload

_UNRECORDED = np.zeros(0, SEGMENT)  # a batch keeps no timeline


class Copies(NamedTuple):
    """Where a step shall copy the observations to."""

    arrays: dict[str, np.ndarray]  # by name, (N, ...) float32
    addresses: np.ndarray  # of the arrays, int64


NOWHERE = Copies({}, np.zeros(0, np.int64))


class EpisodeSource(Protocol):
    """Where the episodes of a batch come from."""

    def draw(self, env: int) -> tuple[Workload, np.random.Generator]:
        """The jobs of the next episode of environment ``env``, and what draws its sampled candidates."""

    def get_state(self) -> Any: ...

    def set_state(self, state: Any) -> None: ...


class OwnEpisodes:
    """Each environment draws from a generator of its own, jobs first, as ``PlacementEnv`` does from its ``np_random``.

    Args:
        generators: one an environment.
        workload: replayed instead of drawn jobs.
    """

    def __init__(
        self, scenario: Scenario, generators: Sequence[np.random.Generator], workload: Workload | None = None
    ) -> None:
        self.scenario, self.generators, self.workload = scenario, generators, workload

    def draw(self, env: int) -> tuple[Workload, np.random.Generator]:
        rng = self.generators[env]
        return self.workload or self.scenario.draw_workload(rng), rng

    def get_state(self) -> list[Any]:
        return [rng.bit_generator.state for rng in self.generators]

    def set_state(self, state: list[Any]) -> None:
        for rng, own in zip(self.generators, state, strict=True):
            rng.bit_generator.state = own


class PlacementBatch:
    """N environments in one state, without a policy of when to begin the next episode.

    Args:
        scenario: what every environment plays.
        num_envs: N.
        episodes: may be replaced between episodes.
        num_threads: threads that share the environments out among them; the results do not depend on it.

    Attributes:
        observation: private buffers by name, (N, ...) float32, kept up to date in place.
        mask: (N, W * S + 1) bool, private too.
    """

    def __init__(self, scenario: Scenario, num_envs: int, episodes: EpisodeSource, num_threads: int = 1) -> None:
        self._threads = Threads(num_envs, num_threads)
        self.scenario, self.num_envs, self.episodes = scenario, num_envs, episodes
        simulator = scenario.make_simulator()
        self._cluster, self._measured = simulator.cluster, simulator.workload.measured
        self._observation = make_observation(scenario, len(self._cluster.types), (num_envs,))
        lines = [-(-array.nbytes // CACHE_LINE) for array in self.observation.values()]
        self._offsets = CACHE_LINE * np.cumsum([0, *lines[:-1]])  # bytes, of the arrays in the block of ``room``
        shapes = [array.shape for array in self.observation.values()]
        self._places = list(zip(self.observation, shapes, self._offsets.tolist(), strict=True))
        self._room_bytes = CACHE_LINE * (sum(lines) + 1)
        self._n_jobs = np.zeros(num_envs, np.int64)
        self._actions = np.zeros(num_envs, np.int64)
        self._make_room(simulator.fixed, len(simulator.workload))

    # --- reading ---------------------------------------------------------------------------------

    @property
    def observation(self) -> dict[str, np.ndarray]:
        return self._observation.arrays()

    @property
    def mask(self) -> np.ndarray:
        return self._view.mask

    @property
    def reward(self) -> np.ndarray:
        """(N,) of the last step; fresh."""
        return self._view.agent["reward"][:, 0].copy()

    @property
    def invalid(self) -> np.ndarray:
        """(N,) bool, whether the last action was outside the mask and so did nothing; fresh."""
        return self._view.agent["invalid"][:, 0] > 0

    @property
    def done(self) -> np.ndarray:
        """(N,) bool, whether every job has finished; fresh."""
        return self._state.clock["n_done"][:, 0] == self._n_jobs

    @property
    def time_s(self) -> np.ndarray:
        """(N,) simulated time; fresh."""
        return self._state.clock["time_s"][:, 0].copy()

    @property
    def start_s(self) -> np.ndarray:
        """(N, J) when each job first started, NaN before, jobs beyond an environment's own included; fresh."""
        return self._state.jobs["start_s"].copy()

    def figures(self, env: int) -> dict[str, float]:
        """What came of the episode that environment ``env`` has finished."""
        n_jobs = int(self._n_jobs[env])
        state = self._state
        return episode_figures(
            self._cluster,
            self._fixed.jobs["arrival_s"][env, :n_jobs],
            state.jobs["finish_s"][env, :n_jobs],
            float(state.clock["time_s"][env, 0]),
            state.uses["busy_gpu_s"][env],
        )

    # --- moving ----------------------------------------------------------------------------------

    def begin(self, chosen: np.ndarray, episodes: EpisodeSource | None = None, copies: Copies = NOWHERE) -> None:
        """New episodes, of ``episodes`` if given, for the environments ``chosen`` (n,); up to the first decision.

        Of ``copies`` only the rows ``chosen`` are written.

        Raises:
            InputError: a job that the cluster can never run, or a workload with other measured throughputs.
        """
        self._actions[:] = SKIP
        self._actions[chosen] = BEGIN
        workloads = [self._lay_out(env, *(episodes or self.episodes).draw(env)) for env in chosen.tolist()]
        step_many(self._table, self._actions, copies.addresses, 0, self.num_envs)
        if self._view.agent["stalled"].any():
            for workload in workloads:
                workload.check_runnable(self._cluster)
            self._check()

    def step(self, actions: np.ndarray, copies: Copies = NOWHERE) -> None:
        """One action (N,) for each environment; one outside the mask, such as -1, does nothing.

        ``copies`` are filled with what ``observation`` holds then.
        """
        np.maximum(actions, -1, out=self._actions)
        self._threads.share(partial(step_many, self._table, self._actions, copies.addresses))
        self._check()

    def room(self) -> Copies:
        """Fresh arrays like ``observation``, in one block of memory, that hold nothing yet."""
        block = np.empty(self._room_bytes, np.uint8)
        address = block.ctypes.data
        begin = -address % CACHE_LINE
        arrays = {name: np.ndarray(shape, np.float32, block, begin + offset) for name, shape, offset in self._places}
        return Copies(arrays, self._offsets + (address + begin))

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def _check(self) -> None:
        if self._view.agent["stalled"].any():
            env = int(np.argmax(self._view.agent["stalled"]))
            raise StallError(f"environment {env}: jobs wait on an idle cluster, and nothing will arrive")

    # --- memory ----------------------------------------------------------------------------------

    def _make_room(self, fixed: Fixed, n_jobs: int) -> None:
        """Arrays for ``n_jobs`` jobs, the rest as in ``fixed``; what they held before is kept."""
        lead, n_types = (self.num_envs,), len(self._cluster.types)
        before: tuple[Any, ...] = (self._fixed, self._state, self._view) if self._n_jobs.any() else ()
        blank = initial_state(self._cluster, fixed._replace(jobs=np.zeros(n_jobs, JOB_SPEC)))
        self._fixed: Fixed = fixed._replace(
            jobs=aligned_zeros((*lead, n_jobs), JOB_SPEC), speed=aligned_zeros((*lead, n_jobs, n_types), np.float64)
        )
        self._state: State = State(*(aligned_zeros((*lead, *array.shape), array.dtype) for array in blank))
        self._view: View = make_view(self.scenario, n_jobs, n_types, self._cluster.n_gpus, lead)
        if before:
            for old, new in zip(before, (self._fixed, self._state, self._view), strict=True):
                for name in (name for name in old._fields if name not in SHARED):
                    array = getattr(old, name)
                    getattr(new, name)[tuple(map(slice, array.shape))] = array
        self._state.nodes[:] = blank.nodes
        set_constants(self._view, self.scenario)
        self._table = address_table(self._fixed, self._state, self._view, self._observation, _UNRECORDED, self._n_jobs)

    def _lay_out(self, env: int, workload: Workload, rng: np.random.Generator) -> Workload:
        """Write the constants and the draws of an episode into the slices of environment ``env``."""
        n_jobs = len(workload)
        if n_jobs > self._fixed.jobs.shape[1]:
            self._make_room(self._fixed, n_jobs)
        if workload.measured is not self._measured:
            self._check_measured(workload)
        describe_jobs(self._cluster, workload, self._fixed.jobs[env, :n_jobs], self._fixed.speed[env, :n_jobs])
        self._n_jobs[env] = self._table["n_jobs"][env] = n_jobs
        rng.random(dtype=np.float32, out=self._view.draws[env, :n_jobs])
        return workload

    def _check_measured(self, workload: Workload) -> None:
        """Raise InputError unless ``workload`` has the batch's throughputs, which all environments share."""
        same = not len(self._fixed.measured)
        if workload.measured is not None:
            same = np.array_equal(workload.measured.for_types(self._cluster.type_names), self._fixed.measured)
        if not same:
            raise InputError("workload", "another table of measured throughputs", "use one table for a whole batch")

    def get_state(self) -> dict[str, Any]:
        """All that the future depends on, generators included."""
        parts = (self._fixed, self._state, self._view, self._observation)
        return {
            "n_jobs": self._n_jobs.copy(),
            "arrays": [[array.copy() for array in part] for part in parts],
            "episodes": self.episodes.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave, of this batch or of one made with the same arguments."""
        parts = (self._fixed, self._state, self._view, self._observation)
        for part, saved in zip(parts, state["arrays"], strict=True):
            for array, copy in zip(part, saved, strict=True):
                array[tuple(map(slice, copy.shape))] = copy
        self._n_jobs[:] = self._table["n_jobs"] = state["n_jobs"]
        self.episodes.set_state(state["episodes"])

"""What the tests of batches share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from gymnasium.vector import AutoresetMode

from hetenv.config import Scenario
from hetenv.envs.batch import OwnEpisodes
from hetenv.envs.vector import Batch

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
BatchT = TypeVar("BatchT", bound=Batch)


def valid_actions(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(N,) a random allowed action for each row of ``mask`` (N, A); 0 where nothing is."""
    return (mask * rng.uniform(0.1, 1.0, mask.shape)).argmax(axis=1)


def assert_equal(ours: Any, theirs: Any) -> None:
    """Equal to the bit, types included, through dictionaries and arrays of objects."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            assert_equal(ours[key], theirs[key])
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        for mine, other in zip(ours, theirs, strict=True):
            assert_equal(mine, other)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


def begun(make: Callable[..., BatchT], scenario: Scenario, num_envs: int, num_threads: int) -> BatchT:
    """A batch at its first decisions; environment i draws from the seed i."""
    generators = [np.random.default_rng(env) for env in range(num_envs)]
    batch = make(scenario, num_envs, OwnEpisodes(scenario, generators), num_threads)
    batch.begin(np.arange(num_envs))
    return batch


def shown(batch: Batch, act: Callable[[np.random.Generator], np.ndarray], n_steps: int, seed: int) -> list[bytes]:
    """What ``batch`` shows along the actions of ``act``, ended episodes begun anew."""
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(n_steps):
        batch.step(act(rng))
        seen.append(b"".join(array.tobytes() for array in (*batch.observation.values(), batch.reward, batch.time_s)))
        batch.begin(np.flatnonzero(batch.done))
    return seen

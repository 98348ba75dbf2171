"""What a policy is judged by: a few figures of an episode, or means of them over several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Figures(NamedTuple):
    """Of one episode, or means over several."""

    mean_jct_s: float
    p95_jct_s: float
    utilization: float  # GPU time held / GPU time there was, from the first arrival to the last finish
    queue_length: float  # jobs that have arrived and not yet started, mean over the same time

    @classmethod
    def of_episode(cls, ended: Mapping[str, Any], queued_s: float) -> Figures:
        """Of one finished episode.

        Args:
            ended: mean_jct_s, p95_jct_s, utilization and makespan_s, from an environment or a simulation.
            queued_s: seconds from arrival to first start, summed over the jobs. Over the makespan this is the mean
                queue, by Little's law.
        """
        return cls(ended["mean_jct_s"], ended["p95_jct_s"], ended["utilization"], queued_s / ended["makespan_s"])

    @classmethod
    def mean(cls, episodes: Sequence[Figures] | np.ndarray) -> Figures:
        """Of (E, 4) episodes."""
        return cls(*np.mean(episodes, axis=0).tolist())

"""What every job source shares: strict fields and the number of jobs of an episode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt

from hetenv.cluster import Cluster
from hetenv.workload import Workload


def _ascending(pair: tuple[float, float] | int) -> tuple[float, float] | int:
    if isinstance(pair, tuple) and pair[0] > pair[1]:
        raise ValueError(f"the range [{pair[0]}, {pair[1]}] runs downwards: give the smaller end first")
    return pair


Ascending = AfterValidator(_ascending)
JobCount = Annotated[
    PositiveInt | Annotated[tuple[PositiveInt, PositiveInt], Field(description="smallest, largest")], Ascending
]


def _two_or_more(n_jobs: int | tuple[int, int]) -> int | tuple[int, int]:
    if np.min(n_jobs) < 2:
        raise ValueError("one job has no gap and so no load: give 2 jobs or more")
    return n_jobs


StreamCount = Annotated[JobCount, AfterValidator(_two_or_more)]
TypeSpeed = Annotated[
    dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
    Field(
        description="speed of each GPU type relative to the reference GPU, by type name; 0: jobs cannot run there; "
        "empty: every type has speed 1"
    ),
]


class Source(BaseModel, ABC):
    """A distribution over workloads. The same cluster and generator state give the same jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def draw(self, cluster: Cluster, rng: np.random.Generator) -> Workload:
        """The jobs of one episode on ``cluster``; all randomness comes from ``rng``."""


def draw_count(n_jobs: int | tuple[int, int], rng: np.random.Generator) -> int:
    """``n_jobs`` itself, or a whole number drawn evenly from the range (both ends included)."""
    return n_jobs if isinstance(n_jobs, int) else int(rng.integers(n_jobs[0], n_jobs[1], endpoint=True))

"""Jobs of a trace file: all of them, or a stretch that begins at a random job."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, PositiveInt

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces import load_workload
from hetenv.traces.rules import Rules
from hetenv.traces.source import Source, TypeSpeed
from hetenv.workload import Workload


class TraceJobs(Source):
    """Consecutive jobs of a trace, their arrivals stretched to an offered load where one is given.

    The file is read once a process for each cluster, and again when it has changed.
    """

    kind: Literal["trace"] = "trace"
    path: Path = Field(description="the trace file")
    format: str | None = Field(None, description="name of its format (see hetenv.traces); null: told from its content")
    throughputs: Path | None = Field(None, description="measured throughputs, for the formats that use some")
    type_speed: TypeSpeed = Field(default_factory=dict)
    rules: Rules | None = Field(
        None, description="what becomes of records that are no plain job, for traces of what ran; null: the defaults"
    )
    lenient: bool = Field(False, description="drop faulty rows and jobs too large for the cluster, with one warning")
    n_jobs: PositiveInt | None = Field(
        None, description="consecutive jobs of an episode, from a random start; null: all"
    )
    load: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="offered load that the arrivals are rescaled to; null: as recorded"
    )

    def draw(self, cluster: Cluster, rng: np.random.Generator) -> Workload:
        """The jobs of one episode; the first arrives at 0.

        Raises:
            InputError: the file cannot be read (see ``load_workload``), it has fewer than ``n_jobs``
                jobs, or ``load`` is given for jobs that all arrive at once.
        """
        trace = _load(
            self.path,
            self.path.stat().st_mtime_ns if self.path.exists() else 0,
            self.format,
            self.throughputs,
            self.throughputs.stat().st_mtime_ns if self.throughputs and self.throughputs.exists() else 0,
            tuple(self.type_speed.items()),
            self.rules,
            cluster,
            self.lenient,
        )
        n_jobs = self.n_jobs or len(trace)
        if n_jobs > len(trace):
            raise InputError(f"{self.path}, n_jobs", n_jobs, f"the trace has {len(trace)} jobs, ask for no more")
        first = int(rng.integers(len(trace) - n_jobs, endpoint=True))
        columns = {name: values[first : first + n_jobs] for name, values in trace.columns().items()}
        columns["arrival_s"] = columns["arrival_s"] - columns["arrival_s"][0]
        workload = Workload.unchecked(trace.types, measured=trace.measured, **columns)
        if self.load is None:
            return workload
        offered = workload.offered_load(cluster)
        if offered == float("inf"):
            raise InputError(
                f"{self.path}, load", self.load, "the jobs all arrive at once: set load to null or n_jobs higher"
            )
        columns["arrival_s"] *= offered / self.load
        return Workload.unchecked(trace.types, measured=trace.measured, **columns)


@lru_cache(maxsize=8)
def _load(
    path: Path,
    _modified_ns: int,
    format: str | None,
    throughputs: Path | None,
    _throughputs_modified_ns: int,
    type_speed: tuple[tuple[str, float], ...],
    rules: Rules | None,
    cluster: Cluster,
    lenient: bool,
) -> Workload:
    """``load_workload`` with a memory; the times of modification make a changed file a new key."""
    return load_workload(
        path,
        format,
        throughputs=throughputs,
        type_speed=dict(type_speed),
        rules=rules,
        cluster=cluster,
        lenient=lenient,
    )

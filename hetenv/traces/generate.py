"""Where the jobs of a scenario come from: one pydantic model a source, told apart by ``kind``.

Each is immutable, refuses unknown fields and has ``draw(cluster, rng) -> Workload``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hetenv.traces.philly_jobs import PhillyJobs
from hetenv.traces.synthetic_jobs import SyntheticJobs
from hetenv.traces.trace_jobs import TraceJobs

JobSource = Annotated[SyntheticJobs | PhillyJobs | TraceJobs, Field(discriminator="kind")]

__all__ = ["JobSource", "PhillyJobs", "SyntheticJobs", "TraceJobs"]

"""What a trace tells of its jobs: when each was submitted, how long it ran on how many GPUs, how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hetenv.traces.table import Table


@dataclass
class Records:
    """Some rows of a trace, as recorded. Arrays have one entry a row; NaN where the trace tells nothing.

    Args:
        table: the rows they were read from, with the faults found on the way.
        submit_s: seconds on the clock of the trace.
        duration_s: seconds the job held its GPUs.
        gpus: GPUs, which may be 0, or a fraction.
        job_id: names; empty, or None for all: the number of the row.
        outcome: completed, failed or killed; None: all completed.
        gpu_type: what it ran on; empty where unknown.
        model: name of the model; empty where unknown.
        calendar: whether ``submit_s`` counts from 1970-01-01 UTC.
        dropped: rows that are no job at all, by reason.
        changed: rows that the reader had to interpret, by reason.
    """

    table: Table
    submit_s: np.ndarray
    duration_s: np.ndarray
    gpus: np.ndarray
    job_id: np.ndarray | None = None
    outcome: np.ndarray | None = None
    gpu_type: np.ndarray | None = None
    model: np.ndarray | None = None
    calendar: bool = False
    dropped: dict[str, np.ndarray] = field(default_factory=dict)
    changed: dict[str, np.ndarray] = field(default_factory=dict)

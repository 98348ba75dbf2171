"""The Philly trace as Pollux published it: ``timestamp,duration,num_gpus,gpu_time,cluster``.

Source: github.com/petuum/adaptdl (OSDI 2021), 82,247 jobs. Rows come in no order, blank lines end
the file and 65 rows equal an earlier one: users do submit the same job twice within a second, so
every row is a job, named by its row number. Timestamps have no zone and are taken as they stand,
whatever the zone of this machine; arrivals count from the first of them. Durations (s) are run
times on reference GPUs (see ``reference_gpu``). ``gpu_time`` (their product) and ``cluster`` (the
virtual cluster) are not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from hetenv.job_table import DEFAULTS, GPU_COUNT_REMEDY, Fault, is_gpu_count, numbers
from hetenv.traces.reference_gpu import recorded_work, relative_speed
from hetenv.traces.trace_file import TraceFile, TraceFormat
from hetenv.workload import Workload

if TYPE_CHECKING:
    from hetenv.cluster import Cluster

COLUMNS = ("timestamp", "duration", "num_gpus")


def load(
    source: TraceFile,
    *,
    type_speed: Mapping[str, float] | None = None,
    cluster: Cluster | None = None,
    lenient: bool = False,
) -> Workload:
    """Rigid jobs on the types of ``cluster``, or of ``type_speed``, or on one type named ``gpu``."""
    type_speed = type_speed or {}
    types = cluster.type_names if cluster else tuple(type_speed) or ("gpu",)
    table = source.table(COLUMNS)
    timestamp_s = naive_seconds(table.columns["timestamp"])
    duration_s = numbers(table.columns["duration"])
    n_gpus = numbers(table.columns["num_gpus"])
    good = {
        "timestamp": (np.isfinite(timestamp_s), "give a local time such as 2017-10-09 07:01:55"),
        "duration": (np.isfinite(duration_s) & (duration_s > 0), "give seconds from start to end, above 0"),
        "num_gpus": (is_gpu_count(n_gpus), GPU_COUNT_REMEDY),
    }
    faults = table.ragged + [
        Fault(int(row), name, table.columns[name][row], remedy)
        for name, (ok, remedy) in good.items()
        for row in np.flatnonzero(~ok)
    ]
    n_jobs = len(table.lines)
    first_s = min(np.delete(timestamp_s, [fault.row for fault in faults]), default=0.0)
    columns = {name: np.full(n_jobs, value) for name, value in DEFAULTS.items()}
    columns |= {"job_id": np.arange(n_jobs).astype(str), "arrival_s": timestamp_s - first_s}
    return Workload.from_rows(
        types,
        columns | recorded_work(duration_s, n_gpus, relative_speed(type_speed, types)),
        faults,
        where=str(source.path),
        lines=table.lines,
        lenient=lenient,
        cluster=cluster,
    )


def naive_seconds(texts: Sequence[str]) -> np.ndarray:
    """Seconds of ISO times without zone since 2000-01-01 00:00 of the same clock; NaN for anything else."""
    start = datetime(2000, 1, 1)

    def seconds(text: str) -> float:
        try:
            return (datetime.fromisoformat(text) - start).total_seconds()
        except (ValueError, TypeError):  # no time, or one with a zone
            return float("nan")

    return np.array([seconds(text) for text in texts])


def _recognises(first_line: str) -> bool:
    return len(set(COLUMNS) & set(first_line.split(","))) >= 2


FORMAT = TraceFormat("pollux", _recognises, load, frozenset({"type_speed"}))

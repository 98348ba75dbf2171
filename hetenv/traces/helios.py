"""Helios: ``cluster_log.csv`` of SenseTime's clusters (github.com/S-Lab-System-Group/HeliosData; Hu et al., SC 2021).

| column | meaning |
|---|---|
| ``job_id`` | name, optional |
| ``gpu_num`` | GPUs; 0: a CPU job |
| ``state`` | COMPLETED, CANCELLED, FAILED, TIMEOUT, NODE_FAIL, SUSPENDED, ... |
| ``submit_time``, ``start_time``, ``end_time`` | local times without zone |
| ``duration`` | s, used where start or end is missing |

The run time is end minus start; rows whose ``duration`` says something else are counted. A job that
reached its time limit, was cancelled or still ran at the end of the log counts as killed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.table import Table
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import ReadOptions

COLUMNS = ("gpu_num", "state", "submit_time", "start_time", "end_time")
ROUNDING_S = 1.0  # by which a recorded duration may differ from end minus start

STATES = {
    "completed": "completed",
    "complete": "completed",
    "failed": "failed",
    "node_fail": "failed",
    "boot_fail": "failed",
    "out_of_memory": "failed",
    "oom": "failed",
    "cancelled": "killed",
    "canceled": "killed",
    "timeout": "killed",
    "deadline": "killed",
    "preempted": "killed",
    "suspended": "killed",
    "running": "killed",
    "requeued": "killed",
    "pending": "killed",
}


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    for table in source.tables(COLUMNS):
        yield log_records(table, options)


def log_records(table: Table, options: ReadOptions) -> Records:
    """The records of a log in this form; Acme's logs have it too."""
    zone = options.rules.clock
    submit_s, start_s, end_s = (table.times(name, zone) for name in ("submit_time", "start_time", "end_time"))
    told_s = table.numbers("duration")
    between_s = end_s - start_s
    return Records(
        table,
        submit_s=submit_s,
        duration_s=np.where(np.isnan(between_s), told_s, between_s),
        gpus=table.numbers("gpu_num"),
        job_id=table.texts("job_id"),
        outcome=table.words("state", STATES, missing="completed"),
        calendar=True,
        changed={
            "duration differs from end - start, which was taken": np.abs(told_s - between_s) > ROUNDING_S,
            "no start or end, duration taken": np.isnan(between_s) & ~np.isnan(told_s),
        },
    )


def _recognises(head: str) -> bool:
    cells = header_cells(head)
    return {"state", "submit_time"} < cells and bool({"gpu_num", "node_num"} & cells) and "gpu_time" not in cells


FORMAT = record_format("helios", "cluster_log.csv of the Helios clusters", _recognises, read)

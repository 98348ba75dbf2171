"""The standard workload format of the Parallel Workloads Archive: 18 columns of numbers, comments after ``;``.

Used are the job number, submit time, run time (s), allocated processors (the requested ones where these are
unknown) and status: 1 completed, 0 failed, 5 cancelled. A processor counts as a GPU. -1 stands for unknown.
Rows of status 2, 3 or 4 are parts of a job that has a row of its own. Where a comment names
``UnixStartTime``, times are those of a calendar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from hetenv.errors import InputError
from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.table import LARGEST, Table
from hetenv.traces.trace_file import CHUNK_ROWS, TraceFile
from hetenv.traces.trace_format import ReadOptions

COLUMNS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
UNKNOWN = "-1"
COMPLETED, FAILED, CANCELLED, PARTS = 1, 0, 5, (2, 3, 4)
START = re.compile(r"^;\s*UnixStartTime:\s*(\d+)", re.MULTILINE)
ROW = re.compile(r"^[ \t]*(?:-?\d+(?:\.\d+)?[ \t]+){17}-?\d+(?:\.\d+)?[ \t\r]*$", re.MULTILINE)


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    start = START.search(source.head)
    if start and float(start[1]) > LARGEST:
        raise InputError(f"{source.path}, UnixStartTime", start[1][:40], "give seconds since 1970")
    origin_s = float(start[1]) if start else 0.0
    rows = _rows(source)
    first_row = 0
    while chunk := list(islice(rows, CHUNK_ROWS)):
        yield _records(Table.of_rows(COLUMNS, chunk, first_row), origin_s)
        first_row += len(chunk)


def _rows(source: TraceFile) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(source.lines(), start=1):
        cells = line.partition(";")[0].split()
        if cells:
            yield number, ["" if cell == UNKNOWN else cell for cell in cells]


def _records(table: Table, origin_s: float) -> Records:
    allocated, requested = table.numbers("allocated processors"), table.numbers("requested processors")
    status = table.numbers("status")
    outcome = np.full(len(table), "completed", object)
    outcome[status == FAILED] = "failed"
    outcome[status == CANCELLED] = "killed"
    known = np.isin(status, (COMPLETED, FAILED, CANCELLED, *PARTS)) | np.isnan(status)
    table.fault(~known, "status", "use 1 completed, 0 failed, 5 cancelled, 2 to 4 parts of a job, or -1")
    return Records(
        table,
        submit_s=origin_s + table.numbers("submit time"),
        duration_s=table.numbers("run time"),
        gpus=np.where(np.isnan(allocated), requested, allocated),
        job_id=table.texts("job number"),
        outcome=outcome,
        calendar=origin_s > 0,
        dropped={"part of a job that has a row of its own": np.isin(status, PARTS)},
        changed={"requested processors taken, the allocated ones are unknown": np.isnan(allocated)},
    )


def _recognises(head: str) -> bool:
    return ROW.search(head) is not None


FORMAT = record_format("swf", "standard workload format of the Parallel Workloads Archive", _recognises, read)

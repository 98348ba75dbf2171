"""Muri's job lists (github.com/Rivendile/Muri; SIGCOMM 2022): the columns of Tiresias, times in milliseconds.

``duration`` is the recorded run time; it is not the product of ``iterations`` and ``iteration_time``,
which belong to the model that was drawn for the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.tiresias import COLUMNS, job_list, recognises_list
from hetenv.traces.trace_file import TraceFile
from hetenv.traces.trace_format import ReadOptions

MILLISECOND_S = 1e-3


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    for table in source.tables(COLUMNS):
        yield job_list(table, MILLISECOND_S)


FORMAT = record_format(
    "muri", "job list of Muri, times in ms", partial(recognises_list, signature="iteration_time"), read
)

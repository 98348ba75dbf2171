"""Chronus' job lists (github.com/S-Lab-System-Group/ChronusArtifact; SoCC 2021): the columns of Tiresias, in minutes.

The unit is not written down; it follows from the file, whose durations end at 20 and at 4,320, Chronus'
bounds of 20 minutes and 72 hours, over 14 days of submissions. Rows come in no order and some have no
GPU. ``expect_time_list``, a list such as 159-189-229 in one cell, holds deadlines and is not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.tiresias import COLUMNS, job_list, recognises_list
from hetenv.traces.trace_file import TraceFile
from hetenv.traces.trace_format import ReadOptions

MINUTE_S = 60.0


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    for table in source.tables(COLUMNS):
        yield job_list(table, MINUTE_S)


FORMAT = record_format(
    "chronus", "job list of Chronus, times in minutes", partial(recognises_list, signature="expect_time_list"), read
)

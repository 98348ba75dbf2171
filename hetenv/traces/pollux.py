"""The Philly trace as Pollux published it: ``timestamp,duration,num_gpus,gpu_time,cluster``.

Source: github.com/petuum/adaptdl (OSDI 2021), 82,247 jobs. Rows come in no order, blank lines end
the file and 65 rows equal an earlier one: users do submit the same job twice within a second, and
jobs have no names here, so every row is a job, named by its row number. Timestamps have no zone.
Durations (s) are run times. ``gpu_time`` (their product) and ``cluster`` (the virtual cluster) are
not used.
"""

from __future__ import annotations

from collections.abc import Iterator

from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import ReadOptions

COLUMNS = ("timestamp", "duration", "num_gpus")


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    for table in source.tables(COLUMNS):
        yield Records(
            table,
            submit_s=table.times("timestamp", options.rules.clock),
            duration_s=table.numbers("duration"),
            gpus=table.numbers("num_gpus"),
            calendar=True,
        )


def _recognises(head: str) -> bool:
    return "timestamp" in header_cells(head) and len({"duration", "num_gpus"} & header_cells(head)) > 0


FORMAT = record_format("pollux", "Philly as Pollux published it (philly.csv)", _recognises, read)

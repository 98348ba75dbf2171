"""Acme: the logs of the Seren and Kalos clusters (github.com/InternLM/AcmeTrace; Hu et al., NSDI 2024).

The columns of Helios (see there) with ``type`` and ``gpu_time``; Kalos adds memory figures,
``fail_time`` and ``stop_time``. Times carry their zone: +08:00 in Seren, +00:00 in Kalos. Kalos'
``duration`` may include time in the queue, so that here too the run time is end minus start.
"""

from __future__ import annotations

from collections.abc import Iterator

from hetenv.traces.helios import COLUMNS, log_records
from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import ReadOptions


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    for table in source.tables(COLUMNS):
        yield log_records(table, options)


def _recognises(head: str) -> bool:
    return {"state", "submit_time", "gpu_time"} <= header_cells(head)


FORMAT = record_format("acme", "logs of the Acme clusters Seren and Kalos", _recognises, read)

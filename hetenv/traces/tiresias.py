"""Tiresias' job lists: ``60_job.csv`` and ``tf_job.csv`` (github.com/SymbioticLab/Tiresias; NSDI 2019).

``job_id``, ``num_gpu``, ``submit_time`` and ``duration`` (s, from any origin) and ``model_name``;
iterations and intervals follow from them and are not used. The lists of Muri, Chronus and ElasticFlow
have the same columns, in units of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.table import Table
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import ReadOptions

COLUMNS = ("num_gpu", "submit_time", "duration")


def job_list(table: Table, unit_s: float = 1.0) -> Records:
    """The records of a list whose times count units of ``unit_s`` seconds."""
    return Records(
        table,
        submit_s=table.numbers("submit_time") * unit_s,
        duration_s=table.numbers("duration") * unit_s,
        gpus=table.numbers("num_gpu"),
        job_id=table.texts("job_id"),
        model=table.texts("model_name"),
    )


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    for table in source.tables(COLUMNS):
        yield job_list(table)


def recognises_list(head: str, signature: str | None = None) -> bool:
    """Whether a head is that of a job list, and of the one that has the column ``signature`` (None: of none other)."""
    cells = header_cells(head)
    others = {"iteration_time", "expect_time_list", "ddl"}
    if not {"job_id", "submit_time"} <= cells or "state" in cells or not {"num_gpu", "duration"} & cells:
        return False
    return signature in cells if signature else not others & cells


FORMAT = record_format("tiresias", "job list of Tiresias, times in s", recognises_list, read)

"""Records of a trace (submitted, ran so long on so many GPUs, ended so) become jobs by one set of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from hetenv.job_table import complete_columns
from hetenv.traces.doubts import kept_rows
from hetenv.traces.duplicates import settle_duplicates
from hetenv.traces.records import Records
from hetenv.traces.reference_gpu import recorded_work, relative_speed, speed_of_records
from hetenv.traces.trace_file import TraceFile
from hetenv.traces.trace_format import RawJobs, ReadOptions, Tally, TraceFormat, nothing_left

RECORDED_TYPE = "gpu"  # the one type of jobs for which nobody named any

RecordReader = Callable[[TraceFile, ReadOptions], Iterator[Records]]


def record_format(
    name: str,
    description: str,
    recognises: Callable[[str], bool],
    read: RecordReader,
    options: Iterable[str] = (),
) -> TraceFormat:
    """A format of records: ``read(source, options)`` yields them some thousands at a time."""

    def jobs(source: TraceFile, options: ReadOptions) -> RawJobs:
        return recorded_jobs(read(source, options), str(source.path), options)

    return TraceFormat(name, description, recognises, jobs, frozenset({"type_speed", "rules", *options}))


def recorded_jobs(chunks: Iterable[Records], where: str, options: ReadOptions) -> RawJobs:
    """All jobs of a trace; memory beyond them is that of one chunk of records.

    Raises:
        InputError: the first faulty row, unless lenient; a record that the rules forbid; no job is left.
    """
    tally = Tally()
    calendar, unit = False, "line"
    parts: list[dict[str, np.ndarray]] = []
    for records in chunks:
        calendar, unit = records.calendar, records.table.unit
        parts.append(kept_rows(records, options, where, tally))
    names = list(parts[0]) if parts else []
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in names}
    if not columns or len(columns["line"]) == 0:
        raise nothing_left(where, tally)
    settle_duplicates(columns, options, where, unit, tally)

    types = options.types or tuple(options.type_speed) or (RECORDED_TYPE,)
    speed = relative_speed(options.type_speed, types)
    ran_at = speed_of_records(options.type_speed, columns.pop("gpu_type"))
    work = recorded_work(columns.pop("duration_s"), columns.pop("gpus"), speed, ran_at)
    submit_s = columns.pop("submit_s")
    start_s = float(submit_s.min())
    lines = columns.pop("line")
    table = complete_columns(len(types), work.pop("speed"), submit_s - start_s, work | columns)
    return RawJobs(types, table, lines, [], tally, start_s=start_s if calendar else None, unit=unit)

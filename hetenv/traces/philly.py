"""Philly: ``cluster_job_log`` of Microsoft (github.com/msr-fiddle/philly-traces; Jeon et al., ATC 2019).

A JSON list of jobs: ``jobid``, ``status`` (Pass, Failed, Killed), ``submitted_time`` and ``attempts``, each
of ``start_time``, ``end_time`` and ``detail``, a list of ``{"ip", "gpus": [...]}``. Times are local, without
zone; "None" and null stand for what is not known.

* The run time is the sum over the attempts that have both times; the idle gaps between them are not run
  time (``gaps="count"``: from the first start to the last end). An attempt without start or end, wherever
  it stands, or one that ends before it starts, adds nothing; such jobs are counted.
* The GPUs are those of the largest attempt. A job without attempts never ran.

The file is read job by job, so that its size does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from hetenv.errors import InputError
from hetenv.job_table import Fault
from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.table import Table, is_missing, seconds_of
from hetenv.traces.trace_file import TraceFile
from hetenv.traces.trace_format import ReadOptions

CHUNK_JOBS = 5_000
DEEPEST = 1_000  # a job has six levels; brackets inside texts count here too
BRACKETS = np.zeros(256, np.int64)  # what each byte adds to the depth
BRACKETS[[*b"[{"]], BRACKETS[[*b"]}"]] = 1, -1
FIELDS = ("jobid", "status", "submitted_time", "attempts")
STATES = {"pass": "completed", "failed": "failed", "killed": "killed", "running": "killed"}
JSON_REMEDY = "give Philly's cluster_job_log, a JSON list of jobs"
ATTEMPTS_REMEDY = 'give a list of {"start_time", "end_time", "detail": [{"ip", "gpus": [...]}]}'


class Run(NamedTuple):
    """What the attempts of a job add up to; NaN where they tell nothing."""

    busy_s: float  # sum over complete attempts
    span_s: float  # first start to last end
    gpus: float  # of the largest attempt
    partial: bool  # whether an attempt was left out


NO_RUN = Run(np.nan, np.nan, np.nan, False)


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    entries = _entries(source)
    first_row = 0
    while chunk := list(islice(entries, CHUNK_JOBS)):
        yield _records(chunk, first_row, options)
        first_row += len(chunk)


def _entries(source: TraceFile) -> Iterator[Any]:
    import ijson  # type: ignore[import-untyped]

    with source.stream() as file:
        try:
            yield from ijson.items(_Shallow(file, source.path), "item", use_float=True)
        except ijson.JSONError as error:
            reason = str(error).partition("\n")[0].strip()
            raise InputError(str(source.path), f"no JSON ({reason})", JSON_REMEDY) from None
        except UnicodeDecodeError:
            raise InputError(str(source.path), "no text: not UTF-8", JSON_REMEDY) from None


class _Shallow:
    """A JSON file, refused where it is nested deep: the memory of ijson grows with the square of the depth."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path, self._depth = file, path, 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if data:
            depth = self._depth + np.cumsum(BRACKETS[np.frombuffer(data, np.uint8)])
            if depth.max() > DEEPEST:
                raise InputError(str(self._path), f"more than {DEEPEST} brackets in brackets", JSON_REMEDY)
            self._depth = int(depth[-1])
        return data


def _records(entries: list[Any], first_row: int, options: ReadOptions) -> Records:
    zone, n_jobs = options.rules.clock, len(entries)
    jobs = [entry if isinstance(entry, dict) else {} for entry in entries]
    columns = {name: [job.get(name) for job in jobs] for name in FIELDS}
    table = Table(columns, first_row + 1 + np.arange(n_jobs), first_row=first_row, unit="job")
    table.faults += [
        Fault(row, "job", repr(entry)[:40], "give an object with jobid, status, submitted_time and attempts")
        for row, entry in enumerate(entries)
        if not isinstance(entry, dict)
    ]

    def run(row: int, attempts: Any) -> Run:
        try:
            return _run(attempts, zone)
        except (TypeError, ValueError, AttributeError) as error:
            table.faults.append(Fault(row, "attempts", str(error)[:60], ATTEMPTS_REMEDY))
            return NO_RUN

    runs = [run(row, attempts) for row, attempts in enumerate(columns["attempts"])]
    busy_s, span_s, gpus, partial = (np.array(values) for values in zip(*runs, strict=True))
    return Records(
        table,
        submit_s=table.times("submitted_time", zone),
        duration_s=span_s if options.rules.gaps == "count" else busy_s,
        gpus=gpus,
        job_id=table.texts("jobid"),
        outcome=table.words("status", STATES, missing="completed"),
        calendar=True,
        dropped={"never ran (no attempts)": np.array([not attempts for attempts in columns["attempts"]], bool)},
        changed={
            "an attempt without start or end left out": partial & np.isfinite(busy_s),
            "idle gaps between attempts counted as run time"
            if options.rules.gaps == "count"
            else "idle gaps between attempts left out": span_s > busy_s,
        },
    )


def _run(attempts: list[Mapping[str, Any]] | None, zone: tzinfo) -> Run:
    """The run time and GPUs of one job.

    Raises:
        TypeError, ValueError, AttributeError: attempts of another form.
    """
    times: list[tuple[float, float]] = []
    gpus = np.nan
    for attempt in attempts or ():
        start_s, end_s = (_time(attempt.get(name), zone) for name in ("start_time", "end_time"))
        if end_s >= start_s:
            times.append((start_s, end_s))
        held = sum(len(node.get("gpus") or ()) for node in attempt.get("detail") or ())
        gpus = float(np.fmax(gpus, held if attempt.get("detail") else np.nan))
    if not times:
        return NO_RUN._replace(gpus=gpus)
    busy_s = sum(end_s - start_s for start_s, end_s in times)
    span_s = max(end_s for _, end_s in times) - min(start_s for start_s, _ in times)
    return Run(busy_s, span_s, gpus, len(times) < len(attempts or ()))


def _time(value: Any, zone: tzinfo) -> float:
    return np.nan if is_missing(value) else seconds_of(value, zone)


def _recognises(head: str) -> bool:
    return head.lstrip().startswith("[") and '"submitted_time"' in head and '"attempts"' in head


FORMAT = record_format("philly", "cluster_job_log of Microsoft's Philly, JSON", _recognises, read)

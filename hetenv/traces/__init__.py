"""Traces: one module a format, told apart by content, and generators of jobs (``hetenv.traces.generate``).

A new format is a module with a ``TraceFormat`` (for records of what ran: with ``record_format``) and one
entry in ``FORMATS``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hetenv.errors import InputError
from hetenv.traces import (
    acme,
    chronus,
    durations,
    elasticflow,
    gavel,
    helios,
    muri,
    openb,
    own_csv,
    pai,
    philly,
    pollux,
    pollux_workload,
    supercloud,
    swf,
    synergy,
    tiresias,
)
from hetenv.traces.download import fetch as fetch
from hetenv.traces.rules import Rules
from hetenv.traces.trace_file import Progress, TraceFile, first_line, no_progress
from hetenv.traces.trace_format import RawJobs, ReadOptions, Tally, TraceFormat, nothing_left, settle_faults
from hetenv.workload import Workload

if TYPE_CHECKING:
    from hetenv.cluster import Cluster

FORMATS: dict[str, TraceFormat] = {
    module.FORMAT.name: module.FORMAT
    for module in (
        own_csv,
        gavel,
        pollux,
        pollux_workload,
        philly,
        helios,
        acme,
        pai,
        openb,
        supercloud,
        muri,
        synergy,
        chronus,
        elasticflow,
        tiresias,
        swf,
        durations,
    )
}

THROUGHPUTS_HELP = (
    "measured throughputs: for gavel a JSON like Gavel's (default: those of its simulator, in configs/catalogue); for "
    "pollux-workload the folder of profiles (default: ../traces beside the file); for hetenv a CSV (default: "
    "STEM.throughputs.csv beside the file); of no use for the other formats"
)


@dataclass(frozen=True)
class Trace:
    """The jobs of a trace file and how they came about.

    Args:
        workload: the jobs.
        format: what the file was read as.
        tally: rows kept, changed and dropped, by reason.
        start_s: when the workload starts, in seconds since 1970-01-01 UTC; None where the trace has no calendar.
    """

    workload: Workload
    format: TraceFormat
    tally: Tally
    start_s: float | None


def load_workload(
    path: Path | str,
    format: str | None = None,
    *,
    throughputs: Path | str | None = None,
    type_speed: Mapping[str, float] | None = None,
    rules: Rules | None = None,
    cluster: Cluster | None = None,
    lenient: bool = False,
) -> Workload:
    """The jobs of a trace file. One warning says how many rows were dropped, and why.

    Args:
        path: the file.
        format: a name in ``FORMATS``; None: told from the content.
        throughputs: measured throughputs: Gavel's JSON for gavel (None: those of the catalogue), the folder of
            profiles for pollux-workload (None: ``../traces`` beside the file), or, for hetenv, a CSV that replaces
            ``<stem>.throughputs.csv``.
        type_speed: relative speed of each GPU type, for the formats of recorded run times.
        rules: what becomes of records that are no plain job, for the same formats; None: the defaults.
        cluster: where given, a job that can never run on it is an error too.
        lenient: drop what is wrong and count it, instead of raising.

    Raises:
        InputError: one line that names the file, the line and field, what was found and what would be
            right: an unreadable or unrecognised file, an option the format has no use for, a faulty row.
    """
    trace = read_trace(
        path, format, throughputs=throughputs, type_speed=type_speed, rules=rules, cluster=cluster, lenient=lenient
    )
    if dropped := trace.tally.dropped.total():
        message = f"{path}: dropped {dropped} {'row' if dropped == 1 else 'rows'} ({trace.tally})"
        warnings.warn(message, stacklevel=2)
    return trace.workload


def read_trace(
    path: Path | str,
    format: str | None = None,
    *,
    throughputs: Path | str | None = None,
    type_speed: Mapping[str, float] | None = None,
    rules: Rules | None = None,
    cluster: Cluster | None = None,
    lenient: bool = False,
    progress: Progress = no_progress,
) -> Trace:
    """``load_workload`` with an account of what was kept, changed and dropped, in place of a warning.

    ``progress(done, total)`` hears of the bytes read.
    """
    source = TraceFile.read(path, progress)
    chosen = _by_name(format) if format is not None else _by_content(source)
    given = {"throughputs": throughputs, "type_speed": type_speed or None, "rules": rules}
    if unused := {name for name, value in given.items() if value is not None} - chosen.options:
        raise InputError(f"{path}, {min(unused)}", f"of no use for format {chosen.name}", "leave it out")
    options = ReadOptions(
        rules or Rules(),
        lenient,
        Path(throughputs) if throughputs is not None else None,
        type_speed or {},
        cluster.type_names if cluster else None,
    )
    raw = chosen.read(source, options)
    tally, start_s = raw.tally, raw.start_s
    return Trace(_workload(raw, str(path), cluster, lenient), chosen, tally, start_s)


def _workload(raw: RawJobs, where: str, cluster: Cluster | None, lenient: bool) -> Workload:
    """The workload of all rows without a fault that, where a cluster is given, can run on it."""
    good = settle_faults(raw.faults, raw.lines, where, lenient, raw.tally, raw.unit)
    if not good.any():
        raise nothing_left(where, raw.tally)
    if not good.all():
        raw.columns = {name: values[good] for name, values in raw.columns.items()}
        raw.lines = raw.lines[good]
    fits_all = None if lenient else cluster
    try:
        workload = Workload.from_rows(
            raw.types, raw.columns, [], where=where, lines=raw.lines, measured=raw.measured, cluster=fits_all
        )
    except InputError as error:  # which speaks of lines
        place = error.where.replace(f"{where}, line ", f"{where}, {raw.unit} ", 1)
        raise InputError(place, error.found, error.remedy) from None
    if cluster is None or not lenient:
        return workload
    runs = workload.runnable(cluster)
    if not runs.all():
        raw.tally.dropped["GPUs: more than the cluster has of the types the job runs on"] += int((~runs).sum())
    if not runs.any():
        raise nothing_left(where, raw.tally)
    return workload if runs.all() else workload.take(runs)


def _by_name(name: str) -> TraceFormat:
    if name not in FORMATS:
        raise InputError("trace format", repr(name), f"use one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _by_content(source: TraceFile) -> TraceFormat:
    for candidate in FORMATS.values():
        if candidate.recognises(source.head):
            return candidate
    remedy = f"give a file of one of the formats {', '.join(FORMATS)}"
    raise InputError(str(source.path), f"unknown content, first line {first_line(source.head)[:60]!r}", remedy)

"""Traces: one module a format, told apart by content, and generators of jobs (``hetenv.traces.generate``).

A new format is a module with a ``TraceFormat`` and one entry in ``FORMATS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hetenv.errors import InputError
from hetenv.traces import gavel, own_csv, pollux
from hetenv.traces.trace_file import TraceFile, TraceFormat
from hetenv.workload import Workload

if TYPE_CHECKING:
    from hetenv.cluster import Cluster

FORMATS: dict[str, TraceFormat] = {module.FORMAT.name: module.FORMAT for module in (own_csv, gavel, pollux)}


def load_workload(
    path: Path | str,
    format: str | None = None,
    *,
    throughputs: Path | str | None = None,
    type_speed: Mapping[str, float] | None = None,
    cluster: Cluster | None = None,
    lenient: bool = False,
) -> Workload:
    """The jobs of a trace file.

    Args:
        path: the file.
        format: ``hetenv``, ``gavel`` or ``pollux``; None: told from the first line.
        throughputs: file of measured throughputs: Gavel's JSON (required for gavel) or, for hetenv,
            a CSV that replaces ``<stem>.throughputs.csv``.
        type_speed: relative speed of each GPU type, for pollux, whose jobs are recorded run times.
        cluster: where given, a job that can never run on it is an error too.
        lenient: drop what is wrong, with one warning that says how many rows and why.

    Raises:
        InputError: one line that names the file, the line and field, what was found and what would be
            right: an unreadable or unrecognised file, an option the format has no use for, a faulty row.
    """
    source = TraceFile.read(path)
    chosen = _by_name(format) if format is not None else _by_content(source)
    options = {"throughputs": throughputs, "type_speed": type_speed or None}
    given = {name: value for name, value in options.items() if value is not None}
    if unused := set(given) - chosen.options:
        raise InputError(f"{path}, {unused.pop()}", f"of no use for format {chosen.name}", "leave it out")
    return chosen.load(source, cluster=cluster, lenient=lenient, **given)


def _by_name(name: str) -> TraceFormat:
    if name not in FORMATS:
        raise InputError("trace format", repr(name), f"use one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _by_content(source: TraceFile) -> TraceFormat:
    for candidate in FORMATS.values():
        if candidate.recognises(source.first_line):
            return candidate
    remedy = f"give a file of one of the formats {', '.join(FORMATS)}"
    raise InputError(str(source.path), f"unknown content, first line {source.first_line[:60]!r}", remedy)

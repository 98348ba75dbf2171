"""The contract of a trace format: what a module hands over, and what it gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hetenv.errors import InputError
from hetenv.job_table import Fault
from hetenv.performance import MeasuredTable
from hetenv.traces.rules import Rules
from hetenv.traces.trace_file import TraceFile


@dataclass
class Tally:
    """How many rows a trace has, and what happened to how many of them, by reason."""

    rows: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def kept(self) -> int:
        """Rows that became jobs."""
        return self.rows - self.dropped.total()

    def __str__(self) -> str:
        return "; ".join(f"{count} x {reason}" for reason, count in self.dropped.most_common())


@dataclass(frozen=True)
class ReadOptions:
    """What the caller of a reader asked for.

    Args:
        rules: see ``Rules``.
        lenient: faulty rows are dropped and counted; otherwise the first is an error.
        throughputs: where measured throughputs lie, for the formats that use them.
        type_speed: speed of each GPU type relative to the reference GPU.
        types: names of the GPU types the jobs shall run on; None: those of ``type_speed``, or of the trace.
    """

    rules: Rules = field(default_factory=Rules)
    lenient: bool = False
    throughputs: Path | None = None
    type_speed: Mapping[str, float] = field(default_factory=dict)
    types: tuple[str, ...] | None = None


@dataclass
class RawJobs:
    """Rows of a trace as columns of the job table, not yet validated as a whole.

    Args:
        types: names of the M GPU types.
        columns: every column of the job table, one entry a row, in any order of arrival.
        lines: (rows,) where each row stands in the file.
        faults: what is wrong with which row.
        measured: measured throughputs.
        tally: what happened to the rows before; ``tally.rows`` includes those dropped since.
        start_s: time of ``arrival_s`` 0 in seconds since 1970-01-01 UTC; None where the trace has no calendar.
        unit: what ``lines`` counts.
    """

    types: tuple[str, ...]
    columns: dict[str, np.ndarray]
    lines: np.ndarray
    faults: Sequence[Fault]
    tally: Tally
    measured: MeasuredTable | None = None
    start_s: float | None = None
    unit: str = "line"


@dataclass(frozen=True)
class TraceFormat:
    """One trace format: all that the rest of the project knows of it.

    Args:
        name: how users call it.
        description: one line for them.
        recognises: whether the head of a file (up to 64 KiB) looks like it; no two formats recognise the same file.
        read: the rows of a file as columns of the job table. Raises InputError for what no row can be
            blamed for; in strict mode it may also raise the first fault it meets, to save reading on.
        options: the arguments of ``load_workload`` that it takes beside the cluster: ``throughputs``,
            ``type_speed``, ``rules``.
    """

    name: str
    description: str
    recognises: Callable[[str], bool]
    read: Callable[[TraceFile, ReadOptions], RawJobs]
    options: frozenset[str] = frozenset()


def settle_faults(
    faults: Sequence[Fault], lines: np.ndarray, where: str, lenient: bool, tally: Tally, unit: str = "line"
) -> np.ndarray:
    """(rows,) bool: which rows have no fault; the others are counted as dropped, each by its own first fault.

    Raises:
        InputError: the first fault, by row, unless ``lenient``.
    """
    first = {fault.row: fault for fault in reversed(faults)}
    if first and not lenient:
        row = min(first)
        raise first[row].error(f"{where}, {unit} {lines[row]}")
    tally.dropped.update(f"{fault.field}: {fault.remedy}" for fault in first.values())
    good = np.ones(len(lines), bool)
    good[list(first)] = False
    return good


def nothing_left(where: str, tally: Tally) -> InputError:
    """The error of a trace none of whose rows became a job."""
    if not tally.rows:
        return InputError(where, "no jobs", "give a file with at least one row")
    return InputError(where, f"no job is left of {tally.rows} rows ({tally})", "mend the rows or choose other rules")

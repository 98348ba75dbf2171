"""What the rules make of one stretch of records: rows dropped, rows changed, rows that are errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hetenv.job_table import GPU_COUNT_REMEDY, OUTCOMES, Fault
from hetenv.traces.records import Records
from hetenv.traces.rules import Rules
from hetenv.traces.trace_format import ReadOptions, Tally, settle_faults

MOST_GPUS = 2**31 - 1  # counted in int32
CALENDAR_S = 9.2e9  # around 1970: the years 1679 to 2261, those of a calendar in nanoseconds


@dataclass(frozen=True)
class Doubt:
    """Rows that are no plain job for one reason, and the action of the rules: drop, error, or the name of a change."""

    field: str
    reason: str
    rows: np.ndarray
    action: str
    remedy: str = "mend the row"


def kept_rows(records: Records, options: ReadOptions, where: str, tally: Tally) -> dict[str, np.ndarray]:
    """The rows that faults and rules leave, as compact columns; the others are counted in ``tally``.

    Raises:
        InputError: the first faulty row, unless lenient.
    """
    table = records.table
    tally.rows += len(table)
    columns = _columns(records)
    alive = np.ones(len(table), bool)
    alive[[fault.row for fault in table.faults]] = False
    changes = [Doubt("", reason, rows, "note") for reason, rows in records.changed.items()]
    for doubt in _doubts(records, columns, options.rules):
        rows = doubt.rows & alive
        if not rows.any():
            continue
        if doubt.action == "error":
            values = columns[doubt.field][rows]
            table.faults += [
                Fault(int(row), doubt.reason, value, doubt.remedy)
                for row, value in zip(np.flatnonzero(rows), values, strict=True)
            ]
        elif doubt.action == "drop":
            tally.dropped[doubt.reason] += int(rows.sum())
        else:
            changes.append(doubt)
            continue
        alive &= ~rows
    settle_faults(table.faults, table.lines, where, options.lenient, tally, table.unit)
    for change in changes:
        rows = change.rows & alive
        if rows.any():
            tally.changed[change.reason] += int(rows.sum())
        if change.action == "up":
            columns["gpus"] = np.where(rows, np.ceil(columns["gpus"]), columns["gpus"])
        elif change.action == "second":
            columns["duration_s"] = np.where(rows, 1.0, columns["duration_s"])
    return {name: values[alive] for name, values in columns.items()}


def _columns(records: Records) -> dict[str, np.ndarray]:
    table = records.table
    columns = {
        "line": np.asarray(table.lines, np.int64),
        "row": table.first_row + np.arange(len(table)),
        "submit_s": records.submit_s,
        "duration_s": records.duration_s,
        "gpus": records.gpus,
    }
    for name, default in (("job_id", ""), ("outcome", "completed"), ("gpu_type", ""), ("model", "")):
        values = getattr(records, name)
        columns[name] = np.full(len(table), default, object) if values is None else values
    return columns


def _doubts(records: Records, columns: dict[str, np.ndarray], rules: Rules) -> Iterator[Doubt]:
    """Every doubtful case in the order in which a row is judged: its first reason is the one that counts."""
    submit_s, duration_s, gpus = columns["submit_s"], columns["duration_s"], columns["gpus"]
    mend = "mend the row, or let the rule {} drop it"
    for reason, rows in records.dropped.items():
        yield Doubt("line", reason, rows, "drop")
    yield Doubt("gpus", "number of GPUs", (gpus < 0) | (gpus > MOST_GPUS), "error", GPU_COUNT_REMEDY)
    yield Doubt("gpus", "no GPU asked for", gpus == 0, rules.cpu_only, mend.format("cpu_only"))
    reason, remedy = "time of submission", "give a time between the years 1679 and 2261"
    yield Doubt("submit_s", reason, (np.abs(submit_s) > CALENDAR_S) & records.calendar, "error", remedy)
    for field_name, values, reason in (
        ("submit_s", submit_s, "no time of submission"),
        ("duration_s", duration_s, "no run time (start or end is missing)"),
        ("gpus", gpus, "no number of GPUs"),
    ):
        yield Doubt(field_name, reason, np.isnan(values), rules.missing, mend.format("missing"))
    fraction = np.isfinite(gpus) & (gpus != np.floor(gpus))
    reason = "fraction of a GPU" + (", rounded up to whole GPUs" if rules.fractional == "up" else "")
    yield Doubt("gpus", reason, fraction, rules.fractional, mend.format("fractional"))
    reason = "ran for no time" + (", counted as 1 s" if rules.zero_durations == "second" else "")
    yield Doubt("duration_s", reason, duration_s == 0, rules.zero_durations, mend.format("zero_durations"))
    reason = "ended before it started"
    yield Doubt("duration_s", reason, duration_s < 0, rules.negative_durations, mend.format("negative_durations"))
    for outcome in OUTCOMES:
        if outcome not in rules.outcomes:
            yield Doubt("outcome", f"outcome {outcome}", columns["outcome"] == outcome, "drop")

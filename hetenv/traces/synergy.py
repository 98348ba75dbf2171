"""Synergy's job lists (github.com/msr-fiddle/synergy; OSDI 2022): ``id,model,arrival,iterations,gpus``, no header.

Arrivals are seconds. The list does not say how long an iteration takes: each counts as ``step_s`` seconds on
the reference GPU, a rule that defaults to 1. Ids may come twice; such rows are jobs of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.trace_file import TraceFile, first_line
from hetenv.traces.trace_format import ReadOptions

COLUMNS = ("id", "model", "arrival", "iterations", "gpus")
ROW = re.compile(r"\d+,[A-Za-z][\w.-]*,[\d.eE+-]+,[\d.]+,[\d.]+")


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    step_s = options.rules.step_s
    for table in source.tables(COLUMNS, header=COLUMNS):
        iterations = table.numbers("iterations")
        yield Records(
            table,
            submit_s=table.numbers("arrival"),
            duration_s=iterations * step_s,
            gpus=table.numbers("gpus"),
            job_id=table.texts("id"),
            model=table.texts("model"),
            changed={f"iterations taken for {step_s:g} s each": iterations > 0},
        )


def _recognises(head: str) -> bool:
    return ROW.fullmatch(first_line(head)) is not None


FORMAT = record_format("synergy", "job list of Synergy, iterations without their time", _recognises, read)

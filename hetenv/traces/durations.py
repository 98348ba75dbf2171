"""Lists of run times without arrivals: a header, then one job a line.

``duration``, ``duration_s`` or ``runtime`` (s) and perhaps ``num_gpus``, 1 where there is no such column: the
``yarn-gput*.csv`` of Tiresias, Gavel's ``philly_job_distribution.csv``, ``philly_runtime.csv`` of Alibaba's
clusterdata. All jobs arrive at 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hetenv.errors import InputError
from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import ReadOptions

NAMES = ("duration", "duration_s", "runtime")


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    for table in source.tables(()):
        name = next((name for name in NAMES if name in table), None)
        if name is None:
            raise InputError(f"{source.path}, line 1", "column duration is missing", f"give {' or '.join(NAMES)}")
        everyone = np.ones(len(table))
        yield Records(
            table,
            submit_s=np.zeros(len(table)),
            duration_s=table.numbers(name),
            gpus=table.numbers("num_gpus") if "num_gpus" in table else everyone,
            changed={"no arrival in the file, arrives at 0": everyone > 0},
        )


def _recognises(head: str) -> bool:
    cells = header_cells(head)
    return bool(cells & set(NAMES)) and cells <= {*NAMES, "num_gpus"}


FORMAT = record_format("durations", "list of run times without arrivals", _recognises, read)

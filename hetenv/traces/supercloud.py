"""MIT Supercloud: the Slurm accounting log of the dataset (Samsi et al., HPEC 2021).

| column | meaning |
|---|---|
| ``id_job`` | name; may come again after a requeue, each row being one run |
| ``state`` | Slurm's number (3 completed, 4 cancelled, 5 failed, 6 timeout, 7 node failure) or word |
| ``time_submit``, ``time_start``, ``time_end`` | s since 1970; 0: has not happened |
| ``tres_req`` or ``tres_alloc`` | resources of the whole job, "4=2,1002=4": 4 nodes, 1001 and 1002 GPUs |

Slurm counts a GPU of a named type under 1002 and perhaps under 1001 again: the larger figure is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hetenv.errors import InputError
from hetenv.traces import helios
from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import ReadOptions

COLUMNS = ("state", "time_submit", "time_start", "time_end")
TRES = ("tres_alloc", "tres_req")  # what the job got, else what it asked for
GPU_COUNT = re.compile(r"(?:^|,)\s*100[12]=(\d+)")

STATES = helios.STATES | {
    "0": "killed",  # pending
    "1": "killed",  # running
    "2": "killed",  # suspended
    "3": "completed",
    "4": "killed",
    "5": "failed",
    "6": "killed",
    "7": "failed",
    "8": "killed",  # preempted
    "9": "failed",  # boot failure
    "10": "killed",  # deadline
    "11": "failed",  # out of memory
}


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    for table in source.tables(COLUMNS):
        tres = next((name for name in TRES if name in table), None)
        if tres is None:
            raise InputError(f"{source.path}, line 1", "column tres_req is missing", f"give {' or '.join(TRES)}")
        submit_s, start_s, end_s = (_happened(table.numbers(name)) for name in COLUMNS[1:])
        yield Records(
            table,
            submit_s=submit_s,
            duration_s=end_s - start_s,
            gpus=np.array([_gpus(cell) for cell in table.texts(tres)], float),
            job_id=table.texts("id_job"),
            outcome=table.words("state", STATES, missing="completed"),
            calendar=True,
        )


def _happened(time_s: np.ndarray) -> np.ndarray:
    return np.where(time_s == 0, np.nan, time_s)


def _gpus(tres: str) -> float:
    if not tres:
        return np.nan
    return max((float(count) for count in GPU_COUNT.findall(tres)), default=0.0)


def _recognises(head: str) -> bool:
    return {"time_submit", "state"} <= header_cells(head)


FORMAT = record_format("supercloud", "Slurm log of the MIT Supercloud dataset", _recognises, read)

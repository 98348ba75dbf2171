"""PAI: Alibaba's cluster-trace-gpu-v2020 (github.com/alibaba/clusterdata; Weng et al., NSDI 2022).

Tables without header (a header line is understood too); name any one of them, the others lie beside it:

| file | used columns |
|---|---|
| ``pai_job_table.csv`` | job name, status, start time: when it was submitted |
| ``pai_task_table.csv`` | job name, instances, start and end time, ``plan_gpu`` in % of a GPU per instance, type |
| ``pai_instance_table.csv``, optional | job name, start and end time of every instance |

A job holds the GPUs of all its tasks, instances x ``plan_gpu`` / 100, from the first start to the last
end of its instances (of its tasks where there is no instance table, and its own end where that is all
there is). Times are seconds from an origin that is not told; 0 stands for missing. Only Terminated is
success. Utilisation, which may exceed 100, is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hetenv.errors import InputError
from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.table import Table
from hetenv.traces.trace_file import TraceFile, first_line
from hetenv.traces.trace_format import ReadOptions, Tally, settle_faults

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "job": ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    "task": (
        "job_name",
        "task_name",
        "inst_num",
        "status",
        "start_time",
        "end_time",
        "plan_cpu",
        "plan_mem",
        "plan_gpu",
        "gpu_type",
    ),
    "instance": (
        "job_name",
        "task_name",
        "inst_name",
        "worker_name",
        "inst_id",
        "status",
        "start_time",
        "end_time",
        "machine",
    ),
}
STATES = {"terminated": "completed", "failed": "failed", "unknown": "failed", "running": "killed", "waiting": "killed"}
MERGE_CHUNKS = 20  # so that memory grows with the jobs, not with their instances
NAME = re.compile(r"(job|task|instance)(?=_table)")


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    tasks = _held(_beside(source, "task"), "task", options)
    instances = _beside(source, "instance")
    runs = _held(instances, "instance", options) if instances.exists() else tasks
    jobs = TraceFile.read(_beside(source, "job"))
    for table in _tables(replace(jobs, progress=source.progress), "job"):
        names = table.texts("job_name")
        held, run = tasks.reindex(names), runs.reindex(names)
        first_s = _else(run["start_s"], held["start_s"])
        last_s = _else(_else(run["end_s"], held["end_s"]), _happened(table, "end_time"))
        bad = held["bad"].eq(True) | run["bad"].eq(True)
        yield Records(
            table,
            submit_s=_happened(table, "start_time"),
            duration_s=last_s - first_s,
            gpus=held["gpus"].to_numpy(float),
            job_id=names,
            outcome=table.words("status", STATES, missing="failed"),
            gpu_type=held["gpu_type"].fillna("").to_numpy(object),
            changed={"a task or instance that could not be read left out": bad.to_numpy(bool)},
        )


def _held(path: Path, kind: str, options: ReadOptions) -> pd.DataFrame:
    """One row a job name: first start, last end, GPUs, the type that most of them are of, unreadable rows."""
    import pandas as pd

    parts = []
    for table in _tables(TraceFile.read(path), kind):
        frame = pd.DataFrame(
            {
                "job": table.texts("job_name"),
                "start_s": _happened(table, "start_time"),
                "end_s": _happened(table, "end_time"),
            }
        )
        gpus = np.nan_to_num(table.numbers("inst_num") * table.numbers("plan_gpu") / 100)
        frame["gpus"] = gpus
        frame["gpu_type"] = table.texts("gpu_type")
        frame["bad"] = ~settle_faults(table.faults, table.lines, str(path), options.lenient, Tally())
        frame.loc[frame["bad"], ["start_s", "end_s", "gpus"]] = np.nan
        parts.append(_by_job(frame))
        if len(parts) == MERGE_CHUNKS:
            parts = [_by_job(pd.concat(parts, ignore_index=True))]
    return _by_job(pd.concat(parts, ignore_index=True)).set_index("job")


def _by_job(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.sort_values("gpus", ascending=False, kind="stable", na_position="last")
    groups = frame.groupby("job", sort=False)
    merged = groups.agg(
        start_s=("start_s", "min"),
        end_s=("end_s", "max"),
        gpus=("gpus", "sum"),
        gpu_type=("gpu_type", "first"),
        bad=("bad", "any"),
    )
    return merged.reset_index()


def _tables(source: TraceFile, kind: str) -> Iterator[Table]:
    columns = COLUMNS[kind]
    return source.tables(columns, header=None if first_line(source.head).startswith("job_name,") else columns)


def _else(values: ArrayLike, others: ArrayLike) -> np.ndarray:
    """``values``, and ``others`` where they are NaN."""
    first = np.asarray(values, float)
    return np.where(np.isnan(first), np.asarray(others, float), first)


def _happened(table: Table, name: str) -> np.ndarray:
    time_s = table.numbers(name)
    return np.where(time_s > 0, time_s, np.nan)


def _beside(source: TraceFile, kind: str) -> Path:
    """The table of this kind that belongs to the one at hand."""
    here = _kind(source.head)
    if here is None:
        raise InputError(f"{source.path}, line 1", "no table of PAI", "give pai_job_table.csv or pai_task_table.csv")
    if here == kind:
        return source.path
    if not NAME.search(source.path.name):
        remedy = "name the files pai_job_table.csv and pai_task_table.csv, in one folder"
        raise InputError(str(source.path), f"cannot tell where the {kind} table lies", remedy)
    return source.path.with_name(NAME.sub(kind, source.path.name))


def _kind(head: str) -> str | None:
    """Which table it is, by the number of columns and the place of the status."""
    cells: Sequence[str] = first_line(head).split(",")
    for kind, columns in COLUMNS.items():
        if len(cells) == len(columns) and cells[columns.index("status")].lower() in {*STATES, "status"}:
            return kind
    return None


FORMAT = record_format(
    "pai", "job, task and instance tables of Alibaba's gpu-v2020 trace", lambda head: _kind(head) is not None, read
)

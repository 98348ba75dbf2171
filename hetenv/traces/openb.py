"""openb: the pods of Alibaba's cluster-trace-gpu-v2023 (github.com/alibaba/clusterdata; Weng et al., ATC 2023).

| column | meaning |
|---|---|
| ``name`` | of the pod |
| ``num_gpu``, ``gpu_milli`` | GPUs, and thousandths of each; their product is what the pod holds |
| ``gpu_spec`` | types it accepts, such as V100M16|V100M32, even repeated; empty: any |
| ``pod_phase`` | Succeeded, Failed, Running, Pending, Unknown |
| ``creation_time``, ``scheduled_time``, ``deletion_time`` | s since the start of the trace |

The run time is deletion minus scheduling. Pods that still ran at the end of the trace have a deletion
time too, which is that end; they count as killed. Pending pods were never scheduled. Of several types
a pod is taken to have run on the first. Variants of the file with five columns have no times at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from hetenv.errors import InputError
from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import ReadOptions

COLUMNS = ("num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time")
PHASES = {"succeeded": "completed", "failed": "failed", "running": "killed", "pending": "killed"}


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    if "creation_time" not in header_cells(source.head):
        remedy = "give the variant of the file with creation_time, deletion_time and scheduled_time"
        raise InputError(f"{source.path}, line 1", "a list of pods without times", remedy)
    for table in source.tables(COLUMNS):
        phase = table.words("pod_phase", PHASES, missing="completed")
        running = table.texts("pod_phase") == "Running"
        yield Records(
            table,
            submit_s=table.numbers("creation_time"),
            duration_s=table.numbers("deletion_time") - table.numbers("scheduled_time"),
            gpus=table.numbers("num_gpu") * table.numbers("gpu_milli") / 1000,
            job_id=table.texts("name"),
            outcome=phase,
            gpu_type=table.texts("gpu_spec"),
            changed={"still running when the trace ended, cut off there": running.astype(bool)},
        )


def _recognises(head: str) -> bool:
    return {"gpu_milli", "cpu_milli"} <= header_cells(head)


FORMAT = record_format("openb", "pods of Alibaba's gpu-v2023 trace", _recognises, read)

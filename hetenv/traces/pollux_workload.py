"""Workloads of Pollux and Sia: ``name,time,application,num_replicas,batch_size`` (github.com/petuum/adaptdl).

``time`` is the submission in seconds. The file tells no run times; they follow from the measured profiles of
the applications, a folder that ``throughputs`` names (left out: ``../traces`` beside the workload):

* ``<application>/validation-<batch_size>.csv``: the last ``iteration`` is the number of steps to the target.
* ``<application>/placements.csv``: ``step_time`` of a ``placement`` at a ``local_bsz``. A placement is a string
  of digits, the GPUs of each node: "44" is two nodes of four.
* ``<application>/scalability.csv``: the same by ``num_nodes`` and ``num_replicas``, for larger jobs.

A job runs on the fewest nodes measured for its replicas, at ``batch_size / num_replicas`` samples a GPU,
interpolated between the batches measured. What exceeds what one GPU takes, the largest batch measured or
``MOST_SAMPLES``, is worked off in several passes a step, as gradient accumulation does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from hetenv.errors import InputError
from hetenv.job_table import Fault
from hetenv.traces.recorded_jobs import record_format
from hetenv.traces.records import Records
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import ReadOptions, Tally, settle_faults

COLUMNS = ("time", "application", "num_replicas", "batch_size")
MOST_SAMPLES = {"yolov3": 8}  # of one GPU in a pass, by applications.py of Pollux' simulator; more was measured


def read(source: TraceFile, options: ReadOptions) -> Iterator[Records]:
    folder = Path(options.throughputs) if options.throughputs else source.path.parent.parent / "traces"
    if not folder.is_dir():
        remedy = "name the folder of measured profiles, with one folder an application"
        raise InputError(f"{source.path}, throughputs", f"no folder {folder}", remedy)
    measured = {path.name: path for path in sorted(folder.iterdir()) if path.is_dir()}
    run_s = cache(_run_s)  # for this reading: the profiles may have changed at the next
    for table in source.tables(COLUMNS):
        application = table.texts("application")
        gpus, batch = table.numbers("num_replicas"), table.numbers("batch_size")
        duration_s = np.full(len(table), np.nan)
        for row, name in enumerate(application):
            if not name or not np.isfinite(gpus[row]) or not np.isfinite(batch[row]) or gpus[row] < 1:
                continue
            if name not in measured:
                remedy = f"name one with a profile ({', '.join(measured)})"
                table.faults.append(Fault(row, "application", name, remedy))
                continue
            try:
                duration_s[row] = run_s(measured[name], int(gpus[row]), int(batch[row]))
            except LookupError as error:
                table.faults.append(Fault(row, "num_replicas", int(gpus[row]), str(error.args[0])))
        yield Records(
            table,
            submit_s=table.numbers("time"),
            duration_s=duration_s,
            gpus=gpus,
            job_id=table.texts("name"),
            model=application,
            changed={"run time worked out from measured profiles": np.isfinite(duration_s)},
        )


def _run_s(profile: Path, gpus: int, batch: int) -> float:
    """Seconds of a job on ``gpus`` GPUs.

    Raises:
        InputError: the profile lacks a file or a column, or has something else than figures in it.
        LookupError: so many GPUs were not measured.
    """
    (iteration,) = _figures(profile / f"validation-{batch}.csv", "iteration")
    local_batch, step_s = _steps(profile, gpus)
    wanted = batch / gpus
    passes = max(1.0, np.ceil(wanted / MOST_SAMPLES.get(profile.name, local_batch[-1])))
    return float(iteration.max() * passes * np.interp(wanted / passes, local_batch, step_s))


def _steps(profile: Path, gpus: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples a GPU, rising, and seconds of a step, on the fewest nodes measured."""
    source = profile / "placements.csv"
    placement = TraceFile.read(source).table(("placement",)).texts("placement")
    n_gpus = np.array([sum(map(int, text)) if text.isdecimal() else 0 for text in placement])
    n_nodes = np.array([len(text) for text in placement])
    if not (n_gpus == gpus).any():
        source = profile / "scalability.csv"
        n_nodes, n_gpus = _figures(source, "num_nodes", "num_replicas")
    if not (n_gpus == gpus).any():
        larger = ", ".join(f"{size:g}" for size in np.unique(n_gpus))
        raise LookupError(f"{profile.name} was measured on up to 16 GPUs, and on {larger}")
    chosen = (n_gpus == gpus) & (n_nodes == n_nodes[n_gpus == gpus].min())
    local_batch, step_s = (values[chosen] for values in _figures(source, "local_bsz", "step_time"))
    batches, row = np.unique(local_batch, return_inverse=True)  # several placements of one size: their mean
    return batches, np.bincount(row, step_s) / np.bincount(row)


def _figures(path: Path, *names: str) -> list[np.ndarray]:
    """Columns of a profile, each a positive number in every row."""
    table = TraceFile.read(path).table(names)
    columns = [table.numbers(name) for name in names]
    for name, values in zip(names, columns, strict=True):
        table.fault(~(values > 0), name, "give a positive number")
    settle_faults(table.faults, table.lines, str(path), lenient=False, tally=Tally())
    return columns


def _recognises(head: str) -> bool:
    return {"application", "num_replicas"} <= header_cells(head)


FORMAT = record_format("pollux-workload", "workloads of Pollux and Sia", _recognises, read, options=("throughputs",))

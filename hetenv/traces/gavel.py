"""Gavel's traces and throughput tables (github.com/stanford-futuredata/gavel, OSDI 2020).

A trace has no header and ten tab-separated fields: job type, command, folder, name of the steps
argument, whether data is needed, total steps, scale factor, priority, SLO (-1: none), arrival (s).
The older form of ``traces/msr`` has seven: job type, command, name of the steps argument, whether
data is needed, total steps, arrival, scale factor. Shockwave's has twelve: how the batch size adapts
before the priority, and the duration before the arrival. Jobs are rigid (``scale_factor`` GPUs) and
named by their row number; command, folder, adaptation, priority, SLO and duration are not used.

A throughput file is JSON: worker type -> "('model', scale factor)" -> {"null": steps/s of the whole
job, ...}; the other entries, of jobs that share GPUs, are not used. Worker types that end in
``_unconsolidated`` hold the figures of jobs spread over nodes. Without such a file jobs run at the figures
of ``simulation_throughputs.json`` that ship in the catalogue.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hetenv.catalogue import load_catalogue
from hetenv.errors import InputError
from hetenv.job_table import DEFAULTS, GPU_COUNT_REMEDY, Fault, is_gpu_count, numbers
from hetenv.performance import MOST_MEASURED_GPUS, MeasuredTable
from hetenv.traces.table import LARGEST
from hetenv.traces.trace_file import TraceFile, first_line
from hetenv.traces.trace_format import RawJobs, ReadOptions, Tally, TraceFormat
from hetenv.workload import Workload

SPREAD_SUFFIX = "_unconsolidated"
CATALOGUED = "gavel"  # the catalogue's name for the figures of Gavel's simulator

# Where each form, told by its number of fields, has what we use.
FIELDS = {
    12: {"job_type": 0, "total_steps": 5, "scale_factor": 6, "arrival": 11},
    10: {"job_type": 0, "total_steps": 5, "scale_factor": 6, "arrival": 9},
    7: {"job_type": 0, "total_steps": 4, "arrival": 5, "scale_factor": 6},
}


def read_throughputs(path: Path | str) -> MeasuredTable:
    """The isolated throughputs of a Gavel JSON file; rates (R, M, G + 1, 2) in steps/s, NaN where not measured.

    Raises:
        InputError: no such file, no JSON, or not of this form.
    """
    source = TraceFile.read(path)
    remedy = """give worker type -> "('model', scale factor)" -> {"null": steps/s}"""
    try:
        workers = json.loads(source.text, parse_int=float)
        figures = {
            (*_model_and_gpus(key), worker.removesuffix(SPREAD_SUFFIX), worker.endswith(SPREAD_SUFFIX)): entry["null"]
            for worker, entries in workers.items()
            for key, entry in entries.items()
        }
        models = tuple(dict.fromkeys(model for model, _, _, _ in figures))
        types = tuple(dict.fromkeys(name for _, _, name, _ in figures))
        rate = np.full((len(models), len(types), 1 + max(gpus for _, gpus, _, _ in figures), 2), np.nan)
        rate[:, :, 0] = 0.0
        for (model, gpus, name, spread), steps_per_s in figures.items():
            rate[models.index(model), types.index(name), gpus, int(spread)] = steps_per_s
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}", f"no JSON ({error.msg})", remedy) from None
    except RecursionError:
        raise InputError(str(path), "brackets in brackets, too deep", remedy) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(str(path), f"not Gavel's form ({type(error).__name__}: {error})", remedy) from None
    if (wrong := (rate < 0) | (rate > LARGEST)).any():
        model, name, gpus, _ = np.argwhere(wrong)[0]
        where = f"{path}, {models[model]} on {gpus} {types[name]}"
        raise InputError(where, f"{rate[wrong][0]:g} steps/s", "give 0 or more; 0: cannot run")
    return MeasuredTable(models, types, rate)


def measured_workload(
    table: MeasuredTable,
    job_type: Sequence[str],
    scale_factor: np.ndarray,
    total_steps: np.ndarray,
    arrival_s: np.ndarray,
    job_id: Sequence[str] | None = None,
) -> Workload:
    """Rigid jobs that run at measured throughputs.

    Args:
        table: the throughputs.
        job_type: (J,) names of models in ``table``.
        scale_factor: (J,) GPUs of each job.
        total_steps: (J,) iterations; fractions are kept.
        arrival_s: (J,) seconds since the start.
        job_id: (J,) names; None: "0", "1", ...

    Raises:
        InputError: the first job with a wrong value, or whose model was not measured on so many GPUs.
    """
    gpus = np.asarray(scale_factor, float)
    columns = _columns(table, job_type, gpus, np.asarray(total_steps, float), np.asarray(arrival_s, float))
    if job_id is not None:
        columns["job_id"] = np.array(job_id, object)
    for fault in _faults(table, columns):
        raise fault.error(f"job {columns['job_id'][fault.row]}")
    columns["min_gpus"] = columns["max_gpus"] = gpus.astype(np.int32)
    return Workload(table.types, measured=table, **columns)


def read(source: TraceFile, options: ReadOptions) -> RawJobs:
    """Rigid jobs that run at the measured rates of ``options.throughputs``, or of the catalogue without those."""
    if options.throughputs is None:
        table = load_catalogue().throughputs[CATALOGUED].table
    else:
        table = read_throughputs(options.throughputs)
    rows, lines, ragged = _split(source)
    text = {name: [row[name] for row in rows] for name in FIELDS[10]}
    columns = _columns(
        table, text["job_type"], *(numbers(text[name]) for name in ("scale_factor", "total_steps", "arrival"))
    )
    faults = [
        Fault(fault.row, fault.field, text[fault.field][fault.row], fault.remedy) for fault in _faults(table, columns)
    ]
    return RawJobs(table.types, columns, np.array(lines), ragged + faults, Tally(len(rows)), measured=table)


def _split(source: TraceFile) -> tuple[list[dict[str, str]], list[int], list[Fault]]:
    """The fields we use of each row, the line of each row, and the rows of neither form."""
    rows: list[dict[str, str]] = []
    lines: list[int] = []
    faults: list[Fault] = []
    for line, text in enumerate(source.lines(), start=1):
        if not text.strip():
            continue
        cells = text.rstrip("\r\n").split("\t")
        if len(cells) not in FIELDS:
            remedy = f"give {' or '.join(str(count) for count in FIELDS)}, separated by tabs"
            faults.append(Fault(len(rows), "number of fields", len(cells), remedy))
        where = FIELDS.get(len(cells), {})
        rows.append({name: cells[where[name]] if where else "" for name in FIELDS[10]})
        lines.append(line)
    return rows, lines, faults


def _columns(
    table: MeasuredTable, job_type: Sequence[str], gpus: np.ndarray, steps: np.ndarray, arrival_s: np.ndarray
) -> dict[str, np.ndarray]:
    """The job table. ``speed`` is that of one of the job's GPUs when all are of one type and one node."""
    n_jobs = len(job_type)
    batch = np.array([_batch(name) for name in job_type], float)
    rate = np.nan_to_num(_consolidated(table, job_type, gpus), nan=0.0)  # (J, M) steps/s
    values: dict[str, Any] = DEFAULTS | {
        "job_id": np.arange(n_jobs).astype(str),
        "arrival_s": arrival_s,
        "model": np.array(job_type, object),
        "iterations": steps,
        "batch": batch,
        "min_gpus": gpus,
        "max_gpus": gpus,
    }
    columns = {name: np.array(np.broadcast_to(value, n_jobs)) for name, value in values.items()}
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # what is absurd is reported as a fault
        columns["speed"] = batch[:, None] * rate / gpus[:, None]
    return columns


def _consolidated(table: MeasuredTable, job_type: Sequence[str], gpus: np.ndarray) -> np.ndarray:
    """(J, M) steps/s of each job in one node of each type; NaN where not measured."""
    largest = table.rate.shape[2] - 1
    sized = (gpus >= 1) & (gpus <= largest) & (gpus == np.floor(gpus))
    row = {name: index for index, name in enumerate(table.models)}
    rows = np.array([row.get(name, -1) for name in job_type])
    rate = table.rate[rows, :, np.where(sized, gpus, 0).astype(int), 0]
    rate[~sized | (rows < 0)] = np.nan
    return rate


def _faults(table: MeasuredTable, columns: dict[str, np.ndarray]) -> list[Fault]:
    """What is wrong with which row, in the words of a Gavel trace."""
    steps, arrival_s, gpus = columns["iterations"], columns["arrival_s"], columns["min_gpus"]
    known = np.isin(columns["model"].astype(str), table.models)
    whole = is_gpu_count(gpus)
    measured = (columns["speed"] > 0).any(axis=1)
    rules = (
        ("job_type", "model", known, f"name a model of the throughput table ({', '.join(table.models[:3])}, ...)"),
        ("scale_factor", "min_gpus", whole, GPU_COUNT_REMEDY),
        ("total_steps", "iterations", (steps > 0) & (steps <= LARGEST), "give a positive number of steps"),
        ("arrival", "arrival_s", (arrival_s >= 0) & (arrival_s <= LARGEST), "give seconds since the start, 0 or more"),
    )
    faults = [
        Fault(int(row), field, columns[column][row], remedy)
        for field, column, good, remedy in rules
        for row in np.flatnonzero(~good)
    ]
    for row in np.flatnonzero(known & whole & ~measured):
        runs_on = np.flatnonzero((table.rate[table.row(columns["model"][row]), ..., 0] > 0).any(axis=0))
        remedy = f"in the throughput table {columns['model'][row]} runs on {', '.join(map(str, runs_on))} GPUs"
        faults.append(Fault(int(row), "scale_factor", gpus[row], remedy))
    return sorted(faults, key=lambda fault: fault.row)


def _model_and_gpus(key: str) -> tuple[str, int]:
    """The parts of a key such as "('LM (batch size 80)', 2)".

    Raises:
        ValueError: no such key.
    """
    try:
        model, gpus = ast.literal_eval(key)
    except (SyntaxError, TypeError, MemoryError, RecursionError):  # the latter two of brackets in brackets
        raise ValueError(f"{key!r} is no model with its GPUs") from None
    if not isinstance(model, str) or not isinstance(gpus, int) or not 1 <= gpus <= MOST_MEASURED_GPUS:
        raise ValueError(f"{key!r} is no model with its GPUs")
    return model, gpus


def _batch(job_type: str) -> float:
    """Samples of one step, from a name such as "LM (batch size 80)"; 1 where it does not say."""
    found = re.search(r"\(batch size (\d+)\)", job_type)
    return float(found[1]) if found else 1.0


def _recognises(head: str) -> bool:
    line = first_line(head)
    return line.count("\t") + 1 >= min(FIELDS) and any(letter.isalpha() for letter in line)


FORMAT = TraceFormat(
    "gavel", "traces of Gavel and Shockwave, with measured throughputs", _recognises, read, frozenset({"throughputs"})
)

"""hetenv's own CSV: every column of a workload, lossless, one row a job.

UTF-8, comma separated, texts in double quotes, numbers such that float64 survives to the bit.

| column | unit | default |
|---|---|---|
| ``job_id`` | text, unique | row number |
| ``arrival_s`` | seconds since the start, >= 0 | required |
| ``model`` | text | empty |
| ``iterations`` | > 0 | required |
| ``batch`` | samples of one iteration, whole, >= 1 | 1 |
| ``grad_bytes`` | bytes reduced per iteration, >= 0 | 0 |
| ``min_gpus``, ``max_gpus`` | GPUs, whole, >= 1 | 1, ``min_gpus`` |
| ``malleable`` | True or False | False |
| ``restart_s`` | seconds, >= 0 | 0 |
| ``outcome`` | completed, failed or killed | completed |
| ``speed_<type>`` | samples/s of one GPU of the type, 0 where the job cannot run | one or more required |

Measured throughputs lie beside it in ``<stem>.throughputs.csv``: ``model``, ``type``, ``gpus`` (>= 1),
``placement`` (consolidated or spread) and ``iterations_per_s`` of the whole job; 0: cannot run, empty
or no row: not measured.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from hetenv.errors import InputError
from hetenv.files import replace_file
from hetenv.job_table import DTYPES, SPEED_PREFIX, Fault, find_faults, is_gpu_count, numbers, parse_columns
from hetenv.performance import MOST_MEASURED_GPUS, MeasuredTable
from hetenv.traces.table import Table
from hetenv.traces.trace_file import TraceFile, header_cells
from hetenv.traces.trace_format import RawJobs, ReadOptions, Tally, TraceFormat, settle_faults
from hetenv.workload import Workload

if TYPE_CHECKING:
    from hetenv.cluster import Cluster

PLACEMENTS = ("consolidated", "spread")
RATE_COLUMNS = ("model", "type", "gpus", "placement", "iterations_per_s")


def throughputs_path(path: Path) -> Path:
    """Where the measured throughputs of the workload at ``path`` lie."""
    return path.with_name(f"{path.stem}.throughputs.csv")


# --- writing ---------------------------------------------------------------------------------------


def write_workload(workload: Workload, path: Path | str) -> None:
    """Write ``workload`` to ``path``, and its measured table beside it; on failure nothing is changed.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    path = Path(path)
    header = [*DTYPES, *(SPEED_PREFIX + name for name in workload.types)]
    columns = [getattr(workload, name).tolist() for name in DTYPES] + workload.speed.T.tolist()
    with replace_file(path) as file:
        _write_rows(file, header, zip(*columns, strict=True))
        file.flush()  # a full disk shows before the table beside it changes
        if workload.measured is None:
            throughputs_path(path).unlink(missing_ok=True)  # that of an earlier workload of this name
        else:
            write_throughputs(workload.measured, throughputs_path(path))


def write_throughputs(table: MeasuredTable, path: Path | str) -> None:
    """Write a measured table, one row a model, type, number of GPUs and placement."""
    with replace_file(Path(path)) as file:
        _write_rows(
            file,
            RATE_COLUMNS,
            (
                (model, name, gpus, placement, "" if np.isnan(rate) else rate)
                for model, by_type in zip(table.models, table.rate.tolist(), strict=True)
                for name, by_gpus in zip(table.types, by_type, strict=True)
                for gpus, by_placement in enumerate(by_gpus)
                for placement, rate in zip(PLACEMENTS, by_placement, strict=True)
                if gpus > 0
            ),
        )


def _write_rows(file: IO[Any], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    bare = not any("\r" in name for name in header)  # which the writer would leave without quotes
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_MINIMAL if bare else csv.QUOTE_ALL).writerow(header)
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerows(rows)


# --- reading ---------------------------------------------------------------------------------------


def read_workload(path: Path | str, *, cluster: Cluster | None = None, lenient: bool = False) -> Workload:
    """Read a workload; see ``load_workload`` for the arguments and errors."""
    from hetenv.traces import load_workload

    return load_workload(path, FORMAT.name, cluster=cluster, lenient=lenient)


def read(source: TraceFile, options: ReadOptions) -> RawJobs:
    """The rows as they stand; measured throughputs are those of ``options``, else of the file beside it."""
    import pandas as pd

    tally = Tally()
    types: tuple[str, ...] = ()
    parts: list[dict[str, np.ndarray]] = []
    for table in source.tables(("arrival_s", "iterations")):
        types = _types(source, table)
        tally.rows += len(table)
        frame = pd.DataFrame(table.columns, dtype=object)
        columns = parse_columns(frame, types)
        for name in ("model", "outcome"):  # few words in many rows: one object each
            columns[name] = np.array([sys.intern(text) for text in columns[name]], object)
        if "job_id" not in table:
            columns["job_id"] = np.array([str(table.first_row + row) for row in range(len(table))], object)
        faults = table.faults + [  # show the text of the file, not the NaN that it was read as
            replace(fault, value=frame[fault.field].iat[fault.row]) if fault.field in frame else fault
            for fault in find_faults(columns, types)
        ]
        good = settle_faults(faults, table.lines, str(source.path), options.lenient, tally)
        parts.append({name: values[good] for name, values in columns.items()} | {"line": table.lines[good]})
    names = list(parts[0])
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in names}
    lines = columns.pop("line")
    again = pd.Series(columns["job_id"], dtype=object).duplicated().to_numpy()
    twice = [
        Fault(int(row), "job_id", columns["job_id"][row], "give every job an id of its own")
        for row in np.flatnonzero(again)
    ]
    beside = throughputs_path(source.path)
    rates = options.throughputs or (beside if beside.exists() else None)
    measured = read_throughputs(rates) if rates else None
    return RawJobs(types, columns, lines, twice, tally, measured=measured)


def _types(source: TraceFile, table: Table) -> tuple[str, ...]:
    """The GPU types that the header names.

    Raises:
        InputError: it names none, or a column that is not of the format.
    """
    where = f"{source.path}, line 1"
    types = tuple(name.removeprefix(SPEED_PREFIX) for name in table.columns if name.startswith(SPEED_PREFIX))
    if not types:
        remedy = "give samples/s of one GPU for each type, e.g. speed_v100"
        raise InputError(where, "no speed_<type> column", remedy)
    if unknown := [name for name in table.columns if name not in DTYPES and not name.startswith(SPEED_PREFIX)]:
        raise InputError(
            where, f"unknown column {' '.join(unknown[0].split())}", f"use {', '.join(DTYPES)} or speed_<type>"
        )
    return types


def read_throughputs(path: Path | str) -> MeasuredTable:
    """Read a measured table.

    Raises:
        InputError: the first row with a wrong field, or one that comes twice.
    """
    source = TraceFile.read(path)
    table = source.table(RATE_COLUMNS)
    model, name, gpus_text, placement, rate_text = (table.columns[column] for column in RATE_COLUMNS)
    gpus = numbers(gpus_text)
    iterations_per_s = numbers(rate_text)
    unmeasured = np.array([text == "" for text in rate_text])
    for fault in table.faults:
        raise fault.error(f"{source.path}, line {table.lines[fault.row]}")
    for column, good, remedy in (
        (
            "gpus",
            is_gpu_count(gpus) & (gpus <= MOST_MEASURED_GPUS),
            f"give a whole number of 1 to {MOST_MEASURED_GPUS}",
        ),
        ("placement", np.isin(placement, PLACEMENTS), f"use {' or '.join(PLACEMENTS)}"),
        ("iterations_per_s", unmeasured | ((iterations_per_s >= 0) & np.isfinite(iterations_per_s)), "give 0 or more"),
    ):
        if not good.all():
            row = int(np.argmin(good))
            raise InputError(
                f"{source.path}, line {table.lines[row]}, {column}", repr(table.columns[column][row]), remedy
            )
    models, types = tuple(dict.fromkeys(model)), tuple(dict.fromkeys(name))
    rate = np.full((len(models), len(types), int(gpus.max()) + 1, len(PLACEMENTS)), np.nan)
    rate[:, :, 0] = 0.0
    cell = (
        _positions(model, models),
        _positions(name, types),
        gpus.astype(int),
        _positions(placement, PLACEMENTS),
    )
    flat = np.ravel_multi_index(cell, rate.shape)
    _, first = np.unique(flat, return_index=True)
    if len(first) < len(flat):
        row = int(np.setdiff1d(np.arange(len(flat)), first)[0])
        raise InputError(
            f"{source.path}, line {table.lines[row]}", f"a second figure for {model[row]!r}", "keep one of them"
        )
    rate[cell] = iterations_per_s
    return MeasuredTable(models, types, rate)


def _positions(values: Sequence[str], of: Sequence[str]) -> np.ndarray:
    """(rows,) index of each of ``values`` in ``of``."""
    position = {value: index for index, value in enumerate(of)}
    return np.array([position[value] for value in values])


def _recognises(head: str) -> bool:
    cells = header_cells(head)
    return "arrival_s" in cells or any(cell.startswith(SPEED_PREFIX) for cell in cells)


FORMAT = TraceFormat("hetenv", "the project's own CSV", _recognises, read, frozenset({"throughputs"}))

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
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from hetenv.errors import InputError
from hetenv.job_table import DTYPES, SPEED_PREFIX, numbers
from hetenv.performance import MeasuredTable
from hetenv.traces.trace_file import TraceFile, TraceFormat
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
    with _replacing(path) as file:
        _write_rows(file, header, zip(*columns, strict=True))
        file.flush()  # a full disk shows before the table beside it changes
        if workload.measured is None:
            throughputs_path(path).unlink(missing_ok=True)  # that of an earlier workload of this name
        else:
            write_throughputs(workload.measured, throughputs_path(path))


def write_throughputs(table: MeasuredTable, path: Path | str) -> None:
    """Write a measured table, one row a model, type, number of GPUs and placement."""
    with _replacing(Path(path)) as file:
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


def _write_rows(file: TextIO, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    csv.writer(file, lineterminator="\n").writerow(header)
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerows(rows)


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    """A file that takes the place of ``path`` once it is complete."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            yield file
        draft.replace(path)
    except OSError as error:
        raise InputError(
            str(path), f"cannot be written ({error.strerror})", "name a file in a folder you may write"
        ) from None
    finally:
        draft.unlink(missing_ok=True)


# --- reading ---------------------------------------------------------------------------------------


def read_workload(
    source: TraceFile | Path | str,
    *,
    throughputs: Path | str | None = None,
    cluster: Cluster | None = None,
    lenient: bool = False,
) -> Workload:
    """Read a workload; see ``load_workload`` for the arguments and errors."""
    import pandas as pd

    if not isinstance(source, TraceFile):
        source = TraceFile.read(source)
    table = source.table(("arrival_s", "iterations"))
    beside = throughputs_path(source.path)
    rates = throughputs or (beside if beside.exists() else None)
    return Workload.from_frame(
        pd.DataFrame(table.columns, index=table.lines, dtype=object),
        where=str(source.path),
        first_line=0,
        faults=table.ragged,
        lenient=lenient,
        measured=read_throughputs(rates) if rates else None,
        cluster=cluster,
    )


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
    for fault in table.ragged:
        raise fault.error(f"{source.path}, line {table.lines[fault.row]}")
    for column, good, remedy in (
        ("gpus", (gpus >= 1) & (gpus == np.floor(gpus)) & (gpus <= 1e6), "give a whole number of at least 1"),
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


def _recognises(first_line: str) -> bool:
    cells = {cell.strip('"') for cell in first_line.split(",")}
    return "arrival_s" in cells or any(cell.startswith(SPEED_PREFIX) for cell in cells)


FORMAT = TraceFormat("hetenv", _recognises, read_workload, frozenset({"throughputs"}))

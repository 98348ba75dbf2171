"""The catalogue: measured throughputs of models on GPU types, and what is known of both.

Its files lie in ``configs/catalogue``: ``models.csv``, ``gpus.csv``, one ``throughputs-<source>.csv`` a source and,
where jobs were measured two at a time, ``colocation-<source>.csv``, each with its origin in the comment lines on top.
"The faster GPU" depends on the model, so nothing here ranks the types.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from hetenv.errors import InputError
from hetenv.performance import MeasuredTable
from hetenv.shipped import config_dir

PREFIX, SHARED_PREFIX = "throughputs-", "colocation-"
GPU_COUNTS = (1, 2, 4, 8)
CONSOLIDATED = tuple(f"on_{gpus}" for gpus in GPU_COUNTS)  # columns of a throughput file
SPREAD = ("", *(f"spread_{gpus}" for gpus in GPU_COUNTS[1:]))  # one GPU is never spread

T = TypeVar("T")
Pair = tuple[str, str, str, int]  # two rows of a throughput table, the GPU type, how many GPUs they share


@dataclass(frozen=True)
class ModelFigures:
    """What is known of a model; None where no source says.

    Args:
        name: as in the throughput files.
        task: what it does, and on which data.
        grad_bytes: gradient bytes reduced in an iteration.
        batch_range: least and most samples of an iteration.
        source: where the figures come from.
    """

    name: str
    task: str
    grad_bytes: float | None
    batch_range: tuple[int, int] | None
    source: str


@dataclass(frozen=True)
class GPUFigures:
    """A GPU's memory (bytes) and board power (W)."""

    name: str
    memory_bytes: float
    power_w: float


@dataclass(frozen=True, eq=False)
class Throughputs:
    """The measurements of one source.

    Args:
        table: rates of R rows; a row is a model at one batch, named "LM (batch size 80)", or "A3C" where the
            source names no batch.
        model: (R,) names in ``Catalogue.models``.
        batch: (R,) samples of an iteration; 1 where the source names none.
    """

    table: MeasuredTable
    model: tuple[str, ...]
    batch: np.ndarray

    def one_gpu_speed(self, types: Sequence[str]) -> np.ndarray:
        """(R, M) samples/s of one GPU of each of ``types``; 0 where the model cannot run or was not measured."""
        return self.table.for_types(types)[:, :, 1, 0] * self.batch[:, None]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """All figures, by name; ``throughputs`` by source: gavel, pollux, elasticflow, generations.

    ``colocation`` by source: gavel. There ``[one, other, gpu, n_gpus]`` is the pair of iterations/s of two jobs on the
    same GPUs of a node, both orders alike; pairs that cannot share are absent.
    """

    models: Mapping[str, ModelFigures]
    gpus: Mapping[str, GPUFigures]
    throughputs: Mapping[str, Throughputs]
    colocation: Mapping[str, Mapping[Pair, tuple[float, float]]]


@lru_cache(maxsize=4)
def load_catalogue(folder: Path | None = None) -> Catalogue:
    """The catalogue in ``folder``; None: the one that ships. It is read once a process.

    Raises:
        InputError: the file, line and field of the first fault.
    """
    folder = folder or config_dir() / "catalogue"
    gpus = _by_name(_rows(folder / "gpus.csv", ("gpu", "memory_bytes", "power_w")), "gpu", _gpu)
    columns = ("model", "task", "grad_bytes", "batch_min", "batch_max", "source")
    models = _by_name(_rows(folder / "models.csv", columns), "model", _model)
    throughputs = {
        path.stem.removeprefix(PREFIX): _throughputs(path, models, gpus)
        for path in sorted(folder.glob(f"{PREFIX}*.csv"))
    }
    colocation = {
        path.stem.removeprefix(SHARED_PREFIX): _colocation(path, models, gpus)
        for path in sorted(folder.glob(f"{SHARED_PREFIX}*.csv"))
    }
    return Catalogue(models, gpus, throughputs, colocation)


@dataclass(frozen=True)
class _Row:
    """One line of a catalogue file."""

    where: str
    cells: Mapping[str, str]

    def text(self, field: str) -> str:
        if not self.cells[field]:
            raise self.error(field, "give a name")
        return self.cells[field]

    def one_of(self, field: str, known: Mapping[str, object], remedy: str) -> str:
        if self.cells[field] not in known:
            raise self.error(field, remedy)
        return self.cells[field]

    def number(self, field: str, least: float = 0.0, whole: bool = False) -> float | None:
        """A finite number of ``least`` or more; None for an empty cell."""
        if not self.cells[field]:
            return None
        try:
            value = float(self.cells[field])
        except ValueError:
            value = np.nan
        if not (np.isfinite(value) and value >= least and (not whole or value == int(value))):
            kind = "whole number" if whole else "number"
            raise self.error(field, f"give a {kind} of {least:g} or more, or nothing where it is not known")
        return value

    def required(self, field: str) -> float:
        if (value := self.number(field)) is None:
            raise self.error(field, "give a number")
        return value

    def error(self, field: str, remedy: str) -> InputError:
        return InputError(f"{self.where}, {field}", repr(self.cells[field]), remedy)


def _rows(path: Path, columns: Sequence[str]) -> Iterator[_Row]:
    """The rows of a file with exactly ``columns``; lines that begin with # are comments."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise InputError(str(path), reason, "give a readable CSV file") from None
    table = (
        (f"{path}, line {number}", next(csv.reader([line])))
        for number, line in enumerate(lines, start=1)
        if line and not line.startswith("#")
    )
    where, header = next(table, (str(path), []))
    if tuple(header) != tuple(columns):
        raise InputError(f"{where}, columns", ",".join(header), f"give {','.join(columns)}")
    for where, cells in table:
        if len(cells) != len(columns):
            remedy = f"give {len(columns)}, separated by commas"
            raise InputError(f"{where}, number of fields", len(cells), remedy)
        yield _Row(where, dict(zip(columns, cells, strict=True)))


def _by_name(rows: Iterator[_Row], field: str, parse: Callable[[_Row], T]) -> dict[str, T]:
    found: dict[str, T] = {}
    for row in rows:
        name = row.text(field)
        if name in found:
            raise row.error(field, "give each name once")
        found[name] = parse(row)
    return found


def _gpu(row: _Row) -> GPUFigures:
    return GPUFigures(row.text("gpu"), row.required("memory_bytes"), row.required("power_w"))


def _model(row: _Row) -> ModelFigures:
    least, most = (row.number(field, 1, whole=True) for field in ("batch_min", "batch_max"))
    if (least is None) != (most is None):
        raise row.error("batch_max", "give both ends of the batches, or none")
    batch_range = None if least is None or most is None else (int(least), int(most))
    if batch_range and batch_range[0] > batch_range[1]:
        raise row.error("batch_max", f"give at least batch_min = {batch_range[0]}")
    return ModelFigures(row.text("model"), row.text("task"), row.number("grad_bytes"), batch_range, row.text("source"))


def _throughputs(path: Path, models: Mapping[str, object], gpus: Mapping[str, object]) -> Throughputs:
    of_row: dict[str, tuple[str, float]] = {}  # name of the row in the table -> model, batch
    figures: dict[tuple[str, str], list[list[float]]] = {}  # (row, type) -> (GPU counts, 2) iterations/s
    columns = ("model", "batch", "gpu", *CONSOLIDATED, *SPREAD[1:])
    for row in _rows(path, columns):
        model, batch, name = _variant(row, models)
        gpu = row.one_of("gpu", gpus, "name a GPU of gpus.csv")
        if (name, gpu) in figures:
            raise row.error("gpu", f"give {name} on {gpu} once")
        of_row[name] = model, batch
        figures[name, gpu] = [
            [_rate(row, packed), _rate(row, spread)] for packed, spread in zip(CONSOLIDATED, SPREAD, strict=True)
        ]
    names, types = tuple(of_row), tuple(dict.fromkeys(gpu for _, gpu in figures))
    rate = np.full((len(names), len(types), 1 + max(GPU_COUNTS), 2), np.nan)
    rate[:, :, 0] = 0.0
    for (name, gpu), figure in figures.items():
        rate[names.index(name), types.index(gpu), list(GPU_COUNTS)] = figure
    return Throughputs(
        MeasuredTable(names, types, rate),
        tuple(model for model, _ in of_row.values()),
        np.array([batch for _, batch in of_row.values()]),
    )


def _colocation(
    path: Path, models: Mapping[str, object], gpus: Mapping[str, object]
) -> dict[Pair, tuple[float, float]]:
    rates: dict[Pair, tuple[float, float]] = {}
    columns = ("model", "batch", "other", "other_batch", "gpu", "n_gpus", "rate", "other_rate")
    for row in _rows(path, columns):
        one, other = (_variant(row, models, *fields)[2] for fields in (("model", "batch"), ("other", "other_batch")))
        gpu, n_gpus = row.one_of("gpu", gpus, "name a GPU of gpus.csv"), row.number("n_gpus", 1, whole=True)
        if n_gpus is None:
            raise row.error("n_gpus", "give a number")
        if (one, other, gpu, int(n_gpus)) in rates:
            raise row.error("other", f"give {one} with {other} on {int(n_gpus)} {gpu} once")
        rate, other_rate = row.required("rate"), row.required("other_rate")
        rates[one, other, gpu, int(n_gpus)] = rate, other_rate
        rates[other, one, gpu, int(n_gpus)] = other_rate, rate
    return rates


def _variant(
    row: _Row, models: Mapping[str, object], model_field: str = "model", batch_field: str = "batch"
) -> tuple[str, float, str]:
    """A model, the samples of an iteration (1 where the source names none), and how tables name the two."""
    model = row.one_of(model_field, models, "name a model of models.csv")
    batch = row.number(batch_field, 1, whole=True)
    return model, batch or 1.0, model if batch is None else f"{model} (batch size {int(batch)})"


def _rate(row: _Row, field: str) -> float:
    rate = row.number(field) if field else None
    return np.nan if rate is None else rate

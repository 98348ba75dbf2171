"""The schema of a job table: its columns, what each may hold, and how a raw table is read against it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hetenv.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

OUTCOMES = ("completed", "failed", "killed")
SPEED_PREFIX = "speed_"

DTYPES: dict[str, Any] = {
    "job_id": object,
    "arrival_s": np.float64,
    "model": object,
    "iterations": np.float64,
    "batch": np.float64,
    "grad_bytes": np.float64,
    "min_gpus": np.int32,
    "max_gpus": np.int32,
    "malleable": np.bool_,
    "restart_s": np.float64,
    "outcome": object,
}
DEFAULTS: dict[str, Any] = {
    "model": "",
    "batch": 1.0,
    "grad_bytes": 0.0,
    "min_gpus": 1,
    "malleable": False,
    "restart_s": 0.0,
    "outcome": "completed",
}


@lru_cache(maxsize=64)
def numbered_ids(n_jobs: int) -> np.ndarray:
    """(J,) job ids "0", "1", ..., read-only."""
    return _read_only(np.array([str(job) for job in range(n_jobs)], object))


@lru_cache(maxsize=256)
def _repeated(values: tuple[tuple[str, Any], ...], n_jobs: int) -> dict[str, np.ndarray]:
    """Columns (J,) of one value each, read-only: most of drawn jobs are such, and drawing happens at every reset."""
    return {name: _read_only(np.full(n_jobs, value, DTYPES[name])) for name, value in values}


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def complete_columns(
    n_types: int, speed: np.ndarray, arrival_s: np.ndarray, columns: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Every column of the job table in its dtype; scalars are repeated, what is left out takes its default.

    Columns that were given as arrays are copied; the others are read-only.
    """
    n_jobs = len(arrival_s)
    values = {**DEFAULTS, **columns, "arrival_s": arrival_s}
    values.setdefault("max_gpus", values["min_gpus"])
    table, single = {"job_id": numbered_ids(n_jobs)}, []
    for name, value in values.items():
        if isinstance(value, (bool, int, float, str)):
            single.append((name, value))
        elif isinstance(value, np.ndarray) and value.shape == (n_jobs,):
            table[name] = value.astype(DTYPES[name])
        else:
            table[name] = np.full(n_jobs, value, DTYPES[name])
    table["speed"] = np.array(speed, float).reshape(n_jobs, n_types)
    return table | _repeated(tuple(single), n_jobs)


@dataclass(frozen=True)
class Fault:
    """One field of one row that breaks the schema."""

    row: int
    field: str
    value: object
    remedy: str

    def error(self, where: str) -> InputError:
        value = self.value.item() if isinstance(self.value, np.generic) else self.value
        return InputError(f"{where}, {self.field}", repr(value) if isinstance(value, str) else value, self.remedy)


def _at_least(
    least: float, *, whole: bool = False, most: float = np.inf, open_end: bool = False
) -> Callable[[np.ndarray], np.ndarray]:
    def ok(values: np.ndarray) -> np.ndarray:
        good = np.isfinite(values) & (values <= most) & ((values > least) if open_end else (values >= least))
        return good & (values == np.floor(values)) if whole else good

    return ok


is_gpu_count = _at_least(1, whole=True, most=2**31 - 1)  # counted in int32
GPU_COUNT_REMEDY = "give a whole number of GPUs of at least 1"

ZERO_BYTE_REMEDY = "give text without zero bytes"  # which CSV files cannot hold


def _no_zero_byte(values: np.ndarray) -> np.ndarray:
    return np.array(["\0" not in str(value) for value in values])


_RULES: tuple[tuple[str, Callable[[np.ndarray], np.ndarray], str], ...] = (
    ("arrival_s", _at_least(0), "give seconds since the start, 0 or more"),
    ("iterations", _at_least(0, open_end=True), "give a positive amount of work"),
    ("batch", _at_least(1, whole=True), "give a whole number of samples of at least 1"),
    ("grad_bytes", _at_least(0), "give bytes, 0 or more"),
    ("min_gpus", is_gpu_count, GPU_COUNT_REMEDY),
    ("max_gpus", is_gpu_count, GPU_COUNT_REMEDY),
    ("restart_s", _at_least(0), "give seconds, 0 or more"),
    ("outcome", lambda values: np.isin(values.astype(str), OUTCOMES), f"use one of {', '.join(OUTCOMES)}"),
    ("malleable", lambda values: np.isin(values.astype(float), (0.0, 1.0)), "use true or false"),
    ("job_id", lambda values: np.array([value not in ("", None) for value in values]), "give every job a name"),
    ("job_id", _no_zero_byte, ZERO_BYTE_REMEDY),
    ("model", _no_zero_byte, ZERO_BYTE_REMEDY),
)


def find_faults(table: Mapping[str, np.ndarray], types: Sequence[str]) -> list[Fault]:
    """Every breach of the schema in ``table``, by row."""
    faults = [
        Fault(int(row), field, table[field][row], remedy)
        for field, ok, remedy in _RULES
        for row in np.flatnonzero(~ok(table[field]))
    ]
    for row in np.flatnonzero(table["max_gpus"] < table["min_gpus"]):
        remedy = f"give at least min_gpus = {table['min_gpus'][row]:g}"
        faults.append(Fault(int(row), "max_gpus", table["max_gpus"][row], remedy))
    speed = table["speed"]
    bad_speed = ~(np.isfinite(speed) & (speed >= 0))
    for row, m in np.argwhere(bad_speed):
        faults.append(
            Fault(int(row), SPEED_PREFIX + types[m], speed[row, m], "give samples/s, 0 where the job cannot run")
        )
    for row in np.flatnonzero(~bad_speed.any(axis=1) & (speed <= 0).all(axis=1)):
        faults.append(Fault(int(row), "speed", 0, "give a positive speed on one type or more"))
    seen = set()
    for index, job_id in enumerate(table["job_id"]):
        if job_id in seen:
            faults.append(Fault(index, "job_id", job_id, "give every job an id of its own"))
        seen.add(job_id)
    return sorted(faults, key=lambda fault: fault.row)


def report_dropped(where: str, reasons: Sequence[str]) -> None:
    """One warning that says how many rows a lenient load dropped, and why: one reason a row."""
    counted = "; ".join(f"{count} x {reason}" for reason, count in Counter(reasons).most_common())
    warnings.warn(f"{where}: dropped {len(reasons)} {'row' if len(reasons) == 1 else 'rows'} ({counted})", stacklevel=3)


def numbers(values: Iterable[Any]) -> np.ndarray:
    """Float64 of each text or number, exact to the bit; NaN for what is no number."""

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return float("nan")

    return np.array([number(value) for value in values], float)


def _texts(values: Iterable[Any]) -> np.ndarray:
    """Object array of strings; missing values become empty."""
    return np.array(["" if value is None or value != value else str(value) for value in values], object)


def parse_columns(frame: pd.DataFrame, types: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of a raw frame as arrays; what is no number becomes NaN and so a fault."""
    n_jobs = len(frame)
    table: dict[str, np.ndarray] = {}
    for name, dtype in DTYPES.items():
        if name == "job_id" and name not in frame:
            table[name] = numbered_ids(n_jobs)
        elif name == "max_gpus" and name not in frame:
            table[name] = table["min_gpus"]
        elif name not in frame:
            table[name] = np.full(n_jobs, DEFAULTS[name], object if dtype is object else float)
        elif dtype is object:
            table[name] = _texts(frame[name])
        elif dtype is np.bool_:
            spelled = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
            table[name] = np.array([spelled.get(text.lower(), np.nan) for text in _texts(frame[name])])
        else:
            table[name] = numbers(frame[name])
    table["speed"] = np.stack([numbers(frame[SPEED_PREFIX + name]) for name in types], axis=1)
    return table

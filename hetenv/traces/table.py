"""Rows of a trace as texts by column, and their reading as numbers, times and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone, tzinfo
from typing import Any

import numpy as np

from hetenv.job_table import ZERO_BYTE_REMEDY, Fault

MISSING = frozenset({"", "none", "nan", "null", "na", "n/a", "nat", "unknown"})
EPOCH = datetime(1970, 1, 1)
TIME_REMEDY = "give a time such as 2017-10-09 07:01:55"
LARGEST = 1e18  # of what a trace counts in any unit; beyond it sums and products could overflow


def is_missing(value: object) -> bool:
    """Whether a cell says that nothing is known: empty, None, NaN, null, unknown."""
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING)


def seconds_of(value: str, zone: tzinfo) -> float:
    """Seconds since 1970-01-01 00:00 UTC of an ISO time; one without a zone is a time of ``zone``.

    Raises:
        ValueError: no such time.
    """
    moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
    if moment.tzinfo is None and zone is not timezone.utc:
        moment = moment.replace(tzinfo=zone)
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    return (moment - EPOCH).total_seconds()


def _text(cell: object) -> str:
    return "" if is_missing(cell) else str(cell).strip()


@dataclass
class Table:
    """Some rows of a trace.

    Args:
        columns: name -> one cell a row.
        lines: (rows,) the last line of each row.
        faults: rows that cannot be read; every reading below adds those it finds. Missing values are
            no faults: they become NaN, or an empty text.
        first_row: number of the first of these rows in the whole file, from 0.
        unit: what ``lines`` counts.
    """

    columns: Mapping[str, Sequence[Any]]
    lines: np.ndarray
    faults: list[Fault] = field(default_factory=list)
    first_row: int = 0
    unit: str = "line"

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Sequence[tuple[int, list[str]]], first_row: int = 0) -> Table:
        """A table of ``(line, cells)``; rows of another width are faults."""
        width = len(names)
        faults = []
        for row, (_, cells) in enumerate(rows):
            if len(cells) != width:
                faults.append(Fault(row, "number of fields", len(cells), f"give {width}, as in the header"))
                cells[:] = (cells + [""] * width)[:width]  # so that every column has one cell a row
        columns = dict(zip(names, zip(*(cells for _, cells in rows), strict=True), strict=True))
        return cls(columns, np.array([line for line, _ in rows]), faults, first_row)

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def fault(self, rows: np.ndarray, name: str, remedy: str) -> None:
        """Add the same fault of column ``name`` for each of ``rows`` (indices or a mask)."""
        numbers = np.flatnonzero(rows) if rows.dtype == bool else rows
        self.faults += [Fault(row, name, self.columns[name][row], remedy) for row in numbers.tolist()]

    def texts(self, name: str) -> np.ndarray:
        """(rows,) object array of texts, equal ones shared; missing ones, and those of no column, are empty."""
        shared: dict[Any, str] = {}
        cells = self.columns.get(name, ("",) * len(self))
        values = [shared.setdefault(text, text) for text in map(_text, cells)]
        if any("\0" in text for text in shared):  # which the job table cannot hold
            self.fault(np.array(["\0" in text for text in values], bool), name, ZERO_BYTE_REMEDY)
        return np.array(values, object)

    def numbers(self, name: str, remedy: str = "give a number, or leave it empty") -> np.ndarray:
        """(rows,) float64, none beyond ``LARGEST``; NaN where missing or where there is no such column."""
        return self._read(name, float, remedy)

    def times(self, name: str, zone: tzinfo, remedy: str = TIME_REMEDY) -> np.ndarray:
        """(rows,) seconds since 1970; NaN where missing or where there is no such column."""
        return self._read(name, lambda cell: seconds_of(cell, zone), remedy)

    def words(self, name: str, meaning: Mapping[str, str], missing: str) -> np.ndarray:
        """(rows,) object array: what the first word of each cell means; ``missing`` where nothing is known.

        ``meaning`` is told in lower case. Only the first word counts, as Slurm writes "CANCELLED by 1017".
        """
        cells = [cell.lower().partition(" ")[0] for cell in self.texts(name)]
        known = ", ".join(meaning)
        self.fault(np.array([bool(cell) and cell not in meaning for cell in cells], bool), name, f"use one of {known}")
        return np.array([meaning.get(cell, missing) for cell in cells], object)

    def _read(self, name: str, parse: Callable[[Any], float], remedy: str) -> np.ndarray:
        if name not in self.columns:
            return np.full(len(self), np.nan)

        def value(cell: Any) -> float:
            try:
                return parse(cell)
            except (ValueError, TypeError, OverflowError, AttributeError):
                return np.nan if is_missing(cell) else np.inf  # infinity is as unreadable

        values = np.array([value(cell) for cell in self.columns[name]], float)
        unreadable = np.abs(values) > LARGEST
        values[unreadable] = np.nan
        self.fault(unreadable, name, remedy)
        return values

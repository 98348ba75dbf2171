"""A trace file as text and as a table of texts, and what a trace format consists of."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hetenv.errors import InputError
from hetenv.job_table import Fault
from hetenv.workload import Workload

LFS_POINTER = "version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class TraceFile:
    """The text of a file that could be read; line ends as in the file."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path | str) -> TraceFile:
        """Read a text file.

        Raises:
            InputError: no file, a folder, no permission, an empty file, a Git LFS pointer, or no UTF-8 text.
        """
        path = Path(path)
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            raise InputError(str(path), "no such file", "check the path") from None
        except IsADirectoryError:
            raise InputError(str(path), "is a folder", "name a file inside it") from None
        except OSError as error:
            raise InputError(str(path), error.strerror, "make the file readable") from None
        except UnicodeDecodeError as error:
            raise InputError(
                str(path), f"no text: byte {error.start} is not UTF-8", "unpack or convert the file"
            ) from None
        source = cls(path, text)
        if not text.strip():
            raise InputError(str(path), "empty file", "give a file with jobs")
        if text.startswith(LFS_POINTER):
            remedy = "fetch the data itself with 'git lfs pull' or from the publisher"
            raise InputError(str(path), "a Git LFS pointer instead of the data", remedy)
        if "\0" in source.first_line:
            raise InputError(str(path), "no text: zero bytes in the first line", "unpack or convert the file")
        return source

    @property
    def first_line(self) -> str:
        """The first line with content."""
        return self.text.lstrip().split("\n", 1)[0].rstrip()

    def table(self, required: Sequence[str]) -> Table:
        """The rows of a CSV file with a header line; blank lines are skipped, quoted fields may span lines.

        Raises:
            InputError: a required column is missing, a column comes twice, there are no rows, or the
                quoting is broken.
        """
        reader = csv.reader(io.StringIO(self.text, newline=""), strict=True)
        try:
            header = next(cells for cells in reader if cells)
            rows = [(reader.line_num, cells) for cells in reader if cells]
        except csv.Error as error:
            raise InputError(f"{self.path}, line {reader.line_num}", str(error), "check the quotes") from None
        for name in required:
            if name not in header:
                raise InputError(f"{self.path}, line 1", f"column {name} is missing", f"give {', '.join(required)}")
        if twice := [name for name in header if header.count(name) > 1]:
            raise InputError(f"{self.path}, line 1", f"column {twice[0]} comes twice", "name each column once")
        if not rows:
            raise InputError(str(self.path), "a header without rows", "give at least one row")
        ragged = [
            Fault(row, "number of fields", len(cells), f"give {len(header)}, as in the header")
            for row, (_, cells) in enumerate(rows)
            if len(cells) != len(header)
        ]
        for fault in ragged:  # so that every column has one cell a row
            cells = rows[fault.row][1]
            cells[:] = (cells + [""] * len(header))[: len(header)]
        columns = zip(*(cells for _, cells in rows), strict=True)
        return Table(dict(zip(header, columns, strict=True)), np.array([line for line, _ in rows]), ragged)


@dataclass(frozen=True)
class Table:
    """Texts by column; ``lines`` (rows,) is the last line of each row; ``ragged`` names rows of another width."""

    columns: dict[str, tuple[str, ...]]
    lines: np.ndarray
    ragged: list[Fault]


@dataclass(frozen=True)
class TraceFormat:
    """One trace format.

    Args:
        name: how users call it.
        recognises: whether the first line of a file looks like it.
        load: ``load(source, *, cluster, lenient, **options) -> Workload``.
        options: the arguments of ``load_workload`` that it takes beside the cluster.
    """

    name: str
    recognises: Callable[[str], bool]
    load: Callable[..., Workload]
    options: frozenset[str] = frozenset()

"""A trace file: opened with plain errors, then read as one text, or in bounded memory as tables of rows."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO

from hetenv.errors import InputError
from hetenv.traces.table import Table

LFS_POINTER = "version https://git-lfs.github.com/spec/"
BOM = b"\xef\xbb\xbf"  # byte order mark
HEAD_BYTES = 1 << 16
CHUNK_ROWS = 50_000
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """The progress callback of a caller that wants none."""


@dataclass(frozen=True)
class TraceFile:
    """A file with text in it; ``head`` is its first 64 KiB, ``progress(done, total)`` hears of bytes read."""

    path: Path
    head: str
    progress: Progress = no_progress

    @classmethod
    def read(cls, path: Path | str, progress: Progress = no_progress) -> TraceFile:
        """Open a text file and look at its head.

        Raises:
            InputError: no file, a folder, no permission, an empty file, a Git LFS pointer, or no UTF-8 text.
        """
        path = Path(path)
        with _plain_errors(path), path.open("rb") as file:
            start = file.read(HEAD_BYTES)
        if len(start) == HEAD_BYTES:
            start = start[: start.rfind(b"\n") + 1] or start  # no half line, nor half a character at its end
        head = _decode(start, path)
        if not head.strip():
            raise InputError(str(path), "empty file", "give a file with jobs")
        if head.startswith(LFS_POINTER):
            remedy = "fetch the data itself with 'git lfs pull' or from the publisher"
            raise InputError(str(path), "a Git LFS pointer instead of the data", remedy)
        if "\0" in first_line(head):
            raise InputError(str(path), "no text: zero bytes in the first line", "unpack or convert the file")
        return cls(path, head, progress)

    @cached_property
    def text(self) -> str:
        """The whole text; line ends as in the file."""
        with _plain_errors(self.path):
            return _decode(self.path.read_bytes(), self.path)

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """The bytes of the file, read piece by piece; ``progress`` hears of each."""
        with _plain_errors(self.path), self.path.open("rb") as file:
            if file.read(len(BOM)) != BOM:
                file.seek(0)
            yield io.BufferedReader(_Counted(file, os.fstat(file.fileno()).st_size, self.progress), 1 << 20)

    def lines(self) -> Iterator[str]:
        """The lines with their ends, one at a time."""
        with self.stream() as file:
            number = 0
            try:
                for line in file:
                    number += 1
                    yield line.decode()
            except UnicodeDecodeError:
                where = f"{self.path}, line {number}"
                raise InputError(where, "no text: not UTF-8", "unpack or convert the file") from None

    def table(self, required: Sequence[str]) -> Table:
        """All rows at once; see ``tables``."""
        return next(self.tables(required, chunk_rows=None))

    def tables(
        self,
        required: Sequence[str],
        *,
        header: Sequence[str] | None = None,
        chunk_rows: int | None = CHUNK_ROWS,
    ) -> Iterator[Table]:
        """The rows of a CSV file, some thousands at a time; blank lines are skipped, quoted fields may span lines.

        Args:
            required: columns that must be there.
            header: names of the columns of a file without header line; None: its first line names them.
            chunk_rows: rows of a table; None: all of them in one.

        Raises:
            InputError: a required column is missing, a column comes twice, there are no rows, or the
                quoting is broken.
        """
        reader = csv.reader(self.lines(), strict=True)
        rows = ((reader.line_num, cells) for cells in reader if cells and (len(cells) > 1 or cells[0].strip()))
        try:
            names = next(rows, (0, []))[1] if header is None else list(header)
            self._check_header(names, required)
            first_row = 0
            while chunk := list(islice(rows, chunk_rows)):
                yield Table.of_rows(names, chunk, first_row)
                first_row += len(chunk)
        except csv.Error as error:
            raise InputError(f"{self.path}, line {reader.line_num}", str(error), "check the quotes") from None
        if first_row == 0:
            raise InputError(str(self.path), "a header without rows", "give at least one row")

    def _check_header(self, names: Sequence[str], required: Sequence[str]) -> None:
        for name in required:
            if name not in names:
                raise InputError(f"{self.path}, line 1", f"column {name} is missing", f"give {', '.join(required)}")
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(
                f"{self.path}, line 1", f"column {' '.join(twice[0].split())} comes twice", "name each column once"
            )


class _Counted(io.RawIOBase):
    """A raw file that tells how much of it has been read."""

    def __init__(self, file: IO[bytes], size: int, progress: Progress) -> None:
        self._file, self._size, self._progress, self._done = file, size, progress, file.tell()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._done += len(data)
        self._progress(self._done, self._size)
        return len(data)


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"no text: byte {error.start} is not UTF-8", "unpack or convert the file") from None


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(str(path), "no such file", "check the path") from None
    except IsADirectoryError:
        raise InputError(str(path), "is a folder", "name a file inside it") from None
    except OSError as error:
        raise InputError(str(path), error.strerror, "make the file readable") from None


def first_line(head: str) -> str:
    """The first line with content."""
    return head.lstrip().split("\n", 1)[0].rstrip()


def header_cells(head: str) -> set[str]:
    """The column names of a CSV file, from its first line."""
    return {cell.strip().strip('"') for cell in first_line(head).split(",")}

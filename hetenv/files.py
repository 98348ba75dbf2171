"""Files that hold their old content or their new one at every moment, whatever happens while they are written.

New content goes to a draft beside the file, reaches the disk, and takes the file's name. A full disk or a
killed process leaves the old file as it was; only the kill leaves the draft behind, under a name of its own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hetenv.errors import InputError

_REMEDY = "make room, or name a place you may write"


@contextmanager
def replace_file(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """An open file that takes the place of ``path`` when the body ends without an exception.

    Args:
        mode: "w" for UTF-8 text, whose line ends are left as they are, or "wb" for bytes.

    Raises:
        InputError: the file cannot be written: no such folder, no permission, a full disk.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        try:
            with draft.open(mode, **text) as file:  # type: ignore[call-overload]
                yield file
                file.flush()
                os.fsync(file.fileno())  # or a power cut after the renaming could leave an empty file
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None


@contextmanager
def replace_entries(folder: Path) -> Iterator[Path]:
    """An empty folder whose files and folders take their places in ``folder`` when the body ends well.

    Raises:
        InputError: ``folder`` cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder) as name:
            draft, replaced = Path(name, "new"), Path(name, "old")
            draft.mkdir()
            replaced.mkdir()
            yield draft
            for path in sorted(draft.iterdir()):
                target = folder / path.name
                if target.is_dir():  # which, unlike a file, no rename replaces
                    target.rename(replaced / path.name)
                path.replace(target)
    except OSError as error:
        raise cannot_write(folder, error) from None


def remove_drafts(folder: Path) -> None:
    """Remove what killed processes left in ``folder``; nobody may be writing there."""
    for draft in folder.glob(".*.part"):
        draft.unlink(missing_ok=True)


def cannot_write(path: Path, error: OSError) -> InputError:
    """The error to raise when writing ``path`` failed by ``error``."""
    return InputError(str(path), f"cannot be written ({error.strerror or error})", _REMEDY)

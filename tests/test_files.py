"""Files are replaced whole or not at all."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hetenv.errors import InputError
from hetenv.files import remove_drafts, replace_entries, replace_file

ROOT = Path(__file__).parents[1]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "file.txt"
    path.write_text("old")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def full_disk(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_text_and_bytes_take_the_place_of_the_old_file(old: Path) -> None:
    with replace_file(old) as file:
        file.write("größer\n")
        assert old.read_text() == "old"
    assert old.read_bytes() == "größer\n".encode()
    with replace_file(old, "wb") as file:
        file.write(b"\x00\xff")
    assert old.read_bytes() == b"\x00\xff"
    assert names(old.parent) == ["file.txt"]


@pytest.mark.parametrize("exception", [ValueError, KeyboardInterrupt])
def test_an_exception_leaves_the_old_file_and_no_draft(old: Path, exception: type[BaseException]) -> None:
    def interrupted() -> None:
        with replace_file(old) as file:
            file.write("new")
            raise exception

    with pytest.raises(exception):
        interrupted()
    assert old.read_text() == "old"
    assert names(old.parent) == ["file.txt"]


def test_a_full_disk_is_named_and_leaves_the_old_file(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", full_disk)
    message = r"file\.txt: cannot be written \(No space left on device\)"
    with pytest.raises(InputError, match=message), replace_file(old) as file:
        file.write("new")
    assert old.read_text() == "old"
    assert names(old.parent) == ["file.txt"]


@pytest.mark.parametrize("name", ["absent/file.txt", "folder"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=f"{name}: cannot be written"), replace_file(tmp_path / name) as file:
        file.write("new")
    assert names(tmp_path) == ["folder"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_process_leaves_the_old_file_and_a_draft_that_can_be_removed(old: Path) -> None:
    script = f"""
import os, pathlib, signal
from hetenv.files import replace_file
with replace_file(pathlib.Path({str(old)!r})) as file:
    file.write("half of the n")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert old.read_text() == "old"
    assert len(names(old.parent)) == 2
    remove_drafts(old.parent)
    assert names(old.parent) == ["file.txt"]


def test_entries_of_a_folder_change_together(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "stale").write_text("")
    (tmp_path / "kept").write_text("kept")
    with replace_entries(tmp_path) as draft:
        (draft / "tables").mkdir()
        (draft / "figures").write_text("new")
        assert names(tmp_path / "tables") == ["stale"]
    assert names(tmp_path) == ["figures", "kept", "tables"]
    assert names(tmp_path / "tables") == []

    def interrupted() -> None:
        with replace_entries(tmp_path) as draft:
            (draft / "figures").write_text("newer")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert (tmp_path / "figures").read_text() == "new"
    assert names(tmp_path) == ["figures", "kept", "tables"]

"""What the command lines share (hetenv.cli)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from hetenv import cli
from hetenv.errors import InputError, PlanError, StallError


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("--load", 3, "give\nless"), 2, "error: --load: 3; give less\n"),
        (PlanError("too many GPUs"), 2, "error: too many GPUs\n"),
        (StallError("2 jobs wait"), 2, "error: 2 jobs wait\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (ImportError("no", name="torch.nn"), 2, "error: torch is not installed; use `pip install hetenv[train]`\n"),
    ],
)
def test_errors_become_one_line(
    error: BaseException, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @cli.command
    def main(argv: Sequence[str] | None = None) -> int:
        raise error

    assert main([]) == status
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize("error", [RuntimeError("ours"), ImportError("ours", name="hetenv.missing"), ImportError("?")])
def test_our_own_faults_keep_their_traceback(error: Exception) -> None:
    @cli.command
    def main(argv: Sequence[str] | None = None) -> int:
        raise error

    with pytest.raises(type(error)) as caught:
        main([])
    assert caught.value is error


def test_status_and_warnings_pass_through(capsys: pytest.CaptureFixture[str]) -> None:
    @cli.command
    def main(argv: Sequence[str] | None = None) -> int:
        warnings.warn("dropped\n3 rows", stacklevel=1)
        return 7

    before = warnings.showwarning
    assert main([]) == 7
    assert capsys.readouterr() == ("", "note: dropped 3 rows\n")
    assert warnings.showwarning is before


@pytest.mark.parametrize("output", ["print('x' * 10)", "cli.show('x' * 10)"])
def test_closed_pipe_is_quiet(output: str) -> None:
    read, write = os.pipe()
    os.close(read)
    program = f"from hetenv import cli; raise SystemExit(cli.command(lambda argv=None: {output} or 0)())"
    process = subprocess.run(
        [sys.executable, "-c", program], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (process.returncode, process.stderr) == (1, "")


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("fifo", "fifo", {}),
        ("jps:samples=20,beta=0.7", "jps", {"samples": 20, "beta": 0.7}),
        ("x:a=[1, 2],b={c: 3},d=null,e=a=b", "x", {"a": [1, 2], "b": {"c": 3}, "d": None, "e": "a=b"}),
    ],
)
def test_parse_options(text: str, name: str, options: dict[str, object]) -> None:
    assert cli.parse_options(text) == (name, options)


def test_output_folder_goes_away_when_the_run_fails(tmp_path: Path) -> None:
    def run_and_fail(folder: Path, *files: str) -> None:
        with cli.output_folder(folder):
            assert list(folder.iterdir()) == []
            for name in files:
                (folder / name).write_text("result")
            raise KeyError("fault")

    with pytest.raises(KeyError):
        run_and_fail(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(KeyError):
        run_and_fail(tmp_path / "mine")
    assert (tmp_path / "mine").is_dir()  # was there before
    with pytest.raises(KeyError):
        run_and_fail(tmp_path / "a", "checkpoint")
    assert (tmp_path / "a" / "checkpoint").exists()


def test_progress_bar_waits_and_then_shows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich take stderr for a terminal
    monkeypatch.setenv("TERM", "xterm")
    with cli.progress_bar("short") as progress:
        progress(1, 3)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(cli, "PATIENCE_S", 0.0)
    drawn = ""
    with cli.progress_bar("long") as progress:
        progress(1, 3)
        for _ in range(1000):  # until its timer has fired
            drawn += capsys.readouterr().err
            if "1/3" in drawn:
                break
            time.sleep(0.01)
    assert "long" in drawn
    assert "1/3" in drawn


def test_progress_bar_leaves_a_log_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli, "PATIENCE_S", 0.0)
    with cli.progress_bar("long") as progress:
        progress(1, 3)
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")

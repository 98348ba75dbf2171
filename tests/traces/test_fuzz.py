"""The search for trace files that a reader cannot cope with: it sees faults, and finds none in some hundred inputs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hetenv.traces import FORMATS, fuzz
from scripts import fuzz_traces


def test_every_input_ends_in_jobs_or_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = fuzz_traces.main(["--inputs", "400", "--minutes", "5", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert all(name in printed for name in FORMATS)
    assert list(tmp_path.iterdir()) == []


def test_an_input_follows_from_its_seed_and_number(tmp_path: Path) -> None:
    def content(folder: str, seed: int, number: int) -> dict[str, bytes]:
        (tmp_path / folder).mkdir()
        fuzz.make_case(tmp_path / folder, seed, number)
        return {path.name: path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file()}

    assert content("a", 3, 5) == content("b", 3, 5) != content("c", 4, 5)


def test_what_a_reader_may_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = fuzz.make_case(tmp_path, 0, 0)

    def answer(found: object) -> fuzz.Verdict:
        def read(*_: object, **__: object) -> fuzz.Trace:
            if isinstance(found, BaseException):
                raise found
            return found  # type: ignore[return-value]

        monkeypatch.setattr(fuzz, "read_trace", read)
        return fuzz.judge(case)

    assert answer(fuzz.InputError(str(case.path), 1, "give 2")).answer == "refused"
    for fault in (KeyError("x"), MemoryError(), RuntimeWarning("overflow"), fuzz.InputError("here", 1, "give 2")):
        assert answer(fault).answer == "failed"


def test_lost_rows_are_noticed(tmp_path: Path) -> None:
    path, options = fuzz.samples.write(tmp_path, "helios")
    trace = fuzz.read_trace(path, **options)
    case = fuzz.Case(path, "helios", options)
    fuzz._check(case, trace)
    trace.tally.rows += 1
    with pytest.raises(AssertionError, match="4 rows, 1 dropped, yet 2 jobs"):
        fuzz._check(case, trace)
    trace.tally.dropped["a reason"] += 1
    with pytest.raises(AssertionError, match="3 rows in the file, 4 in the account"):
        fuzz._check(case, trace)


def hang(case: fuzz.Case) -> fuzz.Verdict:
    time.sleep(600)
    return fuzz.judge(case)


def die(case: fuzz.Case) -> fuzz.Verdict:
    os._exit(3)


@pytest.mark.parametrize(
    ("judge", "fault"), [(hang, "no answer within 0.2 s"), (die, "the process died with status 3")]
)
def test_a_process_that_hangs_or_dies_is_replaced(judge: Callable[[fuzz.Case], fuzz.Verdict], fault: str) -> None:
    with fuzz.Examiner(seed=0, timeout_s=0.2, judge=judge) as examiner:
        for number in range(2):
            verdict = examiner.examine(number)
            assert (verdict.answer, verdict.detail) == ("failed", fault)


def hog(case: fuzz.Case) -> fuzz.Verdict:
    try:
        return fuzz.Verdict(case.format, "jobs", f"{len(bytearray(fuzz.MEMORY_BYTES * 5 // 4))}", 0.0)
    except MemoryError:
        return fuzz.Verdict(case.format, "failed", "MemoryError", 0.0)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
def test_memory_is_limited() -> None:
    with fuzz.Examiner(seed=0, timeout_s=60.0, judge=hog) as examiner:
        assert examiner.examine(0).detail == "MemoryError"


def test_failures_are_kept(tmp_path: Path) -> None:
    place = fuzz.keep_failure(tmp_path, 0, 7, fuzz.Verdict("helios", "failed", "KeyError: 'x'", 0.1))
    assert "KeyError: 'x'" in (place / "failure.txt").read_text()
    assert len(list(place.iterdir())) > 1

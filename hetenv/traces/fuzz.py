"""A search for trace files that a reader cannot cope with: damaged samples, each read under watch.

A reader may answer with jobs or with one ``InputError`` of one line. Anything else is a failure: another exception,
a numpy warning, rows that neither became jobs nor were counted as dropped, jobs that do not survive saving, too much
time or memory, a dead process. Input ``number`` of a ``seed`` is the same on every machine.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces import FORMATS, Trace, read_trace, samples
from hetenv.traces.damage import damaged
from hetenv.traces.describe import describe
from hetenv.traces.own_csv import read_workload
from hetenv.traces.rules import Rules

MEMORY_BYTES = 1536 << 20  # beyond what the process has when it begins
MAIN_FILE_SHARE = 0.8  # of the blows; the others hit a file beside it
LONGEST_MESSAGE = 2_000
ZONES = ("UTC", "Asia/Shanghai", "America/Los_Angeles")

Answer = Literal["jobs", "refused", "failed"]


@dataclass(frozen=True)
class Case:
    """One input: the damaged files and how they are read."""

    path: Path
    format: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What became of one input; ``detail`` is the message of a refusal, or what went wrong."""

    format: str
    answer: Answer
    detail: str
    seconds: float


def make_case(folder: Path, seed: int, number: int) -> Case:
    """Write the files of an input into ``folder``."""
    rng = np.random.default_rng((seed, number))
    name = list(FORMATS)[rng.integers(len(FORMATS))]
    path, options = samples.write(folder, name)
    beside = sorted(file for file in folder.rglob("*") if file.is_file() and file != path)
    target = path if not beside or rng.random() < MAIN_FILE_SHARE else beside[rng.integers(len(beside))]
    target.write_bytes(damaged(target.read_bytes(), rng))
    options["lenient"] = bool(rng.random() < 0.5)
    if rng.random() < 0.5:
        options["format"] = name
    if rng.random() < 0.2:
        options["cluster"] = Cluster.from_counts({"gpu": 8, "v100": 8})
    if "rules" in FORMATS[name].options and rng.random() < 0.5:
        choices = {key: get_args(field.annotation) for key, field in Rules.model_fields.items()}
        chosen = {
            key: values[rng.integers(len(values))] for key, values in choices.items() if key != "outcomes" and values
        }
        options["rules"] = Rules(**chosen, zone=ZONES[rng.integers(len(ZONES))])
    return Case(path, name, options)


def judge(case: Case) -> Verdict:
    """Read one input and see whether the answer is a proper one."""
    start = time.perf_counter()

    def verdict(answer: Answer, detail: str) -> Verdict:
        return Verdict(case.format, answer, detail, time.perf_counter() - start)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            trace = read_trace(case.path, **case.options)
            _check(case, trace)
    except InputError as error:
        message = str(error)
        if "\n" in message or len(message) > LONGEST_MESSAGE or str(case.path.parent) not in message:
            return verdict("failed", f"no line that names the file: {message[:LONGEST_MESSAGE]!r}")
        return verdict("refused", message)
    except BaseException:
        return verdict("failed", traceback.format_exc())
    return verdict("jobs", f"{len(trace.workload)} jobs")


def _check(case: Case, trace: Trace) -> None:
    """See that no row got lost, and that the jobs can be used."""
    workload, tally = trace.workload, trace.tally
    if len(workload) != tally.kept:
        raise AssertionError(f"{tally.rows} rows, {tally.dropped.total()} dropped, yet {len(workload)} jobs")
    rows = count_rows(case.path, trace.format.name)
    if rows not in (None, tally.rows):
        raise AssertionError(f"{rows} rows in the file, {tally.rows} in the account")
    describe(workload, trace.start_s)
    saved = case.path.parent / "saved.csv"
    workload.save(saved)
    again = read_workload(saved)
    for name, values in workload.columns().items():
        np.testing.assert_array_equal(getattr(again, name), values, err_msg=name)


def count_rows(path: Path, format: str) -> int | None:
    """The rows of a trace file, counted without its reader; None where that is not plain."""
    if format == "pai":
        path = path.with_name(path.name.replace("task", "job"))
    text = path.read_bytes().decode("utf-8-sig", "replace")
    if format == "philly":
        with suppress(ValueError):  # ijson takes some more for white space
            return len(json.loads(text))
        return None
    if '"' in text or "\r" in text or (format == "pai" and text.startswith("job_name,")):
        return None
    lines = [line for line in text.split("\n") if line.strip()]
    if format == "swf":
        return sum(1 for line in lines if line.partition(";")[0].strip())
    return len(lines) - (format not in ("gavel", "pai", "synergy"))


class Examiner:
    """A process that reads inputs, replaced when it hangs or dies. Use it as a context.

    Args:
        seed: of the inputs.
        timeout_s: seconds an input may take.
        judge: what the process does with an input.
    """

    def __init__(self, seed: int, timeout_s: float, judge: Callable[[Case], Verdict] = judge) -> None:
        self.seed, self.timeout_s, self.judge = seed, timeout_s, judge
        self._context = multiprocessing.get_context("spawn")

    def __enter__(self) -> Examiner:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def _start(self) -> None:
        self._line, far_end = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(far_end, self.seed, self.judge), daemon=True)
        self._process.start()
        far_end.close()
        self._line.recv()  # it has imported what it needs

    def examine(self, number: int) -> Verdict:
        """The verdict on one input."""
        self._line.send(number)
        try:
            if self._line.poll(self.timeout_s):
                return self._line.recv()
            fault = f"no answer within {self.timeout_s:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            fault = f"the process died with status {self._process.exitcode}"
        self._process.kill()
        self._process.join()
        self._start()
        with tempfile.TemporaryDirectory() as folder:
            return Verdict(make_case(Path(folder), self.seed, number).format, "failed", fault, self.timeout_s)


def _serve(line: Any, seed: int, judge: Callable[[Case], Verdict]) -> None:
    _limit_memory()
    line.send("ready")
    while True:
        number = line.recv()
        with tempfile.TemporaryDirectory(prefix="hetenv-fuzz-") as folder:
            line.send(judge(make_case(Path(folder), seed, number)))


def _limit_memory() -> None:
    """Make what an input costs beyond ``MEMORY_BYTES`` a MemoryError, where the system can do that."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def keep_failure(folder: Path, seed: int, number: int, verdict: Verdict) -> Path:
    """Write a failing input and what went wrong into a folder of its own inside ``folder``."""
    place = folder / f"{verdict.format}-seed{seed}-input{number}"
    place.mkdir(parents=True, exist_ok=True)
    case = make_case(place, seed, number)
    options = ", ".join(f"{name}={value!r}" for name, value in case.options.items())
    (place / "failure.txt").write_text(f"read_trace({case.path.name!r}, {options})\n\n{verdict.detail}\n")
    return place

"""scripts/evaluate.py: what it prints and writes, and one line for whatever is wrong with its input."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import agents
import baselines
from baselines.fifo import FIFO
from scripts.evaluate import main

SCRIPT = Path(__file__).parents[2] / "scripts" / "evaluate.py"
SMALL = ["--scenario", "slow-server", "--set", "workload.n_jobs=10"]
JOBS = """job_id,arrival_s,iterations,batch,min_gpus,max_gpus,speed_fast,speed_slow
a,0,100,1,1,1,1,0.1
b,5,100,1,1,2,1,0.1
c,10,100,1,1,1,1,0.1
"""
GAVEL_JOB = "ResNet-18 (batch size 16)\tcmd\tdir\t-n\t0\t{steps}\t{gpus}\t1\t-1.000000\t{arrival}\n"
GAVEL_RATES = {"fast": {"('ResNet-18 (batch size 16)', 1)": {"null": 2.0}}}


def script(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the script on bad input; returns the only line on stderr."""

    def run(*arguments: str) -> str:
        status = main([*arguments, "--out", str(tmp_path / "results" / "out")])
        captured = capsys.readouterr()
        assert status == 2
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert captured.err.startswith("error: ")
        assert not (tmp_path / "results").exists()
        return captured.err

    return run


# --- what works ------------------------------------------------------------------------------------


def test_table_and_files(tmp_path: Path) -> None:
    """In a process of its own, with workers; options of a scheduler and overrides reach their places."""
    finished = script(
        *SMALL, "--schedulers", "fifo", "fifo:backfill=skip", "srtf", "--episodes", "3", "--seed", "7",
        "--workers", "2", "--reference", "srtf", "--out", "results/small", cwd=tmp_path,
    )  # fmt: skip
    assert (finished.returncode, finished.stderr) == (0, "")
    summary = json.loads((tmp_path / "results" / "small" / "summary.json").read_text())
    assert (summary["episodes"], summary["seed"], summary["reference"]) == (3, 7, "srtf")
    assert list(summary["schedulers"]) == ["fifo", "fifo:backfill=skip", "srtf"]
    jobs = (tmp_path / "results" / "small" / "jobs.csv").read_text().splitlines()
    assert len(jobs) == 1 + 3 * 3 * 10
    lines = finished.stdout.splitlines()
    assert "slow-server: episodes 3, seed 7" in lines[0]
    assert sum("fifo:backfill=skip" in line for line in lines) == 1
    assert lines[-1] == (
        "results/small: summary.json, summary.csv, jobs.csv; tensorboard --logdir results/small/tensorboard"
    )


def test_trace_is_one_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text(JOBS)
    out = tmp_path / "out"
    assert main(["--trace", str(trace), "--cluster", "fast-slow", "--schedulers", "fifo", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["episodes"] == 1
    # Job a: 100 s on the fast GPU. b takes the slow one at 5 s, as the fast one is taken: 1000 s. c waits for a: 190 s.
    assert summary["schedulers"]["fifo"]["mean_jct_s"] == pytest.approx((100 + 1000 + 190) / 3)
    assert capsys.readouterr().err == ""


def test_lenient_says_how_many_rows_it_drops_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text(JOBS + "d,-1,100,1,1,1,1,0.1\ne,-2,100,1,1,1,1,0.1\nf,20,0,1,1,1,1,0.1\ng,20,9,1,3,3,1,0.1\n")
    out = tmp_path / "out"
    arguments = [
        "--trace",
        str(trace),
        "--cluster",
        "fast-slow",
        "--lenient",
        "--schedulers",
        "fifo",
        "--out",
        str(out),
    ]
    assert main(arguments) == 0
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 1
    assert notes[0].startswith(f"note: {trace}: dropped 4 rows (2 x arrival_s: ")
    assert "1 x iterations: " in notes[0]
    assert "1 x GPUs: more than the cluster has" in notes[0]
    assert len((out / "jobs.csv").read_text().splitlines()) == 1 + 3


def test_gavel_trace(tmp_path: Path) -> None:
    trace, rates, out = tmp_path / "small.trace", tmp_path / "rates.json", tmp_path / "out"
    trace.write_text(GAVEL_JOB.format(steps=100, gpus=1, arrival=0.0))
    rates.write_text(json.dumps(GAVEL_RATES))
    arguments = ["--trace", str(trace), "--throughputs", str(rates), "--cluster", "fast-slow", "--format", "gavel"]
    assert main([*arguments, "--schedulers", "fifo", "--out", str(out), "--set", "simulator.preemptive=true"]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["schedulers"]["fifo"]["mean_jct_s"] == pytest.approx(50.0)


def test_interruption_saves_and_prints_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def reset(scheduler: FIFO, cluster: object, seed: int) -> None:
        if seed == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(FIFO, "reset", reset)
    arguments = [*SMALL, "--schedulers", "fifo", "--episodes", "5", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--seed", "10"]) == 130
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["episodes"] == 2
    assert "episodes 2 of 5, seed 10, interrupted" in capsys.readouterr().out
    assert main([*arguments[:-1], str(tmp_path / "none"), "--seed", "12"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"
    assert not (tmp_path / "none").exists()


def test_policy_is_named_after_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ppo" / "best.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as policy:
        policy.writestr("data", "{}")
    loaded = []

    def load(source: str) -> object:
        loaded.append(source)
        return baselines.make("fifo")

    monkeypatch.setattr(agents, "load", load, raising=False)
    arguments = [*SMALL, "--schedulers", "fifo", str(path), "--episodes", "1", "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    assert loaded == [str(path)]
    schedulers = json.loads((tmp_path / "out" / "summary.json").read_text())["schedulers"]
    assert list(schedulers) == ["fifo", "ppo/best"]
    assert schedulers["ppo/best"]["ratio_to_reference"] == 1.0


# --- bad arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--schedulers", "fifo", "srtf", "fifo"], "fifo comes twice"),
        (["--schedulers", "fofi"], "'fofi'"),
        (["--schedulers", "fifo:backfill=eager"], "backfill: 'eager'"),
        (["--schedulers", "fifo:depth=3"], "option depth"),
        (["--schedulers", "fifo:backfill"], "'backfill' is no option"),
        (["--schedulers", "fifo:"], "'' is no option"),
        (["--schedulers", "fifo:backfill=skip,backfill=easy"], "'backfill' twice"),
        (["--schedulers", "fifo:backfill=[skip"], "backfill: '[skip'"),
        (["--schedulers", "runs/nowhere/best.zip"], "runs/nowhere/best.zip: no such file"),
        (["--schedulers", "fifo", "--episodes", "0"], "episodes: 0"),
        (["--schedulers", "fifo", "--workers", "0"], "workers: 0"),
        (["--schedulers", "fifo", "--seed", "-1"], "seed: -1"),
        (["--schedulers", "fifo", "--reference", "jps"], "reference: 'jps'; use one of fifo"),
        (["--schedulers", "fifo", "--lenient"], "--lenient"),
        (["--schedulers", "fifo", "--n-jobs", "5"], "--n-jobs"),
        (["--schedulers", "fifo", "--cluster", "fast-slow"], "--cluster"),
        (["--schedulers", "fifo", "--set", "workload.load"], "workload.load"),
        (["--schedulers", "fifo", "--set", "workload.load=-1"], "workload.load: -1"),
        (["--schedulers", "fifo", "--set", "workload.lode=1"], "workload.lode: unknown key"),
        (["--schedulers", "fifo", "--set", "workload.min_gpus=3", "workload.max_gpus=3"], "needs 3 GPUs"),
    ],
)
def test_bad_argument(fails: Callable[..., str], arguments: list[str], culprit: str) -> None:
    assert culprit in fails(*SMALL, *arguments)


def test_unknown_scenario(fails: Callable[..., str]) -> None:
    assert "scenario 'offline': no such name or file; use one of acme, " in fails(
        "--scenario", "offline", "--schedulers", "fifo"
    )


def test_corrupt_policy(fails: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "best.zip").write_text("not a zip")
    assert "best.zip: not a zip file" in fails(*SMALL, "--schedulers", "fifo", str(tmp_path / "best.zip"))


@pytest.mark.parametrize("out", ["taken", "taken/inside", "/proc/results"])
def test_unwritable_out(out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("mine")
    path = tmp_path / out  # an absolute one stays as it is
    assert main([*SMALL, "--schedulers", "fifo", "--episodes", "1", "--out", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: {path}: cannot be written (")
    assert captured.err.count("\n") == 1
    assert [child.name for child in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--scenario", "slow-server", "--schedulers", "nobody"], "'nobody'"),
        (["--trace", "gone.csv", "--cluster", "fast-slow", "--schedulers", "fifo"], "gone.csv: no such file"),
    ],
)
def test_bad_input_of_a_process(tmp_path: Path, arguments: list[str], culprit: str) -> None:
    finished = script(*arguments, cwd=tmp_path)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("error: ")
    assert finished.stderr.count("\n") == 1
    assert culprit in finished.stderr
    assert list(tmp_path.iterdir()) == []  # no results/ either


# --- bad scenario files ----------------------------------------------------------------------------

SCENARIO = """description: two jobs
cluster: fast-slow
workload: {kind: synthetic, n_jobs: 2, load: null, mean_gpu_s: 60}
time_scale_s: 60
"""


@pytest.mark.parametrize(
    ("line", "replacement", "culprits"),
    [
        ("time_scale_s: 60", "time_scale_s: 60\ntime_scale: 60", ["time_scale", "unknown key"]),
        ("time_scale_s: 60", "", ["time_scale_s", "missing"]),
        ("time_scale_s: 60", "time_scale_s: soon", ["time_scale_s", "'soon'"]),
        ("time_scale_s: 60", "time_scale_s: 0", ["time_scale_s", "0", "greater than 0"]),
        ("time_scale_s: 60", "time_scale_s: [60", ["line 5"]),
        ("cluster: fast-slow", "cluster: slow-fast", ["cluster 'slow-fast'"]),
        ("cluster: fast-slow", "cluster: 3", ["cluster", "3"]),
        ("n_jobs: 2", "n_jobs: 2.5", ["workload.n_jobs", "2.5"]),
        ("kind: synthetic", "kind: imagined", ["workload", "imagined"]),
        ("kind: synthetic, ", "", ["workload", "kind"]),
        ("cluster: fast-slow", "cluster: {types: [{name: a}], groups: []}", ["GPU type a: 0 GPUs"]),
        (SCENARIO, "- a list", ["holds list"]),
    ],
)
def test_bad_scenario_file(
    fails: Callable[..., str], tmp_path: Path, line: str, replacement: str, culprits: list[str]
) -> None:
    path = tmp_path / "mine.yaml"
    assert line in SCENARIO
    path.write_text(SCENARIO.replace(line, replacement))
    message = fails("--scenario", str(path), "--schedulers", "fifo", "--episodes", "1")
    assert "mine.yaml" in message or "slow-fast" in message
    for culprit in culprits:
        assert culprit in message


# --- bad traces ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "culprits"),
    [
        ("iterations,", "work,", ["column iterations is missing"]),
        ("b,5,", "b,nan,", ["line 3", "arrival_s", "nan"]),
        ("b,5,", "b,-5,", ["line 3", "arrival_s", "-5"]),
        ("a,0,100,1,1,1", "a,0,100,1,0,1", ["line 2", "min_gpus", "0"]),
        ("a,0,100,1,1,1", "a,0,100,1,1,1.5", ["line 2", "max_gpus", "1.5"]),
        ("c,10,100", "c,10,0", ["line 4", "iterations", "0"]),
        ("b,5", "a,5", ["line 3", "job_id", "'a'"]),
        ("c,10,100,1,1,1", "c,10,100,1,3,3", ["line 4", "job c", "3 GPUs"]),
        ("c,10,100,1,1,1,1,0.1", "c,10,100", ["line 4", "number of fields"]),
        (JOBS, "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ["LFS pointer"]),
        (JOBS, "", ["empty file"]),
        (JOBS, "once upon a time\n", ["unknown content"]),
        (JOBS[JOBS.index("a,0") :], "", ["without rows"]),
    ],
)
def test_bad_trace(fails: Callable[..., str], tmp_path: Path, old: str, new: str, culprits: list[str]) -> None:
    trace = tmp_path / "bad.csv"
    assert old in JOBS
    trace.write_text(JOBS.replace(old, new))
    message = fails("--trace", str(trace), "--cluster", "fast-slow", "--schedulers", "fifo")
    assert "bad.csv" in message
    for culprit in culprits:
        assert culprit in message


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--format", "csv"], "trace format: 'csv'; use one of hetenv"),
        (["--n-jobs", "4"], "the trace has 3 jobs"),
        (["--n-jobs", "0"], "n_jobs: 0"),
        (["--set", "workload.load=0"], "workload.load: 0"),
        (["--set", "simulator.rounds=1"], "simulator.rounds: unknown key"),
        (["--throughputs", "gone.csv"], "gone.csv: no such file"),
    ],
)
def test_bad_trace_option(fails: Callable[..., str], tmp_path: Path, arguments: list[str], culprit: str) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text(JOBS)
    assert culprit in fails("--trace", str(trace), "--cluster", "fast-slow", "--schedulers", "fifo", *arguments)


def test_trace_needs_a_cluster_that_exists(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "--cluster: missing" in fails("--trace", "jobs.csv", "--schedulers", "fifo")
    assert "cluster 'moon'" in fails("--trace", "jobs.csv", "--schedulers", "fifo", "--cluster", "moon")


def test_folder_as_trace(fails: Callable[..., str], tmp_path: Path) -> None:
    message = fails("--trace", str(tmp_path), "--cluster", "fast-slow", "--schedulers", "fifo")
    assert f"{tmp_path}: is a folder" in message


@pytest.mark.parametrize(
    ("row", "culprits"),
    [
        (GAVEL_JOB.format(steps=100, gpus=1, arrival=0).replace("ResNet-18", "ResNet-99"), ["job_type", "ResNet-99"]),
        (GAVEL_JOB.format(steps=100, gpus=0, arrival=0), ["scale_factor", "0"]),
        (GAVEL_JOB.format(steps=100, gpus=0.5, arrival=0), ["scale_factor", "0.5"]),
        (GAVEL_JOB.format(steps=0, gpus=1, arrival=0), ["total_steps", "0"]),
        (GAVEL_JOB.format(steps=100, gpus=1, arrival=-1), ["arrival", "-1"]),
    ],
)
def test_bad_gavel_trace(fails: Callable[..., str], tmp_path: Path, row: str, culprits: list[str]) -> None:
    trace, rates = tmp_path / "bad.trace", tmp_path / "rates.json"
    trace.write_text(GAVEL_JOB.format(steps=100, gpus=1, arrival=0.0) + row)
    rates.write_text(json.dumps(GAVEL_RATES))
    arguments = ["--trace", str(trace), "--cluster", "fast-slow", "--schedulers", "fifo"]
    message = fails(*arguments, "--throughputs", str(rates))
    for culprit in ["bad.trace, line 2", *culprits]:
        assert culprit in message
    assert "bad.trace, line" in fails(*arguments)  # at the throughputs of the catalogue

"""scripts/benchmark.py: every subject runs, and its JSON holds what it says."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def main() -> Callable[[list[str]], int]:
    return runpy.run_path(str(SCRIPTS / "benchmark.py"))["main"]


def measured(main: Callable[[list[str]], int], out: Path, *arguments: str) -> list[dict[str, Any]]:
    assert main([*arguments, "--out", str(out)]) == 0
    content = json.loads(out.read_text())
    assert content["subject"] == arguments[0]
    assert set(content["machine"]["versions"]) >= {"hetenv", "numba", "numpy", "scipy"}
    return content["rows"]


def test_matching_compares_with_the_optimum(main: Callable[[list[str]], int], tmp_path: Path) -> None:
    rows = measured(main, tmp_path / "m.json", "matching", "--cases", "4x15", "--seeds", "3", "--milp-seeds", "0")
    assert {(row["network"], row["solver"]) for row in rows} >= {("fast", "market"), ("slow", "jps + local")}
    for row in rows:
        assert 0.0 <= row["gap_mean_pct"] <= row["gap_max_pct"] + 1e-9
        assert 0.0 < row["p50_ms"] <= row["p99_ms"]
        assert row["x_milp"] is None
        if row["solver"] == "exact":
            assert row["gap_max_pct"] == 0.0
        if row["solver"] in ("exact", "market"):
            assert row["gap_proven_pct"] >= row["gap_max_pct"] - 1e-6


def test_steps_gives_the_spread_of_its_repeats(main: Callable[[list[str]], int], tmp_path: Path) -> None:
    arguments = (
        "steps",
        "--scenarios",
        "slow-server",
        "--steps",
        "200",
        "--repeats",
        "2",
        "--set",
        "workload.n_jobs=9",
    )
    rows = measured(main, tmp_path / "s.json", *arguments, "--num-envs", "1", "4", "--threads", "1", "2")
    assert [(row["through"], row["num_envs"], row["threads"]) for row in rows] == [
        ("make", 1, 1),
        ("make_vec", 1, 1),
        ("make_vec", 4, 1),
        ("make_vec", 4, 2),
    ]
    assert [row["x_one_thread"] is None for row in rows] == [True, True, True, False]
    market = measured(main, tmp_path / "m.json", *arguments, "--num-envs", "2", "--envs", "Market-v0")
    assert [(row["env"], row["through"]) for row in market] == [("Market-v0", "make"), *[("Market-v0", "make_vec")] * 2]
    for row in [*rows, *market]:
        assert 0.0 < row["steps_per_s"]["min"] <= row["steps_per_s"]["median"] <= row["steps_per_s"]["max"]
        assert row["of_floor"] > 0.0


def test_replay_runs_every_job(main: Callable[[list[str]], int], tmp_path: Path) -> None:
    arguments = ("replay", "--jobs", "300", "--gpus", "64", "--schedulers", "fifo", "sjf")
    rows = measured(main, tmp_path / "r.json", *arguments)
    assert [row["scheduler"] for row in rows] == ["fifo", "sjf"]
    assert all(row["jobs"] == 300 and row["gpus"] == 64 and row["mean_jct_s"] > 0 for row in rows)


def test_train_counts_the_steps_of_whole_runs(main: Callable[[list[str]], int], tmp_path: Path) -> None:
    pytest.importorskip("cma")
    config = tmp_path / "cma.yaml"
    config.write_text(
        "{algorithm: cma, env_kwargs: {scenario: slow-server, overrides: {workload: {n_jobs: 5}}}, "
        "population: 4, episodes: 2, max_minutes: 1}"
    )
    (row,) = measured(
        main, tmp_path / "t.json", "train", "--configs", str(config), "--seconds", "0.5", "--repeats", "2"
    )
    assert (row["config"], row["scenario"]) == ("cma", "slow-server")
    assert row["steps"] > 0
    assert 0.0 < row["steps_per_s"]["min"] <= row["steps_per_s"]["max"]


def test_an_unknown_scenario_is_one_line(main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["steps", "--scenarios", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("error: scenario 'nowhere': no such name or file; use one of")


@pytest.mark.slow
def test_the_demo_runs_from_trace_to_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("stable_baselines3")
    monkeypatch.syspath_prepend(str(SCRIPTS))  # as `python scripts/demo.py` has it
    demo = runpy.run_path(str(SCRIPTS / "demo.py"))["main"]
    assert demo(["--out", str(tmp_path / "demo"), "--minutes", "0.1"]) == 0
    summary = json.loads((tmp_path / "demo" / "online" / "summary.json").read_text())
    assert {"fifo", "srtf", "jps", "market", "ppo/best"} == set(summary["schedulers"])
    assert (tmp_path / "demo" / "philly" / "summary.json").exists()
    assert "tensorboard --logdir" in capsys.readouterr().out

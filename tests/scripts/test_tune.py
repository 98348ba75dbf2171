"""scripts/tune.py: what it finds and writes, what it refuses, and what Ctrl-C leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import baselines
from baselines import tuning
from hetenv.config import load_scenario
from hetenv.evaluation import Evaluation, evaluate
from scripts.tune import main

SMALL = ["--scenario", "slow-server", "--set", "workload.n_jobs=10"]


@pytest.fixture
def small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CANDIDATES", (2, 1))


@pytest.mark.usefixtures("small_search")
def test_finds_parameters_that_market_tuned_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "tuned.yaml"
    arguments = [*SMALL, "--episodes", "3", "--seed", "5", "--out", str(out)]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = yaml.safe_load(out.read_text())
    assert found["command"] == f"python scripts/tune.py {' '.join(arguments)}"
    assert (found["seed"], found["episodes"], found["interrupted"]) == (5, 3, False)

    # the training figures are those of an evaluation on the same seeds, to the decimal that the file keeps
    scenario = load_scenario("slow-server", {"workload": {"n_jobs": 10}})
    schedulers = {
        "market": lambda: baselines.make("market"),
        "market-tuned": lambda: baselines.make("market-tuned", scenario=str(out)),
    }
    summary = evaluate(scenario, schedulers, episodes=3, seed=5).summary()["schedulers"]
    trained = found["training_mean_jct_s"]["slow-server"]
    assert trained == {name: pytest.approx(of["mean_jct_s"], abs=0.06) for name, of in summary.items()}
    assert trained["market-tuned"] <= trained["market"]
    assert f"mean JCT {trained['market-tuned']:,.0f} s, market {trained['market']:,.0f} s" in printed.out

    first = out.read_bytes()
    assert main(arguments) == 0
    assert out.read_bytes() == first  # the same seeds find the same
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.usefixtures("small_search")
def test_several_scenarios_are_tuned_together(tmp_path: Path) -> None:
    out = tmp_path / "both.yaml"
    scenarios = ["--scenario", "slow-server", "online", "--set", "workload.n_jobs=6"]
    assert main([*scenarios, "--episodes", "1", "--out", str(out)]) == 0
    assert list(yaml.safe_load(out.read_text())["training_mean_jct_s"]) == ["slow-server", "online"]


@pytest.mark.usefixtures("small_search")
@pytest.mark.parametrize("whole_rounds", [0, 1, 3])
def test_interruption_keeps_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], whole_rounds: int
) -> None:
    played: list[Evaluation] = []

    def interrupted(*arguments: object, **options: object) -> Evaluation:
        if len(played) == whole_rounds:
            raise KeyboardInterrupt
        played.append(evaluate(*arguments, **options))  # type: ignore[arg-type]
        return played[-1]

    monkeypatch.setattr(tuning, "evaluate", interrupted)
    out = tmp_path / "new" / "tuned.yaml"
    assert main([*SMALL, "--episodes", "4", "--out", str(out)]) == 130
    captured = capsys.readouterr().err
    if whole_rounds == 0:
        assert captured == "error: interrupted\n"
        assert not out.parent.exists()
        return
    found = yaml.safe_load(out.read_text())
    assert found["interrupted"]
    assert found["episodes"] == {1: 1, 3: 4}[whole_rounds]
    assert f"the best on {found['episodes']} episodes is kept" in captured
    if whole_rounds == 1:
        least_s = min(trials[0].figures["mean_jct_s"] for trials in played[0].trials.values())
        assert found["training_mean_jct_s"]["slow-server"]["market-tuned"] == pytest.approx(least_s, abs=0.06)


def test_progress_reaches_its_end_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CANDIDATES", (2, 1))
    seen: list[tuple[int, int]] = []
    scenario = load_scenario("slow-server", {"workload": {"n_jobs": 5}})
    tuning.tune([scenario], 3, 0, progress=lambda done, total: seen.append((done, total)))
    done = [number for number, _ in seen]
    assert done == sorted(done)
    assert len({total for _, total in seen}) == 1
    assert 0.8 * seen[-1][1] <= done[-1] <= seen[-1][1]


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--seed", "1000"], "seed: 1000 with 2 episodes; tune on seeds below 1000"),
        (["--seed", "999"], "seed: 999 with 2 episodes"),
        (["--seed", "-1"], "seed: -1"),
        (["--episodes", "0"], "episodes: 0"),
        (["--workers", "0"], "workers: 0"),
        (["--scenario", "offline"], "scenario 'offline'"),
        (["--set", "workload.loud=1"], "loud"),
        (["--out", "tuned.json"], "--out: tuned.json"),
    ],
)
def test_bad_arguments_are_named_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], culprit: str
) -> None:
    out = tmp_path / "new" / "tuned.yaml"
    assert main([*SMALL, "--episodes", "2", "--out", str(out), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert culprit in captured.err
    assert not out.parent.exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tuned.yaml").mkdir()
    assert main([*SMALL, "--episodes", "1", "--out", str(tmp_path / "tuned.yaml")]) == 2
    assert f"{tmp_path / 'tuned.yaml'}: cannot be written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["tuned.yaml"]

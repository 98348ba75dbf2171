"""Paired comparison: figures by hand, pairing, workers, interruption, files."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import baselines
from hetenv.cluster import Cluster
from hetenv.config import Scenario, load_scenario
from hetenv.errors import InputError, StallError
from hetenv.evaluation import Evaluation, evaluate
from hetenv.evaluation.figures import bootstrap_interval
from hetenv.evaluation.trials import SchedulerFactory
from hetenv.scheduler import Plan, Snapshot

SEED = 1000
EPISODES = 6
FIFO = partial(baselines.make, "fifo")
SRTF = partial(baselines.make, "srtf")
FIGURES = [
    "mean_jct_s",
    "ci95",
    "p50_jct_s",
    "p95_jct_s",
    "p99_jct_s",
    "makespan_s",
    "queueing_s",
    "utilization",
    "jain",
    "max_rho",
    "restarts_per_job",
    "decision_ms",
    "ratio_to_reference",
    "ratio_ci95",
]


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("slow-server", {"workload": {"n_jobs": 20}})


@pytest.fixture(scope="module")
def evaluation(scenario: Scenario) -> Evaluation:
    return evaluate(scenario, {"srtf": SRTF, "fifo": FIFO}, episodes=EPISODES, seed=SEED, reference="fifo")


def without_clock(evaluation: Evaluation) -> str:
    """summary.json as text, less the one figure that depends on the machine's speed."""
    summary = evaluation.summary()
    for figures in summary["schedulers"].values():
        figures.pop("decision_ms")
    return json.dumps(summary)


class Faulty:
    """FIFO until its given episode, where it raises."""

    name = "faulty"
    decides = frozenset({"place", "size"})

    def __init__(self, error: type[BaseException], at_seed: int) -> None:
        self.error, self.at_seed = error, at_seed
        self.fifo = FIFO()

    def reset(self, cluster: Cluster, seed: int) -> None:
        if seed == self.at_seed:
            raise self.error("in episode")
        self.fifo.reset(cluster, seed)

    def plan(self, snapshot: Snapshot) -> Plan:
        return self.fifo.plan(snapshot)


class Idle(Faulty):
    """Places nothing."""

    name = "idle"

    def plan(self, snapshot: Snapshot) -> Plan:
        return Plan.nothing(len(snapshot.total))


class Deadly(Faulty):
    """Ends its process, as the kernel does when memory runs out."""

    def __init__(self) -> None:
        super().__init__(KeyError, -1)

    def reset(self, cluster: Cluster, seed: int) -> None:
        os._exit(1)


# --- figures ---------------------------------------------------------------------------------------


def test_summary_has_the_published_form(evaluation: Evaluation) -> None:
    summary = evaluation.summary()
    assert list(summary) == ["scenario", "episodes", "seed", "reference", "schedulers", "ratios"]
    assert [summary[key] for key in ("scenario", "episodes", "seed", "reference")] == [
        "slow-server",
        EPISODES,
        SEED,
        "fifo",
    ]
    assert list(summary["schedulers"]) == ["srtf", "fifo"]
    for figures in summary["schedulers"].values():
        assert list(figures) == FIGURES
        assert list(figures["decision_ms"]) == ["p50", "p99"]
        assert 0 < figures["decision_ms"]["p50"] <= figures["decision_ms"]["p99"]


@pytest.mark.parametrize("name", ["fifo", "srtf"])
def test_figures_follow_from_the_job_table(evaluation: Evaluation, name: str) -> None:
    jobs = evaluation.jobs[evaluation.jobs["scheduler"] == name]
    figures = evaluation.summary()["schedulers"][name]
    rho = jobs["jct_s"] / jobs["exclusive_s"]
    episode = jobs.assign(rho=rho, rho2=rho**2).groupby("episode")
    makespan_s = episode["finish_s"].max() - episode["arrival_s"].min()
    mean_jct_s = episode["jct_s"].mean()
    fifo = evaluation.jobs[evaluation.jobs["scheduler"] == "fifo"].groupby("episode")["jct_s"].mean()
    expected = {
        "mean_jct_s": mean_jct_s.mean(),
        "p50_jct_s": jobs["jct_s"].quantile(0.50),
        "p95_jct_s": jobs["jct_s"].quantile(0.95),
        "p99_jct_s": jobs["jct_s"].quantile(0.99),
        "makespan_s": makespan_s.mean(),
        "queueing_s": episode["queueing_s"].mean().mean(),
        "utilization": (episode["gpu_s"].sum() / (2 * makespan_s)).mean(),  # two GPUs
        "jain": (episode["rho"].sum() ** 2 / (20 * episode["rho2"].sum())).mean(),
        "max_rho": rho.max(),
        "restarts_per_job": jobs["restarts"].mean(),
        "ratio_to_reference": mean_jct_s.mean() / fifo.mean(),
    }
    assert {key: figures[key] for key in expected} == pytest.approx(expected, rel=1e-9)


def test_every_scheduler_gets_the_arrivals_of_the_seed(evaluation: Evaluation, scenario: Scenario) -> None:
    assert list(evaluation.jobs.columns[:4]) == ["scheduler", "episode", "seed", "job_id"]
    assert len(evaluation.jobs) == 2 * EPISODES * 20
    for episode in range(EPISODES):
        drawn = scenario.draw_workload(np.random.default_rng(SEED + episode))
        for name in ("fifo", "srtf"):
            jobs = evaluation.jobs[(evaluation.jobs["scheduler"] == name) & (evaluation.jobs["episode"] == episode)]
            np.testing.assert_array_equal(jobs["arrival_s"], drawn.arrival_s)
            assert (jobs["seed"] == SEED + episode).all()


def test_intervals_contain_their_figure(evaluation: Evaluation) -> None:
    for figures in evaluation.summary()["schedulers"].values():
        low, high = figures["ci95"]
        assert low < figures["mean_jct_s"] < high
        low, high = figures["ratio_ci95"]
        assert low <= figures["ratio_to_reference"] <= high


def test_the_reference_equals_itself_exactly(evaluation: Evaluation) -> None:
    fifo = evaluation.summary()["schedulers"]["fifo"]
    assert fifo["ratio_to_reference"] == 1.0
    assert fifo["ratio_ci95"] == [1.0, 1.0]


def test_ratios_between_all_schedulers(evaluation: Evaluation) -> None:
    summary = evaluation.summary()
    assert {name: set(others) for name, others in summary["ratios"].items()} == {"fifo": {"srtf"}, "srtf": {"fifo"}}
    srtf = summary["schedulers"]["srtf"]
    assert summary["ratios"]["srtf"]["fifo"] == {"ratio": srtf["ratio_to_reference"], "ci95": srtf["ratio_ci95"]}
    assert summary["ratios"]["fifo"]["srtf"]["ratio"] == pytest.approx(1 / srtf["ratio_to_reference"])


def test_ratio_interval_is_paired(scenario: Scenario) -> None:
    """Two names of one scheduler differ in no episode, so their ratio has no spread, though each mean has."""
    twins = evaluate(scenario, {"a": FIFO, "b": FIFO}, episodes=4, seed=SEED).summary()["schedulers"]
    assert twins["b"]["ratio_ci95"] == [1.0, 1.0]
    assert twins["b"]["ci95"][0] < twins["b"]["ci95"][1]


def test_bootstrap_interval_shrinks_as_the_root_of_the_episodes() -> None:
    jct_s = np.random.default_rng(7).exponential(100.0, 1600)
    few, many = (bootstrap_interval(np.mean, jct_s[:n]) for n in (100, 1600))
    assert few is not None
    assert many is not None
    normal_width = 2 * 1.96 * jct_s.std() / np.sqrt(1600)
    assert many[1] - many[0] == pytest.approx(normal_width, rel=0.05)
    assert few[1] - few[0] == pytest.approx(4 * normal_width, rel=0.25)


def test_one_episode_has_no_intervals(scenario: Scenario) -> None:
    figures = evaluate(scenario, {"fifo": FIFO}, episodes=1, seed=SEED).summary()["schedulers"]["fifo"]
    assert figures["ci95"] is None
    assert figures["ratio_ci95"] is None
    assert figures["ratio_to_reference"] == 1.0


def test_jps_is_the_reference_where_there_is_one(scenario: Scenario) -> None:
    run = partial(evaluate, scenario, episodes=1, seed=0)
    assert run({"fifo": FIFO, "jps": FIFO}).reference == "jps"
    assert run({"srtf": SRTF, "fifo": FIFO}).reference == "srtf"


def test_table_has_a_row_a_scheduler(evaluation: Evaluation) -> None:
    screen = io.StringIO()
    Console(width=200, file=screen).print(evaluation.table())
    text = screen.getvalue()
    assert "slow-server: episodes 6, seed 1000" in text
    assert f"{evaluation.summary()['schedulers']['srtf']['mean_jct_s']:,.0f} [" in text
    assert "1.000 [1.000, 1.000]" in text


# --- running ---------------------------------------------------------------------------------------


def test_same_seed_gives_the_same_summary(evaluation: Evaluation, scenario: Scenario) -> None:
    again = evaluate(scenario, {"srtf": SRTF, "fifo": FIFO}, episodes=EPISODES, seed=SEED, reference="fifo")
    assert without_clock(again) == without_clock(evaluation)
    pd.testing.assert_frame_equal(again.jobs, evaluation.jobs, check_exact=True)


def test_workers_change_nothing(evaluation: Evaluation, scenario: Scenario) -> None:
    schedulers = {"srtf": SRTF, "fifo": FIFO}
    parallel = evaluate(scenario, schedulers, episodes=EPISODES, seed=SEED, reference="fifo", workers=2)
    assert without_clock(parallel) == without_clock(evaluation)
    pd.testing.assert_frame_equal(parallel.jobs, evaluation.jobs, check_exact=True)


def test_progress_counts_trials(scenario: Scenario) -> None:
    calls: list[tuple[int, int]] = []
    evaluate(scenario, {"a": FIFO, "b": SRTF}, episodes=2, seed=0, progress=lambda *call: calls.append(call))
    assert calls == [(done, 4) for done in range(5)]


def test_interruption_keeps_complete_episodes(evaluation: Evaluation, scenario: Scenario, tmp_path: Path) -> None:
    schedulers: dict[str, SchedulerFactory] = {"fifo": FIFO, "faulty": partial(Faulty, KeyboardInterrupt, SEED + 2)}
    kept = evaluate(scenario, schedulers, episodes=5, seed=SEED)
    assert kept.interrupted
    assert not evaluation.interrupted
    assert kept.episodes == [0, 1]
    assert kept.summary()["episodes"] == 2
    assert kept.jobs.groupby("scheduler")["episode"].unique().map(list).to_dict() == {"fifo": [0, 1], "faulty": [0, 1]}
    assert kept.table().title == "slow-server: episodes 2 of 5, seed 1000, interrupted"
    kept.save(tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text())["episodes"] == 2


def test_interruption_in_a_worker(scenario: Scenario) -> None:
    faulty = partial(Faulty, KeyboardInterrupt, SEED + 6)
    kept = evaluate(scenario, {"faulty": faulty}, episodes=8, seed=SEED, workers=2)
    assert kept.interrupted
    assert len(kept.episodes) >= 5  # of 0 to 5, as one may be under way while the seventh begins
    assert 6 not in kept.episodes
    assert multiprocessing.active_children() == []


def test_interruption_before_the_first_episode_is_an_interruption(scenario: Scenario) -> None:
    with pytest.raises(KeyboardInterrupt):
        evaluate(scenario, {"fifo": FIFO, "faulty": partial(Faulty, KeyboardInterrupt, 0)}, episodes=2, seed=0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_scheduler_that_stalls_is_named(scenario: Scenario, workers: int) -> None:
    idle = partial(Idle, KeyError, -1)
    with pytest.raises(StallError, match="scheduler idle: 20 jobs wait"):
        evaluate(scenario, {"idle": idle}, episodes=1, seed=0, workers=workers)


def test_fault_in_a_worker_shows_where_it_arose(scenario: Scenario) -> None:
    with pytest.raises(KeyError) as caught:
        evaluate(scenario, {"faulty": partial(Faulty, KeyError, 0)}, episodes=2, seed=0, workers=2)
    assert 'raise self.error("in episode")' in str(caught.value.__cause__)


def test_a_worker_that_dies_is_reported(scenario: Scenario) -> None:
    with pytest.raises(InputError, match="workers: a process died"):
        evaluate(scenario, {"deadly": Deadly}, episodes=2, seed=0, workers=2)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes": 0}, "episodes: 0;"),
        ({"workers": 0}, "workers: 0;"),
        ({"seed": -1}, "seed: -1;"),
        ({"reference": "best"}, "reference: 'best'; use one of fifo"),
        ({"schedulers": {}}, "schedulers: none;"),
        ({"scenario": "nowhere"}, "scenario 'nowhere'"),
    ],
)
def test_bad_arguments(scenario: Scenario, changes: dict[str, object], message: str) -> None:
    arguments = {"scenario": scenario, "schedulers": {"fifo": FIFO}, "episodes": 1, "seed": 0} | changes
    with pytest.raises(InputError, match=message):
        evaluate(**arguments)  # type: ignore[arg-type]


# --- files -----------------------------------------------------------------------------------------


def test_saved_files_say_the_same_as_the_evaluation(evaluation: Evaluation, tmp_path: Path) -> None:
    evaluation.save(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == evaluation.summary()
    pd.testing.assert_frame_equal(
        pd.read_csv(folder / "jobs.csv", keep_default_na=False, dtype={"job_id": str, "model": str}),
        evaluation.jobs,
        check_exact=True,
        check_dtype=False,
    )
    row = pd.read_csv(folder / "summary.csv").set_index("scheduler").loc["srtf"]
    srtf = summary["schedulers"]["srtf"]
    assert row["mean_jct_s"] == srtf["mean_jct_s"]
    assert [row["ci95_low"], row["ci95_high"]] == srtf["ci95"]
    assert row["decision_ms_p99"] == srtf["decision_ms"]["p99"]
    assert row["ratio_ci95_high"] == srtf["ratio_ci95"][1]


def test_scalars_end_at_the_summary(evaluation: Evaluation, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = evaluation.save(tmp_path)
    assert evaluation.save(tmp_path) == folder == tmp_path / "tensorboard"
    for name, figures in evaluation.summary()["schedulers"].items():
        assert len(list((folder / name).iterdir())) == 1  # the second save replaced the first
        events = EventAccumulator(str(folder / name)).Reload()
        scalars = events.Scalars("evaluation/mean_jct_s")
        assert [point.step for point in scalars] == list(range(1, EPISODES + 1))
        assert scalars[-1].value == pytest.approx(figures["mean_jct_s"], rel=1e-6)  # float32
        assert events.Scalars("evaluation/decision_ms_p50")[-1].value == pytest.approx(figures["decision_ms"]["p50"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "jobs.csv",
        "summary.csv",
        "summary.json",
        "tensorboard",
    ]


def test_without_tensorboard_the_tables_are_saved(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.record_writer", None)
    assert evaluation.save(tmp_path) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "summary.csv", "summary.json"]


@pytest.mark.parametrize("written_before_failure", [0, 1])
def test_failing_save_leaves_old_files_alone(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_before_failure: int
) -> None:
    old = {name: f"old {name}" for name in ("summary.json", "summary.csv", "jobs.csv")}
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    write_csv = pd.DataFrame.to_csv
    written: list[Path] = []

    def full_disk(table: pd.DataFrame, path: Path, **options: object) -> None:
        if len(written) == written_before_failure:
            Path(path).write_text("half a li")
            raise OSError(28, "No space left on device")
        written.append(path)
        write_csv(table, path, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(pd.DataFrame, "to_csv", full_disk)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        evaluation.save(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == old


def test_a_disk_full_of_scalars_leaves_old_files_alone(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_writer = pytest.importorskip("tensorboard.summary.writer.record_writer")
    (tmp_path / "jobs.csv").write_text("old jobs")

    def full_disk(self: object, record: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record_writer.RecordWriter, "write", full_disk)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        evaluation.save(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"jobs.csv": "old jobs"}


def test_folder_that_is_a_file(evaluation: Evaluation, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("mine")
    with pytest.raises(InputError, match="results: cannot be written"):
        evaluation.save(tmp_path / "results")
    assert (tmp_path / "results").read_text() == "mine"

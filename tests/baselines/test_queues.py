"""FIFO in its three forms, SJF, SRTF and FIFO_Perf on cases worked by hand. One type of speed 1 unless said."""

from __future__ import annotations

import numpy as np
import pytest

import baselines
from hetenv.cluster import Cluster
from hetenv.scheduler import QueueScheduler
from hetenv.simulator import Simulator, simulate
from hetenv.simulator.run import run_to_end
from hetenv.workload import Workload
from tests.baselines.cases import small_cluster, small_workload


def starts(name: str, arrival_s, iterations, gpus, cluster_gpus: int = 4, **options) -> list[float]:
    """First starts on one node of ``cluster_gpus``; a job runs for ``iterations`` seconds on ``gpus`` GPUs."""
    gpus = np.array(gpus)
    workload = Workload.build(
        ("a",), np.ones((len(gpus), 1)), arrival_s, iterations=iterations, batch=gpus, min_gpus=gpus, restart_s=1.0
    )
    result = simulate(workload, Cluster.from_counts({"a": cluster_gpus}), baselines.make(name), **options)
    return result.jobs["start_s"].tolist()


# Job 0 holds 3 of 4 GPUs until 10 s. Job 1 wants all 4. Jobs 2 and 3 want one GPU for 9 s and 8 s.
BLOCKED_HEAD = {"arrival_s": [0, 1, 2, 2], "iterations": [10, 5, 9, 8], "gpus": [3, 4, 1, 1]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fifo", [0, 10, 15, 15]),
        ("fifo-skip", [0, 18, 2, 10]),  # the head waits for both of them
        ("fifo-easy", [0, 10, 15, 2]),  # only the 8 s job is done when the head's reservation begins
    ],
)
def test_what_happens_behind_a_blocked_head(name, expected):
    assert starts(name, **BLOCKED_HEAD) == expected


def test_easy_lets_a_long_job_pass_that_the_head_leaves_room_for():
    # The head needs 3 of 4 GPUs at 10 s, so one may be taken beyond that; a second long job may not follow.
    got = starts("fifo-easy", [0, 1, 2, 2], [10, 5, 30, 30], [2, 3, 1, 1])
    assert got == [0, 10, 2, 15]


def test_easy_counts_jobs_started_in_the_same_plan():
    # At 0 s job 0 (2 GPUs, 6 s) starts, job 1 (4 GPUs) is blocked until 6 s; job 2 (2 GPUs, 6 s) fits before it.
    assert starts("fifo-easy", [0, 0, 0, 0], [6, 5, 6, 7], [2, 4, 2, 2]) == [0, 6, 0, 11]


def test_fifo_takes_the_fastest_mix_that_is_free():
    workload = Workload.build(("slow", "fast"), [[1.0, 5.0]] * 3, [0.0, 1.0, 2.0], iterations=30, max_gpus=1)
    result = simulate(workload, Cluster.from_counts({"slow": 1, "fast": 1}), baselines.make("fifo"))
    assert result.timeline.sort_values("job")["type"].tolist() == ["fast", "slow", "fast"]


def test_sjf_starts_the_shortest_job_first():
    assert starts("sjf", [0, 1, 2, 3], [10, 9, 3, 5], [1, 1, 1, 1], cluster_gpus=1) == [0, 18, 10, 13]


def test_sjf_lets_others_pass_a_job_that_does_not_fit():
    assert starts("sjf", [0, 1, 1], [10, 2, 5], [3, 2, 1]) == [0, 10, 1]


def test_srtf_pauses_the_longest_job_for_a_shorter_one():
    workload = Workload.build(("a",), np.ones((3, 1)), [0.0, 4.0, 5.0], iterations=[20.0, 3.0, 100.0], restart_s=2.0)
    result = simulate(workload, Cluster.from_counts({"a": 1}), baselines.make("srtf"), preemptive=True)
    # 0-4 job 0, 4-7 job 1, then job 0 restarts for 2 s and has 16 s left, then job 2
    assert result.jobs["finish_s"].tolist() == [25.0, 7.0, 125.0]
    assert result.jobs["restarts"].tolist() == [1, 0, 0]


def test_srtf_waits_where_nobody_may_be_paused():
    workload = Workload.build(("a",), np.ones((3, 1)), [0.0, 4.0, 5.0], iterations=[20.0, 50.0, 3.0])
    result = simulate(workload, Cluster.from_counts({"a": 1}), baselines.make("srtf"))
    assert result.jobs["finish_s"].tolist() == [20.0, 73.0, 23.0]


def test_srtf_pauses_no_more_than_it_must():
    # Jobs 0 and 1 hold two GPUs each, job 2 needs two and is shorter than both: the longer one, 1, makes room.
    workload = Workload.build(
        ("a",), np.ones((3, 1)), [0.0, 0.0, 1.0], iterations=[20.0, 30.0, 5.0], batch=2, min_gpus=2
    )
    result = simulate(workload, Cluster.from_counts({"a": 4}), baselines.make("srtf"), preemptive=True)
    assert result.jobs["finish_s"].tolist() == [20.0, 35.0, 6.0]
    assert result.jobs["restarts"].tolist() == [0, 1, 0]


def test_srtf_lets_a_paused_job_go_on_where_there_is_room():
    # Job 0 runs on the fast type; job 1 can run only there and is shorter, so job 0 moves to the slow one.
    workload = Workload.build(("slow", "fast"), [[1.0, 2.0], [0.0, 2.0]], [0.0, 5.0], iterations=[40.0, 4.0])
    result = simulate(workload, Cluster.from_counts({"slow": 1, "fast": 1}), baselines.make("srtf"), preemptive=True)
    assert result.jobs["finish_s"].tolist() == [5.0 + 30.0, 7.0]


def test_fifo_perf_deals_out_the_fastest_types_by_arrival():
    workload = Workload.build(("slow", "fast"), [[1.0, 2.0]] * 3, [0.0, 0.0, 0.0], iterations=[10, 10, 10])
    result = simulate(
        workload, Cluster.from_counts({"slow": 1, "fast": 1}), baselines.make("fifo-perf"), preemptive=True
    )
    # 0-5: job 0 fast, job 1 slow; then job 1 moves to the fast GPU with 5 left, job 2 gets the slow one until 7.5
    np.testing.assert_allclose(result.jobs["finish_s"], [5.0, 7.5, 7.5 + 7.5 / 2])


def test_fifo_perf_stops_at_a_job_that_fits_nowhere_but_skips_one_that_cannot_run_there():
    workload = Workload.build(
        ("a", "b"), [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], np.zeros(3), iterations=10, min_gpus=[1, 1, 1]
    )
    result = simulate(workload, Cluster.from_counts({"a": 2, "b": 1}), baselines.make("fifo-perf"))
    assert result.jobs["start_s"].tolist() == [0.0, 0.0, 0.0]  # a on ties
    busy = Workload.build(
        ("a", "b"), [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], np.zeros(3), iterations=10, min_gpus=[1, 1, 1]
    )
    result = simulate(busy, Cluster.from_counts({"a": 1, "b": 1}), baselines.make("fifo-perf"))
    assert result.jobs["start_s"].tolist() == [0.0, 10.0, 0.0]  # a has room, job 1 cannot run there: skipped
    wide = busy.replace(min_gpus=[1, 2, 1], max_gpus=[1, 2, 1])
    result = simulate(wide, Cluster.from_counts({"a": 1, "b": 2}), baselines.make("fifo-perf"))
    assert result.jobs["start_s"].tolist() == [0.0, 10.0, 10.0]  # neither type has two: all behind it wait


MODES: dict[str, dict] = {
    "events": {},
    "rounds": {"round_s": 30.0},
    "whole steps": {"round_s": 30.0, "whole_steps": True, "min_reallocation_s": 45.0},
    "even split": {"even_split": True},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["rigid", "moldable", "malleable", "measured"])
@pytest.mark.parametrize("name", ["fifo", "fifo-skip", "sjf", "srtf"])
def test_a_compiled_queue_does_what_its_plans_do(name: str, kind: str, mode: str) -> None:
    workload, cluster, scheduler = small_workload(kind, 40, gap_s=8.0), small_cluster(), baselines.make(name)
    assert isinstance(scheduler, QueueScheduler)
    compiled = Simulator(cluster, workload, **MODES[mode])
    decision_s = run_to_end(compiled, scheduler)
    assert (compiled.state.jobs["start_s"] > workload.arrival_s).any()  # some had to wait

    planned, n_decisions = Simulator(cluster, workload, **MODES[mode]), 0
    while not planned.done:
        planned.apply(scheduler.plan(planned.snapshot()))
        planned.advance()
        n_decisions += 1
    assert n_decisions == len(decision_s)
    assert [array.tobytes() for array in compiled.state] == [array.tobytes() for array in planned.state]
    assert compiled.timeline.tobytes() == planned.timeline.tobytes()


def test_a_compiled_queue_goes_on_from_where_a_simulation_stands() -> None:
    workload, scheduler = small_workload("rigid", 40, gap_s=8.0), baselines.make("sjf")
    whole, halves = Simulator(small_cluster(), workload), Simulator(small_cluster(), workload)
    run_to_end(whole, scheduler)
    for _ in range(30):
        halves.apply(scheduler.plan(halves.snapshot()))
        halves.advance()
    assert not halves.done
    assert halves.snapshot().n_waiting > 0
    run_to_end(halves, scheduler)
    assert whole.timeline.tobytes() == halves.timeline.tobytes()


@pytest.mark.parametrize("name", ["srtf", "fifo-easy"])
def test_no_queue_where_running_jobs_are_paused_or_places_reserved(name: str) -> None:
    simulator = Simulator(small_cluster(), small_workload("rigid"), preemptive=True)
    assert baselines.make(name).discipline(simulator) is None

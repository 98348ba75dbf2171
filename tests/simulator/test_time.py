"""Events, rounds, stalls, snapshots and the draft of a plan."""

from __future__ import annotations

import numpy as np
import pytest

import baselines
from hetenv.cluster import Cluster
from hetenv.errors import InputError, StallError
from hetenv.scheduler import Plan
from hetenv.simulator import Simulator, simulate
from hetenv.workload import Workload


def simulator(arrival_s, iterations, gpus=2, **options) -> Simulator:
    workload = Workload.build(("a",), np.ones((len(arrival_s), 1)), arrival_s, iterations=iterations)
    return Simulator(Cluster.from_counts({"a": gpus}), workload, **options)


def start(sim: Simulator, *jobs: int) -> None:
    sim.apply(Plan(np.array(jobs), np.ones((len(jobs), 1), int)))


def test_time_moves_from_event_to_event():
    sim = simulator([5.0, 5.0, 20.0], [10, 30, 5])
    assert sim.time_s == 5.0
    assert sim.snapshot().jobs.tolist() == [0, 1]
    start(sim, 0, 1)
    assert sim.snapshot().expected_wait_s == 10.0
    assert sim.advance() == (10.0, 20.0)
    assert sim.advance() == (5.0, 5.0)
    assert sim.snapshot().jobs.tolist() == [1, 2]
    start(sim, 2)
    assert sim.advance().seconds == 5.0
    sim.advance()
    assert sim.done
    assert sim.job_seconds == pytest.approx(10 + 30 + 5)


def test_rounds_decide_at_ticks_and_skip_idle_ones():
    sim = simulator([0.0, 95.0], [10, 10], round_s=20.0)
    start(sim, 0)
    sim.advance()
    assert sim.time_s == 100.0  # the job ended at 10, the next came at 95
    assert sim.state.jobs["finish_s"][0] == 10.0
    start(sim, 1)
    sim.advance()
    assert sim.done
    assert sim.time_s == 110.0


def test_whole_steps_end_a_round_with_its_last_step_and_change_little():
    sim = simulator([0.0, 0.0, 3.0], [25, 4, 7], round_s=10.0, whole_steps=True, min_reallocation_s=15.0)
    start(sim, 0, 1)
    sim.advance()
    assert sim.time_s == 10.0  # job 1 ended at 4, job 2 joins at the end of the round
    assert sim.snapshot().jobs.tolist() == [0, 2]
    start(sim, 2)
    sim.advance()
    assert sim.time_s == 25.0  # job 2 ended at 17, job 0 at 25
    assert sim.done
    np.testing.assert_allclose(sim.state.jobs["finish_s"], [25.0, 4.0, 17.0])


def test_an_epoch_waits_for_the_least_time_between_two():
    sim = simulator([1.0, 1.0, 1.0], [40, 5, 5], gpus=2, round_s=10.0, whole_steps=True, min_reallocation_s=25.0)
    start(sim, 0, 1)
    sim.advance()
    assert sim.time_s == 31.0  # a GPU is free from 6 on, but 25 s must pass and rounds end at 11, 21, 31


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"round_s": 0.0}, "round_s"),
        ({"round_s": float("nan")}, "round_s"),
        ({"whole_steps": True}, "whole_steps"),
        ({"min_reallocation_s": 5.0}, "min_reallocation_s"),
    ],
)
def test_bad_options_are_named(options, field):
    with pytest.raises(InputError, match=field):
        simulator([0.0], [1], **options)


class Idler:
    name = "idler"
    decides = frozenset()

    def reset(self, cluster, seed):
        pass

    def plan(self, snapshot):
        return Plan.nothing(1)


@pytest.mark.parametrize("options", [{}, {"round_s": 10.0}, {"round_s": 10.0, "whole_steps": True}])
def test_a_scheduler_that_leaves_the_cluster_idle_is_stopped(options):
    workload = Workload.build(("a",), np.ones((2, 1)), [0.0, 50.0], iterations=1, job_id=["first", "second"])
    with pytest.raises(StallError, match="idler: 2 jobs wait on an idle cluster, first job first"):
        simulate(workload, Cluster.from_counts({"a": 1}), Idler(), **options)


def test_a_stale_snapshot_refuses_to_answer():
    sim = simulator([0.0], [10])
    snapshot = sim.snapshot()
    assert snapshot.remaining.tolist() == [10.0]
    start(sim, 0)
    with pytest.raises(RuntimeError, match="new snapshot"):
        _ = snapshot.free


def test_a_snapshot_shows_progress_and_service():
    sim = simulator([0.0, 4.0], [10, 10], gpus=3)
    start(sim, 0)
    sim.advance()
    snapshot = sim.snapshot()
    assert snapshot.remaining.tolist() == [6.0, 10.0]
    assert snapshot.service_gpu_s.tolist() == [4.0, 0.0]
    assert snapshot.finish_in_s.tolist() == [6.0, np.inf]
    assert snapshot.age_s.tolist() == [4.0, 0.0]
    assert snapshot.exclusive_remaining_s.tolist() == [6.0, 10.0]
    assert snapshot.free.tolist() == snapshot.node_free.tolist() == [2]
    assert snapshot.waiting.tolist() == [False, True]
    assert snapshot.queue().tolist() == [1]
    assert snapshot.queue(limit=0).tolist() == []


def test_a_draft_knows_what_it_leaves_free_and_what_comes_back():
    workload = Workload.build(("a", "b"), np.tile([1.0, 2.0], (4, 1)), np.zeros(4), iterations=[8, 6, 4, 4])
    sim = Simulator(Cluster.from_counts({"a": 2, "b": 1}), workload, preemptive=True)
    draft = sim.snapshot().draft()
    assert draft.fill(np.array([0, 1]), skip=False) == 2
    assert draft.free.tolist() == [1, 0]
    finish_in_s, counts = draft.releases()
    assert finish_in_s.tolist() == [4.0, 6.0]
    assert counts.tolist() == [[0, 1], [1, 0]]
    sim.apply(draft.plan())
    draft = sim.snapshot().draft()
    assert draft.place(2, np.array([1, 0]))
    assert draft.make_room(3, np.array([1, 0])).tolist() == [True, False]  # the first victim is enough
    assert draft.fastest(3) == (pytest.approx([1, 0]), 4.0)
    assert sorted(draft.plan().jobs.tolist()) == [1, 2]


def test_make_room_spares_those_who_cannot_help():
    workload = Workload.build(("a", "b"), [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], np.zeros(3), iterations=9)
    sim = Simulator(Cluster.from_counts({"a": 1, "b": 1}), workload, preemptive=True)
    draft = sim.snapshot().draft()
    draft.fill(np.array([0, 1]), skip=False)
    sim.apply(draft.plan())
    draft = sim.snapshot().draft()
    assert draft.make_room(2, np.array([0, 1])).tolist() == [False, True]
    assert sim.snapshot().draft().make_room(2, np.array([0])).tolist() == [False]


def test_a_result_tells_the_whole_story():
    workload = Workload.build(("a",), np.ones((2, 1)), [0.0, 2.0], iterations=[4, 3], job_id=["x", "y"])
    result = simulate(workload, Cluster.from_counts({"a": 1}), baselines.make("fifo"))
    jobs = result.jobs.set_index("job_id")
    assert jobs.loc["y", ["start_s", "finish_s", "jct_s", "queueing_s", "exclusive_s"]].tolist() == [4, 7, 5, 2, 3]
    assert result.timeline[["job", "type", "gpus", "start_s", "end_s"]].to_numpy().tolist() == [
        [0, "a", 1, 0.0, 4.0],
        [1, "a", 1, 4.0, 7.0],
    ]
    summary = result.summary()
    assert summary["mean_jct_s"] == 4.5
    assert summary["utilization"] == 1.0
    assert len(result.decision_s) == 3


def test_the_queue_is_always_the_waiting_jobs_by_arrival():
    rng = np.random.default_rng(1)
    sim = simulator(np.sort(rng.uniform(0, 60, 40)), rng.integers(5, 40, 40), gpus=6, preemptive=True)
    while not sim.done:
        jobs = sim.snapshot().jobs[rng.random(sim.snapshot().n_active) < 0.5]
        holds = rng.permutation(np.arange(len(jobs)) < 6).astype(int)
        others = np.setdiff1d(np.flatnonzero(sim.state.jobs["status"] == 2), jobs)
        plan_jobs = np.concatenate([jobs, others])
        sim.apply(Plan(plan_jobs, np.concatenate([holds, np.zeros(len(others), int)])[:, None]))
        waiting = np.flatnonzero(sim.state.jobs["status"] == 1)
        np.testing.assert_array_equal(sim.snapshot().queue(), waiting)
        np.testing.assert_array_equal(sim.snapshot().queue(limit=3), waiting[:3])
        assert sim.snapshot().n_waiting == len(waiting)
        if sim.stalled:
            start(sim, int(waiting[0]))
        sim.advance()

"""The window, the candidates and the mask that an agent is shown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.cluster import Cluster
from hetenv.config import load_scenario
from hetenv.envs.candidates import CANDIDATE, IDEAL, propose_candidates
from hetenv.envs.placement import PlacementEnv
from hetenv.envs.session import PlacementSession
from hetenv.simulator import Simulator
from hetenv.simulator.fastest import fastest_counts
from hetenv.workload import Workload
from tests.simulator.worlds import simulators

CLUSTER = Cluster.from_counts({"slow": 8, "fast": 4}, gpus_per_node=4)


def session_at_start(workload: Workload, *, window: int = 6, candidates: int = 8, **options: bool) -> PlacementSession:
    scenario = load_scenario("online", {"window": {"jobs": window, "candidates": candidates}})
    session = PlacementSession(Simulator(CLUSTER, workload, **options), scenario, np.random.default_rng(0))
    session.refresh()
    return session


def jobs_at_once(n_jobs: int, **columns: object) -> Workload:
    defaults = {"iterations": 100.0, "min_gpus": 1, "max_gpus": 8}
    return Workload.build(("slow", "fast"), np.tile([1.0, 3.0], (n_jobs, 1)), np.zeros(n_jobs), **(defaults | columns))


def offers(session: PlacementSession, job: int) -> list[list[int]]:
    """The candidates of a job, without empty places."""
    counts = session.view.counts[job]
    return counts[session.view.candidates[job]["n_gpus"] > 0].tolist()


def test_window_shows_head_and_tail_of_a_long_queue() -> None:
    session = session_at_start(jobs_at_once(20))
    assert session.view.window.tolist() == [0, 1, 2, 17, 18, 19]


def test_window_shows_a_short_queue_whole() -> None:
    session = session_at_start(jobs_at_once(4))
    assert session.view.window.tolist() == [0, 1, 2, 3, -1, -1]


def test_running_jobs_keep_a_quarter_of_the_window() -> None:
    session = session_at_start(jobs_at_once(20), window=8, preemptive=True)
    for _ in range(3):
        session.place(0)
        session.refresh()
    assert session.view.window.tolist() == [3, 4, 5, 17, 18, 19, 0, 2]


def test_running_jobs_stay_out_where_they_cannot_change() -> None:
    session = session_at_start(jobs_at_once(3))
    session.place(0)
    session.refresh()
    assert session.view.window.tolist() == [1, 2, -1, -1, -1, -1]


def test_candidates_are_distinct_legal_and_start_with_the_fastest_least_size() -> None:
    session = session_at_start(jobs_at_once(1, min_gpus=2))
    found = offers(session, 0)
    assert found[0] == [0, 2]
    assert [2, 0] in found
    assert [0, 4] in found
    assert [4, 4] in found
    assert len({tuple(counts) for counts in found}) == len(found)
    assert all(2 <= sum(counts) <= 8 for counts in found)


@settings(max_examples=200, deadline=None)
@given(simulators(), st.integers(0, 2**31))
def test_candidates_are_measured_against_the_fastest_of_their_size(simulator: Simulator, seed: int) -> None:
    fixed, cluster = simulator.fixed, simulator.cluster
    n_types, n_places = len(cluster.types), 12
    draws = np.random.default_rng(seed).random((n_places, n_types + 1), np.float32)
    kept, candidates = np.zeros((n_places, n_types), np.int32), np.zeros(n_places, CANDIDATE)
    ideal, scratch = np.zeros(cluster.n_gpus + 1, IDEAL), np.zeros((2, n_types), np.int64)
    fastest = np.zeros(n_types, np.int64)

    def fastest_s(job: int, least: int, most: int) -> float:
        return fastest_counts(fixed, job, least, most, cluster.total, cluster.largest_node, fastest)

    for job, spec in enumerate(fixed.jobs):
        found = candidates[: propose_candidates(fixed, job, draws, kept, candidates, ideal, scratch)]
        sizes = range(spec["min_gpus"], spec["max_gpus"] + 1)
        least = next(size for size in sizes if fastest_s(job, size, size) < np.inf)
        fastest_s(job, least, least)
        assert kept[0].tolist() == fastest.tolist()
        for candidate in found:
            n_gpus = int(candidate["n_gpus"])
            assert candidate["same_size"] == min(1.0, candidate["rate"] * fastest_s(job, n_gpus, n_gpus))


def test_a_type_without_speed_is_never_offered() -> None:
    workload = Workload.build(("slow", "fast"), np.array([[2.0, 0.0]]), np.zeros(1), iterations=10.0, max_gpus=8)
    assert all(fast == 0 for _, fast in offers(session_at_start(workload), 0))


def test_sampled_mixes_come_from_the_generator() -> None:
    scenario = load_scenario("online")

    def mixes(seed: int) -> bytes:
        session = PlacementSession(Simulator(CLUSTER, jobs_at_once(3)), scenario, np.random.default_rng(seed))
        session.refresh()
        return session.view.counts.tobytes()

    assert mixes(1) == mixes(1)
    assert mixes(1) != mixes(2)


def test_only_what_is_free_can_be_taken() -> None:
    session = session_at_start(jobs_at_once(2, min_gpus=4, max_gpus=4))
    session.place(0)  # the fastest four: all of type fast
    session.refresh()
    row = session.view.mask[: session.view.candidates.shape[1]]
    takeable = [session.view.counts[1, s].tolist() for s in np.flatnonzero(row)]
    assert [4, 0] in takeable
    assert all(fast == 0 for _, fast in takeable)


def test_a_job_changes_at_most_once_an_epoch() -> None:
    session = session_at_start(jobs_at_once(1, restart_s=1.0), preemptive=True)
    session.place(0)
    assert not session.refresh()
    session.epoch += 1
    assert session.refresh()


def test_the_last_running_job_is_not_given_up_when_nothing_will_arrive() -> None:
    session = session_at_start(jobs_at_once(2, malleable=True), preemptive=True)
    give_back = session.view.candidates.shape[1] - 1
    session.place(0)
    session.epoch += 1
    session.refresh()
    row = session.view.window.tolist().index(0)
    assert not session.mask[row * (give_back + 1) + give_back]
    session.place(session.view.window.tolist().index(1) * (give_back + 1))
    session.epoch += 1
    session.refresh()
    row = session.view.window.tolist().index(0)
    assert session.mask[row * (give_back + 1) + give_back]


def test_a_malleable_job_may_be_resized_but_not_moved_without_preemption() -> None:
    session = session_at_start(jobs_at_once(1, malleable=True))
    session.place(0)
    session.epoch += 1
    session.refresh()
    sizes = session.view.candidates[0]["n_gpus"]
    takeable = np.flatnonzero(session.mask[:-1].reshape(-1, len(sizes))[session.view.window == 0])
    assert len(takeable)
    assert (sizes[takeable] > 1).all()


def test_waiting_needs_something_to_wait_for() -> None:
    session = session_at_start(jobs_at_once(2))
    assert not session.mask[-1]
    session.place(0)
    session.refresh()
    assert session.mask[-1]


def test_one_shot_places_every_job_before_time_moves() -> None:
    rng = np.random.default_rng(4)
    env = PlacementEnv("paper-batch")
    for seed in range(20):
        _, info = env.reset(seed=seed)
        terminated = False
        while not terminated:
            assert info["time_s"] == 0.0
            assert not env.action_masks()[-1]
            _, _, terminated, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
        assert (env.simulator.state.jobs["start_s"] == 0.0).all()


def test_gain_of_a_candidate_over_the_current_allocation() -> None:
    workload = jobs_at_once(1, restart_s=10.0, iterations=90.0, malleable=True)
    session = session_at_start(workload, preemptive=True)
    session.place(offers(session, 0).index([1, 0]))  # 90 s left on one slow GPU
    session.epoch += 1
    session.refresh()
    candidates = session.observation()["candidates"][session.view.window == 0][0]
    one_fast = offers(session, 0).index([0, 1])  # 30 s and a restart of 10 s
    assert candidates[one_fast, 10] == pytest.approx((90 - 40) / (90 + 40))
    assert candidates[one_fast, 4] == pytest.approx(40 / (40 + 14400))
    assert candidates[-1, 10] == 0.0  # the last running job is not given up


def test_giving_all_back_is_the_worst_gain() -> None:
    session = session_at_start(jobs_at_once(2, malleable=True), preemptive=True)
    for row in (0, 1):
        session.refresh()
        session.place(session.view.window.tolist().index(row) * session.view.candidates.shape[1])
    session.epoch += 1
    session.refresh()
    assert (session.observation()["candidates"][session.view.window >= 0, -1, 10] == -1.0).all()

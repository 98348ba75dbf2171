"""What a plan may ask for, what it does, and what it is refused for."""

from __future__ import annotations

import numpy as np
import pytest

from hetenv.cluster import Cluster, NodeGroup
from hetenv.errors import InputError, PlanError
from hetenv.performance import MeasuredTable
from hetenv.scheduler import Plan
from hetenv.simulator import Simulator
from hetenv.workload import Workload
from tests.simulator.worlds import state_bytes

TYPES = ("a", "b")


def simulator(preemptive: bool = False, **columns) -> Simulator:
    """4 + 4 GPUs in nodes of 2; by default three rigid 2-GPU jobs of 100 iterations at 1/s on a, 2/s on b."""
    defaults = {"iterations": 100, "batch": 2, "min_gpus": 2, "restart_s": 10.0}
    n_jobs = max((len(value) for value in columns.values() if isinstance(value, list)), default=3)
    workload = Workload.build(TYPES, np.tile([1.0, 2.0], (n_jobs, 1)), np.zeros(n_jobs), **(defaults | columns))
    return Simulator(Cluster.from_counts({"a": 4, "b": 4}, 2), workload, preemptive=preemptive)


def plan(*rows: tuple[int, list[int]], nodes=None) -> Plan:
    return Plan(np.array([job for job, _ in rows]), np.array([counts for _, counts in rows]), nodes)


def finish(sim: Simulator) -> np.ndarray:
    while not sim.done:
        sim.advance()
    return sim.state.jobs["finish_s"]


def test_a_rate_is_that_of_the_allocation():
    sim = simulator(iterations=100)
    sim.apply(plan((0, [2, 0]), (1, [0, 2]), (2, [1, 1])))
    np.testing.assert_allclose(finish(sim), [100.0, 50.0, 200 / 3])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(7, [2, 0])], "job index 7 is not in the system"),
        ([(-1, [2, 0])], "job index -1 is not in the system"),
        ([(2, [0, 2]), (1, [3, 0])], "job 1 cannot have that many GPUs"),
        ([(1, [-1, 3])], "job 1 cannot have that many GPUs"),
        ([(2, [0, 2]), (0, [0, 0])], "job 0 runs, and running jobs may not be paused or moved"),
        ([(0, [0, 2])], "job 0 runs, and running jobs may not be paused or moved"),
        ([(1, [2, 0]), (2, [2, 0])], "more a GPUs than are free"),
    ],
)
def test_an_impossible_plan_says_why_and_changes_nothing(rows, words):
    sim = simulator()
    sim.apply(plan((0, [2, 0])))
    before = state_bytes(sim)
    with pytest.raises(PlanError, match=words):
        sim.apply(plan(*rows))
    assert state_bytes(sim) == before


def test_a_finished_job_cannot_be_planned():
    sim = simulator(iterations=[10, 100, 100])
    sim.apply(plan((0, [2, 0])))
    sim.advance()
    with pytest.raises(PlanError, match="job 0 is not in the system"):
        sim.apply(plan((0, [2, 0])))


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([[(0, 1)]], "ask"),  # too few GPUs
        ([[(0, 1), (2, 1)]], "ask"),  # node 2 has the other type
        ([[(0, 3)]], "ask"),  # more than the node has
        ([[(9, 2)]], "ask"),
        ([[(0, 1), (0, 1)]], "ask"),  # a node twice
    ],
)
def test_chosen_nodes_must_have_the_gpus(nodes, words):
    sim = simulator()
    before = state_bytes(sim)
    with pytest.raises(PlanError, match=words):
        sim.apply(plan((0, [2, 0]), nodes=nodes))
    assert state_bytes(sim) == before


def test_shapes_and_repeated_jobs_are_refused():
    with pytest.raises(PlanError, match="names a job twice"):
        plan((0, [1, 0]), (0, [0, 1]))
    with pytest.raises(PlanError, match="one row a job"):
        Plan(np.array([0, 1]), np.array([[1, 0]]))
    with pytest.raises(PlanError, match="one a job"):
        plan((0, [2, 0]), nodes=[])
    with pytest.raises(PlanError, match="3 types; the cluster has 2"):
        simulator().apply(plan((0, [2, 0, 0])))


def test_chosen_nodes_settle_the_link():
    sim = simulator(grad_bytes=1.25e9)  # 2 / 2 of the bytes a second over the network
    sim.apply(plan((0, [2, 0]), (1, [2, 0]), nodes=[[(0, 1), (1, 1)], [(0, 1), (1, 1)]]))
    assert sim.holds(0) == sim.holds(1) == [(0, 1), (1, 1)]
    np.testing.assert_allclose(sim.state.jobs["rate"][:2], 1 / 2)
    assert sim.apply(plan((0, [2, 0]), (1, [2, 0]), nodes=[[(1, 1), (0, 1)], [(0, 1), (1, 1)]])) == 0  # as they are


def test_migration_costs_a_restart():
    sim = simulator(preemptive=True)
    sim.apply(plan((0, [2, 0]), (1, [2, 0])))
    sim.apply(plan((2, [0, 2])))
    sim.advance()  # job 2 is done at 50 s
    assert sim.time_s == 50.0
    assert sim.apply(plan((0, [0, 2]))) == 1
    np.testing.assert_allclose(finish(sim), [50 + 10 + 25, 100, 50])
    np.testing.assert_array_equal(sim.state.jobs["restarts"], [1, 0, 0])
    np.testing.assert_allclose(sim.state.jobs["lost_gpu_s"], [20, 0, 0])
    np.testing.assert_allclose(sim.state.jobs["service_gpu_s"], [2 * 50 + 2 * 35, 200, 100])


def test_a_paused_job_keeps_its_work_and_pays_when_it_resumes():
    sim = simulator(preemptive=True, iterations=[100, 40])
    sim.apply(plan((0, [2, 0]), (1, [2, 0])))
    sim.apply(plan((0, [0, 0])))
    assert not np.isfinite(sim.state.jobs["eta_s"][0])
    sim.advance()
    sim.apply(plan((0, [2, 0])))
    np.testing.assert_allclose(finish(sim), [40 + 10 + 100, 40])


def test_a_malleable_job_is_resized_but_not_paused():
    sim = simulator(malleable=True, min_gpus=1, max_gpus=4)
    sim.apply(plan((0, [1, 0]), (1, [0, 1])))
    with pytest.raises(PlanError, match="may not be paused"):
        sim.apply(plan((0, [0, 0])))
    sim.apply(plan((0, [4, 0]), (1, [0, 2]), (2, [0, 2])))
    np.testing.assert_allclose(finish(sim), [10 + 50, 10 + 50, 50])


def test_a_moldable_job_is_sized_once():
    sim = simulator(preemptive=True, min_gpus=1, max_gpus=4)
    sim.apply(plan((0, [1, 0])))
    sim.apply(plan((0, [0, 0])))
    with pytest.raises(PlanError, match="job 0 is sized already"):
        sim.apply(plan((0, [2, 0])))
    sim.apply(plan((0, [0, 1])))
    least, most = sim.snapshot().size_limits
    np.testing.assert_array_equal(least, [1, 1, 1])
    np.testing.assert_array_equal(most, [1, 4, 4])


def test_measured_jobs_follow_their_table():
    rate = np.zeros((1, 2, 5, 2))
    rate[0, 0, 2] = [4.0, 1.0]  # a: consolidated, spread
    rate[0, 1, 2] = [0.0, 0.0]
    table = MeasuredTable(("m",), TYPES, rate)
    sim = simulator(model=["m", "m", ""], measured=table, iterations=100)
    for counts in ([0, 2], [1, 1]):
        with pytest.raises(PlanError, match="cannot run on these GPUs"):
            sim.apply(plan((0, counts)))
    sim.apply(plan((0, [2, 0]), (1, [2, 0]), (2, [0, 2]), nodes=[[(0, 2)], [(1, 2)], [(2, 2)]]))
    np.testing.assert_allclose(sim.state.jobs["rate"], [4.0, 4.0, 2.0])
    assert simulator(model=["m"], measured=table).apply(plan((0, [2, 0]), nodes=[[(0, 1), (1, 1)]])) == 1


def test_a_job_measured_as_unable_to_spread_is_not_packed_onto_two_nodes():
    rate = np.zeros((1, 2, 5, 2))
    rate[0, 0, 2, 0] = 1.0
    table = MeasuredTable(("m",), TYPES, rate)
    sim = simulator(model=["", "", "m"], measured=table, min_gpus=[1, 1, 2])
    sim.apply(plan((0, [1, 0]), (1, [1, 0]), nodes=[[(0, 1)], [(1, 1)]]))
    before = state_bytes(sim)
    with pytest.raises(PlanError, match="job 2 cannot run"):
        sim.apply(plan((2, [2, 0])))
    assert state_bytes(sim) == before
    assert not sim.snapshot().draft().fastest(2)[0].any()
    sim.advance()
    assert sim.apply(plan((2, [2, 0]))) == 1


def test_jobs_are_packed_onto_the_fewest_nodes_then_the_fullest_that_fit():
    workload = Workload.build(("a",), np.ones((5, 1)), np.zeros(5), iterations=1, min_gpus=[1, 3, 1, 4, 3])
    sim = Simulator(Cluster.from_counts({"a": 12}, 4), workload)
    sim.apply(plan((0, [1]), (1, [3]), (2, [1])))
    assert sim.holds(0) == [(0, 1)]
    assert sim.holds(1) == [(0, 3)]  # fills the node that has just three left
    assert sim.holds(2) == [(1, 1)]
    sim.apply(plan((3, [4])))
    assert sim.holds(3) == [(2, 4)]
    uneven = Simulator(
        Cluster(sim.cluster.types, (NodeGroup("a", 2, 2), NodeGroup("a", 1, 3))),
        Workload.build(("a",), np.ones((2, 1)), np.zeros(2), iterations=1, min_gpus=[4, 2]),
    )
    uneven.apply(plan((0, [4]), (1, [2])))
    assert uneven.holds(0) == [(0, 1), (2, 3)]  # the emptiest first, then the rest
    assert uneven.holds(1) == [(1, 2)]


def test_packing_from_the_emptiest_node_spreads_small_jobs_and_still_spans_the_fewest_nodes():
    workload = Workload.build(("a",), np.ones((5, 1)), np.zeros(5), iterations=1, min_gpus=[1, 3, 1, 4, 3])
    sim = Simulator(Cluster.from_counts({"a": 12}, 4), workload, packing="emptiest")
    sim.apply(plan((0, [1]), (1, [3]), (2, [1])))
    assert [sim.holds(job) for job in range(3)] == [[(0, 1)], [(1, 3)], [(2, 1)]]
    sim.apply(plan((3, [4])))
    assert sim.holds(3) == [(0, 3), (2, 1)]  # with the fullest first, a whole node would be left
    with pytest.raises(InputError, match="packing: 'tight'; use one of fullest, emptiest"):
        Simulator(sim.cluster, workload, packing="tight")


def test_a_draft_foresees_the_rate_of_the_packing_in_force():
    # Beside a single GPU in each node of two, two GPUs are apart: 10 iterations take 20 s, not 10 s.
    rate = np.zeros((1, 1, 3, 2))
    rate[0, 0, 1:, 0], rate[0, 0, 1, 1], rate[0, 0, 2, 1] = 1.0, 1.0, 0.5
    workload = Workload.build(
        ("a",),
        np.ones((3, 1)),
        np.zeros(3),
        iterations=10,
        min_gpus=[1, 1, 2],
        model=["m"] * 3,
        measured=MeasuredTable(("m",), ("a",), rate),
    )
    for packing, run_s in (("fullest", 10.0), ("emptiest", 20.0)):
        sim = Simulator(Cluster.from_counts({"a": 4}, 2), workload, packing=packing)
        draft = sim.snapshot().draft()
        draft.fill(np.arange(2), skip=False)
        assert draft.fastest(2)[1] == run_s
        draft.fill(np.array([2]), skip=False)
        sim.apply(draft.plan())
        assert finish(sim)[2] == run_s


def test_a_job_that_can_never_run_is_refused_by_name():
    with pytest.raises(InputError, match="job big: needs 9 GPUs"):
        simulator(job_id=["ok", "big"], min_gpus=[1, 9])

"""What must hold on every run, under any plans whatever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetenv.errors import PlanError
from hetenv.scheduler import Plan
from hetenv.simulator import Simulator
from tests.simulator.worlds import random_plan, rate_by_hand, simulators, state_bytes

SEEDS = st.integers(0, 2**32 - 1)
RANDOM_RUNS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
RANDOM_PLANS = 25  # epochs with random plans; then the queue drains in order of arrival


def step(simulator: Simulator, rng: np.random.Generator, epoch: int) -> None:
    """One decision, and time to the next."""
    if epoch < RANDOM_PLANS:
        try:
            simulator.apply(random_plan(simulator, rng))
        except PlanError as error:
            if "cannot run on these GPUs" not in str(error):  # a measured rate of 0, which the plan cannot foresee
                raise
    if epoch >= RANDOM_PLANS or simulator.stalled:
        draft = simulator.snapshot().draft()
        draft.fill(simulator.snapshot().queue(), skip=True)
        simulator.apply(draft.plan())
    simulator.advance()


def run(simulator: Simulator, seed: int, epoch: int = 0) -> None:
    rng = np.random.default_rng(seed)
    while not simulator.done:
        step(simulator, rng, epoch)
        epoch += 1


class Ledger:
    """The books of a run, kept apart from the simulator."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.iterations = np.zeros(len(simulator.workload))
        self.productive_from_s: dict[int, float] = {}
        self.held: dict[int, tuple[list[tuple[int, int]], float]] = {}
        self.sizes: dict[int, set[int]] = {}

    def note_allocations(self) -> None:
        """After a plan: who holds what, at which rate, and productive from when."""
        simulator = self.simulator
        jobs = simulator.state.jobs
        for job in np.flatnonzero(jobs["status"] == 2).tolist():
            now_holds = (simulator.holds(job), float(jobs["since_s"][job]))
            if self.held.get(job) != now_holds:
                restart_s = simulator.workload.restart_s[job] if job in self.held else 0.0
                self.productive_from_s[job] = simulator.time_s + restart_s
                self.held[job] = now_holds
                self.sizes.setdefault(job, set()).add(int(jobs["n_gpus"][job]))

    def check_running(self) -> None:
        """The running jobs are listed in the order of their finishes, the last first."""
        state = self.simulator.state
        jobs = np.flatnonzero(state.jobs["status"] == 2)
        in_order = jobs[np.lexsort((jobs, state.jobs["eta_s"][jobs]))][::-1]
        assert state.running[: state.clock["n_running"][0]].tolist() == in_order.tolist()

    def check_gpus(self) -> None:
        """No GPU is held twice and none is lost."""
        simulator = self.simulator
        state, cluster = simulator.state, simulator.cluster
        used = np.zeros(cluster.n_nodes, int)
        for job in range(len(simulator.workload)):
            for node, gpus in simulator.holds(job):
                assert gpus > 0
                used[node] += gpus
        assert (state.nodes["free"] >= 0).all()
        np.testing.assert_array_equal(used + state.nodes["free"], cluster.node_gpus)
        free = np.bincount(cluster.node_type, state.nodes["free"], len(cluster.types))
        np.testing.assert_array_equal(free, state.uses["free"])
        np.testing.assert_array_equal(cluster.total - free, state.counts.sum(axis=0))
        np.testing.assert_array_equal(state.jobs["n_gpus"], state.counts.sum(axis=1))

    def advance(self) -> None:
        """Let time pass and book the work that the allocations must have done."""
        simulator = self.simulator
        running = np.flatnonzero(simulator.state.jobs["status"] == 2).tolist()
        rates = {job: rate_by_hand(simulator, job) for job in running}
        for job in running:
            assert simulator.state.jobs["rate"][job] == pytest.approx(rates[job], rel=1e-12)
        from_s, from_job_s = simulator.time_s, simulator.job_seconds
        elapsed = simulator.advance()
        assert elapsed.seconds == simulator.time_s - from_s >= 0
        assert elapsed.job_seconds == simulator.job_seconds - from_job_s
        for job in running:
            finish_s = float(simulator.state.jobs["finish_s"][job])
            until_s = simulator.time_s if np.isnan(finish_s) else finish_s
            self.iterations[job] += rates[job] * max(0.0, until_s - max(from_s, self.productive_from_s[job]))


@RANDOM_RUNS
@given(simulators(), SEEDS)
def test_random_runs_keep_the_books(simulator, seed):
    rng, ledger, epoch = np.random.default_rng(seed), Ledger(simulator), 0
    jumps = simulator.advance  # the ledger takes the place of the simulator's own advance
    while not simulator.done:
        simulator.advance = lambda: None
        step(simulator, rng, epoch)
        simulator.advance = jumps
        ledger.note_allocations()
        ledger.check_gpus()
        ledger.check_running()
        if not simulator.stalled:
            ledger.advance()
        epoch += 1
    workload, jobs, cluster = simulator.workload, simulator.state.jobs, simulator.cluster
    np.testing.assert_allclose(ledger.iterations, workload.iterations, rtol=1e-9)
    jct_s = jobs["finish_s"] - workload.arrival_s
    assert (jct_s >= simulator.exclusive_s * (1 - 1e-9)).all()
    assert jct_s.sum() == pytest.approx(simulator.job_seconds, rel=1e-9)
    segments = simulator.timeline
    held_gpu_s = segments["gpus"] * (segments["end_s"] - segments["start_s"])
    by_type = np.bincount(cluster.node_type[segments["node"]], held_gpu_s, len(cluster.types))
    np.testing.assert_allclose(simulator.busy_gpu_s, by_type, rtol=1e-9, atol=1e-6)
    by_job = np.bincount(segments["job"], held_gpu_s, len(workload))
    np.testing.assert_allclose(jobs["service_gpu_s"], by_job, rtol=1e-9, atol=1e-9)
    for job, sizes in ledger.sizes.items():
        assert workload.min_gpus[job] <= min(sizes) <= max(sizes) <= workload.max_gpus[job]
        assert workload.malleable[job] or len(sizes) == 1


@RANDOM_RUNS
@given(simulators(), SEEDS)
def test_the_same_seed_gives_the_same_bytes(simulator, seed):
    run(simulator, seed)
    first = state_bytes(simulator) + simulator.timeline.tobytes()
    simulator.reset(0)
    run(simulator, seed)
    assert state_bytes(simulator) + simulator.timeline.tobytes() == first


@RANDOM_RUNS
@given(simulators(), SEEDS, st.integers(0, 6))
def test_a_clone_has_the_same_future_and_leaves_the_original_alone(simulator, seed, epochs_before):
    rng = np.random.default_rng(seed)
    for epoch in range(epochs_before):
        if not simulator.done:
            step(simulator, rng, epoch)
    twin, before = simulator.clone(), state_bytes(simulator)
    run(twin, seed + 1, epochs_before)
    assert state_bytes(simulator) == before
    run(simulator, seed + 1, epochs_before)
    assert state_bytes(simulator) == state_bytes(twin)
    assert simulator.timeline.tobytes() == twin.timeline.tobytes()


@RANDOM_RUNS
@given(simulators(), SEEDS, st.integers(0, 4))
def test_any_plan_is_carried_out_whole_or_refused_without_a_trace(simulator, seed, epochs_before):
    rng = np.random.default_rng(seed)
    for epoch in range(epochs_before):
        if not simulator.done:
            step(simulator, rng, epoch)
    n_jobs, n_types = len(simulator.workload), len(simulator.cluster.types)
    for _ in range(20):
        jobs = rng.choice(n_jobs + 1, size=rng.integers(1, n_jobs + 2), replace=False) - rng.integers(2)
        counts = rng.integers(-1 if rng.random() < 0.2 else 0, 4, (len(jobs), n_types)) * (rng.random(n_types) < 0.7)
        before = state_bytes(simulator)
        twin = simulator.clone()
        try:
            twin.apply(Plan(jobs, counts))
        except PlanError:
            assert state_bytes(twin) == before
        else:
            np.testing.assert_array_equal(twin.state.counts[jobs], counts)
            Ledger(twin).check_gpus()


@RANDOM_RUNS
@given(simulators(), SEEDS)
def test_rounds_in_gavels_form_keep_the_clock_and_the_gpus(simulator, seed):
    rounds = Simulator(
        simulator.cluster,
        simulator.workload,
        preemptive=simulator.preemptive,
        round_s=15.0,
        whole_steps=True,
        min_reallocation_s=40.0,
    )
    rng, ledger, epoch, last_s = np.random.default_rng(seed), Ledger(rounds), 0, -np.inf
    while not rounds.done:
        assert rounds.time_s - last_s >= 40.0 or last_s <= 0.0 or ledger.simulator.state.clock["n_running"][0] == 0
        last_s = rounds.time_s
        step(rounds, rng, epoch)
        ledger.check_gpus()
        ledger.check_running()
        epoch += 1
    jct_s = rounds.state.jobs["finish_s"] - rounds.workload.arrival_s
    assert jct_s.sum() == pytest.approx(rounds.job_seconds, rel=1e-9)
    assert (jct_s >= rounds.exclusive_s * (1 - 1e-9)).all()
    segments = rounds.timeline
    held_gpu_s = segments["gpus"] * (segments["end_s"] - segments["start_s"])
    assert rounds.busy_gpu_s.sum() == pytest.approx(held_gpu_s.sum(), rel=1e-9, abs=1e-6)

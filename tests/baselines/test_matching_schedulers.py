"""JPS, market and exact: on a batch against brute force, and online within the rules of their epochs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import baselines
from baselines.market import Market
from baselines.online_matcher import OnlineMatcher
from hetenv.cluster import Cluster
from hetenv.config import Scenario, load_scenario
from hetenv.epoch import OnlineObjective, plan_epoch
from hetenv.market_epoch import plan_market
from hetenv.matching import OnlineTerms, Placement, PlacementProblem, solve_market
from hetenv.performance import category_link, iteration_s
from hetenv.posing import MOST_CATEGORIES
from hetenv.scheduler import Plan
from hetenv.simulator import Simulator, simulate
from hetenv.workload import Workload
from tests.baselines.cases import small_cluster, small_workload

MATCHERS = ("jps", "market", "exact")


def batch(seed: int, n_jobs: int) -> Workload:
    rng = np.random.default_rng(seed)
    return Workload.build(
        ("a", "b", "c"),
        rng.uniform(50, 400, (n_jobs, 3)),
        np.zeros(n_jobs),
        iterations=rng.integers(100, 2000, n_jobs),
        batch=rng.integers(32, 512, n_jobs),
        grad_bytes=rng.uniform(1e8, 5e8, n_jobs),
        max_gpus=3,
    )


def run_times(simulator: Simulator, plan: Plan) -> np.ndarray:
    """(J,) seconds of each job under the plan; what the jobs left waiting are worth beside them."""
    cluster, workload = simulator.cluster, simulator.workload
    seconds = np.full(len(workload), np.nan)
    for job, counts in zip(plan.jobs.tolist(), plan.counts, strict=True):
        link = category_link(counts, cluster.intra_bytes_per_s, cluster.nic_bytes_per_s, cluster.largest_node)
        step_s = iteration_s(
            counts,
            workload.speed_on(cluster)[job],
            float(workload.batch[job]),
            float(workload.grad_bytes[job]),
            link,
            False,
        )
        seconds[job] = workload.iterations[job] * step_s
    return seconds


def objective(simulator: Simulator, plan: Plan) -> float:
    """The epoch's objective on an idle cluster: run times, and tau + J(best) for jobs left waiting."""
    waiting_s = simulator.exclusive_s.min() + simulator.exclusive_s
    seconds = run_times(simulator, plan)
    return float(np.where(np.isnan(seconds), waiting_s, seconds).sum())


def best_by_brute_force(simulator: Simulator) -> float:
    total, n_jobs = simulator.cluster.total, len(simulator.workload)
    options = [np.array(counts) for counts in itertools.product(*(range(n + 1) for n in total)) if sum(counts) <= 3]
    seconds = np.array([[objective_of_one(simulator, job, counts) for counts in options] for job in range(n_jobs)])
    best: dict[tuple[int, ...], float] = {tuple(total.tolist()): 0.0}  # free GPUs -> least cost so far
    for job in range(n_jobs):
        reached: dict[tuple[int, ...], float] = {}
        for free, cost in best.items():
            for counts, own in zip(options, seconds[job], strict=True):
                left = tuple((np.array(free) - counts).tolist())
                if min(left) >= 0:
                    reached[left] = min(reached.get(left, np.inf), cost + own)
        best = reached
    return min(best.values())


def objective_of_one(simulator: Simulator, job: int, counts: np.ndarray) -> float:
    if not counts.any():
        return float(simulator.exclusive_s.min() + simulator.exclusive_s[job])
    return float(run_times(simulator, Plan(np.array([job]), counts[None]))[job])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "slack"), [("exact", 1e-6), ("market", 1e-3), ("jps", 2.1e-2)])
def test_a_batch_is_placed_as_well_as_brute_force_does(name, slack, seed):
    simulator = Simulator(Cluster.from_counts({"a": 2, "b": 2, "c": 2}), batch(seed, 4))
    scheduler = baselines.make(name)
    scheduler.reset(simulator.cluster, seed)
    plan = scheduler.plan(simulator.snapshot())
    best = best_by_brute_force(simulator)
    assert best * (1 - 1e-9) <= objective(simulator, plan) <= best * (1 + slack)


@pytest.mark.parametrize("name", MATCHERS)
def test_waiting_for_a_fast_gpu_pays_when_it_is_free_soon(name):
    # Job 0 holds the fast GPU until 10 s. Job 1 would take 100 s on the slow one, 20 s on the fast one: it waits.
    workload = Workload.build(("slow", "fast"), [[1.0, 5.0]] * 2, [0.0, 5.0], iterations=[50.0, 100.0])
    cluster = Cluster.from_counts({"slow": 1, "fast": 1})
    patient = simulate(workload, cluster, baselines.make(name))
    assert patient.jobs["start_s"].tolist() == [0.0, 10.0]
    hasty = simulate(workload, cluster, baselines.make(name, waiting_factor=30.0))
    assert hasty.jobs["start_s"].tolist() == [0.0, 5.0]


@pytest.mark.parametrize("name", MATCHERS)
def test_waiting_for_more_gpus_pays_when_they_are_free_soon(name):
    """J(best) counts on the whole cluster, not on what happens to be free."""
    workload = Workload.build(("a",), [[1.0], [1.0]], [0, 1], iterations=[3.3, 100], min_gpus=[3, 1], max_gpus=[3, 4])
    simulator = Simulator(Cluster.from_counts({"a": 4}), workload)
    scheduler = baselines.make(name)
    scheduler.reset(simulator.cluster, 0)
    simulator.apply(Plan(np.array([0]), np.array([[3]])))  # until 1.1 s
    simulator.advance()
    assert len(scheduler.plan(simulator.snapshot())) == 0
    simulator.advance()
    assert scheduler.plan(simulator.snapshot()).counts.tolist() == [[4]]


@pytest.mark.parametrize("name", MATCHERS)
def test_a_running_job_moves_only_if_the_restart_pays(name):
    # At 10 s the fast GPU is free; job 1 has 30 s left on the slow one, 6 s on the fast one.
    cluster = Cluster.from_counts({"slow": 1, "fast": 1})
    for restart_s, finish_s in ((20.0, 10.0 + 20.0 + 6.0), (30.0, 40.0)):
        workload = Workload.build(
            ("slow", "fast"), [[0.0, 1.0], [1.0, 5.0]], [0.0, 0.0], iterations=[10.0, 40.0], restart_s=restart_s
        )
        simulator = Simulator(cluster, workload, preemptive=True)
        simulator.apply(Plan(np.array([0, 1]), np.array([[0, 1], [1, 0]])))
        simulator.advance()
        scheduler = baselines.make(name)
        scheduler.reset(cluster, 0)
        simulator.apply(scheduler.plan(simulator.snapshot()))
        simulator.advance()
        assert simulator.time_s == pytest.approx(finish_s)


@pytest.mark.parametrize("name", MATCHERS)
def test_malleable_jobs_give_way_but_are_never_paused(name):
    workload = Workload.build(
        ("a",), np.ones((3, 1)), [0.0, 10.0, 11.0], iterations=[1000.0, 40.0, 40.0], max_gpus=4, malleable=True
    )
    cluster = Cluster.from_counts({"a": 4})
    result = simulate(workload, cluster, baselines.make(name))
    assert result.jobs["start_s"].tolist()[:2] == [0.0, 10.0]
    own = result.timeline[result.timeline["job"] == 0].sort_values("start_s")
    assert own["gpus"].iloc[0] == 4
    assert own["gpus"].min() < 4
    assert (own["start_s"].to_numpy()[1:] == own["end_s"].to_numpy()[:-1]).all()  # resized, never without GPUs


@pytest.mark.parametrize("name", MATCHERS)
def test_a_waiting_factor_of_zero_does_not_leave_the_cluster_idle(name):
    result = simulate(small_workload("rigid"), small_cluster(), baselines.make(name, waiting_factor=0.0))
    assert np.isfinite(result.jobs["jct_s"]).all()


def test_weights_prefer_the_short_job():
    # One GPU, two waiting jobs: whoever starts, the other waits. Weighted by 1/J, both are worth the same to start,
    # and the wait costs the short one more.
    workload = Workload.build(("a",), np.ones((2, 1)), [0.0, 0.0], iterations=[100.0, 10.0])
    cluster = Cluster.from_counts({"a": 1})
    result = simulate(workload, cluster, baselines.make("exact", weight_exponent=1.0))
    assert result.jobs["start_s"].tolist() == [10.0, 0.0]


def test_a_fairness_exponent_prefers_the_job_that_an_equal_share_serves_fast():
    # Either of the two takes 12 s, job 0 on one GPU, job 1 on all four, so that one of them has to wait. On an equal
    # share of two GPUs job 0 takes 12 s still, job 1 would take 24 s.
    workload = Workload.build(
        ("a",), np.ones((2, 1)), [0.0, 0.0], iterations=[12.0, 48.0], max_gpus=[1, 4], min_gpus=[1, 4]
    )
    simulator = Simulator(Cluster.from_counts({"a": 4}), workload)
    first = {}
    for exponent in (-1.0, 1.0):
        scheduler = baselines.make("exact", fairness_exponent=exponent)
        first[exponent] = scheduler.plan(simulator.snapshot()).jobs.tolist()
    assert first == {-1.0: [1], 1.0: [0]}


class SolvedMarket(OnlineMatcher):
    """``market`` by ``solve_market``, one placement after the other; it keeps them."""

    name = "market"

    def __init__(self, *, start: str, **options) -> None:
        super().__init__(**options)
        self._warm, self.placements = start == "warm", []

    def reset(self, cluster: Cluster, seed: int) -> None:
        super().reset(cluster, seed)
        self._prices = None

    def _solve(self, problem: PlacementProblem, terms: OnlineTerms) -> Placement:
        placement = solve_market(problem, start_prices=self._prices, **terms)
        if self._warm:
            self._prices = placement.prices
        self.placements.append(placement)
        return placement

    def gaps(self) -> np.ndarray:
        """(epochs,) certified gap of each placement, as a fraction of its total."""
        totals = np.array([placement.total for placement in self.placements])
        return (totals - [placement.lower_bound for placement in self.placements]) / totals


@pytest.mark.parametrize("start", ["cold", "warm"])
@pytest.mark.parametrize("scenario", ["online", "online-elastic", "philly", "gavel", "modern", "acme"])
def test_the_compiled_market_plans_what_solve_market_places(scenario, start):
    """Acme has epochs that take HiGHS; philly and gavel rigid jobs, the latter and modern measured ones."""
    loaded = load_scenario(scenario, {"workload": {"n_jobs": 40}})
    options = {"start": start, "waiting_factor": 1.5, "weight_exponent": 0.3, "fairness_exponent": 0.2, "max_jobs": 24}
    of_each = [
        evaluate_episode(loaded, scheduler, seed=1) for scheduler in (Market(**options), SolvedMarket(**options))
    ]
    assert of_each[0] == of_each[1]


@pytest.mark.parametrize("scenario", ["online", "online-elastic"])
def test_warm_prices_cost_no_quality(scenario):
    # Other placements of equal worth lead to other futures, so mean JCTs of single episodes differ, either way.
    loaded = load_scenario(scenario, {"workload": {"n_jobs": 20}})
    markets = {start: SolvedMarket(start=start) for start in ("cold", "warm")}
    mean_jct_s = {
        start: np.mean([evaluate_episode(loaded, market, seed) for seed in range(3)])
        for start, market in markets.items()
    }
    assert mean_jct_s["warm"] == pytest.approx(mean_jct_s["cold"], rel=0.01)
    assert markets["warm"].gaps().mean() <= markets["cold"].gaps().mean() + 1e-4
    assert markets["warm"].gaps().max() <= 0.01


def evaluate_episode(scenario: Scenario, scheduler: OnlineMatcher, seed: int) -> float:
    workload = scenario.draw_workload(np.random.default_rng(seed))
    options = scenario.simulator.model_dump()
    return simulate(workload, scenario.cluster, scheduler, seed=seed, **options).summary()["mean_jct_s"]


def test_a_warm_market_starts_at_the_last_prices_until_it_is_reset(monkeypatch):
    started_at, found = [], []

    def record(snapshot, objective, start_prices):
        plan, prices, unit = plan_market(snapshot, objective, start_prices=start_prices)
        if prices is not None:
            started_at.append(start_prices)
            found.append(prices)
        return plan, prices, unit

    monkeypatch.setattr("baselines.market.plan_market", record)
    scheduler = baselines.make("market", start="warm")
    for _ in range(2):
        simulate(small_workload("moldable"), small_cluster(), scheduler)
        assert len(found) > 2
        assert started_at[0] is None
        for start, before in zip(started_at[1:], found, strict=False):
            assert start is before
        started_at.clear()
        found.clear()


def test_the_window_shows_the_shortest_and_the_oldest():
    workload = Workload.build(("a",), np.ones((6, 1)), np.arange(6.0), iterations=[90.0, 80.0, 70.0, 60.0, 10.0, 20.0])
    simulator = Simulator(Cluster.from_counts({"a": 9}), workload)
    while simulator.snapshot().n_active < 6:
        simulator.advance()
    seen = []

    def look(problem, terms):
        seen.extend(problem.model.iterations.tolist())
        return solve_market(problem, **terms)

    plan_epoch(simulator.snapshot(), OnlineObjective(max_jobs=4), look)
    assert sorted(seen) == [10.0, 20.0, 80.0, 90.0]


@pytest.mark.parametrize("preemptive", [False, True])
def test_half_the_window_is_for_running_jobs(preemptive):
    workload = Workload.build(
        ("a",), np.ones((12, 1)), np.zeros(12), iterations=np.arange(1.0, 13.0) * 10, malleable=True
    )
    simulator = Simulator(Cluster.from_counts({"a": 6}), workload, preemptive=preemptive)
    simulator.apply(Plan(np.arange(6), np.ones((6, 1), int)))
    seen = []

    def look(problem, terms):
        seen.append((problem.capacity.tolist(), problem.model.iterations.tolist(), terms["waiting"]))
        return solve_market(problem, **terms)

    plan_epoch(simulator.snapshot(), OnlineObjective(max_jobs=4), look)
    capacity, iterations, waiting = seen[0]
    assert capacity == [2]  # the four shortest running jobs keep theirs
    assert iterations == [50.0, 60.0, 70.0, 80.0]
    assert np.isfinite(waiting).tolist() == [preemptive, preemptive, True, True]


def test_a_job_with_too_many_categories_takes_its_fastest_allocation():
    types = ("a", "b", "c", "d")
    speed = np.array([[1.0, 2.0, 3.0, 4.0]] * 2)
    workload = Workload.build(types, speed, np.zeros(2), iterations=10, batch=64, min_gpus=[60, 1], max_gpus=[60, 200])
    simulator = Simulator(Cluster.from_counts(dict.fromkeys(types, 50)), workload)
    offered = []

    def look(problem, terms):
        offered.append(len(problem.costs.cost))
        return solve_market(problem, **terms)

    plan = plan_epoch(simulator.snapshot(), OnlineObjective(), look)
    assert plan.counts[plan.jobs == 0].tolist() == [[0, 0, 10, 50]]
    assert 0 < offered[0] <= MOST_CATEGORIES
    assert set(plan.jobs.tolist()) == {0, 1}

"""hetenv/Market-v0 keeps Gymnasium's contract, starts from the market baseline and bends it as documented."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import baselines
import hetenv
from baselines.market import Market
from hetenv.config import Scenario, load_scenario
from hetenv.envs.market import MarketEnv
from hetenv.envs.market_session import bend_of, plan_bent
from hetenv.epoch import OnlineObjective
from hetenv.market_epoch import _plan_in_python, plan_market
from hetenv.performance import MeasuredTable
from hetenv.simulator import Simulator
from hetenv.simulator.run import run_to_end
from hetenv.workload import Workload

SHORT = {"workload": {"n_jobs": 25}}
CASES = {
    "batch": ("paper-batch", None),
    "moldable": ("online", SHORT),
    "malleable": ("online", {"workload": {"n_jobs": 15, "malleable": True, "restart_s": 60}}),
    "preemptive": ("online-elastic", {"workload": {"n_jobs": 15}}),
    "rounds": ("online-elastic", {"workload": {"n_jobs": 10}, "simulator": {"round_s": 900}}),
    "rigid": ("philly", {"workload": {"n_jobs": 60}}),
    "two servers": ("slow-server", {"workload": {"n_jobs": 50}}),
}
every_case = pytest.mark.parametrize("case", CASES)


def scenario_of(case: str) -> Scenario:
    return load_scenario(*CASES[case])


def random_steps(env: MarketEnv, seed: int, n_episodes: int = 1) -> Iterator[tuple[Any, ...]]:
    """Play whole episodes of random actions, many of them on corners; yields (obs, reward, terminated, info)."""
    rng = np.random.default_rng(seed)
    for episode in range(n_episodes):
        env.reset(seed=seed if episode == 0 else None)
        terminated = False
        while not terminated:
            action = np.clip(rng.uniform(-2, 2, env.action_space.shape), -1, 1).astype(np.float32)
            obs, reward, terminated, truncated, info = env.step(action)
            assert not truncated
            yield obs, reward, terminated, info


def play(env: MarketEnv, action: np.ndarray, seed: int) -> int:
    """One episode of always the same action; returns the number of steps."""
    env.reset(seed=seed)
    n_steps, terminated = 0, False
    while not terminated:
        _, _, terminated, _, _ = env.step(action)
        n_steps += 1
    return n_steps


def bent(n_types: int, **numbers: float) -> np.ndarray:
    """The action with the ``price`` of the first type, ``weight``, ``waiting``, ``fairness`` or ``restart`` set."""
    at = {"price": 0, "weight": n_types, "waiting": n_types + 1, "fairness": n_types + 2, "restart": n_types + 3}
    action = np.zeros(n_types + 4, np.float32)
    for name, number in numbers.items():
        action[at[name]] = number
    return action


@every_case
def test_gymnasium_checker_has_no_warning(case: str) -> None:
    env = gym.make("hetenv/Market-v0", scenario=scenario_of(case), render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@every_case
def test_sb3_checker_has_no_warning(case: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Your observation .* has an unconventional shape")  # SB3 flattens it
        checker.check_env(MarketEnv(scenario_of(case)))


@pytest.mark.parametrize(
    ("scenario", "overrides"),
    [("paper-batch", None), ("online", None), ("online-elastic", None), CASES["rigid"], CASES["rounds"]],
)
def test_the_zero_action_is_the_market_baseline(scenario: str, overrides: dict[str, Any] | None) -> None:
    env = MarketEnv(scenario, overrides)
    play(env, np.zeros(env.action_space.shape, np.float32), seed=4)
    simulator = env.scenario.make_simulator()
    simulator.reset(0, env.simulator.workload)
    run_to_end(simulator, baselines.make("market"))
    assert simulator.timeline.tobytes() == env.simulator.timeline.tobytes()  # who held what, where and when
    assert simulator.state.jobs.tobytes() == env.simulator.state.jobs.tobytes()


@every_case
def test_one_step_is_one_epoch_with_something_to_decide(case: str) -> None:
    solved = 0

    class CountingMarket(Market):
        def plan(self, snapshot: hetenv.Snapshot) -> hetenv.Plan:
            nonlocal solved
            plan, prices, _ = plan_market(snapshot, OnlineObjective())
            solved += prices is not None
            return plan

    env = MarketEnv(scenario_of(case))
    n_steps = play(env, np.zeros(env.action_space.shape, np.float32), seed=2)
    simulator = env.scenario.make_simulator()
    simulator.reset(0, env.simulator.workload)
    n_epochs = len(run_to_end(simulator, CountingMarket()))
    assert n_steps == solved <= n_epochs


@every_case
def test_compiled_and_in_python_a_bend_means_the_same(case: str) -> None:
    env, rng = MarketEnv(scenario_of(case)), np.random.default_rng(1)
    env.reset(seed=1)
    terminated, n_types = False, len(env.scenario.cluster.types)
    while not terminated:
        action = rng.uniform(-1, 1, n_types + 4).astype(np.float32)
        bend = bend_of(action, n_types, env.scenario.time_scale_s)
        snapshot, nothing = env.simulator.snapshot(), np.zeros(n_types)
        plan, prices, unit = plan_market(snapshot, bend.objective, bend.price_offset_s)
        other, its_prices, its_unit = _plan_in_python(snapshot, bend.objective, bend.price_offset_s, nothing)
        assert plan.jobs.tolist() == other.jobs.tolist()
        assert plan.counts.tolist() == other.counts.tolist()
        assert prices is not None
        np.testing.assert_array_equal(prices, its_prices)
        assert unit == its_unit
        terminated = env.step(action)[2]


@every_case
def test_return_is_the_negative_sum_of_jcts(case: str) -> None:
    env = MarketEnv(scenario_of(case))
    total = 0.0
    for obs, reward, terminated, info in random_steps(env, seed=7, n_episodes=2):
        assert obs in env.observation_space
        assert reward <= 0.0
        total += reward
        if terminated:
            jct_s = env.simulator.state.jobs["finish_s"] - env.simulator.workload.arrival_s
            assert total == pytest.approx(-jct_s.sum() / env.scenario.time_scale_s, rel=1e-9)
            assert info["mean_jct_s"] == pytest.approx(jct_s.mean())
            assert 0.0 < info["utilization"] <= 1.0
            total = 0.0


@every_case
def test_same_seed_same_bytes(case: str) -> None:
    def rollout() -> list[bytes]:
        return [
            b"".join(obs[key].tobytes() for key in sorted(obs)) + np.float64(reward).tobytes()
            for obs, reward, _, _ in random_steps(MarketEnv(scenario_of(case)), seed=11)
        ]

    assert rollout() == rollout()


def test_the_action_maps_have_the_documented_bounds() -> None:
    for end, factor in ((1.0, 32.0), (-1.0, 1 / 32)):
        for beyond in (1.0, 7.0):  # values outside are clipped
            bend = bend_of(np.full(6, end * beyond, np.float32), 2, 1000.0)
            np.testing.assert_array_equal(bend.price_offset_s, [250.0 * end] * 2)
            assert bend.objective == OnlineObjective(factor, end, fairness_exponent=end, restart_factor=factor)
    assert bend_of(np.zeros(6, np.float32), 2, 1000.0).objective == OnlineObjective()


@pytest.mark.parametrize("action", [np.zeros(7, np.float32), np.full(8, np.nan, np.float32)])
def test_what_is_no_action_is_refused(action: np.ndarray) -> None:
    env = MarketEnv("online", SHORT)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="give 8 numbers from -1 to 1"):
        env.step(action)


def test_observations_are_fresh_arrays_and_show_the_queue() -> None:
    env = MarketEnv("slow-server", SHORT)
    speed = np.array([[2.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    jobs = Workload.build(("fast", "slow"), speed, np.zeros(3), iterations=[7200, 2400, 1200], batch=1)
    first, _ = env.reset(seed=0, options={"workload": jobs})
    kept = {key: value.copy() for key, value in first.items()}
    work_s = np.array([1200.0, 1200.0, 3600.0])  # alone: 3600, 1200 and 1200 s; time scale 3600 s
    np.testing.assert_allclose(first["waiting"][[0, 2, 4], 0], work_s / (work_s + 3600))
    assert not first["running"].any()
    np.testing.assert_allclose(first["affinity"], [[0.0, 0.5, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.75, 1.0]])
    np.testing.assert_allclose(first["types"][:, [1, 2, 3]], [[1, 1, 0], [1, 1, 0]])
    np.testing.assert_allclose(first["types"][:, 4], [2 / 3, 1 / 3])
    env.step(np.zeros(6, np.float32))
    for key, value in first.items():
        np.testing.assert_array_equal(value, kept[key])


def test_a_measured_job_without_speeds_is_observed() -> None:
    rate = np.zeros((1, 2, 2, 2))
    rate[0, :, 1] = [[0.5], [0.1]]  # iterations/s on one fast or slow GPU
    jobs = Workload.build(
        ("fast", "slow", "absent"),
        np.array([[0.0, 0.0, 1.0], [2.0, 1.0, 1.0]]),
        np.zeros(2),
        iterations=100,
        model=np.array(["m", "other"], object),
        measured=MeasuredTable(("m",), ("fast", "slow"), rate),
    )
    env = MarketEnv("slow-server")
    obs, _ = env.reset(seed=0, options={"workload": jobs})
    assert obs in env.observation_space
    np.testing.assert_allclose(obs["affinity"][:, [0, -1]], [[0.0, 1.0], [0.0, 0.5]])


def plan_of(simulator: Simulator, action: np.ndarray, time_scale_s: float = 3600.0) -> np.ndarray:
    """(J, M) GPUs that each job gets at the first epoch."""
    n_types = len(simulator.cluster.types)
    plan, _ = plan_bent(simulator.snapshot(), bend_of(action, n_types, time_scale_s))
    counts = np.zeros((len(simulator.workload), n_types), int)
    counts[plan.jobs] = plan.counts
    return counts


def two_servers(speed: list[list[float]], iterations: list[float]) -> Simulator:
    """All jobs at once on one fast and one slow GPU, one GPU a job."""
    jobs = Workload.build(("fast", "slow"), np.array(speed), np.zeros(len(speed)), iterations=iterations, batch=1)
    return Simulator(load_scenario("slow-server").cluster, jobs)


def test_a_price_offset_moves_jobs_off_its_type() -> None:
    simulator = two_servers([[1.0, 0.8]], [1000])
    assert plan_of(simulator, bent(2)).tolist() == [[1, 0]]
    assert plan_of(simulator, bent(2, price=1.0)).tolist() == [[0, 1]]
    assert plan_of(simulator, bent(2, price=-1.0)).tolist() == [[1, 0]]


def test_a_price_offset_means_the_same_under_every_weight() -> None:
    simulator = two_servers([[1.0, 0.8]], [1000])  # the slow GPU takes 250 s longer
    for weight in (-1.0, 0.0, 1.0):
        assert plan_of(simulator, bent(2, price=0.25, weight=weight)).tolist() == [[1, 0]]  # 225 s
        assert plan_of(simulator, bent(2, price=0.30, weight=weight)).tolist() == [[0, 1]]  # 270 s


def test_a_larger_waiting_factor_starts_jobs_sooner() -> None:
    simulator = two_servers([[1.0, 0.4]] * 2, [100, 100])  # 250 s on the slow GPU, or 100 s and 100 s of waiting
    assert plan_of(simulator, bent(2)).sum() == 1
    assert plan_of(simulator, bent(2, waiting=1.0)).sum() == 2


def test_a_larger_restart_factor_leaves_running_jobs_in_place() -> None:
    speed = np.array([[1.0, 0.0], [1.0, 0.8]])
    jobs = Workload.build(
        ("fast", "slow"), speed, np.array([0.0, 10.0]), iterations=[20, 1000], batch=1, restart_s=60.0, malleable=True
    )
    simulator = Simulator(load_scenario("slow-server").cluster, jobs, preemptive=True)
    simulator.reset(0)
    for _ in range(2):  # the first takes the fast GPU; the second arrives and is in a hurry
        simulator.apply(plan_bent(simulator.snapshot(), bend_of(bent(2, waiting=1.0), 2, 3600.0))[0])
        simulator.advance()
    # The first has finished: moving saves the second some 240 s
    assert simulator.snapshot().counts.tolist() == [[0, 1]]
    assert plan_of(simulator, bent(2))[1].tolist() == [1, 0]
    assert not plan_of(simulator, bent(2, restart=0.5)).any()  # 339 s


@pytest.mark.parametrize("name", ["weight", "fairness"])
def test_positive_exponents_favour_short_jobs(name: str) -> None:
    for iterations in ([1000, 800], [800, 1000]):
        simulator = two_servers([[1.0, 0.0]] * 2, iterations)
        for sign, chosen in ((1.0, np.argmin(iterations)), (-1.0, np.argmax(iterations))):
            assert plan_of(simulator, bent(2, **{name: sign}))[:, 0].argmax() == chosen


def test_fairness_lowers_the_largest_slowdown_on_average() -> None:
    env = MarketEnv("slow-server", SHORT)

    def max_rho(action: np.ndarray, seed: int) -> float:
        play(env, action, seed)
        simulator = env.simulator
        jct_s = simulator.state.jobs["finish_s"] - simulator.workload.arrival_s
        return float((jct_s / simulator.exclusive_s).max())

    fair, plain = (np.mean([max_rho(bent(2, fairness=phi), seed) for seed in range(8)]) for phi in (0.5, 0.0))
    assert fair < 0.7 * plain


def tiny() -> MarketEnv:
    return MarketEnv("online", {"workload": {"n_jobs": 6}})


def ppo(sb3: Any) -> Any:
    return sb3.PPO("MultiInputPolicy", tiny(), n_steps=100, batch_size=50, n_epochs=2, device="cpu", seed=0)


def sac(sb3: Any) -> Any:
    return sb3.SAC(
        "MultiInputPolicy", tiny(), learning_starts=100, buffer_size=200, batch_size=32, device="cpu", seed=0
    )


@pytest.mark.parametrize("make", [ppo, sac])
def test_sb3_trains_on_it(make: Callable[[Any], Any]) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    torch = pytest.importorskip("torch")
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = make(sb3)
        before = [weights.detach().clone() for weights in model.policy.parameters()]
        model.learn(200)
        after = list(model.policy.parameters())
        assert all(bool(torch.isfinite(weights).all()) for weights in after)
        assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
        assert model.predict(tiny().reset(seed=0)[0])[0] in tiny().action_space
    finally:
        torch.set_num_threads(n_threads)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"jobs": 3}, "reset options: jobs; use workload"), ({"workload": [1]}, "workload: list; give a hetenv.Workload")],
)
def test_reset_refuses_unknown_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(hetenv.InputError, match=message):
        MarketEnv("online").reset(options=options)


def test_render_shows_prices_and_the_gantt() -> None:
    env = MarketEnv("slow-server", SHORT, render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "t = 0 s   1 waiting, 0 running\n  fast  1/1 free, 0 s a GPU\n  slow  1/1 free, 0 s a GPU"
    env = MarketEnv("online", SHORT, render_mode="rgb_array")
    play(env, np.zeros(8, np.float32), seed=0)
    image = env.render()
    assert image.dtype == np.uint8
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > len(env.simulator.workload) / 2  # a colour a job

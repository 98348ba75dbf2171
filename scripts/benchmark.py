"""Measure speed and quality: matching, environment steps, whole-trace replay, training.

    python scripts/benchmark.py matching --out runs/matching.json   # gap to the optimum and latency, by size
    python scripts/benchmark.py steps                               # decisions per second of the environments
    python scripts/benchmark.py replay --schedulers fifo srtf       # jobs per second of a whole trace
    python scripts/benchmark.py train                               # environment steps per second of training

Absolute figures depend on the machine and its neighbours; ratios within one run are what to compare. Every
figure is warm (compiled and run once before) and comes with its spread; the JSON names machine and versions.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, nullcontext
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from rich.table import Table

import baselines
import hetenv
from hetenv import cli
from hetenv.cluster import Cluster
from hetenv.config import load_scenario, parse_overrides
from hetenv.envs.view import aligned_zeros
from hetenv.files import replace_file
from hetenv.matching import Placement, PlacementProblem, solve_exact, solve_jps, solve_market
from hetenv.matching.selection import genuine_entries, select_entries
from hetenv.traces.generate import PhillyJobs, SyntheticJobs

PACKAGES = ("gymnasium", "hetenv", "numba", "numpy", "scipy")

# --- matching -------------------------------------------------------------------------------------------

CASES = {  # jobs, GPUs a type, types, most GPUs a job
    "4x15": (4, 5, 3, 15),
    "16x64": (16, 16, 4, 8),
    "50x64": (50, 16, 4, 8),
    "100x256": (100, 64, 4, 8),
    "200x256": (200, 64, 4, 8),
    "2000x4096": (2000, 683, 6, 8),
    "10000x16384": (10000, 2731, 6, 8),
}
MOST_FOR_OPTIMUM = 200  # jobs; beyond it the market stands alone, with its certified gap
NETWORKS = {"fast": 12.5e9, "slow": 1.25e9}  # bytes/s
SPEEDS = (0.2, 0.5, 1.0, 1.7, 2.5, 4.0)
JPS_SAMPLES = 100


LEAVING, PROGRESS = 0.1, 0.1  # of the jobs, and of the work of those that stay, from one problem to the next


def draw_problems(
    case: str, network: str, rng: np.random.Generator
) -> tuple[Callable[[], PlacementProblem], Callable[[], PlacementProblem]]:
    """Jobs of the ``online`` scenario's laws, all at once, and the next problem, when some have left and as many come.

    The calls make the problems, with nothing cached.
    """
    n_jobs, gpus_a_type, n_types, most = CASES[case]
    names = [f"type{m}" for m in range(n_types)]
    cluster = Cluster.from_counts(dict.fromkeys(names, gpus_a_type))
    n_new = max(1, round(LEAVING * n_jobs))
    jobs, new = (
        SyntheticJobs(
            n_jobs=number,
            load=None,
            mean_gpu_s=14400,
            size_sigma=1.2,
            type_speed=dict(zip(names, SPEEDS, strict=False)),
            affinity_sigma=0.3,
            base_speed=400,
            grad_bytes=(1e7, 1.4e9),
            max_gpus=most,
        ).draw(cluster, rng)
        for number in (n_jobs, n_new)
    )
    columns = [(jobs.speed, new.speed), (jobs.batch, new.batch), (jobs.iterations, new.iterations)]
    columns += [(jobs.grad_bytes, new.grad_bytes), (jobs.max_gpus, new.max_gpus)]

    def problem(speed: Any, batch: Any, iterations: Any, grad_bytes: Any, max_gpus: Any) -> PlacementProblem:
        link = NETWORKS[network]
        return PlacementProblem(cluster.total, speed, batch, iterations, grad_bytes, link, max_gpus=max_gpus)

    now = [old for old, _ in columns]
    later = [np.concatenate([old[n_new:], coming]) for old, coming in columns]
    later[2][: n_jobs - n_new] *= 1.0 - PROGRESS
    return lambda: problem(*now), lambda: problem(*later)


def solve_milp(problem: PlacementProblem) -> None:
    """The whole integer program, nothing ruled out beforehand."""
    from hetenv.matching.menu import build_menu

    menu = build_menu(problem, problem.costs.undominated)
    select_entries(menu, problem.capacity, genuine_entries(menu))


SOLVERS: dict[str, Callable[[PlacementProblem], Placement]] = {
    "exact": solve_exact,
    "market": solve_market,
    "jps": lambda problem: solve_jps(problem, samples=JPS_SAMPLES),
    "jps + local": lambda problem: solve_jps(problem, samples=JPS_SAMPLES, local_search=True),
}


def timed(solve: Callable[[PlacementProblem], Any], draw: Callable[[], PlacementProblem]) -> tuple[Any, float]:
    """The answer to a fresh instance, and the seconds from bare arrays to it."""
    begin = time.perf_counter()
    answer = solve(draw())
    return answer, time.perf_counter() - begin


def benchmark_matching(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Gap to the optimum and to the proven bound, latency, and how many times faster than exact and the full MILP.

    All solvers take turns on each instance, so that what else the machine does slows all of them alike. The rows "next"
    are of the market on the next problem, cold and with the prices of the one before.
    """
    rows = []
    for case in args.cases:
        small = CASES[case][0] <= MOST_FOR_OPTIMUM
        solvers = SOLVERS if small else {"market": solve_market}
        for network in NETWORKS:
            seeds = range(args.seeds if small else 3)
            drawn = [draw_problems(case, network, np.random.default_rng(seed)) for seed in seeds]
            for solve in solvers.values():
                timed(solve, drawn[0][0])  # compile
            runs: dict[str, list[tuple[Placement, float]]] = {name: [] for name in solvers}
            milp_s = []
            for seed, (now, _) in zip(seeds, drawn, strict=True):
                for name, solve in solvers.items():
                    runs[name].append(timed(solve, now))
                if small and seed < args.milp_seeds:
                    milp_s.append(timed(solve_milp, now)[1])
            optima = runs.get("exact", [])
            rows += [matching_row(case, network, name, runs[name], optima, milp_s) for name in solvers]
            prices = [solve_market(now()).prices for now, _ in drawn]
            optima = [timed(solve_exact, later) for _, later in drawn] if small else []
            cold = [timed(solve_market, later) for _, later in drawn]
            warm = [
                timed(lambda problem, last=last: solve_market(problem, start_prices=last), later)
                for (_, later), last in zip(drawn, prices, strict=True)
            ]
            rows.append(matching_row(case, network, "market, next", cold, optima, []))
            rows.append(matching_row(case, network, "market, next, warm", warm, optima, []))
    return rows


Runs = Sequence[tuple[Placement, float]]


def matching_row(
    case: str, network: str, solver: str, runs: Runs, optima: Runs, milp_s: Sequence[float]
) -> dict[str, Any]:
    """One line of the table: ``runs`` of a solver against the ``optima``, if known, of the same problems."""

    def times_faster(others_s: Iterable[float]) -> float | None:
        ratios = [other_s / seconds for (_, seconds), other_s in zip(runs, others_s, strict=False)]
        return float(np.median(ratios)) if ratios else None

    gaps = [mine.total / best.total - 1 for (mine, _), (best, _) in zip(runs, optima, strict=False)]
    bounds = [placement.gap for placement, _ in runs if placement.gap is not None]
    p50, p99 = np.percentile([seconds for _, seconds in runs], [50, 99])
    return {
        "case": case,
        "network": network,
        "solver": solver,
        "gap_mean_pct": 100 * float(np.mean(gaps)) if gaps else None,
        "gap_max_pct": 100 * float(np.max(gaps)) if gaps else None,
        "gap_proven_pct": 100 * float(np.max(bounds)) if bounds else None,
        "p50_ms": 1e3 * float(p50),
        "p99_ms": 1e3 * float(p99),
        "us_per_job": 1e6 * float(p50) / CASES[case][0],
        "x_exact": times_faster(seconds for _, seconds in optima),
        "x_milp": times_faster(milp_s),
    }


# --- environment steps ----------------------------------------------------------------------------------

ENVS = ["Placement-v0", "Market-v0"]
STEP_SCENARIOS = ["online", "online-elastic", "philly", "rlscheduler", "load-balance"]


def benchmark_steps(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Decisions through ``gym.make`` and ``gym.make_vec``, each with a fresh observation and mask, resets included.

    The policy, a random choice of what is allowed, is not timed. All runs of a scenario take turns, so that what else
    the machine does slows all of them alike. ``x_one_thread`` is the median ratio to the same number of environments
    under one thread, ``of_floor`` the rate over that of nothing but copying the observations.
    """
    rows = []
    for env, scenario in product(args.envs, args.scenarios):
        arguments = {"id": f"hetenv/{env}", "scenario": scenario, "overrides": parse_overrides(args.set)}
        vectors = [(n, threads) for n in args.num_envs for threads in args.threads if threads <= n]
        runs = {("make", 1, 1): step_single(arguments, args.steps)}
        runs |= {("make_vec", *vector): step_vector(arguments, *vector, args.steps) for vector in vectors}
        step_s = np.array([[next(run) for run in runs.values()] for _ in range(args.repeats + 1)])[1:]  # first: warm-up
        step_s_of = dict(zip(runs, step_s.T, strict=True))  # (repeats,) each
        for (through, num_envs, threads), seconds in step_s_of.items():
            runs[through, num_envs, threads].close()
            slower_s = step_s_of.get(("make_vec", num_envs, 1)) if threads > 1 else None
            rows.append(
                {
                    "env": env,
                    "scenario": scenario,
                    "through": through,
                    "num_envs": num_envs,
                    "threads": threads,
                    "steps_per_s": spread((1.0 / seconds).tolist()),
                    "x_one_thread": None if slower_s is None else float(np.median(slower_s / seconds)),
                    "of_floor": copy_s(arguments, num_envs) / float(np.median(seconds)),
                }
            )
    return rows


def step_single(arguments: dict[str, Any], n_steps: int) -> Generator[float, None, None]:
    """Seconds a step of one environment, over the next ``n_steps``; again and again."""
    env = gym.make(**arguments)
    _, info = env.reset(seed=0)
    rng = np.random.default_rng(0)
    while True:
        passed_s = 0.0
        for _ in range(n_steps):
            if "action_mask" in info:
                valid = info["action_mask"].nonzero()[0]
                action = valid[int(rng.random() * len(valid))]
            else:
                action = rng.uniform(-1.0, 1.0, env.action_space.shape)
            begin = time.perf_counter()
            _, _, terminated, _, info = env.step(action)
            if terminated:
                _, info = env.reset()
            passed_s += time.perf_counter() - begin
        yield passed_s / n_steps


def step_vector(arguments: dict[str, Any], num_envs: int, threads: int, n_steps: int) -> Generator[float, None, None]:
    """Seconds a step and environment of ``num_envs`` environments that are all at another point of their episodes."""
    envs = gym.make_vec(num_envs=num_envs, num_threads=threads, autoreset_mode="SameStep", **arguments)
    _, infos = envs.reset(seed=0)
    rng = np.random.default_rng(0)
    rounds = max(n_steps // num_envs, 20)
    warm = max(0, 200 - rounds)  # more of the first, until the environments have drifted apart
    with closing(envs):
        while True:
            passed_s = []
            for _ in range(warm + rounds):
                if "action_mask" in infos:
                    chances = 0.1 + rng.random(infos["action_mask"].shape, np.float32)
                    actions = (infos["action_mask"] * chances).argmax(axis=1)
                else:
                    actions = rng.uniform(-1.0, 1.0, envs.action_space.shape)
                begin = time.perf_counter()
                _, _, _, _, infos = envs.step(actions)
                passed_s.append(time.perf_counter() - begin)
            yield float(np.mean(passed_s)) / num_envs
            warm = 0


def copy_s(arguments: dict[str, Any], num_envs: int) -> float:
    """Seconds to copy the observation of one environment, where ``num_envs`` are copied at a time."""
    space = gym.make(**arguments).observation_space
    n_floats = num_envs * sum(int(np.prod(box.shape)) for box in space.values())
    source, target = (aligned_zeros((n_floats,), np.float32) for _ in range(2))
    seconds = []
    for _ in range(50):
        begin = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds)) / num_envs


# --- replay ---------------------------------------------------------------------------------------------


def benchmark_replay(args: argparse.Namespace) -> list[dict[str, Any]]:
    """A Philly-calibrated workload, whole, under each scheduler."""
    speeds = {"k80": 0.4, "p100": 1.0, "v100": 2.0, "a100": 3.4}
    cluster = Cluster.from_counts(dict.fromkeys(speeds, args.gpus // 4), gpus_per_node=8)
    source = PhillyJobs(n_jobs=args.jobs, load=args.load, type_speed=speeds)
    workload = source.draw(cluster, np.random.default_rng(args.seed))
    rows = []
    for name in args.schedulers:
        hetenv.simulate(workload.take(np.arange(100)), cluster, baselines.make(name))  # compile
        begin = time.perf_counter()
        result = hetenv.simulate(workload, cluster, baselines.make(name))
        seconds = time.perf_counter() - begin
        rows.append(
            {
                "scheduler": name,
                "jobs": args.jobs,
                "gpus": cluster.n_gpus,
                "seconds": seconds,
                "jobs_per_s": args.jobs / seconds,
                "mean_jct_s": result.summary()["mean_jct_s"],
                "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            }
        )
    return rows


# --- training -------------------------------------------------------------------------------------------


def benchmark_train(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Environment steps per second of whole training runs, learning included, evaluation left out."""
    from agents.config import load_config  # only now: torch takes seconds to import

    changes = {"n_timesteps": None, "evaluation": {"episodes": 1, "every_steps": 10**9, "baselines": []}}
    rows = []
    for path in args.configs:
        config = load_config(path, changes | {"max_minutes": args.seconds / 60})
        train_for(load_config(path, changes | {"max_minutes": 0.01}))  # compile
        runs = [train_for(config) for _ in range(args.repeats)]
        rows.append(
            {
                "config": path.stem,
                "scenario": config.load_scenario().name,
                "steps": int(np.median([steps for steps, _ in runs])),
                "steps_per_s": spread([steps / seconds for steps, seconds in runs]),
            }
        )
    return rows


def train_for(config: Any) -> tuple[int, float]:
    """Environment steps of a run of its ``max_minutes``, and its seconds."""
    from agents.training import train

    with tempfile.TemporaryDirectory() as folder:
        run = train(config, Path(folder))
        return run.steps, run.budget.elapsed_s


# --- common ---------------------------------------------------------------------------------------------


def spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": float(np.median(values)), "min": min(values), "max": max(values)}


def machine() -> dict[str, Any]:
    return {
        "cpu": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def as_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(*rows[0])
    for row in rows:
        cells = (value["median"] if isinstance(value, dict) else value for value in row.values())
        table.add_row(*(f"{cell:,.4g}" if isinstance(cell, float) else str(cell) for cell in cells))
    return table


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subjects = parser.add_subparsers(dest="subject", required=True)
    matching = subjects.add_parser("matching", help="gap to the optimum and latency of the solvers")
    matching.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    matching.add_argument("--seeds", type=int, default=20, help="instances a case (default: %(default)s)")
    matching.add_argument("--milp-seeds", type=int, default=1, help="of those, also by the full MILP (slow)")
    matching.set_defaults(run=benchmark_matching)
    steps = subjects.add_parser("steps", help="decisions per second of the environments")
    steps.add_argument("--envs", nargs="+", choices=ENVS, default=ENVS[:1], metavar="NAME", help=" or ".join(ENVS))
    steps.add_argument("--scenarios", nargs="+", default=STEP_SCENARIOS, metavar="NAME")
    steps.add_argument("--num-envs", nargs="*", type=int, default=[1, 64, 512, 4096], metavar="N")
    steps.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    steps.add_argument("--steps", type=int, default=50_000, help="of all environments, a repeat (default: %(default)s)")
    steps.add_argument("--repeats", type=int, default=5)
    steps.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change keys of the scenarios"
    )
    steps.set_defaults(run=benchmark_steps)
    replay = subjects.add_parser("replay", help="jobs per second of a whole trace")
    replay.add_argument("--jobs", type=int, default=100_000)
    replay.add_argument("--gpus", type=int, default=2_500)
    replay.add_argument("--load", type=float, default=0.8)
    replay.add_argument("--seed", type=int, default=0)
    replay.add_argument("--schedulers", nargs="+", default=["fifo", "srtf"], metavar="NAME")
    replay.set_defaults(run=benchmark_replay)
    train = subjects.add_parser("train", help="environment steps per second of training")
    train.add_argument(
        "--configs",
        nargs="+",
        type=Path,
        default=[Path("configs/train/ppo-placement.yaml"), Path("configs/train/cma-placement.yaml")],
        metavar="YAML",
    )
    train.add_argument("--seconds", type=float, default=20, help="of each repeat (default: %(default)s)")
    train.add_argument("--repeats", type=int, default=3)
    train.set_defaults(run=benchmark_train)
    for command in (matching, steps, replay, train):
        command.add_argument("--out", type=Path, help="a JSON file for the figures")
    args = parser.parse_args(argv)
    for name in getattr(args, "scenarios", []):
        load_scenario(name, parse_overrides(args.set))

    with cli.output_folder(args.out.parent) if args.out else nullcontext():
        rows = args.run(args)
        cli.show(as_table(rows))
        if args.out:
            with replace_file(args.out) as file:
                file.write(json.dumps({"subject": args.subject, "machine": machine(), "rows": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

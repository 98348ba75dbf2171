"""Measure speed and quality: matching, environment steps, whole-trace replay.

    python scripts/benchmark.py matching --out runs/matching.json   # gap to the optimum and latency, by size
    python scripts/benchmark.py steps                               # decisions per second of the environments
    python scripts/benchmark.py replay --schedulers fifo srtf       # jobs per second of a whole trace

Absolute figures depend on the machine and its neighbours; ratios within one run are what to compare. Every
figure is warm (compiled and run once before) and comes with its spread; the JSON names machine and versions.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from rich.table import Table

import baselines
import hetenv
from hetenv import cli
from hetenv.cluster import Cluster
from hetenv.config import load_scenario
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


def draw_problem(case: str, network: str, rng: np.random.Generator) -> Callable[[], PlacementProblem]:
    """Jobs of the ``online`` scenario's laws, all at once; the call makes the problem, with nothing cached."""
    n_jobs, gpus_a_type, n_types, most = CASES[case]
    names = [f"type{m}" for m in range(n_types)]
    cluster = Cluster.from_counts(dict.fromkeys(names, gpus_a_type))
    source = SyntheticJobs(
        n_jobs=n_jobs,
        load=None,
        mean_gpu_s=14400,
        size_sigma=1.2,
        type_speed=dict(zip(names, SPEEDS, strict=False)),
        affinity_sigma=0.3,
        base_speed=400,
        grad_bytes=(1e7, 1.4e9),
        max_gpus=most,
    )
    jobs = source.draw(cluster, rng)
    return lambda: PlacementProblem(
        cluster.total,
        jobs.speed,
        jobs.batch,
        jobs.iterations,
        jobs.grad_bytes,
        NETWORKS[network],
        max_gpus=jobs.max_gpus,
    )


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


def timed(solve: Callable[[PlacementProblem], Any], case: str, network: str, seed: int) -> tuple[Any, float]:
    """The answer to a fresh instance, and the seconds from bare arrays to it."""
    drawn = draw_problem(case, network, np.random.default_rng(seed))
    begin = time.perf_counter()
    answer = solve(drawn())
    return answer, time.perf_counter() - begin


def benchmark_matching(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Gap to the optimum and to the proven bound, latency, and how many times faster than exact and the full MILP."""
    rows = []
    for case in args.cases:
        small = CASES[case][0] <= MOST_FOR_OPTIMUM
        solvers = SOLVERS if small else {"market": solve_market}
        for network in NETWORKS:
            placements: dict[str, list[Placement]] = {}
            seconds: dict[str, list[float]] = {}
            for name, solve in solvers.items():
                timed(solve, case, network, 0)  # compile
                runs = [timed(solve, case, network, seed) for seed in range(args.seeds if small else 3)]
                placements[name] = [placement for placement, _ in runs]
                seconds[name] = [run_s for _, run_s in runs]
            milp_s = [timed(solve_milp, case, network, seed)[1] for seed in range(args.milp_seeds if small else 0)]
            for name in solvers:
                optima = placements.get("exact", [])
                gaps = [mine.total / best.total - 1 for mine, best in zip(placements[name], optima, strict=False)]
                bounds = [mine.gap for mine in placements[name] if mine.gap is not None]
                p50, p99 = np.percentile(seconds[name], [50, 99])
                rows.append(
                    {
                        "case": case,
                        "network": network,
                        "solver": name,
                        "gap_mean_pct": 100 * float(np.mean(gaps)) if gaps else None,
                        "gap_max_pct": 100 * float(np.max(gaps)) if gaps else None,
                        "gap_proven_pct": 100 * float(np.max(bounds)) if bounds else None,
                        "p50_ms": 1e3 * float(p50),
                        "p99_ms": 1e3 * float(p99),
                        "us_per_job": 1e6 * float(p50) / CASES[case][0],
                        "x_exact": float(np.median(seconds["exact"]) / p50) if optima else None,
                        "x_milp": float(np.median(milp_s) / p50) if milp_s else None,
                    }
                )
    return rows


# --- environment steps ----------------------------------------------------------------------------------


def benchmark_steps(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Decisions through ``gym.make``, each with a fresh observation and mask, resets included."""
    rows = []
    for scenario in args.scenarios:
        env = gym.make("hetenv/Placement-v0", scenario=scenario)
        env.reset(seed=0)
        uniform = np.random.default_rng(0).random(args.steps)
        rates = []
        for _ in range(args.repeats + 1):
            _, info = env.reset()
            begin = time.perf_counter()
            for draw in uniform:
                valid = info["action_mask"].nonzero()[0]
                _, _, terminated, _, info = env.step(valid[int(draw * len(valid))])
                if terminated:
                    _, info = env.reset()
            rates.append(args.steps / (time.perf_counter() - begin))
        rows.append({"scenario": scenario, "num_envs": 1, "steps_per_s": spread(rates[1:])})
    return rows


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
    steps.add_argument("--scenarios", nargs="+", default=["online", "online-elastic", "philly"], metavar="NAME")
    steps.add_argument("--steps", type=int, default=10_000)
    steps.add_argument("--repeats", type=int, default=5)
    steps.set_defaults(run=benchmark_steps)
    replay = subjects.add_parser("replay", help="jobs per second of a whole trace")
    replay.add_argument("--jobs", type=int, default=100_000)
    replay.add_argument("--gpus", type=int, default=2_500)
    replay.add_argument("--load", type=float, default=0.8)
    replay.add_argument("--seed", type=int, default=0)
    replay.add_argument("--schedulers", nargs="+", default=["fifo", "srtf"], metavar="NAME")
    replay.set_defaults(run=benchmark_replay)
    for command in (matching, steps, replay):
        command.add_argument("--out", type=Path, help="a JSON file for the figures")
    args = parser.parse_args(argv)
    for name in getattr(args, "scenarios", []):
        load_scenario(name)

    rows = args.run(args)
    cli.show(as_table(rows))
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps({"subject": args.subject, "machine": machine(), "rows": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

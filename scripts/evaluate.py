"""Compare schedulers on the same arrivals.

    python scripts/evaluate.py --scenario online --schedulers fifo srtf jps market runs/ppo/best.zip \\
        --episodes 32 --seed 1000 --out results/online
    python scripts/evaluate.py --trace jobs.csv --cluster four-generations --schedulers fifo jps

A scheduler is a baseline, with options if need be (jps:samples=20,beta=0.7), or a policy: one that ships
(pretrained:online), or one that scripts/train.py saved (a path that ends in .zip or .npz). Prints a table,
and writes summary.json, summary.csv, jobs.csv and TensorBoard scalars to the folder --out. Ctrl-C keeps complete
episodes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import agents
import baselines
from hetenv import cli
from hetenv.config import Scenario, load_scenario, parse_overrides, scenario_names, trace_scenario
from hetenv.errors import InputError
from hetenv.evaluation import evaluate
from hetenv.evaluation.trials import SchedulerFactory
from hetenv.traces import FORMATS, THROUGHPUTS_HELP


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_mutually_exclusive_group(required=True)
    jobs.add_argument("--scenario", help=f"{', '.join(scenario_names())}, or the path of a .yaml file")
    jobs.add_argument("--trace", help="a trace file to replay")
    parser.add_argument("--schedulers", nargs="+", required=True, metavar="NAME", help=", ".join(baselines.names()))
    parser.add_argument("--episodes", type=int, help="default: 32, or 1 for a trace replayed whole")
    parser.add_argument("--seed", type=int, default=1000, help="of the first episode (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="default: results/<scenario>")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--reference", metavar="NAME", help="what ratios refer to (default: jps, else the first)")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change keys of the scenario"
    )

    trace = parser.add_argument_group(
        "with --trace",
        "--set takes the other options of hetenv/traces/trace_jobs.py: workload.load=0.9 stretches the arrivals to "
        "that offered load, workload.type_speed.v100=1 gives the relative speed of a GPU type, "
        "workload.rules.fractional=drop says what becomes of records that are no plain job (hetenv/traces/rules.py)",
    )
    trace.add_argument("--cluster", help="a name of configs/clusters, or the path of a .yaml file")
    trace.add_argument("--format", help=f"{', '.join(FORMATS)} (default: told from the content)")
    trace.add_argument("--throughputs", metavar="PATH", help=THROUGHPUTS_HELP)
    trace.add_argument("--n-jobs", type=int, metavar="N", help="jobs of an episode, from a random start (default: all)")
    trace.add_argument(
        "--lenient", action="store_true", default=None, help="drop what is faulty or fits nowhere, and say so"
    )
    return parser.parse_args(argv)


def chosen_scenario(args: argparse.Namespace) -> Scenario:
    overrides = parse_overrides(args.set)
    names = ("format", "throughputs", "n_jobs", "lenient")
    options = {name: value for name in names if (value := getattr(args, name)) is not None}
    if args.trace is None:
        if unused := ["cluster"] * (args.cluster is not None) + list(options):
            raise InputError(f"--{unused[0].replace('_', '-')}", "given with --scenario", "use it with --trace")
        return load_scenario(args.scenario, overrides)
    if args.cluster is None:
        raise InputError("--cluster", "missing", "name the cluster that the trace runs on")
    return trace_scenario(args.trace, args.cluster, overrides, **options)


def chosen_schedulers(texts: Sequence[str]) -> dict[str, SchedulerFactory]:
    schedulers: dict[str, SchedulerFactory] = {}
    for text in texts:
        name, factory = saved_policy(text) if agents.is_policy(text) else baseline(text)
        if name in schedulers:
            raise InputError("--schedulers", f"{name} comes twice", "give each one once")
        schedulers[name] = factory
    return schedulers


def baseline(text: str) -> tuple[str, SchedulerFactory]:
    name, options = cli.parse_options(text)
    return text, partial(baselines.make, name, **options)


def saved_policy(text: str) -> tuple[str, SchedulerFactory]:
    agents.policy_path(text)  # a fault shows now
    return agents.policy_name(text), partial(agents.load, text)


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    scenario = chosen_scenario(args)
    schedulers = chosen_schedulers(args.schedulers)
    episodes = args.episodes if args.episodes is not None else 1 if args.trace and args.n_jobs is None else 32
    out = args.out or Path("results", scenario.name)

    with cli.output_folder(out):
        with cli.progress_bar(f"evaluating {scenario.name}") as progress:
            evaluation = evaluate(
                scenario,
                schedulers,
                episodes=episodes,
                seed=args.seed,
                reference=args.reference,
                workers=args.workers,
                progress=progress,
            )
        try:
            scalars = evaluation.save(out)
        finally:  # a full disk is no reason to lose the figures
            cli.show(evaluation.table())
    if scalars is None:
        print("note: no TensorBoard scalars; they need `pip install hetenv[train]`", file=sys.stderr)
    print(f"{out}: summary.json, summary.csv, jobs.csv" + (f"; tensorboard --logdir {scalars}" if scalars else ""))
    return cli.INTERRUPTED if evaluation.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())

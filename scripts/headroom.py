"""How much a scheduler leaves to be gained: one step of roll-out improvement over it, with the future known.

    python scripts/headroom.py --scenario online --episodes 8 --seed 1000 --workers 2 --out results/headroom-online

At each decision market under several parameters proposes plans, and the plan from which --base ends best is carried
out (``baselines.rollout``). That takes knowledge of the jobs to come, which no learned policy has, but it is one step
of improvement only: what it gains shows about how much there is, and bounds it neither way. Prints a table; writes
summary.json, summary.csv, jobs.csv and TensorBoard scalars to the folder --out. An episode takes a minute or more.
Ctrl-C keeps complete episodes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import baselines
from baselines.market import Market
from baselines.rollout import Rollout
from hetenv import cli
from hetenv.config import load_scenario, parse_overrides, scenario_names
from hetenv.evaluation import evaluate
from hetenv.scheduler import Scheduler

PROPOSALS = tuple(product((0.5, 2.0, 8.0), (0.0, 1.0)))  # waiting factors and weight exponents of market


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="online", help=f"{', '.join(scenario_names())}, or a .yaml file")
    parser.add_argument("--base", default="market", metavar="NAME", help="the scheduler (default: %(default)s)")
    parser.add_argument("--episodes", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1000, help="of the first episode (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="default: results/headroom-<scenario>")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change keys of the scenario"
    )
    return parser.parse_args(argv)


def rollout(make_base: Callable[[], Scheduler]) -> Scheduler:
    others = [Market(waiting_factor=factor, weight_exponent=exponent) for factor, exponent in PROPOSALS]
    return Rollout(make_base(), others)


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    scenario = load_scenario(args.scenario, parse_overrides(args.set))
    out = args.out or Path("results") / f"headroom-{scenario.name}"
    name, options = cli.parse_options(args.base)
    base = partial(baselines.make, name, **options)
    schedulers = {args.base: base, "rollout": partial(rollout, base)}
    with cli.output_folder(out):
        with cli.progress_bar(f"evaluating {scenario.name}") as progress:
            evaluation = evaluate(
                scenario,
                schedulers,
                episodes=args.episodes,
                seed=args.seed,
                reference=args.base,
                workers=args.workers,
                progress=progress,
            )
        try:
            evaluation.save(out)
        finally:  # a full disk is no reason to lose the figures
            cli.show(evaluation.table())
    print(f"{out}: summary.json, summary.csv, jobs.csv")
    return cli.INTERRUPTED if evaluation.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())

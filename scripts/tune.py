"""Find the parameters of market-tuned for a scenario, on training seeds.

    python scripts/tune.py --scenario online --episodes 16 --seed 0 --out configs/tuned/online.yaml
    python scripts/tune.py --scenario online philly --set workload.n_jobs=100 --out mine.yaml

Several scenarios are tuned together: least mean JCT relative to market. Seeds of 1000 and above are for evaluation
and refused. The file --out is what `market-tuned:scenario=NAME` reads: one of configs/tuned, or a path.
Ctrl-C keeps the best so far.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from baselines.tuning import Tuning, tune
from hetenv import cli
from hetenv.config import load_scenario, parse_overrides, scenario_names
from hetenv.errors import InputError
from hetenv.files import replace_file


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", nargs="+", required=True, help=f"{', '.join(scenario_names())}, or .yaml files")
    parser.add_argument("--episodes", type=int, default=16, help="of each scenario (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="the YAML file to write")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change keys of the scenarios"
    )
    return parser.parse_args(argv)


def described(tuning: Tuning, args: argparse.Namespace, command: Sequence[str]) -> dict[str, Any]:
    """The file: the parameters, and how they were found."""
    mean_jct_s = {
        scenario: {"market": round(market_s, 1), "market-tuned": round(tuned_s, 1)}
        for scenario, (market_s, tuned_s) in tuning.jct_s.items()
    }
    return {
        "parameters": tuning.parameters.model_dump(),
        "command": shlex.join(["python", "scripts/tune.py", *command]),
        "version": version("hetenv"),
        "seed": args.seed,
        "episodes": tuning.episodes,
        "interrupted": tuning.interrupted,
        "training_mean_jct_s": mean_jct_s,
    }


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    command = sys.argv[1:] if argv is None else argv
    args = parse_args(command)
    scenarios = [load_scenario(name, parse_overrides(args.set)) for name in args.scenario]
    if args.out.suffix not in (".yaml", ".yml"):
        raise InputError("--out", args.out, "name a .yaml file, as market-tuned reads no other")
    with cli.output_folder(args.out.parent):
        with cli.progress_bar(f"tuning on {', '.join(scenario.name for scenario in scenarios)}") as progress:
            tuning = tune(scenarios, args.episodes, args.seed, args.workers, progress)
        with replace_file(args.out) as file:
            yaml.safe_dump(described(tuning, args, command), file, sort_keys=False, width=120)

    found = ", ".join(f"{name} {value:g}" for name, value in tuning.parameters)
    for scenario, (market_s, tuned_s) in tuning.jct_s.items():
        print(f"{scenario}: mean JCT {tuned_s:,.0f} s, market {market_s:,.0f} s ({tuned_s / market_s - 1:+.1%})")
    print(f"{args.out}: {found}")
    if tuning.interrupted:
        print(f"interrupted; the best on {tuning.episodes} episodes is kept", file=sys.stderr)
        return cli.INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())

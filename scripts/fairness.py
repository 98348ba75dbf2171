"""What fairness costs: mean JCT against Jain's index, for market and jps.

    python scripts/fairness.py --scenario online --episodes 8 --seed 0 --out results/fairness

Market weighs its jobs by (remaining time on an equal share of the GPUs)^-exponent, jps by beta its mean JCT against
Jain's index within an epoch. Prints a table; writes summary.json, summary.csv, jobs.csv, TensorBoard scalars and
fairness.png to the folder --out. Ctrl-C keeps complete episodes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import baselines
from hetenv import cli
from hetenv.config import load_scenario, parse_overrides, scenario_names
from hetenv.evaluation import evaluate
from hetenv.files import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

CURVES = {  # scheduler -> its parameter, and the values from none to much fairness
    "market": ("fairness_exponent", (0.0, 0.25, 0.5, 0.75, 1.0)),
    "jps": ("beta", (1.0, 0.9, 0.7, 0.5, 0.3)),
}


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="online", help=f"{', '.join(scenario_names())}, or a .yaml file")
    parser.add_argument("--episodes", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("results/fairness"), help="default: %(default)s")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change keys of the scenario"
    )
    return parser.parse_args(argv)


def label(scheduler: str, value: float) -> str:
    """As scripts/evaluate.py names it."""
    return f"{scheduler}:{CURVES[scheduler][0]}={value:g}"


def table(summary: dict[str, Any]) -> Table:
    """The figures in question, one row a point of the curves."""
    from rich.table import Table

    rows = Table(title=f"{summary['scenario']}: episodes {summary['episodes']}, seed {summary['seed']}")
    rows.add_column("scheduler")
    for heading in ("mean JCT (s)", "Jain", "max rho"):
        rows.add_column(heading, justify="right")
    for name, figures in summary["schedulers"].items():
        rows.add_row(name, f"{figures['mean_jct_s']:,.0f}", f"{figures['jain']:.3f}", f"{figures['max_rho']:,.1f}")
    return rows


def trade_off(summary: dict[str, Any]) -> Figure:
    """Mean JCT (s) over Jain's index, a line a scheduler, points labelled by the parameter."""
    from matplotlib.figure import Figure  # without pyplot: no window system, and nothing to close

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot()
    for scheduler, (parameter, values) in CURVES.items():
        points = [summary["schedulers"][label(scheduler, value)] for value in values]
        jain, jct_s = [point["jain"] for point in points], [point["mean_jct_s"] for point in points]
        axes.plot(jain, jct_s, marker="o", label=f"{scheduler}, by {parameter.replace('_', ' ')}")
        for value, at in zip(values, zip(jain, jct_s, strict=True), strict=True):
            axes.annotate(
                f"{value:g}", at, xytext=(0, 7), textcoords="offset points", ha="center", fontsize="small",
                bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.7},
            )  # fmt: skip
    axes.set_xlabel("Jain's index of JCT / time alone on the cluster (1: equal)")
    axes.set_ylabel("mean JCT (s)")
    axes.set_title(f"{summary['scenario']}: {summary['episodes']} episodes, seed {summary['seed']}")
    axes.margins(0.08)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    import_module("matplotlib")  # it belongs to an extra: miss it before the minutes of evaluation, not after them
    scenario = load_scenario(args.scenario, parse_overrides(args.set))
    schedulers = {
        label(name, value): partial(baselines.make, name, **{parameter: value})
        for name, (parameter, values) in CURVES.items()
        for value in values
    }
    with cli.output_folder(args.out):
        with cli.progress_bar(f"evaluating {scenario.name}") as progress:
            evaluation = evaluate(
                scenario,
                schedulers,
                episodes=args.episodes,
                seed=args.seed,
                reference=next(iter(schedulers)),
                workers=args.workers,
                progress=progress,
            )
        summary = evaluation.summary()
        try:
            evaluation.save(args.out)
            with replace_file(args.out / "fairness.png", "wb") as file:
                trade_off(summary).savefig(file, format="png", dpi=150)
        finally:  # a full disk is no reason to lose the figures
            cli.show(table(summary))
    print(f"{args.out}: summary.json, summary.csv, jobs.csv, fairness.png")
    return cli.INTERRUPTED if evaluation.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())

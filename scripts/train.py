"""Train a policy with Stable-Baselines3, or breed one by an evolution strategy.

    python scripts/train.py --config configs/train/ppo-placement.yaml --out runs/ppo
    python scripts/train.py --config configs/train/cma-placement.yaml --out runs/cma
    python scripts/train.py --config configs/train/a2c-placement.yaml --out runs/a2c --minutes 5 \\
        --set env_kwargs.scenario=philly learning_rate=lin_3e-4
    python scripts/train.py --resume --out runs/ppo

The folder --out then holds config.yaml, versions.json, TensorBoard events, the policy of least mean JCT on held-out
episodes (best.zip; best.npz from an evolution strategy), the last one and evaluation.json. Ctrl-C ends the training and
keeps what was learned.
--resume goes on with a run that was interrupted or killed, from its last evaluation, with what is left of the budget in
OUT/config.yaml.
Compare the result with other schedulers by scripts/evaluate.py --schedulers jps OUT/best.zip.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetenv import cli
from hetenv.config import parse_overrides
from hetenv.errors import InputError

if TYPE_CHECKING:
    from agents.runs import Run


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    begin = parser.add_mutually_exclusive_group(required=True)
    begin.add_argument("--config", type=Path, help="YAML; see agents/config.py")
    begin.add_argument("--resume", action="store_true", help="go on with the run in --out, by the configuration there")
    parser.add_argument("--out", type=Path, required=True, help="a new or empty folder; with --resume that of the run")
    parser.add_argument("--seed", type=int, help="instead of the configuration's")
    parser.add_argument("--minutes", type=float, help="end after this time; the learning rate falls accordingly")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change keys of the configuration"
    )
    return parser.parse_args(argv)


def begun(args: argparse.Namespace) -> Run:
    """A run from its configuration to its end."""
    changes: dict[str, Any] = parse_overrides(args.set)
    if args.seed is not None:
        changes["seed"] = args.seed
    if args.minutes is not None:
        changes["max_minutes"] = args.minutes
    from agents.config import load_config

    config = load_config(args.config, changes)
    from agents.runs import require_empty  # only now: torch takes seconds to import
    from agents.training import play_baselines, train

    require_empty(args.out)
    with cli.output_folder(args.out):
        with cli.progress_bar("baselines on the held-out episodes") as progress:
            baseline_figures = play_baselines(config, progress)
        print(f"watch it: tensorboard --logdir {args.out}", flush=True)
        with cli.progress_bar("training, percent") as progress:
            return train(config, args.out, baseline_figures, progress)


def resumed(args: argparse.Namespace) -> Run:
    """The rest of a run that was stopped."""
    for name in ("seed", "minutes", "set"):
        if getattr(args, name):
            raise InputError(f"--{name}", "given with --resume", f"change {args.out}/config.yaml if you must")
    from agents.runs import Run
    from agents.training import resume

    run = Run.read(args.out)
    print(f"last evaluated at step {run.history[-1][0]:,}; watch it: tensorboard --logdir {args.out}", flush=True)
    with cli.output_folder(args.out), cli.progress_bar("training, percent") as progress:
        return resume(run, progress)


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    run = resumed(args) if args.resume else begun(args)
    first, best = run.evaluation["history"][0], run.evaluation["best"]
    jct_s = {"at the start": first["mean_jct_s"], f"at step {best['step']:,}": best["mean_jct_s"]}
    jct_s |= {name: figures.mean_jct_s for name, figures in run.baselines.items()}
    print("held-out mean JCT: " + ", ".join(f"{value:,.0f} s {name}" for name, value in jct_s.items()))
    if run.interrupted:
        print(
            f"interrupted at step {run.steps:,}; the best and the last policy are kept in {args.out}; "
            f"go on by --resume --out {args.out}",
            file=sys.stderr,
        )
        return cli.INTERRUPTED
    print(f"{args.out}: best and last policy, evaluation.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())

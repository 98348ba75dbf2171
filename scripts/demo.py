"""The main job in five minutes: replay a trace under four schedulers, train PPO, compare all of them.

    python scripts/demo.py --out runs/demo

Replays windows of Philly's public trace where it lies beside the checkout, the calibrated ``philly``
scenario otherwise; then trains PPO on ``online`` for two minutes and compares it on held-out seeds.
A folder that exists is left alone: the next run goes to demo-2, and so on.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import evaluate
import train

from hetenv import cli
from hetenv.config import config_dir

TRACE = Path(__file__).parents[2] / "shared" / "data" / "pollux" / "traces" / "philly.csv"
BASELINES = ("fifo", "srtf", "jps", "market")
WORKERS = ("--workers", "2")


def first_unused(folder: Path) -> Path:
    candidates = (folder.with_name(f"{folder.name}-{n}") if n > 1 else folder for n in itertools.count(1))
    return next(path for path in candidates if not path.exists())


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    parser.add_argument("--minutes", type=float, default=2.0, help="of training (default: %(default)s)")
    args = parser.parse_args(argv)
    out = first_unused(args.out)

    if TRACE.is_file():
        print("1. Philly's trace: windows of 300 jobs on 64 GPUs of four types, arrivals scaled to load 0.8")
        jobs = ["--trace", str(TRACE), "--cluster", "mixed-64", "--n-jobs", "300", "--lenient"]
        jobs += ["--set", "workload.load=0.8", "workload.type_speed={k80: 0.4, p100: 1.0, v100: 2.0, a100: 3.4}"]
    else:
        print(f"1. Jobs like Philly's, for {TRACE} is absent")
        jobs = ["--scenario", "philly", "--set", "workload.n_jobs=300"]
    status = evaluate.main(
        [*jobs, "--schedulers", *BASELINES, "--episodes", "8", *WORKERS, "--out", str(out / "philly")]
    )
    if status:
        return status

    print(f"\n2. PPO on the online scenario, {args.minutes:g} minutes")
    config = config_dir() / "train" / "ppo-placement.yaml"
    status = train.main(["--config", str(config), "--out", str(out / "ppo"), "--minutes", f"{args.minutes:g}"])
    if status:
        return status

    print("\n3. All of them on 32 held-out seeds of the online scenario")
    schedulers = [*BASELINES, str(out / "ppo" / "best.zip")]
    status = evaluate.main(
        ["--scenario", "online", "--schedulers", *schedulers, *WORKERS, "--out", str(out / "online")]
    )
    print(f"\ncurves: {Path(sys.executable).parent / 'tensorboard'} --logdir {out}")
    return status


if __name__ == "__main__":
    sys.exit(main())

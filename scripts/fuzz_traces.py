"""Look for trace files that a reader cannot cope with.

    python scripts/fuzz_traces.py --minutes 10 --seed 0
    python scripts/fuzz_traces.py --seed 0 --first 1234 --inputs 1      # one input again

Damages small samples of every format and reads them: each must end in jobs or in one line that says what is wrong.
Inputs that end otherwise are kept under --out, each with what went wrong, and the status is 1. What an input is
follows from the seed and its number.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from hetenv import cli
from hetenv.traces import FORMATS
from hetenv.traces.fuzz import Examiner, Verdict, keep_failure


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default: %(default)s)")
    parser.add_argument("--inputs", type=int, metavar="N", help="stop after N inputs")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first input (default: 0)")
    parser.add_argument(
        "--timeout", type=float, default=20.0, metavar="S", help="seconds an input may take (default: 20)"
    )
    parser.add_argument("--out", type=Path, default=Path("results/fuzz"), help="for failures (default: %(default)s)")
    return parser.parse_args(argv)


def summary(verdicts: Sequence[Verdict]) -> Table:
    table = Table("format", *(f"[not bold]{name}" for name in ("inputs", "jobs", "refused", "failed", "slowest, s")))
    for name in FORMATS:
        mine = [verdict for verdict in verdicts if verdict.format == name]
        answers = [sum(verdict.answer == answer for verdict in mine) for answer in ("jobs", "refused", "failed")]
        slowest = max((verdict.seconds for verdict in mine), default=0.0)
        table.add_row(name, f"{len(mine):,}", *(f"{count:,}" for count in answers), f"{slowest:.2f}")
    return table


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    verdicts: list[Verdict] = []
    start = time.monotonic()
    with cli.progress_bar("seconds") as progress, Examiner(args.seed, args.timeout) as examiner:
        while (spent_s := time.monotonic() - start) < args.minutes * 60 and len(verdicts) != args.inputs:
            progress(int(spent_s), int(args.minutes * 60))
            number = args.first + len(verdicts)
            verdict = examiner.examine(number)
            verdicts.append(verdict)
            if verdict.answer == "failed":
                place = keep_failure(args.out, args.seed, number, verdict)
                print(f"{place}: {verdict.detail.strip().splitlines()[-1][:200]}")
    cli.show(summary(verdicts))
    return cli.FAILED if any(verdict.answer == "failed" for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Turn a trace into the project's own CSV, and tell what became of its rows.

    python scripts/import_trace.py cluster_job_log.json --out jobs.csv
    python scripts/import_trace.py --fetch helios-venus --describe --plots results/helios
    python scripts/import_trace.py pai_task_table.csv --out jobs.csv --fractional drop --outcomes completed

The format is told from the content. --fetch downloads a public trace from its owner, once. Prints how many rows
were kept, changed and dropped, by reason; --describe prints the statistics that generators are calibrated by.
Faulty rows stop the import, unless --lenient drops them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from hetenv import cli
from hetenv.errors import InputError
from hetenv.traces import FORMATS, THROUGHPUTS_HELP, Trace, fetch, read_trace
from hetenv.traces.describe import describe, tables
from hetenv.traces.public import public_traces
from hetenv.traces.rules import Outcome, Rules

if TYPE_CHECKING:
    from rich.table import Table


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    formats = "\n".join(f"  {name:17}{entry.description}" for name, entry in FORMATS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"formats:\n{formats}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path, nargs="?", help="the file; of several tables, any one")
    parser.add_argument("--fetch", metavar="NAME", help=f"a public trace instead: {', '.join(public_traces())}")
    parser.add_argument("--out", type=Path, metavar="CSV", help="where the jobs go (needed without --describe)")
    parser.add_argument("--format", help="a name of the list below (default: told from the content)")
    parser.add_argument("--lenient", action="store_true", help="drop faulty rows, and say so")
    parser.add_argument("--throughputs", type=Path, metavar="PATH", help=THROUGHPUTS_HELP)
    parser.add_argument(
        "--type-speed", nargs="+", default=[], metavar="TYPE=SPEED", help="relative speeds of GPU types"
    )
    parser.add_argument("--describe", action="store_true", help="print statistics")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="write histograms there")

    rules = parser.add_argument_group("what becomes of records that are no plain job")
    for name, field in Rules.model_fields.items():
        option: dict[str, Any] = {"help": f"{field.description} (default: {_shown(field.default)})"}
        if name == "outcomes":
            option |= {"nargs": "+", "choices": get_args(Outcome)}
        elif choices := get_args(field.annotation):
            option["choices"] = choices
        rules.add_argument(f"--{name.replace('_', '-')}", default=None, **option)
    return parser.parse_args(argv)


def _shown(default: object) -> str:
    return " ".join(default) if isinstance(default, tuple) else str(default)


def chosen_file(args: argparse.Namespace) -> Path:
    """The trace that the command line names, downloaded where it is a public one."""
    if (args.trace is None) == (args.fetch is None):
        raise InputError("trace", "none" if args.trace is None else f"{args.trace} and --fetch", "give one of them")
    if args.trace is not None:
        return args.trace
    with cli.progress_bar(f"fetching {args.fetch}") as progress:
        return fetch(args.fetch, progress=progress)


def chosen_rules(args: argparse.Namespace) -> Rules | None:
    """The rules that the command line names; None: none."""
    given = {name: value for name in Rules.model_fields if (value := getattr(args, name)) is not None}
    if not given:
        return None
    try:
        return Rules(**given)
    except ValidationError as error:
        fault = error.errors()[0]
        option = f"--{str(fault['loc'][0]).replace('_', '-')}"
        raise InputError(option, fault["input"], fault["msg"].removeprefix("Value error, ")) from None


def type_speeds(texts: Sequence[str]) -> dict[str, float]:
    speeds = {}
    for text in texts:
        name, _, speed = text.partition("=")
        if not name or not speed.replace(".", "", 1).isdecimal():
            raise InputError("--type-speed", text, "give TYPE=SPEED, e.g. v100=1 a100=2.2")
        speeds[name] = float(speed)
    return speeds


def account(trace: Trace) -> Table:
    """What became of the rows, by reason."""
    from rich.markup import escape
    from rich.table import Table

    tally = trace.tally
    rows = Table()
    rows.add_column("rows", justify="right")
    rows.add_column("what")
    rows.add_column("why", overflow="fold")
    rows.add_row(f"{tally.rows:,}", "read", "")
    for what, reasons in (("changed", tally.changed), ("dropped", tally.dropped)):
        for reason, count in reasons.most_common():
            rows.add_row(f"{count:,}", what, escape(reason))
    rows.add_row(f"{tally.kept:,}", "kept", "")
    return rows


@cli.command
def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    if args.out is None and not args.describe and args.plots is None:
        raise InputError("--out", "missing", "name the CSV to write, or ask for --describe")
    if args.plots:
        import_module("matplotlib")  # it belongs to an extra: miss it before the minutes of reading, not after them
    rules, speeds = chosen_rules(args), type_speeds(args.type_speed)
    path = chosen_file(args)
    with cli.progress_bar(f"reading {path.name}") as progress:
        trace = read_trace(
            path,
            args.format,
            throughputs=args.throughputs,
            type_speed=speeds,
            rules=rules,
            lenient=args.lenient,
            progress=progress,
        )
    if args.out:
        trace.workload.save(args.out)
    print(f"{path}: {trace.format.name}, {trace.format.description}")
    cli.show(account(trace))
    if args.describe or args.plots:
        figures = describe(trace.workload, trace.start_s, (rules or Rules()).clock)
        for table in tables(figures) if args.describe else []:
            cli.show(table)
        if args.plots:
            from hetenv.traces.plots import save_plots

            with cli.output_folder(args.plots):
                print(f"{args.plots}: {', '.join(save_plots(figures, args.plots))}")
    if args.out:
        print(f"{args.out}: {len(trace.workload)} jobs")
    return 0


if __name__ == "__main__":
    sys.exit(main())

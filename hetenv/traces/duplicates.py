"""Rows that come again, and names for all jobs."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hetenv.job_table import Fault
from hetenv.traces.trace_format import ReadOptions, Tally, settle_faults

CONTENT = ("submit_s", "duration_s", "gpus", "outcome")


def settle_duplicates(
    columns: dict[str, np.ndarray], options: ReadOptions, where: str, unit: str, tally: Tally
) -> None:
    """Apply the rule ``duplicates`` to the rows in ``columns``, in place, and give every job a name of its own.

    ``job_id`` may be empty: such a job is named by its ``row``, a column that is used up here.

    Raises:
        InputError: the first row that comes again, where the rule says so, unless lenient.
    """
    import pandas as pd

    rule = options.rules.duplicates
    ids = pd.Series(columns["job_id"], dtype=object)
    named = (columns["job_id"] != "").astype(bool)
    seen_id = ids.duplicated().to_numpy() & named
    if rule != "keep" and (seen_id.any() or (rule != "exact" and not named.all())):
        frame = pd.DataFrame({"job_id": ids, **{name: columns[name] for name in CONTENT}})
        seen_row = frame.duplicated().to_numpy()
        again = seen_row & named if rule == "exact" else np.where(named, seen_id, seen_row)
        if rule == "error":
            faults = [
                Fault(int(row), "job_id", columns["job_id"][row], "give every job one row, or choose another rule")
                for row in np.flatnonzero(again)
            ]
            keep = settle_faults(faults, columns["line"], where, options.lenient, tally, unit)
        else:
            keep = ~again
            reason = "repeats an earlier row" if rule == "exact" else "repeats an earlier job"
            tally.dropped.update({reason: int(again.sum())} if again.any() else {})
        for name in columns:
            columns[name] = columns[name][keep]
    _name(columns, tally)


def _name(columns: dict[str, np.ndarray], tally: Tally) -> None:
    """Row numbers for jobs without a name, and "name#2", "name#3", ... for jobs of one name."""
    import pandas as pd

    ids, rows = columns["job_id"], columns.pop("row")
    unnamed = ids == ""
    ids[unnamed] = [str(row) for row in rows[unnamed]]
    again = np.flatnonzero(pd.Series(ids, dtype=object).duplicated().to_numpy())
    if not len(again):
        return
    taken = set(ids)
    count: Counter[str] = Counter()
    for row in again:
        name = ids[row]
        while ids[row] in taken:
            count[name] += 1
            ids[row] = f"{name}#{count[name] + 1}"
        taken.add(ids[row])
    tally.changed["id of an earlier job, named anew"] += len(again)

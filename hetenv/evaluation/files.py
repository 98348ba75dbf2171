"""An evaluation as files: all of them complete, or none."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetenv.evaluation.figures import pool_episodes
from hetenv.evaluation.trials import Trial
from hetenv.files import replace_entries

if TYPE_CHECKING:
    from hetenv.evaluation.report import Evaluation

TENSORBOARD = "tensorboard"


def save(evaluation: Evaluation, folder: Path) -> Path | None:
    """See ``Evaluation.save``."""
    with replace_entries(folder) as draft:
        _write_tables(evaluation, draft)
        has_scalars = _write_scalars(evaluation.trials, draft / TENSORBOARD)
    return folder / TENSORBOARD if has_scalars else None


def _write_tables(evaluation: Evaluation, folder: Path) -> None:
    import pandas as pd

    summary = evaluation.summary()
    rows = [{"scheduler": name} | _flat(figures) for name, figures in summary["schedulers"].items()]
    (folder / "summary.json").write_text(json.dumps(summary, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    pd.DataFrame(rows).to_csv(folder / "summary.csv", index=False)
    evaluation.jobs.to_csv(folder / "jobs.csv", index=False)


def _write_scalars(trials_of: Mapping[str, Sequence[Trial]], folder: Path) -> bool:
    """Write TensorBoard event files; False where TensorBoard is not installed."""
    try:  # torch has a writer, which takes seconds to import
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        return False
    now_s = time.time()
    for scheduler, trials in trials_of.items():
        # TensorBoard knows its files by the beginning of their names.
        path = folder / scheduler / f"events.out.tfevents.{now_s:.0f}.hetenv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            writer = RecordWriter(file)
            writer.write(Event(wall_time=now_s, file_version="brain.Event:2").SerializeToString())
            for step in range(1, len(trials) + 1):
                figures = _flat(pool_episodes(trials[:step]))
                values = [
                    Summary.Value(tag=f"evaluation/{name}", simple_value=value) for name, value in figures.items()
                ]
                writer.write(Event(wall_time=now_s, step=step, summary=Summary(value=values)).SerializeToString())
    return True


def _flat(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """Figures without nesting: intervals as ``<name>_low`` and ``<name>_high``, mappings as ``<name>_<key>``."""
    flat: dict[str, float | None] = {}
    for name, value in figures.items():
        if name in ("ci95", "ratio_ci95"):
            flat[f"{name}_low"], flat[f"{name}_high"] = value or (None, None)
        elif isinstance(value, Mapping):
            flat |= {f"{name}_{key}": part for key, part in value.items()}
        else:
            flat[name] = value
    return flat

"""TensorBoard's event files of a run: one of its own, and one of each baseline in a folder inside, ``<run>/market``.

TensorBoard draws what has the same tag in several folders into one chart, so the baselines are level lines
beside the run's curves ``heldout/mean_jct_s``, ``heldout/p95_jct_s``, ``heldout/utilization`` and
``heldout/queue_length``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import HParam, Image, Logger, TensorBoardOutputFormat
from tensorboard.compat.proto.event_pb2 import Event, SessionLog

from agents.figures import Figures


class Events:
    """
    Args:
        folder: of the run.
        baselines: by name; constant over the run.
        purge_step: TensorBoard forgets what an earlier session logged from this step on; None: there was none.

    Attributes:
        logger: of the run, for a learner to log to as well.
    """

    def __init__(self, folder: Path, baselines: Mapping[str, Figures], purge_step: int | None = None) -> None:
        self.baselines = baselines
        self.logger = _logger(folder, purge_step)
        self._lines = {name: _logger(folder / name, purge_step) for name in baselines}

    def evaluated(
        self, step: int, figures: Figures, others: Mapping[str, Any], gantt: np.ndarray, jct_s: np.ndarray
    ) -> None:
        """Write a held-out evaluation, with what else has been recorded, and its baselines.

        Args:
            others: further scalars of it.
            gantt: (H, W, 3) uint8, a picture of an episode.
            jct_s: (J,) of its jobs, for a histogram.
        """
        for name, line in self._lines.items():
            _record(line, "heldout", self.baselines[name]._asdict())
            line.dump(step)
        ratios = {f"ratio_to_{name}": figures.mean_jct_s / own.mean_jct_s for name, own in self.baselines.items()}
        _record(self.logger, "heldout", figures._asdict() | ratios | dict(others))
        self.logger.record("heldout/gantt", Image(gantt, "HWC"))
        self.logger.record("heldout/jct_s", jct_s)
        self.logger.dump(step)

    def ended(self, step: int, best_step: int, best: Figures, settings: Mapping[str, Any]) -> None:
        """Write the figures of the best policy, as what the run made of its ``settings`` (nested, of plain values)."""
        figures = {"step": float(best_step), **best._asdict()}
        _record(self.logger, "best", figures)
        metrics = {f"best/{name}": value for name, value in figures.items()}
        self.logger.record("hparams", HParam(_flat(settings), metrics))
        self.logger.dump(step)

    def close(self) -> None:
        for logger in (self.logger, *self._lines.values()):
            logger.close()


@contextmanager
def failed_writes_told_once() -> Iterator[None]:
    """No traceback of a writer thread that an OSError ended: the next write to its file raises the same again."""
    usual = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        if not issubclass(failure.exc_type, OSError):
            usual(failure)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = usual


def _logger(folder: Path, purge_step: int | None) -> Logger:
    output = TensorBoardOutputFormat(str(folder))
    if purge_step is not None:
        restart = Event(step=purge_step, session_log=SessionLog(status=SessionLog.START))
        assert output.writer.file_writer is not None
        output.writer.file_writer.add_event(restart)
    return Logger(str(folder), [output])


def _record(logger: Logger, family: str, scalars: Mapping[str, Any]) -> None:
    for name, value in scalars.items():
        logger.record(f"{family}/{name}", value)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, bool | str | float | None]:
    """One level, nested names joined by dots, lists as texts."""
    flat: dict[str, bool | str | float | None] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    return flat

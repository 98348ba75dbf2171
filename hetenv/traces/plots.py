"""Histograms of a described trace, one PNG each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hetenv.files import replace_file
from hetenv.traces.describe import DAYS, Description

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 60


def save_plots(figures: Description, folder: Path) -> list[str]:
    """Write one histogram a figure into ``folder``, which exists; returns the file names.

    Raises:
        ImportError: no matplotlib.
        InputError: a file cannot be written.
    """
    from matplotlib.figure import Figure  # without pyplot: no window system, and nothing to close

    plots: dict[str, Callable[[Axes], None]] = {
        "durations": lambda axes: _logarithmic(axes, figures.duration_s, "run time (s)"),
        "gaps": lambda axes: _logarithmic(
            axes, figures.gap_s[figures.gap_s > 0], "gap between arrivals, 0 left out (s)"
        ),
        "gpus": lambda axes: _gpus(axes, figures),
    }
    hours, days = figures.hour_share, figures.day_share
    if hours is not None and days is not None:
        plots["hours"] = lambda axes: _bars(axes, [str(hour) for hour in range(24)], hours, "hour of the day")
        plots["days"] = lambda axes: _bars(axes, list(DAYS), days, "day of the week")
    for name, draw in plots.items():
        figure = Figure(figsize=(7, 4), layout="constrained")
        draw(figure.add_subplot())
        with replace_file(folder / f"{name}.png", "wb") as file:
            figure.savefig(file, format="png", dpi=120)
    return [f"{name}.png" for name in plots]


def _logarithmic(axes: Axes, values: np.ndarray, label: str) -> None:
    if len(values):
        low, high = np.log10([values.min(), values.max()])
        axes.hist(values, bins=np.logspace(low, max(high, low + 0.1), BINS).tolist())
    axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.set_ylabel("jobs")


def _gpus(axes: Axes, figures: Description) -> None:
    place = np.arange(len(figures.gpu_counts))
    shares = np.array(list(figures.gpu_counts.values())) * 100
    for column, (shift, label) in enumerate(((-0.2, "jobs"), (0.2, "GPU time"))):
        axes.bar(place + shift, shares[:, column], width=0.4, label=label)
    axes.set_xticks(place, [str(n) for n in figures.gpu_counts], rotation=90 if len(place) > 20 else 0)
    axes.set_xlabel("GPUs")
    axes.set_ylabel("share (%)")
    axes.legend()


def _bars(axes: Axes, labels: list[str], shares: np.ndarray, label: str) -> None:
    axes.bar(labels, shares * 100)
    axes.set_xlabel(label)
    axes.set_ylabel("jobs (%)")

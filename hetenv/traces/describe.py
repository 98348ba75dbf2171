"""The figures by which a trace is judged and a generator calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING

import numpy as np

from hetenv.job_table import OUTCOMES
from hetenv.workload import Workload

if TYPE_CHECKING:
    from rich.table import Table as Panel

PERCENTILES = (1, 10, 25, 50, 75, 90, 95, 99)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOUR_S = 3600
LISTED_SIZES = 12  # GPU counts shown; the rest are one row


@dataclass(frozen=True)
class Description:
    """Statistics of a workload.

    Args:
        n_jobs: jobs.
        duration_s: (J,) run time of each on the GPUs of its fastest type.
        mean_s, mu, sigma: mean of the run times, mean and standard deviation of their logarithms (ln s).
        percentile_s: percent -> s.
        gpu_counts: GPUs -> (share of the jobs, share of the GPU time).
        gap_s: (J - 1,) between arrivals.
        arrivals_per_h: over the span of the trace; infinite where all arrive at once.
        gap_cv: coefficient of variation of the gaps; NaN where there is none.
        zero_gaps: share of the gaps that are 0.
        hour_share, day_share: (24,) and (7,) from Monday, shares of the arrivals; None without a calendar.
        outcomes: outcome -> share of the jobs.
    """

    n_jobs: int
    duration_s: np.ndarray
    mean_s: float
    mu: float
    sigma: float
    percentile_s: dict[int, float]
    gpu_counts: dict[int, tuple[float, float]]
    gap_s: np.ndarray
    arrivals_per_h: float
    gap_cv: float
    zero_gaps: float
    hour_share: np.ndarray | None
    day_share: np.ndarray | None
    outcomes: dict[str, float]


@np.errstate(over="ignore", invalid="ignore")  # figures of absurd jobs are infinite
def describe(workload: Workload, start_s: float | None = None, zone: tzinfo = timezone.utc) -> Description:
    """Measure ``workload``; ``start_s`` (since 1970 UTC) and ``zone`` say what its arrival at 0 is on a calendar."""
    gpus = workload.min_gpus
    duration_s = workload.iterations * workload.batch / (gpus * workload.speed.max(axis=1))
    log_s = np.log(duration_s)
    gap_s = np.diff(workload.arrival_s)
    span_s, mean_gap_s = float(np.ptp(workload.arrival_s)), float(gap_s.mean()) if len(gap_s) else 0.0
    gpu_s = gpus * duration_s
    sizes, row = np.unique(gpus, return_inverse=True)
    share, time_share = np.bincount(row) / len(row), np.bincount(row, gpu_s) / gpu_s.sum()
    hours, days = (None, None) if start_s is None else _rhythm(start_s + workload.arrival_s, zone)
    return Description(
        n_jobs=len(workload),
        duration_s=duration_s,
        mean_s=float(duration_s.mean()),
        mu=float(log_s.mean()),
        sigma=float(log_s.std()),
        percentile_s=dict(zip(PERCENTILES, np.percentile(duration_s, PERCENTILES).tolist(), strict=True)),
        gpu_counts={int(n): (float(s), float(t)) for n, s, t in zip(sizes, share, time_share, strict=True)},
        gap_s=gap_s,
        arrivals_per_h=len(gap_s) * HOUR_S / span_s if span_s else float("inf"),
        gap_cv=float(gap_s.std() / mean_gap_s) if mean_gap_s else float("nan"),
        zero_gaps=float(np.mean(gap_s == 0)) if len(gap_s) else float("nan"),
        hour_share=hours,
        day_share=days,
        outcomes={name: float(np.mean(workload.outcome == name)) for name in OUTCOMES},
    )


def _rhythm(time_s: np.ndarray, zone: tzinfo) -> tuple[np.ndarray, np.ndarray]:
    """(24,) and (7,) shares of the times by hour of the day and by day from Monday, on the clocks of ``zone``."""
    import pandas as pd

    local = pd.to_datetime(time_s, unit="s", utc=True).tz_convert(zone)
    hours, days = np.asarray(local.hour), np.asarray(local.day_of_week)
    return np.bincount(hours, minlength=24) / len(time_s), np.bincount(days, minlength=7) / len(time_s)


def tables(figures: Description) -> list[Panel]:
    """The figures as tables for the screen."""
    from rich.table import Table as Panel

    def panel(title: str, *headings: str) -> Panel:
        made = Panel(title=title, title_justify="left")
        for at, heading in enumerate(headings):
            made.add_column(heading, justify="right" if at else "left")
        return made

    times = panel("run times", "", "s")
    times.add_row("jobs", f"{figures.n_jobs:,}")
    times.add_row("mean", f"{figures.mean_s:,.0f}")
    times.add_row("mu, sigma of ln s", f"{figures.mu:.2f}, {figures.sigma:.2f}")
    for percent, value in figures.percentile_s.items():
        times.add_row("median" if percent == 50 else f"p{percent}", f"{value:,.0f}")

    sizes = panel("GPUs", "GPUs", "jobs", "GPU time")
    common = sorted(figures.gpu_counts, key=lambda n: -max(figures.gpu_counts[n]))[:LISTED_SIZES]
    for n in sorted(common):
        sizes.add_row(f"{n}", *(f"{share:.1%}" for share in figures.gpu_counts[n]))
    if rest := [pair for n, pair in figures.gpu_counts.items() if n not in common]:
        sizes.add_row("others", *(f"{sum(shares):.1%}" for shares in zip(*rest, strict=True)))

    arrivals = panel("arrivals", "", "")
    arrivals.add_row("an hour", f"{figures.arrivals_per_h:,.1f}")
    arrivals.add_row("CV of the gaps", f"{figures.gap_cv:.1f}")
    arrivals.add_row("gaps of 0", f"{figures.zero_gaps:.1%}")
    outcomes = panel("outcomes", "", "jobs")
    for name, share in figures.outcomes.items():
        outcomes.add_row(name, f"{share:.1%}")
    shown = [times, sizes, arrivals, outcomes]
    if figures.hour_share is not None and figures.day_share is not None:
        rhythm = panel("arrivals by hour and day", "", "jobs")
        for name, share in zip(DAYS, figures.day_share, strict=True):
            rhythm.add_row(name, f"{share:.1%}")
        for hour, share in enumerate(figures.hour_share):
            rhythm.add_row(f"{hour:02d} h", f"{share:.1%}")
        shown.append(rhythm)
    return shown

"""Arrivals in bursts, laid over the rhythm of the hours and days of a week."""

from __future__ import annotations

import numpy as np

HOUR_S = 3600.0
WEEK_H = 168

EVEN_WEEK = np.ones(WEEK_H)  # for sources that publish no rhythm


def weekly_rate(day_share: np.ndarray, hour_share: np.ndarray) -> np.ndarray:
    """(168,) relative submission rate of each hour from Monday 0 h; (7,) shares from Monday, (24,) from 0 h."""
    return np.outer(day_share, hour_share).ravel()


def bursty_arrivals(
    n_jobs: int, span_s: float, gap_cv: float, week: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(J,) arrivals from 0 to exactly ``span_s``: lognormal gaps in a time that runs at the weekly rate.

    Args:
        n_jobs: J, 2 or more.
        span_s: seconds from the first arrival to the last.
        gap_cv: coefficient of variation of the gaps, before the week is laid over them.
        week: (168,) relative submission rate of each hour from Monday 0 h, all positive; the
            first job arrives at a random moment of the week.
        rng: where the randomness comes from.
    """
    sigma = np.sqrt(np.log1p(gap_cv**2))
    gaps = np.exp(sigma * rng.standard_normal(n_jobs - 1))
    progress = np.concatenate([[0.0], np.cumsum(gaps) / gaps.sum()])  # 0..1, share of the arrivals so far

    start_h = rng.uniform(0, WEEK_H)
    end_h = start_h + span_s / HOUR_S
    whole_hours = np.arange(np.floor(start_h), np.ceil(end_h) + 1)
    arrived = np.concatenate([[0.0], np.cumsum(week[whole_hours[:-1].astype(int) % WEEK_H])])
    first, last = np.interp([start_h, end_h], whole_hours, arrived)
    arrival_h = np.interp(first + progress * (last - first), arrived, whole_hours)
    arrival_s = np.clip((arrival_h - start_h) * HOUR_S, 0.0, span_s)
    arrival_s[0], arrival_s[-1] = 0.0, span_s  # interpolation leaves rounding there, and the load shall be exact
    return arrival_s

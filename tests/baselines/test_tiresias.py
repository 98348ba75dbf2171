"""Tiresias on cases worked by hand: one type, whose GPUs make one iteration of a job's unit batch a second."""

from __future__ import annotations

import numpy as np
import pytest

import baselines
from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.simulator import simulate
from hetenv.workload import Workload


def finishes(arrival_s, run_s, gpus=1, cluster_gpus: int = 1, restart_s: float = 0.0, **options) -> list[float]:
    """Finish times in rounds of 5 s; a job runs for ``run_s`` on its ``gpus``."""
    workload = Workload.build(
        ("a",),
        np.ones((len(arrival_s), 1)),
        arrival_s,
        iterations=run_s,
        batch=gpus,
        min_gpus=gpus,
        restart_s=restart_s,
    )
    cluster = Cluster.from_counts({"a": cluster_gpus})
    result = simulate(workload, cluster, baselines.make("tiresias", **options), round_s=5.0, preemptive=True)
    return result.jobs["finish_s"].tolist()


def test_a_job_that_reaches_the_threshold_makes_way_for_one_below_it():
    # Job 0 has 5 GPU-s at 5 s and stays; at 10 s it has 10. Job 1 runs 10-15, then job 0 restarts with 20 s left.
    assert finishes([0, 4], [30, 5], restart_s=2.0, thresholds=10) == [15 + 2 + 20, 15]


def test_service_counts_gpus_as_well_as_time():
    # On two GPUs job 0 has its 10 GPU-s at 5 s already.
    assert finishes([0, 4], [30, 5], [2, 2], cluster_gpus=2, thresholds=10) == [35, 10]


def test_new_jobs_do_not_pause_those_of_their_queue():
    assert finishes([0, 1], [30, 5], thresholds=100) == [30, 35]


def test_inside_a_queue_the_earlier_start_goes_first():
    # Job 0 falls to the second queue at 10 s, job 1 at 20 s; there job 0 goes first, to its end at 40 s.
    assert finishes([0, 4], [30, 30], thresholds=10) == [40, 60]


def test_each_threshold_makes_a_queue():
    # Both fall one queue at 10 GPU-s: job 0 goes on at 20 s until it has 20 at 30 s, then job 1 pauses it.
    assert finishes([0, 4], [30, 20], thresholds=[10, 20]) == [50, 40]


def test_a_job_that_fits_nowhere_lets_others_pass():
    assert finishes([0, 1, 2], [20, 5, 5], [1, 2, 1], cluster_gpus=2) == [20, 25, 10]


@pytest.mark.parametrize(("order", "expected"), [("start", [20, 35, 30]), ("entry", [20, 25, 35])])
def test_by_entry_an_earlier_job_that_did_not_fit_pauses_a_later_one(order, expected):
    # Beside job 0 only job 2 fits, from 5 s. When job 0 leaves at 20 s, job 1 needs both GPUs.
    assert finishes([0, 1, 2], [20, 5, 25], [1, 2, 1], cluster_gpus=2, order=order) == expected


@pytest.mark.parametrize(("order", "expected"), [("start", [30, 45, 25]), ("entry", [40, 35, 25])])
def test_by_entry_the_job_that_fell_first_goes_first(order, expected):
    # Job 0 has 15 GPU-s at 15 s; job 1, on three GPUs from 5 s, at 10 s already. At 15 s job 2 pauses one of them.
    got = finishes([0, 1, 12], [30, 30, 10], [1, 3, 1], cluster_gpus=4, thresholds=15, order=order)
    assert got == expected


@pytest.mark.parametrize(("promote_after", "expected"), [(0.0, [35, 15, 20, 25]), (1.0, [30, 15, 20, 35])])
def test_promotion_brings_back_a_job_that_has_waited_as_long_as_it_ran(promote_after, expected):
    # Job 0 runs until 10 s and falls behind three short jobs. At 20 s it has waited 10 s: promoted, it passes job 3.
    got = finishes([0, 6, 7, 8], [20, 5, 5, 5], thresholds=6, promote_after=promote_after)
    assert got == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thresholds": [10, 5]}, r"option thresholds: \[10, 5\]; give GPU-seconds in ascending order"),
        ({"thresholds": [-1]}, "option thresholds: -1; give a finite number of at least 0"),
        ({"order": "length"}, "option order: 'length'; use one of start, entry"),
        ({"promote_after": -1}, "option promote_after: -1; give a finite number of at least 0"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        baselines.make("tiresias", **options)

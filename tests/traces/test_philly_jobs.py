"""Philly-like jobs against the figures of the trace they imitate."""

import numpy as np
import pytest
from pydantic import ValidationError

from hetenv.cluster import Cluster
from hetenv.config import load_scenario
from hetenv.traces.arrivals import bursty_arrivals
from hetenv.traces.philly_jobs import PHILLY, PhillyJobs
from hetenv.workload import Workload

CLUSTER = Cluster.from_counts({"a": 64, "b": 64, "c": 32, "d": 32}, gpus_per_node=8)
SPEED = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}


@pytest.fixture(scope="module")
def many():
    """As many jobs as the trace has; the seed is fixed, the tolerances below hold for 9 seeds in 10 or more."""
    return PhillyJobs(n_jobs=82_247).draw(CLUSTER, np.random.default_rng(0))


@pytest.mark.parametrize("load", [0.3, 0.8, 1.5])
@pytest.mark.parametrize("n_jobs", [2, 200])
def test_load_is_exact(load, n_jobs):
    for seed in range(10):
        source = PhillyJobs(n_jobs=n_jobs, load=load, type_speed=SPEED)
        workload = source.draw(CLUSTER, np.random.default_rng(seed))
        assert workload.offered_load(CLUSTER) == pytest.approx(load, rel=1e-9)


def test_jobs_obey_the_schema():
    workload = PhillyJobs(type_speed=SPEED).draw(CLUSTER, np.random.default_rng(0))
    checked = Workload(workload.types, **workload.columns())  # validates
    assert (checked.job_id == workload.job_id).all()  # already in order of arrival
    assert (workload.min_gpus == workload.max_gpus).all()
    assert workload.speed[0].tolist() == [1, 2, 3, 4]


def test_durations(many):
    quantiles = np.quantile(many.iterations, [0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
    # Within 15 %: the tables interpolate between thirteen ranks of each GPU count.
    np.testing.assert_allclose(quantiles, [115, 1_144, 2_932, 11_265, 43_646, 254_758], rtol=0.15)


def test_gpu_counts_and_their_share_of_gpu_time(many):
    share = [np.mean(many.min_gpus == size) for size in (1, 2, 4, 8)]
    np.testing.assert_allclose(share, [0.932, 0.022, 0.023, 0.020], atol=0.003)
    gpu_s = many.min_gpus * many.iterations
    time_share = [gpu_s[many.min_gpus == size].sum() / gpu_s.sum() for size in (1, 4, 8, 16)]
    np.testing.assert_allclose(time_share, [0.18, 0.17, 0.48, 0.12], atol=0.05)


def test_outcomes_and_that_failures_are_short(many):
    duration_s = {name: many.iterations[many.outcome == name] for name in ("completed", "failed", "killed")}
    share = [len(values) / len(many) for values in duration_s.values()]
    np.testing.assert_allclose(share, [0.57, 0.30, 0.13], atol=0.01)
    assert np.median(duration_s["failed"]) < np.median(many.iterations) < np.median(duration_s["completed"])


def test_sizes_are_cut_to_the_largest_type():
    small = Cluster.from_counts({"a": 4, "b": 2})
    workload = PhillyJobs(n_jobs=2_000).draw(small, np.random.default_rng(0))
    assert set(workload.min_gpus.tolist()) == {1, 2, 4}
    workload.check_runnable(small)
    usable = PhillyJobs(n_jobs=2_000, type_speed={"a": 0.0, "b": 1.0}).draw(small, np.random.default_rng(0))
    assert set(usable.min_gpus.tolist()) == {1, 2}


def test_bursts():
    def gap_cv(asked, seed):
        gap_s = np.diff(bursty_arrivals(20_000, 30 * 86_400.0, asked, PHILLY.week, np.random.default_rng(seed)))
        return gap_s.std() / gap_s.mean()

    # Even gaps leave the rhythm of days and weeks alone; Philly's are far more irregular than Poisson's 1.
    assert max(gap_cv(0.0, seed) for seed in range(5)) < 1
    assert min(gap_cv(15.1, seed) for seed in range(5)) > 3
    gap_s = np.diff(bursty_arrivals(20_000, 30 * 86_400.0, 15.1, PHILLY.week, np.random.default_rng(0)))
    assert np.median(gap_s) / gap_s.mean() == pytest.approx(8 / 114, abs=0.03)


def test_days_and_weeks_keep_their_rhythm():
    ten_weeks_s = 10 * 7 * 86_400.0
    arrival_s = bursty_arrivals(70_000, ten_weeks_s, 0.0, PHILLY.week, np.random.default_rng(3))
    by_hour = np.bincount((arrival_s[:-1] / 3600).astype(int) % 168, minlength=168)
    # The episode starts at a random moment of the week, so one of the shifts must match, up to part of an hour.
    match = [np.corrcoef(by_hour, np.roll(PHILLY.week, -shift))[0, 1] for shift in range(168)]
    assert max(match) > 0.9
    assert np.median(match) < 0.3


def test_arrivals_span_exactly_the_asked_time():
    for span_s in (0.5, 3_600.0, 1e8):
        arrival_s = bursty_arrivals(50, span_s, 15.1, PHILLY.week, np.random.default_rng(0))
        assert (arrival_s[0], arrival_s[-1]) == (0, span_s)
        assert (np.diff(arrival_s) >= 0).all()


@pytest.mark.parametrize("options", [{"n_jobs": 1}, {"n_jobs": (1, 5)}, {"load": None}, {"gap_cv": -1}])
def test_configuration_errors(options):
    with pytest.raises(ValidationError, match=next(iter(options))):
        PhillyJobs(**options)


@pytest.mark.parametrize(
    ("seed", "arrivals_s", "work_s", "failed", "killed"),
    [(0, 207489955.39791206, 38628247.34768551, 314, 128), (1000, 201988087.39287138, 36381462.56091949, 306, 154)],
)
def test_published_comparisons_see_the_same_jobs(seed, arrivals_s, work_s, failed, killed):
    workload = load_scenario("philly").draw_workload(np.random.default_rng(seed))
    assert workload.arrival_s.sum() == pytest.approx(arrivals_s, rel=1e-12)
    assert (workload.iterations * workload.batch).sum() == pytest.approx(work_s, rel=1e-12)
    assert ((workload.outcome == "failed").sum(), (workload.outcome == "killed").sum()) == (failed, killed)

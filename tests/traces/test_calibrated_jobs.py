"""Jobs like those of real clusters, against the published figures of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from pydantic import ValidationError

from hetenv.cluster import Cluster
from hetenv.traces.acme_jobs import ACME
from hetenv.traces.arrivals import bursty_arrivals
from hetenv.traces.generate import AcmeJobs, HeliosJobs, OpenbJobs, PhillyJobs
from hetenv.traces.helios_jobs import HELIOS
from hetenv.traces.job_figures import JobFigures
from hetenv.traces.openb_jobs import OPENB
from hetenv.workload import Workload

CLUSTER = Cluster.from_counts({"a": 64, "b": 64, "c": 32, "d": 32}, gpus_per_node=8)
SPEED = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
SOURCES = {"philly": PhillyJobs(), "helios": HeliosJobs(), "openb": OpenbJobs(), "seren": AcmeJobs()}
SOURCES["kalos"] = AcmeJobs(site="kalos")


@dataclass(frozen=True)
class Published:
    """Median and mean duration (s), mean GPUs and GPU-seconds of a job, outcomes as completed, killed, failed."""

    figures: JobFigures
    median_s: float
    mean_s: float
    mean_gpus: float
    gpu_s: float
    outcomes: tuple[float, float, float]
    outcomes_by_gpu_s: tuple[float, float, float]


PUBLISHED = {
    "helios": Published(HELIOS, 206, 6_652, 3.716, 49_351, (0.624, 0.221, 0.155), (0.513, 0.394, 0.093)),
    "seren": Published(ACME["seren"], 122, 1_414, 5.68, 32_389, (0.497, 0.075, 0.429), (0.212, 0.664, 0.124)),
    "kalos": Published(ACME["kalos"], 124, 1_260, 26.77, 267_900, (0.541, 0.062, 0.397), (0.313, 0.607, 0.080)),
}


@dataclass(frozen=True)
class Jobs:
    n_gpus: np.ndarray
    duration_s: np.ndarray
    outcome: np.ndarray


def draw(figures: JobFigures, n_jobs: int = 1_000_000) -> Jobs:
    """So many that the means of the heavy tails stand still to a few per cent."""
    rng = np.random.default_rng(0)
    size = figures.draw_sizes(n_jobs, rng)
    rank = rng.random(n_jobs)
    n_gpus = figures.n_gpus[size]
    return Jobs(n_gpus, figures.duration.quantile_s(size, n_gpus, rank), figures.draw_outcomes(size, rank, rng))


@pytest.fixture(scope="module")
def drawn() -> dict[str, Jobs]:
    return {name: draw(published.figures) for name, published in PUBLISHED.items()}


# --- the published figures -------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLISHED)
def test_durations_gpus_and_gpu_time(name, drawn):
    published, jobs = PUBLISHED[name], drawn[name]
    assert np.median(jobs.duration_s) == pytest.approx(published.median_s, rel=0.02)
    assert jobs.duration_s.mean() == pytest.approx(published.mean_s, rel=0.05)
    assert jobs.n_gpus.mean() == pytest.approx(published.mean_gpus, rel=0.02)
    assert np.median(jobs.n_gpus) == 1
    assert (jobs.n_gpus * jobs.duration_s).mean() == pytest.approx(published.gpu_s, rel=0.08)
    assert jobs.duration_s.max() <= published.figures.duration.longest_s


@pytest.mark.parametrize("name", PUBLISHED)
def test_outcomes_by_number_and_by_gpu_time(name, drawn):
    published, jobs = PUBLISHED[name], drawn[name]
    gpu_s = jobs.n_gpus * jobs.duration_s
    of = [jobs.outcome == outcome for outcome in ("completed", "killed", "failed")]
    np.testing.assert_allclose([which.mean() for which in of], published.outcomes, atol=0.005)
    np.testing.assert_allclose(
        [gpu_s[which].sum() / gpu_s.sum() for which in of], published.outcomes_by_gpu_s, atol=0.03
    )


def test_helios_mix_and_spread(drawn):
    jobs = drawn["helios"]
    np.testing.assert_allclose([np.mean(jobs.n_gpus == n) for n in (1, 8, 16)], [0.55, 0.22, 0.054], atol=0.002)
    # The log moments were published of a sample of 15,000, whose median is not: they are met within 10 %.
    log = np.log(jobs.duration_s)
    assert log.mean() == pytest.approx(5.95, rel=0.11)
    assert log.std() == pytest.approx(2.85, rel=0.1)
    failed_s, completed_s, killed_s = (
        np.median(jobs.duration_s[jobs.outcome == outcome]) for outcome in ("failed", "completed", "killed")
    )
    assert failed_s < completed_s < killed_s


def test_helios_hours(drawn):
    rate = HELIOS.week.reshape(7, 24)
    by_hour = rate.sum(axis=0) / rate.sum() * 24 * 28.8  # arrivals an hour
    assert (by_hour.min(), by_hour.argmin()) == (pytest.approx(5.4, rel=0.01), 6)
    assert (by_hour.max(), by_hour.argmax()) == (pytest.approx(50, rel=0.01), 16)
    np.testing.assert_allclose(rate[5:].sum(axis=1) / rate.sum(), 0.1)
    cvs = []
    for seed in range(5):  # half a year of Venus
        arrival_s = bursty_arrivals(
            125_303, 125_303 / 28.8 * 3600, HELIOS.gap_cv, HELIOS.week, np.random.default_rng(seed)
        )
        counts = np.bincount((arrival_s / 3600).astype(int))
        cvs.append(counts.std() / counts.mean())
    assert np.median(cvs) == pytest.approx(1.17, abs=0.1)


def test_openb():
    jobs = draw(OPENB, 200_000)
    # The three quantiles lie on one lognormal to 4 %.
    np.testing.assert_allclose(np.quantile(jobs.duration_s, [0.5, 0.75, 0.9]), [616, 2_241, 7_764], rtol=0.05)
    assert np.log(jobs.duration_s).std() == pytest.approx(1.91, rel=0.03)
    assert np.mean(jobs.n_gpus == 1) == pytest.approx((37.8 + 48.0) / 86.7, abs=0.002)  # shares of a GPU among them
    assert set(jobs.n_gpus.tolist()) == {1, 2, 4, 8}
    assert set(jobs.outcome) == {"completed"}


@pytest.mark.parametrize(("site", "n_jobs", "published"), [("seren", 663_813, 14.7), ("kalos", 19_907, 11.3)])
def test_acme_bursts(site, n_jobs, published):
    # The coefficient of variation of lognormal gaps converges slowly, mostly from below: half of it is far from
    # Poisson's 1 all the same.
    cvs = []
    for seed in range(9):
        figures = ACME[site]
        gap_s = np.diff(bursty_arrivals(n_jobs, 1e7, figures.gap_cv, figures.week, np.random.default_rng(seed)))
        cvs.append(gap_s.std() / gap_s.mean())
    assert 0.5 * published < np.median(cvs) < 1.3 * published


def test_acme_gpu_time_lies_in_large_jobs(drawn):
    for name in ("seren", "kalos"):
        jobs = drawn[name]
        gpu_s = jobs.n_gpus * jobs.duration_s
        assert gpu_s[jobs.n_gpus == 1].sum() / gpu_s.sum() < 0.02
    assert gpu_s[jobs.n_gpus >= 256].sum() / gpu_s.sum() > 0.9  # kalos


# --- what all share --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("changes", [{"load": 0.3}, {"load": 1.5, "n_jobs": 2}, {"n_jobs": 200, "time_limit_s": 600.0}])
def test_load_is_exact(name, changes):
    source = SOURCES[name].model_copy(update={"type_speed": SPEED} | changes)
    for seed in range(5):
        workload = source.draw(CLUSTER, np.random.default_rng(seed))
        assert workload.offered_load(CLUSTER) == pytest.approx(source.load, rel=1e-9)


@pytest.mark.parametrize("name", SOURCES)
def test_jobs_obey_the_schema(name):
    source = SOURCES[name].model_copy(update={"type_speed": SPEED, "restart_s": 30.0})
    workload = source.draw(CLUSTER, np.random.default_rng(0))
    checked = Workload(workload.types, **workload.columns())  # validates
    assert (checked.job_id == workload.job_id).all()  # already in order of arrival
    assert (workload.min_gpus == workload.max_gpus).all()
    assert workload.max_gpus.max() <= 64
    assert (workload.restart_s == 30).all()
    workload.check_runnable(CLUSTER)


def test_a_time_limit_cuts_long_jobs_alone():
    free, limited = (
        HeliosJobs(time_limit_s=limit_s).draw(CLUSTER, np.random.default_rng(0)) for limit_s in (None, 3600.0)
    )
    np.testing.assert_array_equal(limited.iterations, np.minimum(free.iterations, 3600))
    assert (limited.outcome == free.outcome).all()


def test_bursts_are_those_of_the_source_unless_asked_otherwise():
    def arrivals(**options):
        return HeliosJobs(**options).draw(CLUSTER, np.random.default_rng(0)).arrival_s

    np.testing.assert_array_equal(arrivals(), arrivals(gap_cv=HELIOS.gap_cv))
    assert (arrivals() != arrivals(gap_cv=1.0)).any()


@pytest.mark.parametrize("options", [{"n_jobs": 1}, {"gap_cv": -1}, {"time_limit_s": 0}, {"site": "earth"}])
def test_configuration_errors(options):
    with pytest.raises(ValidationError, match=next(iter(options))):
        AcmeJobs(**options)

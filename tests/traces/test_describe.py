"""The statistics of a trace, the account of an import, and what it writes."""

import warnings

import numpy as np
import pytest

from hetenv.traces import load_workload, read_trace, samples
from hetenv.traces.describe import describe
from hetenv.traces.rules import Rules
from hetenv.workload import Workload
from scripts.import_trace import main


def workload(**columns):
    return Workload.build(("gpu",), np.ones((4, 1)), np.array([0.0, 0.0, 3600.0, 7200.0]), **columns)


def test_figures_by_hand():
    duration_s = np.exp([1.0, 2.0, 3.0, 4.0])
    figures = describe(
        workload(
            iterations=duration_s,
            batch=np.array([1, 1, 2, 8]),
            min_gpus=np.array([1, 1, 2, 8]),
            outcome=np.array(["completed", "failed", "failed", "killed"], object),
        ),
        start_s=1_609_459_200.0 - 3600,  # a Thursday, 23:00 UTC
    )
    assert (figures.n_jobs, figures.mu, figures.sigma) == (4, 2.5, pytest.approx(np.sqrt(1.25)))
    assert figures.percentile_s[50] == pytest.approx(np.median(duration_s))
    gpu_s = duration_s * [1, 1, 2, 8]
    assert figures.gpu_counts[1] == (0.5, pytest.approx(gpu_s[:2].sum() / gpu_s.sum()))
    assert (figures.arrivals_per_h, figures.zero_gaps) == (1.5, pytest.approx(1 / 3))
    assert figures.gap_cv == pytest.approx(np.std([0, 1, 1]) / np.mean([0, 1, 1]))
    assert (figures.hour_share[23], figures.hour_share[0], figures.hour_share[1]) == (0.5, 0.25, 0.25)
    assert (figures.day_share[3], figures.day_share[4]) == (0.5, 0.5)
    assert figures.outcomes == {"completed": 0.25, "failed": 0.5, "killed": 0.25}


def test_the_profile_is_that_of_the_zone():
    zone = Rules(zone="Asia/Shanghai").clock
    assert describe(workload(iterations=1.0), 1_609_459_200.0, zone).hour_share[8] == 0.5


def test_jobs_that_arrive_at_once_and_a_single_job():
    figures = describe(workload(iterations=1.0).replace(arrival_s=0.0))
    assert (figures.arrivals_per_h, figures.zero_gaps, figures.hour_share) == (float("inf"), 1, None)
    alone = describe(workload(iterations=1.0).take(np.array([0])))
    assert np.isnan(alone.zero_gaps)


def test_philly_as_calibrated(shared):
    trace = read_trace(shared / "data/pollux/traces/philly.csv")
    figures = describe(trace.workload, trace.start_s)
    assert (figures.mu, figures.sigma) == pytest.approx((6.79, 2.16), abs=0.005)
    assert (figures.arrivals_per_h, figures.gap_cv) == pytest.approx((31.5, 15.1), abs=0.05)
    assert [figures.gpu_counts[n][1] for n in (1, 4, 8, 16)] == pytest.approx([0.18, 0.17, 0.48, 0.12], abs=0.006)
    assert (figures.hour_share.max(), figures.hour_share.min()) == pytest.approx((0.087, 0.027), abs=5e-4)
    assert figures.day_share[4] == pytest.approx(0.206, abs=5e-4)
    assert figures.day_share[5:].mean() == pytest.approx(0.086, abs=5e-4)


def test_absurd_jobs_have_infinite_figures():
    workload = Workload.build(["gpu"], [[1.0], [1.0]], [0.0, 1e300], iterations=[1e308, 1.0], batch=8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert describe(workload).mean_s == np.inf


# --- scripts/import_trace.py ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", samples.TEXTS)
def test_import_writes_what_load_workload_reads(tmp_path, name, capsys):
    path, options = samples.write(tmp_path, name)
    arguments = [f"--{key}={value}" for key, value in options.items()]
    assert main([str(path), "--out", str(tmp_path / "jobs.csv"), *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert all(word in printed.out for word in (name, "read", "kept", "jobs.csv"))
    expected, saved = read_trace(path, **options).workload, load_workload(tmp_path / "jobs.csv")
    for column, values in expected.columns().items():
        assert saved.columns()[column].tolist() == values.tolist()


def test_account_statistics_and_plots(tmp_path, capsys):
    path, _ = samples.write(tmp_path, "openb")
    assert main([str(path), "--describe", "--plots", str(tmp_path / "plots"), "--fractional", "drop"]) == 0
    printed = capsys.readouterr().out
    for words in ("fraction of a GPU", "still running when the trace ended", "median", "CV of the gaps", "killed"):
        assert words in printed
    assert {file.name for file in (tmp_path / "plots").iterdir()} == {"durations.png", "gaps.png", "gpus.png"}
    path, _ = samples.write(tmp_path, "helios")
    assert main([str(path), "--describe", "--plots", str(tmp_path / "plots"), "--zone", "Asia/Shanghai"]) == 0
    assert "18 h" in capsys.readouterr().out
    assert (tmp_path / "plots" / "days.png").read_bytes().startswith(b"\x89PNG")


def test_the_account_shows_names_as_they_are(tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,arrival_s,iterations,speed_[/b]\nx,0,10,1\ny,0,10,-1\n")
    assert main([str(path), "--lenient", "--describe"]) == 0
    assert "speed_[/b]: give samples/s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--out: missing"),
        (["--out", "{tmp}/none/jobs.csv"], "cannot be written"),
        (["--out", "{tmp}/jobs.csv", "--cpu-only", "error"], "no GPU asked for: 0.0"),
        (["--out", "{tmp}/jobs.csv", "--zone", "Mars"], "--zone: Mars; 'Mars' is no time zone"),
        (["--out", "{tmp}/jobs.csv", "--step-s", "-1"], "--step-s: -1"),
        (["--out", "{tmp}/jobs.csv", "--format", "csv"], "trace format: 'csv'; use one of"),
        (["--out", "{tmp}/jobs.csv", "--type-speed", "v100"], "--type-speed: v100; give TYPE=SPEED"),
        (["--out", "{tmp}/jobs.csv", "--throughputs", "x"], "throughputs: of no use for format helios"),
    ],
)
def test_bad_requests_are_one_line_and_write_nothing(tmp_path, capsys, arguments, named):
    path, _ = samples.write(tmp_path, "helios")
    assert main([str(path), *(argument.format(tmp=tmp_path) for argument in arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert named in printed.err
    assert [file.name for file in tmp_path.iterdir()] == [path.name]

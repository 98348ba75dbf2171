"""Stretches of a trace as episodes."""

import os

import numpy as np
import pytest
from pydantic import ValidationError

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces.generate import TraceJobs

CLUSTER = Cluster.from_counts({"a": 8})
HEADER = "arrival_s,iterations,speed_a\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "".join(f"{10 + 3 * job},{job + 1},2\n" for job in range(20)))
    return path


def test_all_jobs_from_time_zero(trace):
    workload = TraceJobs(path=trace).draw(CLUSTER, np.random.default_rng(0))
    assert workload.arrival_s.tolist() == [3.0 * job for job in range(20)]


def test_stretches_begin_anywhere_and_are_consecutive(trace):
    source = TraceJobs(path=trace, n_jobs=18)
    rng = np.random.default_rng(0)
    starts = set()
    for _ in range(30):
        workload = source.draw(CLUSTER, rng)
        starts.add(int(workload.job_id[0]))
        assert np.diff(workload.iterations).tolist() == [1] * 17
        assert workload.arrival_s[0] == 0
    assert starts == {0, 1, 2}


def test_load_is_exact_and_drawing_leaves_the_trace_alone(trace):
    source = TraceJobs(path=trace, n_jobs=10, load=0.7)
    for seed in range(5):
        assert source.draw(CLUSTER, np.random.default_rng(seed)).offered_load(CLUSTER) == pytest.approx(0.7, rel=1e-12)
    assert TraceJobs(path=trace).draw(CLUSTER, np.random.default_rng(0)).arrival_s[-1] == 57


def test_a_changed_file_is_read_again(trace):
    source = TraceJobs(path=trace)
    assert len(source.draw(CLUSTER, np.random.default_rng(0))) == 20
    trace.write_text(HEADER + "0,1,1\n")
    os.utime(trace, ns=(0, 1))
    assert len(source.draw(CLUSTER, np.random.default_rng(0))) == 1


def test_an_unchanged_file_is_read_once(trace, monkeypatch):
    source = TraceJobs(path=trace)
    source.draw(CLUSTER, np.random.default_rng(0))
    monkeypatch.setattr("hetenv.traces.trace_jobs.load_workload", lambda *_, **__: pytest.fail("read twice"))
    assert len(source.draw(CLUSTER, np.random.default_rng(1))) == 20


def test_errors_name_file_and_field(trace, tmp_path):
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"trace\.csv, n_jobs: 21; the trace has 20 jobs"):
        TraceJobs(path=trace, n_jobs=21).draw(CLUSTER, rng)
    with pytest.raises(InputError, match=r"trace\.csv, load: 0\.5; the jobs all arrive at once"):
        TraceJobs(path=trace, n_jobs=1, load=0.5).draw(CLUSTER, rng)
    with pytest.raises(InputError, match="no such file"):
        TraceJobs(path=tmp_path / "missing.csv").draw(CLUSTER, rng)
    with pytest.raises(ValidationError, match="n_jobs"):
        TraceJobs(path=trace, n_jobs=0)


def test_rules_for_records(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("job_id,num_gpu,submit_time,duration\na,0.5,0,10\nb,1,5,0\n")
    source = TraceJobs(path=path, rules={"zero_durations": "second"})
    assert source.draw(CLUSTER, np.random.default_rng(0)).iterations.tolist() == [10, 1]
    with pytest.raises(ValidationError, match="zero_durations"):
        TraceJobs(path=path, rules={"zero_durations": "minute"})


def test_philly_episodes(shared):
    path = shared / "data/pollux/traces/philly.csv"
    source = TraceJobs(path=path, type_speed={"a": 2.0}, n_jobs=50, load=0.9, lenient=True)
    with pytest.warns(UserWarning, match="more than the cluster has"):
        workload = source.draw(CLUSTER, np.random.default_rng(0))
    assert len(workload) == 50
    assert workload.min_gpus.max() <= 8
    assert workload.offered_load(CLUSTER) == pytest.approx(0.9, rel=1e-12)

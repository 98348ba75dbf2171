"""Philly's cluster_job_log: its traps."""

import json
import tracemalloc

import pytest

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces import load_workload, read_trace
from hetenv.traces.rules import Rules
from hetenv.traces.samples import attempt, philly_job

DAY = "2017-10-07 "


@pytest.fixture
def write(tmp_path):
    def to_file(*jobs):
        path = tmp_path / "cluster_job_log"
        path.write_text(json.dumps(jobs))
        return path

    return to_file


def test_idle_gaps_between_attempts_are_no_run_time(write):
    job = philly_job("a", attempt(DAY + "02:00:00", DAY + "02:10:00"), attempt(DAY + "05:00:00", DAY + "05:05:00"))
    path = write(job)
    trace = read_trace(path)
    assert trace.workload.iterations.tolist() == [900]
    assert dict(trace.tally.changed) == {"idle gaps between attempts left out": 1}
    assert load_workload(path, rules=Rules(gaps="count")).iterations.tolist() == [3 * 3600 + 300]


@pytest.mark.parametrize("hole", ["None", None, ""])
@pytest.mark.parametrize("field", ["start_time", "end_time"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_attempt_without_start_or_end_adds_nothing_wherever_it_stands(write, hole, field, place):
    attempts = [attempt(DAY + f"0{hour}:00:00", DAY + f"0{hour}:10:00") for hour in (2, 3, 4)]
    attempts[place][field] = hole
    trace = read_trace(write(philly_job("a", *attempts)))
    assert trace.workload.iterations.tolist() == [1200]
    assert trace.tally.changed["an attempt without start or end left out"] == 1


def test_jobs_that_never_ran_and_jobs_still_running(write):
    trace = read_trace(
        write(
            philly_job("never", status="Killed"),
            philly_job("open", attempt(DAY + "02:00:00", None)),
            philly_job("late", attempt(DAY + "02:00:00", DAY + "02:10:00"), submitted="None"),
            philly_job("null", attempt(DAY + "02:00:00", DAY + "02:10:00")) | {"submitted_time": None},
            philly_job("good", attempt(DAY + "02:00:00", DAY + "02:10:00")),
        )
    )
    assert trace.workload.job_id.tolist() == ["good"]
    assert dict(trace.tally.dropped) == {
        "never ran (no attempts)": 1,
        "no run time (start or end is missing)": 1,
        "no time of submission": 2,
    }


def test_gpus_are_those_of_the_largest_attempt_over_all_its_nodes(write):
    large = attempt(DAY + "03:00:00", DAY + "03:10:00", 8)
    large["detail"].append({"ip": "m2", "gpus": ["gpu0", "gpu1"]})
    path = write(philly_job("a", attempt(DAY + "02:00:00", DAY + "02:10:00", 4), large))
    assert load_workload(path).min_gpus.tolist() == [10]


def test_without_detail_the_number_of_gpus_is_missing(write):
    bare = attempt(DAY + "02:00:00", DAY + "02:10:00") | {"detail": []}
    good = philly_job("good", attempt(DAY + "02:00:00", DAY + "02:10:00"))
    assert dict(read_trace(write(good, philly_job("bare", bare))).tally.dropped) == {"no number of GPUs": 1}


@pytest.mark.parametrize(
    ("job", "named"),
    [
        (philly_job("b", status="Sleeping"), "job 2, status: 'Sleeping'; use one of pass"),
        (philly_job("b", submitted="soon"), "job 2, submitted_time: 'soon'; give a time"),
        (philly_job("b", attempt("soon", DAY + "02:00:00")), "job 2, attempts: .*soon.*; give a list of"),
        (philly_job("b") | {"submitted_time": 5}, "job 2, submitted_time: 5; give a time"),
        (philly_job("b") | {"attempts": 7}, "job 2, attempts: .*; give a list of"),
        (philly_job("b") | {"attempts": ["x"]}, "job 2, attempts: .*; give a list of"),
        ([], r"job 2, job: '\[\]'; give an object with jobid"),
    ],
)
def test_faulty_jobs_are_named_or_dropped(write, job, named):
    path = write(philly_job("a", attempt(DAY + "02:00:00", DAY + "02:10:00")), job)
    with pytest.raises(InputError, match=named):
        load_workload(path)
    with pytest.warns(UserWarning, match="dropped 1 row"):
        assert load_workload(path, lenient=True).job_id.tolist() == ["a"]


@pytest.mark.parametrize(
    ("content", "found"), [("[{]", "no JSON"), ('[{"jobid": "a"', "no JSON"), ("{}", "no jobs"), ("[]", "no jobs")]
)
def test_files_that_are_no_list_of_jobs(tmp_path, content, found):
    path = tmp_path / "log.json"
    path.write_text(content)
    with pytest.raises(InputError, match=rf"log\.json: {found}") as error:
        load_workload(path, "philly")
    assert "\n" not in str(error.value)


def test_a_job_of_eight_gpus_on_machines_of_two(write):
    path = write(philly_job("wide", attempt(DAY + "02:00:00", DAY + "02:10:00", 8)))
    assert len(load_workload(path, cluster=Cluster.from_counts({"a": 8}, gpus_per_node=2))) == 1
    with pytest.raises(InputError, match=r"cluster_job_log, job 1, job wide: needs 8 GPUs"):
        load_workload(path, cluster=Cluster.from_counts({"a": 4}))


@pytest.mark.parametrize("closing", ["", "0" + "}" * 100_000 + "]"])
def test_brackets_in_brackets_cost_no_memory(tmp_path, closing):
    path = tmp_path / "cluster_job_log"
    path.write_text('[{"submitted_time": "", "attempts": []},' + '{"a":' * 100_000 + closing)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="more than 1000 brackets in brackets"):
            load_workload(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()

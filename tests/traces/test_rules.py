"""The stated defaults for records that are no plain job, and the option for each."""

import time

import pytest
from pydantic import ValidationError

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces import load_workload, read_trace
from hetenv.traces.rules import Rules

HEADER = "job_id,gpu_num,state,node_num,submit_time,start_time,end_time\n"


@pytest.fixture
def write(tmp_path):
    def to_file(*rows):
        path = tmp_path / "log.csv"
        path.write_text(HEADER + "\n".join(rows) + "\n")
        return path

    return to_file


def row(job="1", gpus="1", state="COMPLETED", submit="00:00:00", start="00:01:00", end="00:02:00"):
    submit, start, end = (f"2020-04-01 {clock}" if clock else "" for clock in (submit, start, end))
    return f"{job},{gpus},{state},1,{submit},{start},{end}"


GOOD = row("good", start="00:00:30")


@pytest.mark.parametrize(
    ("doubtful", "rule", "reason"),
    [
        (row(gpus="0"), "cpu_only", "no GPU asked for"),
        (row(submit=""), "missing", "no time of submission"),
        (row(start=""), "missing", "no run time"),
        (row(end=""), "missing", "no run time"),
        (row(gpus=""), "missing", "no number of GPUs"),
        (row(start="00:02:00"), "zero_durations", "ran for no time"),
        (row(start="00:03:00"), "negative_durations", "ended before it started"),
    ],
)
def test_dropped_and_counted_unless_an_error_is_asked_for(write, doubtful, rule, reason):
    path = write(GOOD, doubtful)
    with pytest.warns(UserWarning, match=rf"log\.csv: dropped 1 row \(1 x {reason}"):
        assert load_workload(path).job_id.tolist() == ["good"]
    with pytest.raises(
        InputError, match=rf"log\.csv, line 3, {reason}.*: .*; mend the row, or let the rule {rule} drop"
    ):
        load_workload(path, rules=Rules(**{rule: "error"}))
    with pytest.warns(UserWarning, match=rf"1 x {reason}"):
        load_workload(path, rules=Rules(**{rule: "error"}), lenient=True)


def test_fractions_of_a_gpu(write):
    path = write(GOOD, row(gpus="0.5"), row("2", gpus="1.25"))
    trace = read_trace(path)
    assert trace.workload.min_gpus.tolist() == [1, 1, 2]
    assert dict(trace.tally.changed) == {"fraction of a GPU, rounded up to whole GPUs": 2}
    dropped = read_trace(path, rules=Rules(fractional="drop"))
    assert (len(dropped.workload), dict(dropped.tally.dropped)) == (1, {"fraction of a GPU": 2})
    with pytest.raises(InputError, match=r"line 3, fraction of a GPU: 0\.5; .*fractional"):
        load_workload(path, rules=Rules(fractional="error"))


def test_zero_durations_may_count_as_a_second(write):
    trace = read_trace(write(row(start="00:02:00")), rules=Rules(zero_durations="second"))
    assert trace.workload.iterations.tolist() == [1]
    assert dict(trace.tally.changed) == {"ran for no time, counted as 1 s": 1}


def test_failed_and_killed_jobs_are_kept_with_their_outcome(write):
    path = write(
        row("1"), row("2", state="FAILED"), row("3", state="CANCELLED"), row("4", state="CANCELED by 1017"),
        row("5", state="TIMEOUT"), row("6", state="NODE_FAIL"), row("7", state="SUSPENDED"), row("8", state="Unknown"),
    )  # fmt: skip
    outcomes = ["completed", "failed", "killed", "killed", "killed", "failed", "killed", "completed"]
    assert load_workload(path).outcome.tolist() == outcomes
    only = read_trace(path, rules=Rules(outcomes=("failed",)))
    assert only.workload.job_id.tolist() == ["2", "6"]
    assert dict(only.tally.dropped) == {"outcome completed": 2, "outcome killed": 4}


def test_duplicates(write):
    unnamed = row("", end="00:07:00")
    path = write(row("a"), row("a"), row("a", end="00:05:00"), row("b"), unnamed, unnamed)

    def ids(**rules):
        return sorted(read_trace(path, rules=Rules(**rules)).workload.job_id)

    assert ids() == ["4", "5", "a", "a#2", "b"]  # equal rows without a name are jobs
    assert ids(duplicates="keep") == ["4", "5", "a", "a#2", "a#3", "b"]
    assert ids(duplicates="id") == ["4", "a", "b"]
    with pytest.raises(InputError, match="line 3, job_id: 'a'; give every job one row"):
        ids(duplicates="error")
    again = read_trace(path).tally
    assert dict(again.dropped) == {"repeats an earlier row": 1}
    assert dict(again.changed) == {"id of an earlier job, named anew": 1}


def test_new_names_are_not_taken(write):
    rows = [row("a"), row("a#2"), row("a", end="00:05:00"), row("", end="00:06:00"), row("3", end="00:07:00")]
    assert load_workload(write(*rows)).job_id.tolist() == ["a", "a#2", "a#3", "3", "3#2"]


def test_naive_times_are_utc_whatever_the_zone_of_this_machine(write, monkeypatch):
    # from 00:30 to 03:30 across the end of summer time in New York, when its clocks repeat an hour
    rows = ["1,1,COMPLETED,1,2017-11-05 00:30:00,2017-11-05 00:30:00,2017-11-05 03:30:00"]
    path = write(*rows)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        trace = read_trace(path)
        assert trace.workload.iterations.tolist() == [3 * 3600]
        assert trace.start_s == 1_509_841_800
        local = read_trace(path, rules=Rules(zone="America/New_York"))
        assert local.workload.iterations.tolist() == [4 * 3600]
        assert local.start_s == trace.start_s + 4 * 3600
    finally:
        monkeypatch.undo()
        time.tzset()


def test_times_with_a_zone_are_taken_at_their_word(write):
    rows = ["1,1,COMPLETED,1,2023-01-01T08:00:00+08:00,2023-01-01 00:00:00+00:00,2023-01-01T00:01:00Z"]
    trace = read_trace(write(*rows), rules=Rules(zone="Asia/Tokyo"))
    assert (trace.start_s, trace.workload.iterations.tolist()) == (1_672_531_200, [60])


@pytest.mark.parametrize(
    ("faulty", "named"),
    [
        (row(gpus="-1"), r"line 3, number of GPUs: -1\.0; give a whole number of GPUs"),
        (row(gpus="9999999999"), "line 3, number of GPUs: 9999999999"),
        (row(gpus="many"), "line 3, gpu_num: 'many'; give a number"),
        (row(gpus="inf"), "line 3, gpu_num: 'inf'; give a number"),
        (row(end="25:00:00"), "line 3, end_time: '2020-04-01 25:00:00'; give a time"),
        (row(state="DREAMING"), "line 3, state: 'DREAMING'; use one of completed"),
        ("1,2", "line 3, number of fields: 2; give 7"),
    ],
)
def test_what_cannot_be_read_is_an_error_unless_lenient(write, faulty, named):
    path = write(GOOD, faulty)
    with pytest.raises(InputError, match=named):
        load_workload(path)
    with pytest.warns(UserWarning, match="dropped 1 row"):
        assert load_workload(path, lenient=True).job_id.tolist() == ["good"]


def test_nothing_left(write):
    with pytest.raises(InputError, match=r"log\.csv: no job is left of 2 rows \(2 x no GPU asked for\)"):
        load_workload(write(row(gpus="0"), row(gpus="0")))


def test_a_job_larger_than_the_cluster_is_named(write):
    path, cluster = write(GOOD, row(gpus="16")), Cluster.from_counts({"v100": 8})
    with pytest.raises(InputError, match=r"log\.csv, line 3, job 1: needs 16 GPUs of v100"):
        load_workload(path, cluster=cluster)
    with pytest.warns(UserWarning, match="1 x GPUs: more than the cluster has"):
        assert load_workload(path, cluster=cluster, lenient=True).job_id.tolist() == ["good"]


def test_rules_are_checked():
    with pytest.raises(ValidationError, match="no time zone: give a name such as UTC"):
        Rules(zone="Mars/Olympus")
    with pytest.raises(ValidationError, match="zone"):
        Rules(zone="../../etc/passwd")
    with pytest.raises(ValidationError, match="step_s"):
        Rules(step_s=0)
    with pytest.raises(ValidationError, match="outcomes"):
        Rules(outcomes=())


def test_rules_are_of_no_use_where_nothing_was_recorded(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("arrival_s,iterations,speed_a\n0,1,1\n")
    with pytest.raises(InputError, match="rules: of no use for format hetenv"):
        load_workload(path, rules=Rules())


@pytest.mark.parametrize("gpus", ["1e19", "-1e308", "1e999", "9" * 400])
def test_numbers_that_nobody_can_mean_are_faults(write, gpus):
    with pytest.raises(InputError, match=r"line 3, gpu_num: .*; give a number"):
        load_workload(write(GOOD, row(gpus=gpus)))


@pytest.mark.parametrize("year", ["0001", "1677", "2262", "9999"])
def test_years_beyond_the_calendar_are_faults(write, year):
    path = write(GOOD, row().replace("2020", year))
    with pytest.raises(
        InputError, match=r"line 3, time of submission: .*; give a time between the years 1679 and 2261"
    ):
        load_workload(path)
    with pytest.warns(UserWarning, match="dropped 1 row"):
        assert load_workload(path, lenient=True).job_id.tolist() == ["good"]

"""Pollux's philly.csv: its traps on small files, its published figures on the real one."""

import time

import numpy as np
import pytest

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces import load_workload

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"


@pytest.fixture
def write(tmp_path):
    def to_file(*rows):
        path = tmp_path / "philly.csv"
        path.write_text(HEADER + "\n".join(rows) + "\n")
        return path

    return to_file


def row(timestamp="2017-10-09 07:00:00", duration="60.0", num_gpus="1"):
    return f"{timestamp},{duration},{num_gpus},0,vc"


def test_unsorted_duplicate_and_blank_lines(write):
    path = write(row("2017-10-09 07:01:00"), row(), row(), "", "")
    workload = load_workload(path)
    assert workload.arrival_s.tolist() == [0, 0, 60]
    assert workload.job_id.tolist() == ["1", "2", "0"]


def test_a_job_runs_for_its_duration_on_reference_gpus(write):
    workload = load_workload(write(row(duration="90.5", num_gpus="8")))
    assert workload.types == ("gpu",)
    assert (workload.iterations * workload.batch / (8 * workload.speed[:, 0])).tolist() == [90.5]
    assert (workload.min_gpus[0], workload.max_gpus[0]) == (8, 8)


def test_types_and_speeds(write):
    path = write(row())
    assert load_workload(path, type_speed={"a": 1.0, "b": 2.0}).speed.tolist() == [[1, 2]]
    cluster = Cluster.from_counts({"b": 8, "a": 8})
    assert load_workload(path, cluster=cluster).speed.tolist() == [[1, 1]]
    assert load_workload(path, cluster=cluster, type_speed={"a": 1.0, "b": 2.0, "c": 3.0}).speed.tolist() == [[2, 1]]
    with pytest.raises(InputError, match="type_speed: no speed for GPU type b"):
        load_workload(path, cluster=cluster, type_speed={"a": 1.0})
    with pytest.raises(InputError, match=r"type_speed.*0 or more"):
        load_workload(path, type_speed={"a": -1.0})


def test_the_zone_of_this_machine_does_not_matter(write, monkeypatch):
    # 02:30 to 03:30 across the end of summer time in New York, when the clock repeats an hour
    path = write(row("2017-11-05 00:30:00"), row("2017-11-05 03:30:00"))
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert load_workload(path).arrival_s.tolist() == [0, 3 * 3600]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("faulty", "named"),
    [
        (row("7 o'clock"), 'line 3, timestamp: "7 o\'clock"; give a time'),
        (row(duration="long"), "line 3, duration: 'long'; give a number"),
        (row(num_gpus="-1"), "line 3, number of GPUs: -1.0; give a whole number"),
        ("2017-10-09 07:00:00,5", "line 3, number of fields: 2; give 5"),
    ],
)
def test_faulty_rows_are_named_or_dropped(write, faulty, named):
    path = write(row("2017-10-09 08:00:00"), faulty)
    with pytest.raises(InputError) as error:
        load_workload(path)
    assert str(error.value).startswith(f"{path}, {named}")
    with pytest.warns(UserWarning, match="dropped 1 row"):
        workload = load_workload(path, lenient=True)
    assert workload.arrival_s.tolist() == [0]  # counted from the first row that is kept


def test_the_published_file(shared):
    workload = load_workload(shared / "data/pollux/traces/philly.csv")
    assert len(workload) == 82_247
    assert workload.arrival_s[0] == 0
    assert (np.diff(workload.arrival_s) >= 0).all()
    duration_s = np.sort(workload.iterations)
    assert np.median(duration_s) == 1_144
    np.testing.assert_allclose(
        np.quantile(duration_s, [0.25, 0.75, 0.9, 0.95, 0.99]), [115, 2_932, 11_265, 43_646, 254_758], rtol=1e-4
    )
    share = {size: np.mean(workload.min_gpus == size) for size in (1, 2, 4, 8)}
    assert share == pytest.approx({1: 0.932, 2: 0.022, 4: 0.023, 8: 0.020}, abs=5e-4)
    gap_s = np.diff(workload.arrival_s)
    assert gap_s.std() / gap_s.mean() == pytest.approx(15.1, abs=0.05)
    assert np.mean(gap_s == 0) == pytest.approx(0.08, abs=0.002)

"""The job table: construction, faults, the cluster, lenient reading."""

import numpy as np
import pandas as pd
import pytest

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.performance import MeasuredTable
from hetenv.workload import Workload

CLUSTER = Cluster.from_counts({"a": 4, "b": 2})


def build(n_jobs=3, **columns):
    return Workload.build(("a", "b"), np.ones((n_jobs, 2)), np.arange(n_jobs, dtype=float), iterations=10, **columns)


def frame(**columns):
    return pd.DataFrame(
        {"arrival_s": ["0", "5"], "iterations": ["10", "20"], "speed_a": ["1", "2"], "speed_b": ["1", "0"]} | columns
    )


def test_build_fills_in_defaults_and_repeats_scalars():
    workload = build(min_gpus=2)
    assert workload.job_id.tolist() == ["0", "1", "2"]
    assert workload.max_gpus.tolist() == [2, 2, 2]
    assert workload.iterations.tolist() == [10, 10, 10]
    assert set(workload.outcome) == {"completed"}


def test_jobs_are_sorted_by_arrival_and_ties_keep_their_order():
    workload = Workload.build(("a",), np.ones((4, 1)), np.array([5.0, 1, 5, 0]), iterations=np.array([1.0, 2, 3, 4]))
    assert workload.job_id.tolist() == ["3", "1", "0", "2"]
    assert workload.iterations.tolist() == [4, 2, 1, 3]


def test_unchecked_makes_what_build_makes():
    columns = {"iterations": np.array([1.0, 2.0]), "batch": 4, "max_gpus": np.array([2, 3]), "malleable": True}
    arguments = (("a",), np.array([[1.0], [2.0]]), np.array([0.0, 1.0]))
    built, unchecked = Workload.build(*arguments, **columns), Workload.unchecked(*arguments, **columns)
    for name, values in built.columns().items():
        other = unchecked.columns()[name]
        assert values.dtype == other.dtype
        assert (values == other).all()


def test_default_ids_are_not_shared_between_workloads():
    build().job_id[0] = "changed"
    assert build().job_id[0] == "0"


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"batch": 0.5}, "batch: 0.5"),
        ({"grad_bytes": -1.0}, "grad_bytes: -1.0"),
        ({"min_gpus": 0}, "min_gpus: 0"),
        ({"min_gpus": 1.5}, "min_gpus: 1.5"),
        ({"min_gpus": 3, "max_gpus": 2}, "max_gpus: 2"),
        ({"restart_s": np.nan}, "restart_s: nan"),
        ({"outcome": "lost"}, "outcome: 'lost'"),
        ({"job_id": "same"}, "job_id: 'same'"),
        ({"colour": 1}, "workload column: colour"),
    ],
)
def test_build_names_the_field_and_the_value(columns, named):
    with pytest.raises(InputError, match=named):
        build(**columns)


def test_build_needs_jobs_work_and_a_positive_speed():
    with pytest.raises(InputError, match="no jobs"):
        build(0)
    with pytest.raises(InputError, match="iterations is missing"):
        Workload.build(("a",), np.ones((1, 1)), np.zeros(1))
    with pytest.raises(InputError, match="speed: 0"):
        Workload.build(("a",), np.zeros((1, 1)), np.zeros(1), iterations=1)
    with pytest.raises(InputError, match="speed_a: -1"):
        Workload.build(("a",), -np.ones((1, 1)), np.zeros(1), iterations=1)


def test_take_and_replace():
    workload = build()
    assert workload.take(np.array([False, True, True])).job_id.tolist() == ["1", "2"]
    assert workload.replace(iterations=7).iterations.tolist() == [7, 7, 7]
    with pytest.raises(InputError, match="iterations"):
        workload.replace(iterations=-1)


def test_speeds_follow_the_order_of_the_cluster():
    workload = Workload.build(("b", "x"), np.array([[2.0, 9.0]]), np.zeros(1), iterations=1)
    assert workload.speed_on(CLUSTER).tolist() == [[0, 2]]


def test_jobs_that_can_never_run_are_named():
    workload = build(min_gpus=np.array([1, 6, 7]))
    assert workload.runnable(CLUSTER).tolist() == [True, True, False]
    with pytest.raises(InputError, match=r"job 2: needs 7 GPUs of a or b.*4 a, 2 b"):
        workload.check_runnable(CLUSTER)
    workload.take(np.array([0, 1])).check_runnable(CLUSTER)


def test_measured_jobs_run_where_their_size_was_measured():
    rate = np.full((1, 1, 5, 2), np.nan)
    rate[0, 0, [1, 4], 0] = 3.0  # on 1 or 4 GPUs of type a
    table = MeasuredTable(("m",), ("a",), rate)
    workload = build(min_gpus=np.array([1, 2, 4]), model="m", measured=table)
    assert workload.measured_rows().tolist() == [0, 0, 0]
    assert workload.runnable(CLUSTER).tolist() == [True, False, True]
    assert workload.runnable(Cluster.from_counts({"a": 3})).tolist() == [True, False, False]


def test_offered_load_by_hand():
    # Two jobs of 10 iterations x 6 samples on 6 GPUs of speed 1: 10 s of the cluster each, 20 s apart.
    workload = Workload.build(("a", "b"), np.ones((2, 2)), np.array([0.0, 20.0]), iterations=10, batch=6)
    assert workload.cluster_seconds(CLUSTER).tolist() == [10, 10]
    assert workload.offered_load(CLUSTER) == 0.5
    assert workload.replace(arrival_s=0).offered_load(CLUSTER) == np.inf


def test_frame_round_trip():
    workload = build(model="a, b", min_gpus=2, malleable=True)
    again = Workload.from_frame(workload.to_frame())
    assert again.types == workload.types
    for name, values in workload.columns().items():
        assert (again.columns()[name] == values).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"arrival_s": ["0", "soon"]}, "t.csv, line 3, arrival_s: 'soon'; give seconds"),
        ({"arrival_s": ["0", "nan"]}, "t.csv, line 3, arrival_s: 'nan'; give seconds"),
        ({"arrival_s": ["-1", "0"]}, "t.csv, line 2, arrival_s: '-1'; give seconds"),
        ({"arrival_s": [None, 0.0]}, "t.csv, line 2, arrival_s: "),
        ({"iterations": ["0", "1"]}, "t.csv, line 2, iterations: '0'; give a positive"),
        ({"iterations": ["inf", "1"]}, "t.csv, line 2, iterations: 'inf'; give a positive"),
        ({"min_gpus": ["0.5", "1"]}, "t.csv, line 2, min_gpus: '0.5'; give a whole number"),
        ({"min_gpus": ["1e10", "1"]}, "t.csv, line 2, min_gpus: '1e10'; give a whole number"),
        ({"max_gpus": ["1", "0"]}, "t.csv, line 3, max_gpus: '0'; give a whole number"),
        ({"malleable": ["maybe", "true"]}, "t.csv, line 2, malleable: 'maybe'; use true or false"),
        ({"job_id": ["x", "x"]}, "t.csv, line 3, job_id: 'x'; give every job an id of its own"),
        ({"job_id": ["x", ""]}, "t.csv, line 3, job_id: ''; give every job a name"),
        ({"speed_a": ["1", "-2"]}, "t.csv, line 3, speed_a: '-2'; give samples/s"),
        ({"speed_a": ["1", "0"]}, "t.csv, line 3, speed: 0; give a positive speed"),
        ({"colour": ["r", "g"]}, "t.csv: unknown column colour; use job_id"),
    ],
)
def test_from_frame_names_line_field_and_value(columns, message):
    with pytest.raises(InputError) as error:
        Workload.from_frame(frame(**columns), where="t.csv")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("drop", "named"),
    [("arrival_s", "arrival_s"), ("iterations", "iterations"), (["speed_a", "speed_b"], "speed_<type>")],
)
def test_from_frame_names_a_missing_column(drop, named):
    with pytest.raises(InputError, match=named):
        Workload.from_frame(frame().drop(columns=drop))


def test_lenient_drops_and_counts_by_reason():
    table = pd.DataFrame(
        {"arrival_s": [0, -1, 3, np.nan, 9], "iterations": [1, 1, 0, 0, 1], "speed_a": 1, "min_gpus": [1, 1, 1, 1, 5]}
    )
    with pytest.warns(UserWarning, match="dropped") as caught:
        workload = Workload.from_frame(table, where="t.csv", lenient=True, cluster=CLUSTER)
    assert workload.job_id.tolist() == ["0"]
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith("t.csv: dropped 4 rows (2 x arrival_s: ")
    assert "1 x iterations: give a positive amount of work" in message
    assert "1 x GPUs: more than the cluster has" in message


def test_lenient_needs_one_good_row():
    with pytest.warns(UserWarning, match="2 rows"), pytest.raises(InputError, match="no valid row"):
        Workload.from_frame(frame(iterations=["0", "0"]), lenient=True)


def test_clean_table_gives_no_warning(recwarn):
    assert len(Workload.from_frame(frame(), lenient=True, cluster=CLUSTER)) == 2
    assert not recwarn.list


def test_a_measured_job_that_only_runs_on_one_node_needs_a_node_that_large() -> None:
    rate = np.zeros((1, 1, 5, 2))
    rate[0, 0, 4, 0] = 1.0  # consolidated only: spread over nodes it cannot run
    table = MeasuredTable(("model",), ("gpu",), rate)
    workload = Workload.build(
        ("gpu",), [[1.0]], np.zeros(1), iterations=1.0, min_gpus=4, max_gpus=4, model="model", measured=table
    )
    assert workload.runnable(Cluster.from_counts({"gpu": 4}, gpus_per_node=4)).tolist() == [True]
    assert workload.runnable(Cluster.from_counts({"gpu": 8}, gpus_per_node=2)).tolist() == [False]


@pytest.mark.parametrize("column", ["job_id", "model"])
def test_zero_bytes_are_refused_for_no_csv_can_hold_them(column: str) -> None:
    names = {column: np.array(["a\0b"], object)}
    with pytest.raises(InputError, match=f"{column}.*give text without zero bytes"):
        Workload.build(("gpu",), [[1.0]], np.zeros(1), iterations=1.0, **names)

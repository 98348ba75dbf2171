"""The project's own CSV keeps everything, and nothing half-written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.errors import InputError
from hetenv.job_table import OUTCOMES
from hetenv.performance import MeasuredTable
from hetenv.traces import load_workload, own_csv
from hetenv.workload import Workload

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8) | st.sampled_from(
    ["007", "NA", "nan", "", '"', "a,b", "\r\n"]
)
positive = st.floats(1e-300, 1e300)
not_negative = st.floats(0, 1e300)


@st.composite
def tables(draw):
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(2, 4)), 2)
    n_rates = int(np.prod(shape))
    rate = np.array(draw(st.lists(not_negative | st.just(np.nan), min_size=n_rates, max_size=n_rates))).reshape(shape)
    rate[:, :, 0] = 0.0
    names = st.lists(texts, min_size=shape[0], max_size=shape[0], unique=True)
    return MeasuredTable(tuple(draw(names)), ("v100", "k80")[: shape[1]], rate)


@st.composite
def workloads(draw):
    n_jobs, types = draw(st.integers(1, 6)), draw(st.lists(texts, min_size=1, max_size=3, unique=True))

    def column(values, **unique):
        return np.array(draw(st.lists(values, min_size=n_jobs, max_size=n_jobs, **unique)))

    min_gpus = column(st.integers(1, 2**31 - 1))
    return Workload.build(
        types,
        np.stack([column(positive) for _ in types], axis=1),
        column(not_negative),
        job_id=np.array(column(texts.filter(bool), unique=True), object),
        model=draw(st.lists(texts, min_size=n_jobs, max_size=n_jobs)),
        iterations=column(positive),
        batch=column(st.integers(1, 2**53)),
        grad_bytes=column(not_negative),
        min_gpus=min_gpus,
        max_gpus=np.maximum(min_gpus, column(st.integers(1, 2**31 - 1))),
        malleable=column(st.booleans()),
        restart_s=column(not_negative),
        outcome=column(st.sampled_from(OUTCOMES)),
        measured=draw(st.none() | tables()),
    )


def assert_same(workload, other):
    assert workload.types == other.types
    for name, values in workload.columns().items():
        again = other.columns()[name]
        assert values.dtype == again.dtype
        assert values.tolist() == again.tolist(), name
    assert (workload.measured is None) == (other.measured is None)
    if workload.measured is not None:
        assert workload.measured.models == other.measured.models
        assert workload.measured.types == other.measured.types
        np.testing.assert_array_equal(workload.measured.rate, other.measured.rate)


@settings(max_examples=60, deadline=None)
@given(workload=workloads())
def test_round_trip_is_lossless(workload, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round_trip.csv"
    own_csv.write_workload(workload, path)
    assert_same(workload, load_workload(path))


def simple(**columns):
    return Workload.build(("a",), np.ones((2, 1)), np.array([0.0, 0.1]), iterations=1 / 3, **columns)


def measured(rate=5.0):
    return MeasuredTable(("m",), ("a",), np.array([[[[0, 0], [rate, np.nan]]]]))


def test_save_is_the_same_as_write_and_reads_text_ids_as_text(tmp_path):
    workload = simple(job_id=np.array(["007", "NA"], object), measured=measured())
    workload.save(tmp_path / "jobs.csv")
    assert {file.name for file in tmp_path.iterdir()} == {"jobs.csv", "jobs.throughputs.csv"}
    assert_same(workload, own_csv.read_workload(tmp_path / "jobs.csv"))


def test_an_old_measured_table_does_not_outlive_its_workload(tmp_path):
    path = tmp_path / "jobs.csv"
    simple(measured=measured()).save(path)
    simple().save(path)
    assert load_workload(path).measured is None


def test_another_measured_table_may_be_named(tmp_path):
    simple(measured=measured()).save(tmp_path / "jobs.csv")
    own_csv.write_throughputs(measured(7.0), tmp_path / "other.csv")
    assert load_workload(tmp_path / "jobs.csv", throughputs=tmp_path / "other.csv").measured.rate[0, 0, 1, 0] == 7


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "jobs.csv"
    simple(measured=measured()).save(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(UnicodeEncodeError):
        simple(model="\ud800").save(path)  # half a surrogate pair is no UTF-8
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.*cannot be written"):
        simple().save(tmp_path / "nowhere" / "jobs.csv")


def test_lines_are_counted_as_an_editor_does(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text('arrival_s,model,iterations,speed_a\n\n0,"two\nlines",1,1\n\n0,m,-1,1\n')
    with pytest.raises(InputError, match="line 6, iterations: '-1'"):
        load_workload(path)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ("m,a,0,consolidated,1", "line 3, gpus: '0'"),
        ("m,a,1.5,consolidated,1", "line 3, gpus: '1.5'"),
        ("m,a,1,near,1", "line 3, placement: 'near'"),
        ("m,a,1,spread,fast", "line 3, iterations_per_s: 'fast'"),
        ("m,a,1,spread,-1", "line 3, iterations_per_s: '-1'"),
        ("m,a,1,spread", "line 3, number of fields: 4"),
        ("m,a,1,consolidated,2", "line 3: a second figure for 'm'"),
    ],
)
def test_measured_rows_with_a_fault_are_named(tmp_path, row, named):
    path = tmp_path / "t.csv"
    path.write_text(f"model,type,gpus,placement,iterations_per_s\nm,a,1,consolidated,1\n{row}\n")
    with pytest.raises(InputError, match=named):
        own_csv.read_throughputs(path)


def test_a_long_column_name_is_cut_in_messages(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(f"arrival_s,iterations,speed_{'a' * 100_000}\n0,1,-1\n")
    with pytest.raises(InputError, match=r"line 2, speed_aaa.*: '-1'; give samples/s") as error:
        load_workload(path)
    assert len(str(error.value)) < 1_500

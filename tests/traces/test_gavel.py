"""Gavel's throughput JSON and every form of its traces."""

import csv
import json

import numpy as np
import pytest

from hetenv.catalogue import load_catalogue
from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces import load_workload, read_trace
from hetenv.traces.gavel import measured_workload, read_throughputs

LM = "LM (batch size 10)"
RATES = {
    "k80": {
        f"('{LM}', 1)": {"null": 2.0, f"('{LM}', 1)": [1.0, 1.0]},
        f"('{LM}', 4)": {"null": 0.0},
        "('A3C', 1)": {"null": 7.0},
    },
    "v100": {f"('{LM}', 1)": {"null": 8.0}, f"('{LM}', 4)": {"null": 20.0}, "('A3C', 1)": {"null": 0.0}},
    "v100_unconsolidated": {f"('{LM}', 4)": {"null": 5.0}},
}


@pytest.fixture
def rates(tmp_path):
    path = tmp_path / "rates.json"
    path.write_text(json.dumps(RATES))
    return path


def ten_fields(job_type=LM, steps="100", scale_factor="1", arrival="0"):
    return "\t".join([job_type, "run me", "lm", "--steps", "1", steps, scale_factor, "1", "-1.000000", arrival])


def twelve_fields(job_type=LM, steps="100", scale_factor="1", arrival="0"):
    return "\t".join(
        [job_type, "run me", "lm", "--steps", "1", steps, scale_factor, "gns", "1", "-1.000000", "1418", arrival]
    )


def seven_fields(job_type=LM, steps="100", scale_factor="1", arrival="0"):
    return "\t".join([job_type, "run me", "--steps", "1", steps, arrival, scale_factor])


def trace(tmp_path, *rows):
    path = tmp_path / "jobs.trace"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_throughputs(rates):
    table = read_throughputs(rates)
    assert table.models == (LM, "A3C")
    assert table.types == ("k80", "v100")
    assert table.rate.shape == (2, 2, 5, 2)
    np.testing.assert_array_equal(table.rate[0, 1, :, 0], [0, 8, np.nan, np.nan, 20])
    np.testing.assert_array_equal(table.rate[0, 1, :, 1], [0, np.nan, np.nan, np.nan, 5])
    assert table.rate[0, 0, 4, 0] == 0  # cannot run, as opposed to not measured


@pytest.mark.parametrize("row", [ten_fields, seven_fields, twelve_fields])
def test_jobs_of_every_form(tmp_path, rates, row):
    path = trace(tmp_path, row(arrival="30.5", scale_factor="4"), row("A3C", arrival="10", steps="7.25"))
    workload = load_workload(path, throughputs=rates)
    assert workload.job_id.tolist() == ["1", "0"]  # row numbers, in order of arrival
    assert workload.arrival_s.tolist() == [10, 30.5]
    assert workload.iterations.tolist() == [7.25, 100]
    assert workload.min_gpus.tolist() == workload.max_gpus.tolist() == [1, 4]
    assert workload.model.tolist() == ["A3C", LM]
    assert workload.batch.tolist() == [1, 10]
    # batch x rate / GPUs: A3C 1 x 7 / 1 and 0; LM on four GPUs 0 and 10 x 20 / 4
    assert workload.speed.tolist() == [[7, 0], [0, 50]]


def test_without_throughputs_jobs_run_at_those_of_the_catalogue(tmp_path):
    path = trace(tmp_path, ten_fields("A3C"), ten_fields(scale_factor="4"))
    workload = load_workload(path)
    table = load_catalogue().throughputs["gavel"].table
    assert workload.types == table.types == ("k80", "p100", "v100")
    assert workload.measured is table
    rate = table.rate[[table.row("A3C"), table.row(LM)], :, [1, 4], 0]  # (J, M) steps/s
    np.testing.assert_allclose(workload.speed, rate * workload.batch[:, None] / workload.min_gpus[:, None])
    with pytest.raises(InputError, match="line 1, job_type: 'GPT'"):
        load_workload(trace(tmp_path, ten_fields("GPT")))


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (ten_fields("GPT"), "line 2, job_type: 'GPT'; name a model of the throughput table"),
        (ten_fields(scale_factor="0"), "line 2, scale_factor: '0'; give a whole number"),
        (ten_fields(scale_factor="0.5"), "line 2, scale_factor: '0.5'; give a whole number"),
        (ten_fields(scale_factor="64"), "line 2, scale_factor: '64'; in the throughput table LM .* runs on 1, 4 GPUs"),
        (ten_fields(scale_factor="2"), "line 2, scale_factor: '2'; in the throughput table LM .* runs on 1, 4 GPUs"),
        (ten_fields(steps="0"), "line 2, total_steps: '0'; give a positive number"),
        (ten_fields(steps="many"), "line 2, total_steps: 'many'; give a positive number"),
        (ten_fields(arrival="-3"), "line 2, arrival: '-3'; give seconds"),
        (ten_fields(arrival="nan"), "line 2, arrival: 'nan'; give seconds"),
        (ten_fields() + "\t1", "line 2, number of fields: 11; give 12 or 10 or 7"),
    ],
)
def test_faulty_rows_are_named_or_dropped(tmp_path, rates, row, named):
    path = trace(tmp_path, ten_fields(), row)
    with pytest.raises(InputError, match=named) as error:
        load_workload(path, throughputs=rates)
    assert "\n" not in str(error.value)
    with pytest.warns(UserWarning, match="dropped 1 row"):
        assert load_workload(path, throughputs=rates, lenient=True).job_id.tolist() == ["0"]


def test_a_cluster_without_enough_of_the_measured_type(tmp_path, rates):
    path = trace(tmp_path, ten_fields(), ten_fields(scale_factor="4"))
    assert len(load_workload(path, throughputs=rates, cluster=Cluster.from_counts({"v100": 4}))) == 2
    with pytest.raises(InputError, match="line 2, job 1: needs 4 GPUs of v100"):
        load_workload(path, throughputs=rates, cluster=Cluster.from_counts({"v100": 3, "k80": 8}))


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        "[" * 100_000,
        """{"k80": {"LM": {"null": 1}}}""",
        """{"k80": {"('LM', 1)": {}}}""",
        """{"k80": {"('LM', 1)": {"null": 1e999}}}""",
        """{"k80": {"('LM', 1)": {"null": -1}}}""",
        """{"k80": {"('LM', 1)": {"null": [1]}}}""",
        """{"k80": {"('LM', 0)": {"null": 1}}}""",
        """{"k80": {"('LM', -1)": {"null": 1}}}""",
        """{"k80": {"('LM', 999999999)": {"null": 1}}}""",  # a table of so many GPUs would not fit into memory
        """{"k80": {"(5, 1)": {"null": 1}}}""",
        """{"k80": {"((((": {"null": 1}}}""",
        '{"k80": {"' + "(" * 10_000 + '": {"null": 1}}}',
        """{"k80": {"('LM', 1)": {"null": 1, "x": """ + "9" * 5_000 + "}, 5: 5}}",
    ],
    ids=lambda content: content[:40],
)
def test_files_that_are_no_throughputs(tmp_path, content):
    path = tmp_path / "rates.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"rates\.json") as error:
        read_throughputs(path)
    assert len(str(error.value)) < 1_500


def test_whole_numbers_of_any_length_are_numbers(tmp_path):
    path = tmp_path / "rates.json"
    path.write_text("""{"k80": {"('LM', 1)": {"null": 1, "('LM', 1)": [%s, 1]}}}""" % ("9" * 5_000))
    assert read_throughputs(path).rate[0, 0, 1, 0] == 1


def test_a_batch_of_any_length(tmp_path, rates):
    path = trace(tmp_path, ten_fields(), ten_fields(f"LM (batch size {'9' * 5_000})"), ten_fields(steps="1e308"))
    with pytest.raises(InputError, match="line 2, job_type") as error:
        load_workload(path, throughputs=rates)
    assert len(str(error.value)) < 1_500
    with pytest.warns(UserWarning, match="dropped 2 rows"):
        assert len(load_workload(path, throughputs=rates, lenient=True)) == 1


def test_jobs_by_hand(rates):
    table = read_throughputs(rates)
    workload = measured_workload(table, [LM, "A3C"], [4, 1], [5.5, 6.5], [1.0, 0.0], ["x", "y"])
    assert workload.job_id.tolist() == ["y", "x"]
    assert workload.measured is table
    assert workload.min_gpus.dtype == np.int32
    with pytest.raises(InputError, match="job 0, job_type: 'GPT'"):
        measured_workload(table, ["GPT"], [1], [1], [0])


# --- the published files --------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "n_jobs"), [("artifact_evaluation", 15), ("minimize_makespan", 100)])
def test_physical_cluster_traces(shared, name, n_jobs):
    gavel = shared / "data/gavel"
    path = gavel / f"traces/physical_cluster/{name}.trace"
    workload = load_workload(path, throughputs=gavel / "physical_cluster_throughputs.json")
    assert len(workload) == n_jobs
    assert workload.types == ("k80", "p100", "v100")
    assert (workload.measured_rows() >= 0).all()


def test_simulation_throughputs_as_published(shared):
    table = read_throughputs(shared / "data/gavel/simulation_throughputs.json")
    k80, p100, v100 = 0, 1, 2
    assert len(table.models) == 26
    measured = ~np.isnan(table.rate[:, v100, :, 0])
    assert [int(measured[:, gpus].sum()) for gpus in (1, 2, 4, 8)] == [26, 19, 19, 19]
    assert (table.rate[table.row("ResNet-50 (batch size 128)"), k80, [2, 4, 8], 0] == 0).all()
    recommendation = [row for row, name in enumerate(table.models) if name.startswith("Recommendation")]
    assert (table.rate[recommendation, p100, 1, 0] > table.rate[recommendation, v100, 1, 0]).all()
    lm = table.rate[table.row("LM (batch size 80)"), v100]
    np.testing.assert_allclose(lm[8] / lm[1, 0], [8.19, 1.70], atol=0.005)  # gain of 8 GPUs in one node, spread


def test_older_form_as_published(shared):
    gavel = shared / "data/gavel"
    path = gavel / "traces/msr/seed=0/23dbec.trace"
    with pytest.warns(UserWarning, match=r"dropped 1 row \(1 x scale_factor"):
        workload = load_workload(path, throughputs=gavel / "simulation_throughputs.json", lenient=True)
    assert len(workload) == 8
    assert (workload.arrival_s[:2].tolist(), workload.iterations[:2].tolist()) == ([0, 11], [14612, 1550])


def test_form_of_shockwave_as_published(shared):
    shockwave = shared / "data/shockwave"
    (path,) = (shockwave / "traces").glob("*.trace")
    workload = load_workload(path, throughputs=shockwave / "tacc_throughputs.json")
    assert len(workload) == 120
    assert (workload.arrival_s[:3].tolist(), workload.iterations[:2].tolist()) == ([0, 55, 64], [134_583, 143_450])


@pytest.mark.parametrize("name", ["debug", "debug_v2", "highmem_test", "max_min_fairness", "medium_test", "small_test"])
def test_other_published_traces(shared, name):
    gavel = shared / "data/gavel"
    path = gavel / f"traces/physical_cluster/{name}.trace"
    rows = [line for line in path.read_text().splitlines() if line.strip()]
    assert len(load_workload(path, throughputs=gavel / "physical_cluster_throughputs.json")) == len(rows)


def test_scale_factors_that_were_not_measured_are_dropped_and_counted(shared):
    gavel = shared / "data/gavel"
    rates = gavel / "simulation_throughputs.json"
    for path in sorted((gavel / "traces/msr").glob("*/*.trace")):
        trace = read_trace(path, throughputs=rates, lenient=True)
        assert trace.workload.min_gpus.max() <= 8
        assert all(reason.startswith("scale_factor: in the throughput table") for reason in trace.tally.dropped)


def test_steps_of_the_stream_are_duration_times_the_v100_rate(shared):
    table = read_throughputs(shared / "data/gavel/simulation_throughputs.json")
    with (shared / "oracles/gavel_stream_seed0_single.csv").open() as file:
        jobs = list(csv.DictReader(file))
    column = {name: np.array([float(job[name]) for job in jobs]) for name in jobs[0] if name != "job_type"}
    job_type = [job["job_type"] for job in jobs]
    arrival_s = column["arrival_unit_exp"] * 3600 / 0.4
    workload = measured_workload(table, job_type, column["scale_factor"], column["total_steps"], arrival_s)
    assert len(workload) == 6500
    rate = table.rate[workload.measured_rows(), table.types.index("v100"), workload.min_gpus, 0]
    np.testing.assert_allclose(workload.iterations / rate, column["duration_v100_s"], rtol=1e-12)

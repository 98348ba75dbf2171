"""The logs of real clusters: Helios, Acme, PAI, openb, Supercloud, SWF. Their traps, on the samples and beyond."""

import numpy as np
import pytest

from hetenv.errors import InputError
from hetenv.traces import load_workload, read_trace, samples


def sample(tmp_path, name, text=None, **options):
    path, more = samples.write(tmp_path, name, text)
    return read_trace(path, **more, **options)


# --- Helios and Acme ------------------------------------------------------------------------------------


def test_helios_drops_cpu_jobs_and_keeps_odd_sizes_and_fifty_days(tmp_path):
    trace = sample(tmp_path, "helios")
    assert dict(trace.tally.dropped) == {"no GPU asked for": 1}
    assert trace.workload.outcome.tolist() == ["completed", "killed"]
    assert trace.start_s == 1_585_735_200  # 2020-04-01 10:00 UTC


def test_the_run_time_is_end_minus_start_and_duration_where_one_is_missing(tmp_path):
    text = samples.TEXTS["helios"]
    later = sample(tmp_path, "helios", text.replace(",120,60", ",180,60"))  # as if it included the queue
    assert later.workload.iterations[0] == 120
    assert dict(later.tally.changed) == {"duration differs from end - start, which was taken": 1}
    alone = sample(tmp_path, "helios", text.replace("2020-04-01 10:01:00", "None"))
    assert alone.workload.iterations[0] == 120
    assert dict(alone.tally.changed) == {"no start or end, duration taken": 1}


def test_a_missing_column_is_named(tmp_path):
    text = samples.TEXTS["helios"].replace("gpu_num", "gpus")
    with pytest.raises(InputError, match="line 1: column gpu_num is missing; give gpu_num, state"):
        sample(tmp_path, "helios", text)


def test_acme_reads_zones_and_leaves_the_queue_out(tmp_path):
    trace = sample(tmp_path, "acme")
    assert trace.workload.arrival_s.tolist() == [0, 1800]  # 01:00 at +00:00, 09:30 at +08:00
    assert trace.tally.changed["duration differs from end - start, which was taken"] == 1
    seren = (
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
        "s,u,1,8,9,Other,COMPLETED,2023-03-01 00:00:00+08:00,2023-03-01 00:00:01+08:00,"
        "2023-03-01 00:01:01+08:00,60,1,480\n"
    )
    assert sample(tmp_path, "acme", seren).start_s == 1_677_600_000


# --- PAI ------------------------------------------------------------------------------------------------


def test_pai_counts_instances_in_percent_of_a_gpu(tmp_path):
    trace = sample(tmp_path, "pai")
    assert trace.workload.arrival_s.tolist() == [0]
    assert dict(trace.tally.dropped) == {
        "no GPU asked for": 1,  # plan_gpu is empty
        "ended before it started": 1,
        "no run time (start or end is missing)": 1,  # no task
    }
    fast = sample(tmp_path, "pai", type_speed={"V100": 2.0, "T4": 1.0})
    assert fast.workload.iterations.tolist() == [300]  # most of its GPUs are V100


def test_pai_takes_run_times_from_instances(tmp_path):
    (tmp_path / "pai_instance_table.csv").write_text(samples.PAI_INSTANCES)
    workload = sample(tmp_path, "pai").workload
    assert workload.job_id.tolist() == ["j1", "j3"]
    assert workload.iterations.tolist() == [135, 10]  # 115 to 250, 165 to 175
    assert workload.outcome.tolist() == ["completed", "failed"]


@pytest.mark.parametrize("name", ["pai_job_table.csv", "pai_task_table.csv", "pai_instance_table.csv"])
def test_any_of_the_tables_may_be_named_and_may_have_a_header(tmp_path, name):
    samples.write(tmp_path, "pai")
    (tmp_path / "pai_instance_table.csv").write_text(samples.PAI_INSTANCES)
    assert len(read_trace(tmp_path / name).workload) == 2
    jobs = tmp_path / "pai_job_table.csv"
    jobs.write_text("job_name,inst_id,user,status,start_time,end_time\n" + jobs.read_text())
    assert len(read_trace(tmp_path / name).workload) == 2


def test_only_terminated_is_success_and_zero_is_no_time(tmp_path):
    tasks = "".join(f"j{n},t,1,Terminated,10,20,600,29,100,T4\n" for n in range(6))
    states = ("Terminated", "Failed", "Running", "Waiting", "Unknown", "")
    path, _ = samples.write(tmp_path, "pai", tasks)
    jobs = "".join(f"j{n},i,u,{state},{5 + n},0\n" for n, state in enumerate(states))
    (tmp_path / "pai_job_table.csv").write_text(jobs + "j0,i,u,Failed,0,20\n")
    trace = read_trace(path)
    assert trace.workload.outcome.tolist() == ["completed", "failed", "killed", "killed", "failed", "failed"]
    assert dict(trace.tally.dropped) == {"no time of submission": 1}


def test_pai_names_the_missing_table_and_the_faulty_line(tmp_path):
    path, _ = samples.write(tmp_path, "pai")
    path.write_text(samples.TEXTS["pai"].replace("j2,t1,1", "j2,t1,one"))
    with pytest.raises(InputError, match=r"pai_task_table\.csv, line 3, inst_num: 'one'; give a number"):
        load_workload(path)
    assert read_trace(path, lenient=True).workload.job_id.tolist() == ["j1"]
    path.write_text(samples.TEXTS["pai"])
    (tmp_path / "pai_job_table.csv").unlink()
    with pytest.raises(InputError, match=r"pai_job_table\.csv: no such file"):
        load_workload(path)
    elsewhere = tmp_path / "tasks.csv"
    elsewhere.write_text(samples.TEXTS["pai"])
    with pytest.raises(InputError, match=r"tasks\.csv: cannot tell where the instance table lies|the job table lies"):
        load_workload(elsewhere)


# --- openb, Supercloud, SWF -----------------------------------------------------------------------------


def test_openb_pods(tmp_path):
    trace = sample(tmp_path, "openb")
    assert trace.workload.outcome.tolist() == ["completed", "killed"]
    assert dict(trace.tally.dropped) == {
        "no GPU asked for": 1,
        "no run time (start or end is missing)": 1,  # pending
        "ran for no time": 1,
    }
    assert dict(trace.tally.changed) == {
        "fraction of a GPU, rounded up to whole GPUs": 1,
        "still running when the trace ended, cut off there": 1,
    }
    fast = sample(tmp_path, "openb", type_speed={"V100M16": 2.0, "V100M32": 3.0})
    assert fast.workload.iterations.tolist() == [100, 1800]  # the first of "V100M16|V100M32|V100M16"


def test_openb_variants_without_times_are_named(tmp_path):
    with pytest.raises(InputError, match="a list of pods without times; give the variant"):
        sample(tmp_path, "openb", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\n")


def test_supercloud_counts_gpus_not_nodes_and_tells_runs_from_repeats(tmp_path):
    trace = sample(tmp_path, "supercloud")
    assert trace.workload.min_gpus.tolist() == [4, 4]
    assert trace.workload.outcome.tolist() == ["completed", "failed"]
    assert dict(trace.tally.dropped) == {
        "no GPU asked for": 1,
        "no run time (start or end is missing)": 1,  # cancelled before it started
        "repeats an earlier row": 1,
    }
    assert trace.start_s == 1_609_459_200


def test_swf(tmp_path):
    trace = sample(tmp_path, "swf")
    assert trace.workload.min_gpus.tolist() == [4, 8]  # allocated, else requested
    assert trace.workload.outcome.tolist() == ["completed", "failed"]
    assert trace.start_s == 1_000_000_000
    assert dict(trace.tally.dropped) == {
        "part of a job that has a row of its own": 1,
        "no run time (start or end is missing)": 1,
    }
    bare = sample(tmp_path, "swf", samples.TEXTS["swf"].partition(";\n")[2])
    assert bare.start_s is None


@pytest.mark.parametrize(
    ("line", "named"), [("1 0 5", "line 8, number of fields: 3; give 18"), (" ".join(["9"] * 18), "line 8, status")]
)
def test_faulty_lines_of_swf(tmp_path, line, named):
    with pytest.raises(InputError, match=named):
        sample(tmp_path, "swf", samples.TEXTS["swf"] + line + "\n")


# --- published files ------------------------------------------------------------------------------------

LOGS = [  # file, GPU jobs, median and mean run time (s), mean GPUs
    ("acme/trace_seren.csv", 663_813, 122, 1414, 5.68),
    ("acme/trace_kalos.csv", 19_907, 124, 1260, 26.77),
    ("helios/Venus/cluster_log.csv", 125_303, 204, 13_041, 6.74),
]


@pytest.mark.parametrize(("name", "n_jobs", "median_s", "mean_s", "mean_gpus"), LOGS)
def test_published_logs(shared, name, n_jobs, median_s, mean_s, mean_gpus):
    path = shared / "data" / name
    if not path.exists():
        pytest.skip(f"needs {path}, which is absent")
    workload = read_trace(path, lenient=True).workload
    assert len(workload) == pytest.approx(n_jobs, rel=0.02)
    assert np.median(workload.iterations) == pytest.approx(median_s, rel=0.05)
    assert workload.iterations.mean() == pytest.approx(mean_s, rel=0.05)
    assert workload.min_gpus.mean() == pytest.approx(mean_gpus, rel=0.05)


def test_published_openb(shared):
    path = shared / "data" / "openb" / "openb_pod_list_default.csv"
    if not path.exists():
        pytest.skip(f"needs {path}, which is absent")
    seconds = read_trace(path, lenient=True).workload.iterations
    assert np.quantile(seconds, [0.5, 0.75, 0.9]) == pytest.approx([616, 2241, 7764], rel=0.05)


def test_an_swf_start_that_nobody_can_mean(tmp_path):
    path, _ = samples.write(tmp_path, "swf", samples.TEXTS["swf"].replace("1000000000", "9" * 400))
    with pytest.raises(InputError, match=r"UnixStartTime: 999.*; give seconds since 1970"):
        load_workload(path)

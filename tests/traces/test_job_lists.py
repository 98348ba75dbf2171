"""Job lists of other simulators: Muri, Synergy, Chronus, ElasticFlow, Tiresias, Pollux' workloads, bare run times."""

import shutil

import numpy as np
import pytest

from hetenv.errors import InputError
from hetenv.traces import load_workload, read_trace, samples
from hetenv.traces.rules import Rules


def sample(tmp_path, name, text=None, **options):
    path, more = samples.write(tmp_path, name, text)
    return read_trace(path, **more, **options)


def test_muri_counts_milliseconds_and_trusts_duration(tmp_path):
    workload = sample(tmp_path, "muri").workload
    assert workload.arrival_s.tolist() == [0, 0.5]
    assert workload.iterations.tolist() == [5095, 2.5]  # not 10 x 437 ms


def test_synergy_tells_jobs_of_one_id_apart_and_states_the_time_of_an_iteration(tmp_path):
    trace = sample(tmp_path, "synergy")
    assert trace.workload.model.tolist() == ["alexnet", "gnmt", "res50"]
    assert dict(trace.tally.changed) == {"iterations taken for 1 s each": 3, "id of an earlier job, named anew": 1}
    assert sample(tmp_path, "synergy", rules=Rules(step_s=0.25)).workload.iterations.tolist() == [25, 50, 12.5]


def test_chronus_counts_minutes_and_has_lists_in_cells(tmp_path):
    trace = sample(tmp_path, "chronus")
    assert trace.workload.arrival_s.tolist() == [0, 1200]
    assert dict(trace.tally.dropped) == {"no GPU asked for": 1}


def test_the_forms_of_elasticflow(tmp_path):
    other = "job_id,submit_time,real_iteration,model_name,ddl,batch_size,num_gpu,real_duration,duration,iteration\n"
    assert len(sample(tmp_path, "elasticflow", other + "0,0,1,vgg16,7,256,1,9,8,1\n").workload) == 1


@pytest.mark.parametrize("text", ["duration_s,num_gpus\n5,8\n7.5,1\n", "runtime\n5\n7.5\n", "duration\n5\n7.5\n"])
def test_bare_run_times_all_arrive_at_once(tmp_path, text):
    trace = sample(tmp_path, "durations", text)
    assert trace.workload.iterations.tolist() == [5, 7.5]
    assert trace.workload.arrival_s.tolist() == [0, 0]
    assert dict(trace.tally.changed) == {"no arrival in the file, arrives at 0": 2}


def test_pollux_workloads_need_measured_profiles(tmp_path):
    path, options = samples.write(tmp_path, "pollux-workload")
    with pytest.raises(InputError, match=r"throughputs: no folder .*traces; name the folder of measured profiles"):
        load_workload(path)
    header, first, _ = samples.TEXTS["pollux-workload"].split("\n", 2)
    for row, named in (
        ("b,1,gpt,2,64", r"line 3, application: 'gpt'; name one with a profile \(net\)"),
        ("b,1,../profiles/net,2,64", "line 3, application"),
        ("b,1,net,5,64", "line 3, num_replicas: 5; net was measured on up to 16 GPUs, and on 6"),
        ("b,soon,net,2,64", "line 3, time: 'soon'"),
        ("b,1,net,2,65", r"validation-65\.csv: no such file"),
    ):
        path.write_text("\n".join([header, first, row]))
        with pytest.raises(InputError, match=named):
            load_workload(path, **options)


# --- published files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_jobs", "median_s"),
    [
        ("tiresias/60_job.csv", 60, 125),
        ("tiresias/yarn-gput1000.csv", 1001, 2227),
        ("tiresias/yarn-gput5000.csv", 5000, 2227.5),
        ("tiresias/yarn-gput10000.csv", 9999, 2227),
        ("muri/cluster_trace.csv", 400, 2223.5),
        ("muri/trace1.csv", 1494, 14_392.5),
        ("muri/trace2.csv", 5755, 8653),
        ("muri/trace3.csv", 992, 3391.5),
        ("muri/trace4.csv", 2638, 3318),
        ("synergy/dynamic_srtf.log", 100, 27_786.5),
        ("synergy/static_100job_6_3_1100.0", 100, 14_445.5),
        ("elasticflow/traces/elasticVpollux_e.csv", 195, 11_083),
        ("elasticflow/traces/philly_103959.csv", 876, 24_049),
        ("elasticflow/traces/resnet_cifar_trace.csv", 5, 3930),
        ("pollux/workloads/workload-1.csv", 160, None),
        ("pollux/workloads/workload-2.csv", 160, None),
        ("pollux/workloads/workload-3.csv", 160, None),
    ],
)
def test_published_lists(shared, name, n_jobs, median_s):
    trace = read_trace(shared / "data" / name)
    assert len(trace.workload) == trace.tally.rows == n_jobs
    if median_s is not None:
        assert np.median(trace.workload.iterations) == median_s


def test_published_list_of_chronus(shared):
    trace = read_trace(shared / "data/chronus/trace_job_Philly_MIX1.csv")
    assert dict(trace.tally.dropped) == {"no GPU asked for": 184}
    assert len(trace.workload) == 30_940 - 184
    assert trace.workload.iterations.min() == 20 * 60  # so that the unit must be minutes
    assert trace.workload.arrival_s[-1] == pytest.approx(14 * 86_400, rel=1e-3)


def test_tiresias_sample_that_repeats_its_only_job(shared):
    trace = read_trace(shared / "data/tiresias/tf_job.csv")
    assert (len(trace.workload), dict(trace.tally.dropped)) == (1, {"repeats an earlier row": 1})


def test_philly_jobs_of_an_hour_or_more(shared):
    workload = read_trace(shared / "data/gavel/philly_job_distribution.csv").workload
    log_s = np.log(workload.iterations)
    assert len(workload) == 33_192
    assert np.median(workload.iterations) == 14_398
    assert (log_s.mean(), log_s.std()) == pytest.approx((10.05, 1.57), abs=0.005)
    assert np.quantile(workload.iterations, 0.9) == pytest.approx(250_000, rel=0.01)
    share = {size: np.mean(workload.min_gpus == size) for size in (1, 2, 4, 8)}
    assert share == pytest.approx({1: 0.76, 2: 0.02, 4: 0.09, 8: 0.125}, abs=0.005)


def test_run_times_of_philly_beside_pai(shared):
    trace = read_trace(shared / "data/alibaba-gpu-v2020/philly_runtime.csv")
    assert (len(trace.workload), dict(trace.tally.dropped)) == (83_152, {"ran for no time": 2})


def test_files_beside_the_traces_are_none(shared):
    for name in ("tiresias/cluster_spec.csv", "helios/philly_vc.csv", "chronus/model_info.json", "acme/LICENSE.txt"):
        with pytest.raises(InputError, match="unknown content"):
            load_workload(shared / "data" / name)


def test_a_profile_is_read_anew_and_its_faults_are_named(tmp_path):
    path, options = samples.write(tmp_path, "pollux-workload")
    first = load_workload(path, **options).iterations[0]
    placements = options["throughputs"] / "net" / "placements.csv"
    placements.write_text(placements.read_text().replace("2,8,1.5,0", "2,8,3.0,0").replace("2,16,3,0", "2,16,6,0"))
    assert load_workload(path, **options).iterations[0] == 2 * first
    for faulty in ("long", "-6", "", "1e308"):
        placements.write_text(placements.read_text().replace("2,16,6,0", f"2,16,{faulty},0"))
        with pytest.raises(InputError, match=r"placements\.csv, line \d, step_time: .*; give a"):
            load_workload(path, **options, lenient=True)
        placements.write_text(placements.read_text().replace(f"2,16,{faulty},0", "2,16,6,0"))


def test_yolov3_takes_eight_samples_a_pass_whatever_was_measured(tmp_path):
    path, options = samples.write(tmp_path, "pollux-workload")
    net, yolov3 = (options["throughputs"] / name for name in ("net", "yolov3"))
    placements = net / "placements.csv"
    placements.write_text(placements.read_text().replace("2,16,3,0", "2,16,2,0"))
    shutil.copytree(net, yolov3)
    header = path.read_text().split("\n", 1)[0]
    path.write_text(f"{header}\na,0,net,2,64\nb,0,yolov3,2,64\n")
    # 10 steps on 2 GPUs: 2 passes of 16 samples, 2 s each, or 4 passes of 8, 1.5 s each.
    assert load_workload(path, **options).iterations.tolist() == [40, 60]


def test_an_application_too_long_for_a_file_name(tmp_path):
    path, options = samples.write(tmp_path, "pollux-workload")
    path.write_text(path.read_text() + f"net-2,120,{'a' * 5_000},1,64\n")
    with pytest.raises(InputError, match="line 4, application: 'aaa"):
        load_workload(path, **options)

"""Large traces load in bounded memory; the full sizes take minutes, these are a tenth of them."""

import json
import subprocess
import sys
from itertools import pairwise

import pytest

from hetenv.traces.samples import attempt, philly_job

MEASURE = """
import resource, sys
from hetenv.traces import read_trace
seen = []
trace = read_trace(sys.argv[1], progress=lambda done, total: seen.append((done, total)))
assert len(trace.workload) == int(sys.argv[2]), len(trace.workload)
assert seen[-1][0] == seen[-1][1] and len(seen) > 3
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
BASE_BYTES = 300e6  # the interpreter and what it imports


def peak_bytes(path, n_jobs):
    command = [sys.executable, "-c", MEASURE, str(path), str(n_jobs)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_a_large_json_is_read_job_by_job(tmp_path):
    path, n_jobs = tmp_path / "cluster_job_log", 60_000
    times = [f"2017-10-07 0{hour}:00:00" for hour in range(9)]
    with path.open("w") as file:
        for job in range(n_jobs):
            attempts = [attempt(start, end, 8) for start, end in pairwise(times)]
            file.write(("[" if job == 0 else ",\n") + json.dumps(philly_job(f"job{job}", *attempts), indent=1))
        file.write("]")
    assert path.stat().st_size > 100e6
    assert peak_bytes(path, n_jobs) < BASE_BYTES + 100e6


@pytest.mark.slow
def test_a_long_csv_costs_some_hundred_bytes_a_row(tmp_path):
    path, n_jobs = tmp_path / "cluster_log.csv", 300_000
    with path.open("w") as file:
        file.write("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n")
        for job in range(n_jobs):
            clock = f"2020-04-01 {job // 3600 % 24:02d}:{job // 60 % 60:02d}:{job % 60:02d}"
            file.write(f"{job},u,v,1,4,1,COMPLETED,{clock},{clock},2020-04-09 00:00:00,1,0\n")
    assert peak_bytes(path, n_jobs) < BASE_BYTES + n_jobs * 450

"""A small file of each format, with the traps of the real ones; all rows are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GAVEL_RATES = {"v100": {"('LM (batch size 10)', 1)": {"null": 8.0}, "('LM (batch size 10)', 4)": {"null": 20.0}}}


def attempt(start: str | None, end: str | None, gpus: int = 1) -> dict[str, Any]:
    detail = [{"ip": "m1", "gpus": [f"gpu{n}" for n in range(gpus)]}]
    return {"start_time": start, "end_time": end, "detail": detail}


def philly_job(
    name: str, *attempts: dict[str, Any], status: str = "Pass", submitted: str | None = None
) -> dict[str, Any]:
    submitted = submitted or "2017-10-07 01:00:00"
    return {
        "status": status,
        "vc": "v1",
        "jobid": name,
        "attempts": list(attempts),
        "submitted_time": submitted,
        "user": "u",
    }


PHILLY = [
    philly_job("a", attempt("2017-10-07 01:00:10", "2017-10-07 01:01:10", 2)),
    philly_job("b", attempt("2017-10-07 01:05:00", "None", 4), status="Killed", submitted="2017-10-07 01:02:00"),
    philly_job(
        "c",
        attempt("2017-10-07 02:00:00", "2017-10-07 02:00:30"),
        attempt(None, None),
        attempt("2017-10-07 03:00:00", "2017-10-07 03:00:30"),
        status="Failed",
    ),
    philly_job("d", status="Killed"),
]

TEXTS = {
    "hetenv": "job_id,arrival_s,iterations,min_gpus,speed_a\nx,0,10,1,2\ny,5,20,2,2\n",
    "gavel": "LM (batch size 10)\trun\tdir\t--steps\t1\t100\t1\t1\t-1.000000\t0\n"
    "LM (batch size 10)\trun\tdir\t--steps\t1\t100\t4\t1\t-1.000000\t30.5\n",
    "pollux": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,2,132.0,v\n"
    "2017-10-09 07:01:50,5.0,1,5.0,v\n2017-10-09 07:01:50,5.0,1,5.0,v\n\n\n",
    "pollux-workload": "name,time,application,num_replicas,batch_size\nnet-0,107.5,net,2,64\nnet-1,110,net,6,64\n",
    "philly": json.dumps(PHILLY, indent=1),
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u,v,8,32,1,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:01:00,2020-04-01 10:03:00,120,60\n"
    "2,u,v,0,4,1,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:00:01,2020-04-01 10:00:09,8,1\n"
    "3,u,v,72,32,9,CANCELLED,2020-04-01 10:05:00,2020-04-01 10:05:00,2020-05-21 10:05:00,4320000,0\n",
    "acme": "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
    "end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    "k1,u,128,1024,9,1,1,Pretrain,COMPLETED,2023-07-14 01:00:00+00:00,2023-07-14 01:10:00+00:00,"
    "2023-07-14 02:00:00+00:00,,,3600,600,1\n"
    "k2,u,1,1,9,1,1,Other,FAILED,2023-07-14 09:30:00+08:00,2023-07-14 09:30:00+08:00,"
    "2023-07-14 09:31:00+08:00,,,60,0,1\n",
    "pai": "j1,t1,2,Terminated,110,210,600,29,50,T4\nj1,t2,1,Terminated,120,260,600,29,200,V100\n"
    "j2,t1,1,Terminated,150,180,600,29,,\nj3,t1,1,Failed,160,,600,29,25,MISC\n",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
    "p0,1000,10,1,460,,LS,Succeeded,0,120,20\np1,1000,10,8,1000,V100M16|V100M32|V100M16,LS,Running,5,905,5\n"
    "p2,1000,10,1,1000,,LS,Pending,7,60,\np3,1000,10,0,0,,BE,Succeeded,8,9,8\np4,1000,10,1,1000,,LS,Failed,9,10,10\n",
    "supercloud": "id_job,state,timelimit,time_submit,time_eligible,time_start,time_end,tres_req,job_type\n"
    '7,3,60,1609459200,1609459200,1609459210,1609459310,"1=40,2=1000,4=2,1002=4",other\n'
    '7,7,60,1609459200,1609459200,1609459400,1609459450,"1=40,2=1000,4=2,1001=4,1002=4",other\n'
    '8,3,60,1609459201,1609459201,1609459210,1609459310,"1=40,4=1",other\n'
    '9,4,60,1609459202,1609459202,0,1609459310,"1=40,4=1,1001=1",other\n'
    '7,7,60,1609459200,1609459200,1609459400,1609459450,"1=40,2=1000,4=2,1001=4,1002=4",other\n',
    "muri": "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n0,8,1000,10,gpt2,4,5095000,0,437,0.6,419,49,0\n"
    "1,1,1500,3,vgg16,16,2500,0,214,82,75,66,1\n",
    "synergy": "0,alexnet,0.0,100,1\n0,gnmt,0.5,200,2\n2,res50,7,50,1\n",
    "chronus": "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,"
    "expect_value_list,best_effort,job_type\n0,u,1,30,9,vgg16,20,14,159-189-229,10-5-1,0,strict\n"
    "1,u,4,10,9,vgg16,60,14,128,10,1,best\n2,u,0,20,9,vgg16,60,14,128,10,1,best\n",
    "elasticflow": "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n"
    "0,100,9,bert,400,64,2,250\n1,160,9,bert,400,64,1,50\n",
    "tiresias": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n"
    "1,8,30,133,vgg11,147,23\n",
    "swf": "; Version: 2.2\n; UnixStartTime: 1000000000\n;\n"
    "1 0 5 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n2 60 5 30 -1 -1 -1 8 200 -1 0 1 1 -1 1 -1 -1 -1\n"
    "2 60 5 10 8 -1 -1 8 200 -1 2 1 1 -1 1 -1 -1 -1\n3 70 -1 -1 2 -1 -1 2 200 -1 5 1 1 -1 1 -1 -1 -1\n",
    "durations": "duration\n121\n4000\n",
}
NAMES = {"pai": "pai_task_table.csv", "philly": "cluster_job_log"}
OWN_RATES = (
    "model,type,gpus,placement,iterations_per_s\nnet,a,1,consolidated,3\nnet,a,2,spread,\nnet,b,1,consolidated,0\n"
)
PAI_JOBS = "j1,i1,u,Terminated,100,300\nj2,i2,u,Terminated,140,190\nj3,i3,u,Failed,155,150\nj4,i4,u,Waiting,170,0\n"
PAI_INSTANCES = "j1,t1,x,w,i,Terminated,115,200,m\nj1,t2,y,w,i,Terminated,130,250,m\nj3,t1,z,w,i,Failed,165,175,m\n"


def write(folder: Path, name: str, text: str | None = None) -> tuple[Path, dict[str, Any]]:
    """The sample of a format (or ``text`` in its place) with all that belongs to it; its path and load options."""
    path = folder / NAMES.get(name, f"{name}.txt")
    path.write_text(TEXTS[name] if text is None else text)
    if name == "hetenv":
        (folder / "hetenv.throughputs.csv").write_text(OWN_RATES)
    if name == "gavel":
        (folder / "rates.json").write_text(json.dumps(GAVEL_RATES))
        return path, {"throughputs": folder / "rates.json"}
    if name == "pai":
        (folder / "pai_job_table.csv").write_text(PAI_JOBS)
    if name == "pollux-workload":
        return path, {"throughputs": profiles(folder)}
    return path, {}


def profiles(folder: Path) -> Path:
    """Measured profiles of one application, ``net``: 10 steps at batch 64."""
    net = folder / "profiles" / "net"
    net.mkdir(parents=True, exist_ok=True)
    (net / "validation-64.csv").write_text("progress,iteration,metric\n1,4,0.5\n2,10,0.9\n")
    (net / "placements.csv").write_text(
        "placement,local_bsz,step_time,sync_time\n1,8,1,0\n1,16,2,0\n2,8,1.5,0\n2,16,3,0\n11,16,9,0\n"
    )
    (net / "scalability.csv").write_text(
        "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,6,8,5,0\n6,6,16,9,0\n"
    )
    return folder / "profiles"

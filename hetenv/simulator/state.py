"""The simulator's state: a few fat arrays that one compiled kernel serves at every size.

``Fixed`` never changes during a run and is shared between clones; ``State`` is all that does change,
so copying its arrays copies the simulation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetenv.cluster import Cluster
from hetenv.compiled import njit_in_place as njit
from hetenv.workload import Workload

# Record types have no padding, so that equal states have equal bytes.

# Status of a job.
FUTURE, WAITING, RUNNING, DONE = range(4)
# End of a linked list.
NONE = -1

JOB_SPEC = np.dtype(
    [
        ("arrival_s", "f8"),
        ("iterations", "f8"),
        ("batch", "f8"),
        ("grad_bytes", "f8"),
        ("restart_s", "f8"),
        ("min_gpus", "i4"),
        ("max_gpus", "i4"),
        ("measured_row", "i4"),  # row of the measured table, -1: speeds and links decide
        ("malleable", "i4"),
    ],
    align=True,
)
TYPE_SPEC = np.dtype(
    [
        ("intra_bytes_per_s", "f8"),
        ("nic_bytes_per_s", "f8"),
        ("total", "i4"),
        ("first_node", "i4"),
        ("end_node", "i4"),
        ("largest_node", "i4"),
    ],
    align=True,
)
RULES = np.dtype(
    [
        ("round_s", "f8"),  # 0: every event is a decision epoch
        ("min_reallocation_s", "f8"),
        ("preemptive", "i4"),
        ("even_split", "i4"),
        ("whole_steps", "i4"),
        ("emptiest", "i4"),  # packing: the emptiest node first
    ],
    align=True,
)

JOB = np.dtype(
    [
        ("remaining", "f8"),  # iterations left at as_of_s
        ("rate", "f8"),  # iterations/s of the allocation, 0 without one
        ("as_of_s", "f8"),  # progress counts from here; later than since_s while the job restarts
        ("since_s", "f8"),  # when the allocation was taken
        ("eta_s", "f8"),  # finish under the allocation, inf without one
        ("start_s", "f8"),  # first start, NaN before
        ("finish_s", "f8"),  # NaN before
        ("service_gpu_s", "f8"),  # GPU-seconds held in earlier allocations
        ("lost_gpu_s", "f8"),  # of those, spent restarting
        ("first_hold", "i4"),  # head of the job's chain in holds
        ("status", "i4"),
        ("n_gpus", "i4"),  # held now
        ("size", "i4"),  # chosen at the first start, 0 before
        ("n_nodes", "i4"),  # nodes the allocation spans
        ("restarts", "i4"),
        ("prev", "i4"),  # neighbours in the list of active jobs, by arrival
        ("next", "i4"),
    ],
    align=True,
)
NODE = np.dtype([("type", "i4"), ("gpus", "i4"), ("free", "i4")], align=True)
USE = np.dtype([("busy_gpu_s", "f8"), ("free", "i8")], align=True)  # one a type
HOLD = np.dtype([("node", "i4"), ("gpus", "i4"), ("next", "i4")], align=True)
CLOCK = np.dtype(
    [
        ("time_s", "f8"),
        ("job_s", "f8"),  # integral of the jobs in the system
        ("next_arrival", "i8"),  # first job that has not arrived
        ("n_active", "i8"),
        ("n_running", "i8"),
        ("n_done", "i8"),
        ("n_segments", "i8"),  # rows written to the timeline
        ("first_active", "i8"),
        ("last_active", "i8"),
        ("first_waiting", "i8"),  # in the list of active jobs: all before it run
        ("free_hold", "i8"),  # head of the unused holds
        ("round", "i8"),  # rounds that have begun, less one
    ],
    align=True,
)
SEGMENT = np.dtype([("start_s", "f8"), ("end_s", "f8"), ("job", "i4"), ("node", "i4"), ("gpus", "i8")], align=True)


class Fixed(NamedTuple):
    """What a run never changes."""

    jobs: np.ndarray  # (J,) JOB_SPEC
    speed: np.ndarray  # (J, M) samples/s of one GPU
    types: np.ndarray  # (M,) TYPE_SPEC
    measured: np.ndarray  # (R, M, G + 1, 2) iterations/s: consolidated, spread
    rules: np.ndarray  # (1,) RULES


class State(NamedTuple):
    """All that a run changes."""

    jobs: np.ndarray  # (J,) JOB
    counts: np.ndarray  # (J, M) int32, GPUs held per type
    nodes: np.ndarray  # (N,) NODE
    uses: np.ndarray  # (M,) USE
    holds: np.ndarray  # (K,) HOLD, pool of chains: what each running job holds on each node
    running: np.ndarray  # (K,) int32, the running jobs by eta_s, the last to finish first
    clock: np.ndarray  # (1,) CLOCK

    def copy(self) -> State:
        return State(*(array.copy() for array in self))


def fixed_part(cluster: Cluster, workload: Workload, rules: np.ndarray) -> Fixed:
    """The constants of a run under ``rules`` (1,) RULES; raises InputError for a job that the cluster can never run."""
    types = np.zeros(len(cluster.types), TYPE_SPEC)
    types["intra_bytes_per_s"] = cluster.intra_bytes_per_s
    types["nic_bytes_per_s"] = cluster.nic_bytes_per_s
    types["total"] = cluster.total
    types["first_node"] = np.searchsorted(cluster.node_type, np.arange(len(types)), side="left")
    types["end_node"] = np.searchsorted(cluster.node_type, np.arange(len(types)), side="right")
    types["largest_node"] = cluster.largest_node

    measured = np.zeros((0, len(types), 1, 2))
    if workload.measured is not None:
        measured = workload.measured.for_types(cluster.type_names)
    fixed = Fixed(np.zeros(len(workload), JOB_SPEC), np.zeros((len(workload), len(types))), types, measured, rules)
    workload.check_runnable(cluster)
    describe_jobs(cluster, workload, fixed.jobs, fixed.speed)
    return fixed


def describe_jobs(cluster: Cluster, workload: Workload, jobs: np.ndarray, speed: np.ndarray) -> None:
    """Write ``workload`` into ``jobs`` (J,) JOB_SPEC and ``speed`` (J, M), whether the cluster can run it or not."""
    for name in ("arrival_s", "iterations", "batch", "grad_bytes", "restart_s", "min_gpus", "malleable"):
        jobs[name] = getattr(workload, name)
    jobs["max_gpus"] = np.minimum(workload.max_gpus, cluster.n_gpus)
    jobs["measured_row"] = -1 if workload.measured is None else workload.measured_rows()
    speed[:] = workload.speed_on(cluster)


def initial_state(cluster: Cluster, fixed: Fixed) -> State:
    """Time 0: every GPU free, no job arrived."""
    n_gpus, n_types = cluster.n_gpus, len(fixed.types)
    nodes = np.zeros(cluster.n_nodes, NODE)
    nodes["type"], nodes["gpus"] = cluster.node_type, cluster.node_gpus
    state = State(
        jobs=np.zeros(len(fixed.jobs), JOB),
        counts=np.zeros((len(fixed.jobs), n_types), np.int32),
        nodes=nodes,
        uses=np.zeros(n_types, USE),
        holds=np.zeros(n_gpus, HOLD),
        running=np.zeros(n_gpus, np.int32),
        clock=np.zeros(1, CLOCK),
    )
    rewind(fixed, state)
    return state


@njit
def all_can_run(fixed):
    """Whether each job can run on some part of the whole cluster, as ``Workload.runnable`` has it."""
    for job in range(fixed.jobs.shape[0]):
        spec = fixed.jobs[job]
        if spec.measured_row < 0:
            usable = 0
            for m in range(fixed.types.shape[0]):
                if fixed.speed[job, m] > 0.0:
                    usable += fixed.types[m].total
            if usable < spec.min_gpus:
                return False
        else:
            rate = fixed.measured[spec.measured_row]  # (M, G + 1, 2)
            found = False
            for m in range(rate.shape[0]):
                for n_gpus in range(spec.min_gpus, min(spec.max_gpus, fixed.types[m].total, rate.shape[1] - 1) + 1):
                    found = found or rate[m, n_gpus, 0 if n_gpus <= fixed.types[m].largest_node else 1] > 0.0
            if not found:
                return False
    return True


@njit
def rewind(fixed, state):
    """Make ``state`` that of time 0; only what its nodes are is left as it is."""
    for job in range(state.jobs.shape[0]):
        record = state.jobs[job]
        record.remaining = fixed.jobs[job].iterations
        record.rate = 0.0
        record.as_of_s = 0.0
        record.since_s = 0.0
        record.eta_s = np.inf
        record.start_s = np.nan
        record.finish_s = np.nan
        record.service_gpu_s = 0.0
        record.lost_gpu_s = 0.0
        record.first_hold = -1
        record.status = 0
        record.n_gpus = 0
        record.size = 0
        record.n_nodes = 0
        record.restarts = 0
        record.prev = -1
        record.next = -1
    state.counts[:] = 0
    for node in range(state.nodes.shape[0]):
        state.nodes[node].free = state.nodes[node].gpus
    for m in range(state.uses.shape[0]):
        state.uses[m].busy_gpu_s = 0.0
        state.uses[m].free = fixed.types[m].total
    n_holds = state.holds.shape[0]
    for at in range(n_holds):
        state.holds[at].node = 0
        state.holds[at].gpus = 0
        state.holds[at].next = at + 1 if at + 1 < n_holds else -1
    state.running[:] = 0
    clock = state.clock[0]
    clock.time_s = 0.0
    clock.job_s = 0.0
    clock.next_arrival = 0
    clock.n_active = 0
    clock.n_running = 0
    clock.n_done = 0
    clock.n_segments = 0
    clock.first_active = -1
    clock.last_active = -1
    clock.first_waiting = -1
    clock.free_hold = 0
    clock.round = -1

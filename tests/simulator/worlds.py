"""Random small clusters, workloads and plans for the property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from hetenv.cluster import Cluster, GPUType, NodeGroup
from hetenv.performance import MeasuredTable, iteration_s
from hetenv.scheduler import Plan
from hetenv.simulator import Simulator
from hetenv.workload import Workload


@st.composite
def clusters(draw) -> Cluster:
    """One to three types with nodes of one to four GPUs; on some types the network beats the link in a node."""
    types, groups = [], []
    for name in "abc"[: draw(st.integers(1, 3))]:
        intra = draw(st.sampled_from([1e9, 5e9]))
        types.append(GPUType(name, intra_bytes_per_s=intra, nic_bytes_per_s=draw(st.sampled_from([1e9, 2e9]))))
        for _ in range(draw(st.integers(1, 2))):
            groups.append(NodeGroup(name, draw(st.integers(1, 2)), draw(st.integers(1, 4))))
    return Cluster(tuple(types), tuple(groups))


@st.composite
def workloads(draw, cluster: Cluster) -> Workload:
    """Up to eight jobs of all kinds that ``cluster`` can run, some of them with measured rates."""
    n_jobs, n_types = draw(st.integers(1, 8)), len(cluster.types)
    column = lambda values: draw(st.lists(values, min_size=n_jobs, max_size=n_jobs))  # noqa: E731
    speed = np.array(column(st.lists(st.integers(0, 6), min_size=n_types, max_size=n_types).filter(any)), float)
    least = np.array(column(st.integers(1, 3)))
    sampled = lambda values: draw(st.lists(st.sampled_from(values), min_size=n_types * 5, max_size=n_types * 5))  # noqa: E731
    together, apart = np.array(sampled([0.0, 0.5, 3.0])), np.array(sampled([0.0, 0.5, 2.0]))
    rate = np.stack([together, together * apart], axis=-1).reshape(1, n_types, 5, 2)
    measured = MeasuredTable(("m",), cluster.type_names, rate)
    workload = Workload.build(
        cluster.type_names,
        speed,
        np.array(column(st.sampled_from([0.0, 0.0, 7.0, 40.0, 90.5]))),
        iterations=np.array(column(st.integers(1, 60))),
        batch=np.array(column(st.integers(1, 16))),
        grad_bytes=np.array(column(st.sampled_from([0.0, 1e9]))),
        min_gpus=least,
        max_gpus=least + np.array(column(st.integers(0, 3))),
        malleable=np.array(column(st.booleans())),
        restart_s=np.array(column(st.sampled_from([0.0, 3.0]))),
        model=np.array(column(st.sampled_from(["", "", "m"])), object),
        measured=measured,
    )
    fits = workload.runnable(cluster)
    assume(fits.any())
    workload = workload.take(fits)
    assume(np.isfinite(Simulator(cluster, workload).exclusive_s).all())
    return workload


@st.composite
def simulators(draw) -> Simulator:
    """A simulator in its first state, with and without preemption, even split and rounds, packed by either rule."""
    cluster = draw(clusters())
    return Simulator(
        cluster,
        draw(workloads(cluster)),
        preemptive=draw(st.booleans()),
        even_split=draw(st.booleans()),
        round_s=draw(st.sampled_from([None, None, 15.0])),
        packing=draw(st.sampled_from(["fullest", "emptiest"])),
    )


def random_plan(simulator: Simulator, rng: np.random.Generator) -> Plan:
    """A plan that starts, preempts, resizes and migrates at random, on nodes of its own choice half the time."""
    snapshot = simulator.snapshot()
    node_free, node_type = snapshot.node_free.copy(), simulator.cluster.node_type
    least, most = snapshot.size_limits
    jobs, counts, nodes = [], [], []
    for row in rng.permutation(len(snapshot.jobs)).tolist():
        job, waits = int(snapshot.jobs[row]), bool(snapshot.waiting[row])
        if rng.random() < 0.4 or not (waits or snapshot.preemptive or snapshot.malleable[row]):
            continue
        for node, gpus in simulator.holds(job):
            node_free[node] += gpus
        pairs = _random_pairs(snapshot, row, int(rng.integers(least[row], most[row] + 1)), node_free, rng)
        if not pairs and not snapshot.preemptive:
            pairs = simulator.holds(job)
        for node, gpus in pairs:
            node_free[node] -= gpus
        jobs.append(job)
        nodes.append(np.array(pairs, np.int64).reshape(-1, 2))
        counts.append(np.bincount(node_type[nodes[-1][:, 0]], nodes[-1][:, 1], len(snapshot.total)).astype(np.int64))
    if not jobs:
        return Plan.nothing(len(snapshot.total))
    return Plan(np.array(jobs), np.stack(counts), nodes if rng.random() < 0.5 else None)


def _random_pairs(snapshot, row, size, node_free, rng) -> list[tuple[int, int]]:
    """Nodes with ``size`` free GPUs in all on which the job can run, or none; now and then none on purpose."""
    node_type = snapshot.cluster.node_type
    usable = snapshot.speed[row] > 0
    if snapshot.measured_rate is not None and not np.isnan(snapshot.measured_rate[row]).all():
        usable = np.arange(len(usable)) == rng.integers(len(usable))
    if rng.random() < 0.1:
        return []
    pairs = []
    for node in rng.permutation(len(node_free)).tolist():
        taken = min(size, int(node_free[node])) if usable[node_type[node]] else 0
        if taken:
            pairs.append((node, taken))
            size -= taken
    return pairs if size == 0 else []


def rate_by_hand(simulator: Simulator, job: int) -> float:
    """Iterations/s of a running job, from what it holds and ``hetenv.performance`` alone."""
    holds, cluster, workload = simulator.holds(job), simulator.cluster, simulator.workload
    node_type = cluster.node_type
    counts = np.zeros(len(cluster.types), np.int64)
    for node, gpus in holds:
        counts[node_type[node]] += gpus
    row = workload.measured_rows()[job]
    if row >= 0:
        m = int(np.flatnonzero(counts)[0])
        return float(workload.measured.for_types(cluster.type_names)[row, m, counts[m], int(len(holds) > 1)])
    links = [cluster.nic_bytes_per_s[node_type[node]] for node, _ in holds]
    link = min(links) if len(holds) > 1 else cluster.intra_bytes_per_s[node_type[holds[0][0]]]
    speed = workload.speed_on(cluster)[job]
    return 1.0 / iteration_s(
        counts, speed, float(workload.batch[job]), float(workload.grad_bytes[job]), link, simulator.even_split
    )


def state_bytes(simulator: Simulator) -> bytes:
    return b"".join(array.tobytes() for array in simulator.state)

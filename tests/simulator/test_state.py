"""What the compiled state knows of its jobs."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hetenv.cluster import Cluster
from hetenv.performance import MeasuredTable
from hetenv.simulator.state import JOB_SPEC, RULES, TYPE_SPEC, Fixed, all_can_run, describe_jobs
from hetenv.workload import Workload

CLUSTER = Cluster.from_counts({"a": 4, "b": 3}, gpus_per_node=2)
UNITS = st.sampled_from([0.0, 1.0])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(UNITS, min_size=2, max_size=2).filter(any),
    st.lists(UNITS, min_size=20, max_size=20),
    st.integers(1, 5),
    st.integers(0, 3),
    st.booleans(),
)
def test_the_compiled_check_says_what_the_workload_says(
    speed: list[float], rate: list[float], least: int, more: int, measured: bool
) -> None:
    table = MeasuredTable(("m",), CLUSTER.type_names, np.reshape(rate, (1, 2, 5, 2)))
    workload = Workload.build(
        CLUSTER.type_names,
        np.array([speed]),
        np.zeros(1),
        iterations=1.0,
        min_gpus=least,
        max_gpus=least + more,
        model="m" if measured else "",
        measured=table,
    )
    types = np.zeros(2, TYPE_SPEC)
    types["total"], types["largest_node"] = CLUSTER.total, CLUSTER.largest_node
    fixed = Fixed(
        np.zeros(1, JOB_SPEC), np.zeros((1, 2)), types, table.for_types(CLUSTER.type_names), np.zeros(1, RULES)
    )
    describe_jobs(CLUSTER, workload, fixed.jobs, fixed.speed)
    assert all_can_run(fixed) == workload.runnable(CLUSTER)[0]

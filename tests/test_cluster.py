"""Clusters: arrays by type and node, and refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hetenv.cluster import Cluster, GPUType, NodeGroup
from hetenv.errors import InputError


def test_nodes_are_sorted_by_type_whatever_the_order_of_the_groups() -> None:
    cluster = Cluster((GPUType("a"), GPUType("b")), (NodeGroup("b", 2, 4), NodeGroup("a", 1, 8), NodeGroup("b", 1, 2)))
    assert cluster.node_type.tolist() == [0, 1, 1, 1]
    assert cluster.node_gpus.tolist() == [8, 4, 4, 2]
    assert cluster.total.tolist() == [8, 10]
    assert cluster.largest_node.tolist() == [8, 4]
    assert (cluster.n_gpus, cluster.n_nodes) == (18, 4)


def test_from_counts_ends_in_a_smaller_node_where_needed() -> None:
    cluster = Cluster.from_counts({"a": 10, "b": 3}, gpus_per_node=4)
    assert cluster.node_gpus.tolist() == [4, 4, 2, 3]
    assert Cluster.from_counts({"a": 10}).node_gpus.tolist() == [10]


def test_from_counts_keeps_the_types_it_is_given() -> None:
    fast = GPUType("fast", nic_bytes_per_s=5e9)
    assert Cluster.from_counts({"fast": 1, "slow": 1}, types=[fast]).nic_bytes_per_s.tolist() == [5e9, 1.25e9]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GPUType("a,b"), "GPU type name: 'a,b'"),
        (lambda: GPUType("a", power_w=0), "GPU type a, power_w: 0"),
        (lambda: GPUType("a", nic_bytes_per_s=float("nan")), "GPU type a, nic_bytes_per_s: nan"),
        (lambda: NodeGroup("a", 0, 8), "nodes of type a, nodes: 0"),
        (lambda: NodeGroup("a", 1, 2.5), "nodes of type a, gpus_per_node: 2.5"),  # type: ignore[arg-type]
        (lambda: Cluster((), ()), "cluster types: none"),
        (lambda: Cluster((GPUType("a"), GPUType("a")), (NodeGroup("a", 1, 1),)), "cluster types: a, a"),
        (lambda: Cluster((GPUType("a"),), (NodeGroup("b", 1, 1),)), "node group: b; use one of the types a"),
        (lambda: Cluster((GPUType("a"), GPUType("b")), (NodeGroup("a", 1, 1),)), "GPU type b: 0 GPUs"),
        (lambda: Cluster.from_counts({"a": 0}), "GPUs of type a: 0"),
    ],
)
def test_refusals_name_field_and_value(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()

"""The cluster: GPU types, and nodes that each hold GPUs of one type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hetenv.errors import InputError


@dataclass(frozen=True)
class GPUType:
    """One GPU model.

    Args:
        name: unique within the cluster.
        memory_bytes: device memory.
        intra_bytes_per_s: link between GPUs of one node (NVLink or PCIe).
        nic_bytes_per_s: network link of a node.
        power_w: board power.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    name: str
    memory_bytes: float = 16e9
    intra_bytes_per_s: float = 12e9
    nic_bytes_per_s: float = 1.25e9
    power_w: float = 250.0

    def __post_init__(self) -> None:
        if not self.name or "," in self.name or self.name != self.name.strip():
            raise InputError("GPU type name", repr(self.name), "give a name without commas or blanks around it")
        for field in ("memory_bytes", "intra_bytes_per_s", "nic_bytes_per_s", "power_w"):
            value = getattr(self, field)
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"GPU type {self.name}, {field}", value, "give a positive number")


@dataclass(frozen=True)
class NodeGroup:
    """``nodes`` equal machines with ``gpus_per_node`` GPUs of the type named ``type``."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    type: str
    nodes: int
    gpus_per_node: int

    def __post_init__(self) -> None:
        for field in ("nodes", "gpus_per_node"):
            value = getattr(self, field)
            if int(value) != value or value < 1:
                raise InputError(f"nodes of type {self.type}, {field}", value, "give a whole number of at least 1")


@dataclass(frozen=True)
class Cluster:
    """GPU types and node groups; types keep the order given here in every array of shape (M,)."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    types: tuple[GPUType, ...]
    groups: tuple[NodeGroup, ...]

    def __post_init__(self) -> None:
        names = self.type_names
        if not names:
            raise InputError("cluster types", "none", "give at least one GPU type")
        if len(set(names)) != len(names):
            raise InputError("cluster types", ", ".join(names), "give each type a name of its own")
        for group in self.groups:
            if group.type not in names:
                raise InputError("node group", group.type, f"use one of the types {', '.join(names)}")
        for name, total in zip(names, self.total, strict=True):
            if total == 0:
                raise InputError(f"GPU type {name}", "0 GPUs", "give it a node group or leave it out")

    @classmethod
    def from_counts(
        cls,
        gpus: Mapping[str, int],
        gpus_per_node: int | None = None,
        types: Sequence[GPUType] = (),
    ) -> Cluster:
        """A cluster from GPUs per type name; ``gpus_per_node=None`` puts each type into one node.

        A count that is no multiple of ``gpus_per_node`` ends in one smaller node.
        """
        known = {gpu_type.name: gpu_type for gpu_type in types}
        groups = []
        for name, count in gpus.items():
            size = gpus_per_node or count
            if count < 1:
                raise InputError(f"GPUs of type {name}", count, "give a whole number of at least 1")
            if count // size:
                groups.append(NodeGroup(name, count // size, size))
            if count % size:
                groups.append(NodeGroup(name, 1, count % size))
        return cls(tuple(known.get(name, GPUType(name)) for name in gpus), tuple(groups))

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        return tuple(gpu_type.name for gpu_type in self.types)

    @cached_property
    def node_type(self) -> np.ndarray:
        """(N,) int32, index of each node's type; nodes are sorted by type."""
        return np.repeat(np.arange(len(self.types), dtype=np.int32), [len(sizes) for sizes in self._sizes])

    @cached_property
    def node_gpus(self) -> np.ndarray:
        """(N,) int32, GPUs of each node."""
        return np.concatenate([np.asarray(sizes, np.int32) for sizes in self._sizes])

    @cached_property
    def _sizes(self) -> list[list[int]]:
        return [
            [group.gpus_per_node for group in self.groups if group.type == name for _ in range(group.nodes)]
            for name in self.type_names
        ]

    @cached_property
    def total(self) -> np.ndarray:
        """(M,) int64, GPUs of each type."""
        return np.array([sum(sizes) for sizes in self._sizes], np.int64)

    @cached_property
    def largest_node(self) -> np.ndarray:
        """(M,) int64, GPUs of the largest node of each type."""
        return np.array([max(sizes, default=0) for sizes in self._sizes], np.int64)

    @cached_property
    def intra_bytes_per_s(self) -> np.ndarray:
        """(M,) float64, link between GPUs of one node."""
        return np.array([gpu_type.intra_bytes_per_s for gpu_type in self.types])

    @cached_property
    def nic_bytes_per_s(self) -> np.ndarray:
        """(M,) float64, network link of a node."""
        return np.array([gpu_type.nic_bytes_per_s for gpu_type in self.types])

    @cached_property
    def n_gpus(self) -> int:
        return int(self.total.sum())

    @property
    def n_nodes(self) -> int:
        return len(self.node_type)

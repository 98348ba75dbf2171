"""Typed scenario files: a cluster, a source of jobs, the rules, and the window an agent sees.

A scenario is one YAML file; those that ship lie in ``configs/scenarios``. Example::

    description: two jobs at once on two GPUs
    cluster: small-lab                    # a file of configs/clusters, or types and groups written here
    workload: {kind: synthetic, n_jobs: 2, load: null, mean_gpu_s: 60, type_speed: {v100: 1}}
    simulator: {preemptive: false}        # options of hetenv.Simulator
    window: {jobs: 4, candidates: 4}      # what hetenv/Placement-v0 shows; Market-v0 takes none of it
    time_scale_s: 60                      # divides rewards; the unit of times in observations

``workload: {base: NAME, key: value}`` starts from a file of ``configs/workloads`` and changes some keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.shipped import config_dir
from hetenv.simulator import Simulator
from hetenv.traces.generate import KINDS, JobSource
from hetenv.workload import Workload


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class SimulatorOptions(_Section):
    """Options of ``hetenv.Simulator``; see there."""

    preemptive: bool = False
    even_split: bool = False
    round_s: float | None = Field(None, gt=0)
    whole_steps: bool = False
    min_reallocation_s: float = Field(0.0, ge=0)
    packing: Literal["fullest", "emptiest"] = "fullest"


class Window(_Section):
    """What one observation of ``hetenv/Placement-v0`` shows."""

    jobs: int = Field(16, ge=1, description="W, jobs of the queue: its head and its tail")
    candidates: int = Field(8, ge=2, description="S, candidate categories of each job")


class Scenario(_Section):
    """A checked scenario file.

    Attributes:
        name: file name without its ending.
        one_shot: every job that waits must be placed before time moves on.
        time_scale_s: divides rewards, and is the unit of times in observations: about one mean job.
    """

    name: str
    description: str
    cluster: Cluster
    workload: JobSource
    simulator: SimulatorOptions = SimulatorOptions()
    window: Window = Window()
    one_shot: bool = False
    time_scale_s: float = Field(gt=0)

    def draw_workload(self, rng: np.random.Generator) -> Workload:
        """The jobs of one episode."""
        return self.workload.draw(self.cluster, rng)

    def make_simulator(self) -> Simulator:
        """A simulator whose ``reset(seed)`` draws the jobs of one episode."""
        return Simulator(self.cluster, partial(self.workload.draw, self.cluster), **self.simulator.model_dump())


def scenario_names() -> list[str]:
    """Names of the scenarios that ship."""
    return sorted(path.stem for path in (config_dir() / "scenarios").glob("*.yaml"))


def load_scenario(scenario: str | Path | Scenario, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """A scenario by shipped name or by path, with some keys changed.

    Args:
        scenario: a name from ``scenario_names()``, the path of a YAML file, or a Scenario (returned as it is).
        overrides: nested mapping merged over the file, e.g. ``{"workload": {"load": 0.5}}``.

    Raises:
        InputError: unknown name, unreadable file, or a key that is missing, unknown or out of range.
    """
    if isinstance(scenario, Scenario):
        if overrides:
            raise InputError(
                "overrides", dict(overrides), "give them with a scenario's name or path, not with a Scenario"
            )
        return scenario
    path = _find(scenario, "scenarios")
    content = merged_keys(read_yaml(path), overrides or {})
    for section, folder in (("cluster", "clusters"), ("workload", "workloads")):
        content[section] = _resolve(content.get(section), folder, path)
    if isinstance(trace := content["workload"], dict) and trace.get("kind") == "trace":
        for key in ("path", "throughputs"):  # relative to the scenario file
            if isinstance(trace.get(key), str):
                trace[key] = str(path.parent / trace[key])
    return parse_model(Scenario, {"name": path.stem} | content, str(path))


def trace_scenario(
    path: str | Path, cluster: str | Path | Cluster, overrides: Mapping[str, Any] | None = None, **options: Any
) -> Scenario:
    """A scenario that replays one trace file.

    Args:
        path: the trace; it is read when jobs are first drawn.
        cluster: a name of ``configs/clusters``, the path of a YAML file, or a Cluster.
        overrides: as in ``load_scenario``, e.g. ``{"simulator": {"preemptive": True}}``.
        options: fields of ``hetenv.traces.generate.TraceJobs``: ``format`` (None: told from the content),
            ``throughputs`` (measured ones; see ``load_workload``), ``type_speed`` (speed of each GPU type, for traces
            of recorded run times), ``rules`` (what becomes of records that are no plain job: fields of
            ``hetenv.traces.rules.Rules``), ``lenient`` (drop what is faulty or fits nowhere, with one warning),
            ``n_jobs`` (consecutive jobs of an episode, from a random start; None: all) and ``load`` (offered load
            that the arrivals are stretched to; None: as recorded).

    Raises:
        InputError: unknown cluster, or an option or override that is unknown or out of range.
    """
    if not isinstance(cluster, Cluster):
        found = _find(cluster, "clusters")
        cluster = parse_model(_ClusterFile, {"cluster": read_yaml(found)}, str(found)).cluster
    content = {
        "name": Path(path).stem,
        "description": f"replay of {path}",
        "cluster": cluster,
        "workload": {"kind": "trace", "path": str(path)} | options,
        "time_scale_s": 3600.0,
    }
    return parse_model(Scenario, merged_keys(content, overrides or {}), f"replay of {path}")


class _ClusterFile(_Section):
    cluster: Cluster


def parse_overrides(assignments: Sequence[str]) -> dict[str, Any]:
    """Nested overrides from ``["workload.load=0.5", ...]``; values are YAML."""
    overrides: dict[str, Any] = {}
    for assignment in assignments:
        key, sign, value = assignment.partition("=")
        if not sign or not all(key.split(".")):
            raise InputError("--set", assignment, "write KEY=VALUE, e.g. workload.load=0.5")
        try:
            nested: Any = yaml.safe_load(value)
        except yaml.YAMLError:
            raise InputError("--set", assignment, "give a value that is valid YAML") from None
        for part in reversed(key.split(".")):
            nested = {part: nested}
        overrides = merged_keys(overrides, nested)
    return overrides


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; raises InputError naming the file and line."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise InputError(str(path), reason, "give a readable YAML file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise InputError(where, getattr(error, "problem", None) or "is not YAML", "correct the YAML") from None
    if not isinstance(content, dict):
        raise InputError(str(path), f"holds {type(content).__name__}", "give a mapping of keys to values")
    return content


def parse_model(model: type[Any], content: Mapping[str, Any], where: str) -> Any:
    """``content`` as a pydantic ``model``; its first fault becomes one InputError naming the field."""
    try:
        return model(**content)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in fault["loc"] if part not in KINDS) or "content"
        if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            raise InputError(f"{where}, {field}", "unknown key", "remove it or correct its spelling") from None
        if fault["type"] in ("missing", "missing_argument"):
            raise InputError(f"{where}, {field}", "missing", "add this key") from None
        cause = fault.get("ctx", {}).get("error")
        if isinstance(cause, InputError):  # of a Cluster or one of its parts, which says it better
            raise InputError(f"{where}, {field}, {cause.where}", cause.found, cause.remedy) from None
        remedy = str(cause) if cause else fault["msg"][0].lower() + fault["msg"][1:]
        raise InputError(f"{where}, {field}", repr(fault["input"]), remedy) from None


def _find(name_or_path: str | Path, folder: str) -> Path:
    """A shipped YAML file by name, or the path of a user's own."""
    shipped = config_dir() / folder / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if shipped.is_file() and path.parent == Path("."):
        return shipped
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return path
    names = ", ".join(sorted(file.stem for file in (config_dir() / folder).glob("*.yaml")))
    kind = folder.removesuffix("s")
    raise InputError(
        f"{kind} {str(name_or_path)!r}", "no such name or file", f"use one of {names}, or the path of a .yaml file"
    )


def _resolve(section: Any, folder: str, scenario_path: Path) -> Any:
    """A section that names a shared file, or starts from one by ``base``, written out."""
    if isinstance(section, str):
        section = {"base": section}
    if not isinstance(section, dict) or "base" not in section:
        return section
    changes = {key: value for key, value in section.items() if key != "base"}
    beside = scenario_path.parent / str(section["base"])
    base = beside if beside.is_file() else _find(str(section["base"]), folder)
    return merged_keys(read_yaml(base), changes)


def merged_keys(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes`` laid over it, nested mappings key by key.

    Where ``base`` has a string, the name of a shared file, and ``changes`` a mapping, that file is to change.
    """
    merged = dict(base)
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merged_keys(merged[key], value)
        elif isinstance(merged.get(key), str) and isinstance(value, Mapping):  # a named file with changes
            merged[key] = {"base": merged[key], **value}
        else:
            merged[key] = value
    return merged

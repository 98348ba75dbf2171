"""Scenario files: those that ship, overrides, and errors that name file and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from hetenv.cluster import Cluster
from hetenv.config import config_dir, load_scenario, parse_overrides, scenario_names, trace_scenario
from hetenv.errors import InputError

JOBS = "arrival_s,iterations,speed_a\n" + "".join(f"{10 * job},30,1\n" for job in range(5))
MINIMAL: dict[str, Any] = {
    "description": "two jobs at once",
    "cluster": {"types": [{"name": "a"}], "groups": [{"type": "a", "nodes": 1, "gpus_per_node": 2}]},
    "workload": {"kind": "synthetic", "n_jobs": 2, "load": None, "mean_gpu_s": 60},
    "time_scale_s": 60,
}


def write(path: Path, content: Any) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


# --- scenarios that ship ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", scenario_names())
def test_shipped_scenario_draws_jobs_that_run(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    workload = scenario.draw_workload(np.random.default_rng(0))
    assert workload.arrival_s[0] == 0
    assert workload.runnable(scenario.cluster).all()
    simulator = scenario.make_simulator()
    assert simulator.snapshot().n_active >= 1
    assert simulator.preemptive == scenario.simulator.preemptive


@pytest.mark.parametrize("name", [name for name in scenario_names() if load_scenario(name).workload.load is not None])
def test_offered_load_is_what_the_file_says(name: str) -> None:
    scenario = load_scenario(name)
    workloads = [scenario.draw_workload(np.random.default_rng(seed)) for seed in range(200)]
    # Loads of single episodes scatter with their few large jobs: compare total work with total time.
    work_s = np.mean([workload.cluster_seconds(scenario.cluster).mean() for workload in workloads])
    gap_s = np.mean([workload.arrival_s[-1] / (len(workload) - 1) for workload in workloads])
    assert work_s / gap_s == pytest.approx(scenario.workload.load, rel=0.05)


def test_scenarios_of_the_design_ship() -> None:
    of_the_design = {"paper-batch", "online", "online-elastic", "gavel", "philly", "helios", "slow-server"}
    assert of_the_design | {"acme", "openb", "modern"} <= set(scenario_names())
    assert (config_dir() / "clusters" / "four-generations.yaml").is_file()


# --- overrides -------------------------------------------------------------------------------------


def test_overrides_change_only_what_they_name() -> None:
    plain = load_scenario("online")
    changed = load_scenario("online", {"workload": {"load": 0.5}, "window": {"jobs": 4}})
    assert changed.workload.load == 0.5
    assert changed.workload.model_copy(update={"load": plain.workload.load}) == plain.workload
    assert (changed.window.jobs, changed.window.candidates) == (4, plain.window.candidates)
    assert changed.cluster == plain.cluster


def test_override_replaces_a_named_cluster() -> None:
    assert load_scenario("slow-server", {"cluster": "three-types-15"}).cluster.n_gpus == 15


def test_base_is_found_beside_the_scenario(tmp_path: Path) -> None:
    write(tmp_path / "jobs.yaml", MINIMAL["workload"])
    content = MINIMAL | {"workload": {"base": "jobs.yaml", "n_jobs": 7}}
    scenario = load_scenario(write(tmp_path / "mine.yaml", content))
    assert scenario.name == "mine"
    assert len(scenario.draw_workload(np.random.default_rng(0))) == 7


def test_scenario_passes_through_and_takes_no_overrides() -> None:
    scenario = load_scenario("online")
    assert load_scenario(scenario) is scenario
    with pytest.raises(InputError, match="overrides"):
        load_scenario(scenario, {"window": {"jobs": 4}})


@pytest.mark.parametrize(
    ("assignments", "overrides"),
    [
        ([], {}),
        (["one_shot=true"], {"one_shot": True}),
        (["workload.load=0.5", "workload.n_jobs=[2, 3]"], {"workload": {"load": 0.5, "n_jobs": [2, 3]}}),
        (["workload.load=null"], {"workload": {"load": None}}),
        (["description=a=b"], {"description": "a=b"}),
        (["a.b=1", "a.b=2"], {"a": {"b": 2}}),
    ],
)
def test_parse_overrides(assignments: list[str], overrides: dict[str, Any]) -> None:
    assert parse_overrides(assignments) == overrides


@pytest.mark.parametrize("assignment", ["workload.load", "=1", "a..b=1", ".a=1", "a=[1"])
def test_parse_overrides_names_what_is_wrong(assignment: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_overrides([assignment])
    assert caught.value.found == assignment


# --- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field", "found"),
    [
        ({"cluster": "nowhere"}, "cluster 'nowhere'", "no such name or file"),
        ({"cluster": {"types": [{"name": "a"}]}}, "mine.yaml, cluster.groups", "missing"),
        (
            {"cluster": {"types": [{"name": "a", "vram": 1}], "groups": []}},
            "mine.yaml, cluster.types.0.vram",
            "unknown key",
        ),
        (
            {"cluster": MINIMAL["cluster"] | {"groups": []}},
            "mine.yaml, cluster, GPU type a",
            "0 GPUs",
        ),
        ({"workload": MINIMAL["workload"] | {"grad_bytes": [2, 1]}}, "mine.yaml, workload.grad_bytes", "[2, 1]"),
        ({"workload": "nowhere"}, "workload 'nowhere'", "no such name or file"),
        ({"workload": {"kind": "trace"}}, "mine.yaml, workload.path", "missing"),
        ({"workload": MINIMAL["workload"] | {"load": "much"}}, "mine.yaml, workload.load", "'much'"),
        ({"workload": {"kind": "unheard"}}, "mine.yaml, workload", "unheard"),
        ({"simulator": {"preempt": True}}, "mine.yaml, simulator.preempt", "unknown key"),
        ({"simulator": {"round_s": 0}}, "mine.yaml, simulator.round_s", "0"),
        ({"simulator": {"preemptive": "perhaps"}}, "mine.yaml, simulator.preemptive", "'perhaps'"),
        ({"window": {"candidates": 1}}, "mine.yaml, window.candidates", "1"),
        ({"time_scale_s": -1}, "mine.yaml, time_scale_s", "-1"),
        ({"scale": 1}, "mine.yaml, scale", "unknown key"),
    ],
)
def test_error_names_file_and_field(tmp_path: Path, changes: dict[str, Any], field: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario(write(tmp_path / "mine.yaml", MINIMAL | changes))
    assert caught.value.where.endswith(field)
    assert found in str(caught.value.found)
    assert "\n" not in str(caught.value)


def test_fault_of_a_shared_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text("kind: synthetic\nn_jobs: [1\n")
    with pytest.raises(InputError, match=r"jobs\.yaml, line 3"):
        load_scenario(write(tmp_path / "mine.yaml", MINIMAL | {"workload": "jobs.yaml"}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [1\nb: 2\n", r"mine\.yaml, line 2: "),
        (b"\xff\xfe\x00", r"mine\.yaml: is not UTF-8 text"),
        (b"", r"mine\.yaml: holds NoneType"),
        (b"just text", r"mine\.yaml: holds str"),
    ],
)
def test_file_that_is_no_mapping(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "mine.yaml").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_scenario(tmp_path / "mine.yaml")


def test_missing_file_lists_what_ships(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.yaml': no such name or file; use one of .*online"):
        load_scenario(tmp_path / "gone.yaml")


# --- traces ----------------------------------------------------------------------------------------


def test_trace_scenario_replays_a_file(tmp_path: Path) -> None:
    (tmp_path / "five.csv").write_text(JOBS)
    cluster = Cluster.from_counts({"a": 2})
    scenario = trace_scenario(tmp_path / "five.csv", cluster, {"simulator": {"preemptive": True}}, n_jobs=3)
    assert scenario.name == "five"
    assert scenario.simulator.preemptive
    np.testing.assert_array_equal(scenario.draw_workload(np.random.default_rng(0)).arrival_s, [0, 10, 20])


def test_trace_scenario_reads_a_cluster_file(tmp_path: Path) -> None:
    cluster = write(tmp_path / "lab.yaml", MINIMAL["cluster"])
    assert trace_scenario("five.csv", cluster).cluster.n_gpus == 2
    write(cluster, {"types": []})
    with pytest.raises(InputError, match=r"lab\.yaml, cluster"):
        trace_scenario("five.csv", cluster)


def test_trace_of_a_scenario_file_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "five.csv").write_text(JOBS)
    path = write(tmp_path / "mine.yaml", MINIMAL | {"workload": {"kind": "trace", "path": "five.csv"}})
    assert len(load_scenario(path).draw_workload(np.random.default_rng(0))) == 5


@pytest.mark.parametrize(
    ("options", "field"),
    [({"jobs": 3}, "workload.jobs"), ({"n_jobs": 0}, "workload.n_jobs"), ({"load": 0}, "workload.load")],
)
def test_trace_options_are_checked(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        trace_scenario("five.csv", "fast-slow", **options)
    assert caught.value.where == f"replay of five.csv, {field}"

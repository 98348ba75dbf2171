"""Policies that ship: found by name, played by scripts/evaluate.py, and refused in one line when they are not ours."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import agents
import baselines
from agents.config import load_config
from agents.runs import Run
from agents.saving import save_bred
from agents.scorer import PairScorer, Shape
from hetenv.config import Scenario, load_scenario
from hetenv.errors import InputError
from hetenv.scheduler import Scheduler
from hetenv.simulator import simulate
from tests.agents.helpers import TINY, tiny_evolution
from tests.slow_server import Threshold, optimal_threshold

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pretrained"
    folder.mkdir()
    monkeypatch.setattr(agents, "_FOLDER", folder)
    return folder


@pytest.fixture
def shipped(folder: Path) -> Path:
    config = tiny_evolution(seed=7)
    run = Run(folder, config, {})
    save_bred(PairScorer.initial(Shape(**config.policy_kwargs.model_dump())), run.origin, folder / "tiny.npz")
    return folder / "tiny.npz"


@pytest.fixture(scope="module")
def evaluate() -> Callable[[list[str]], int]:
    return runpy.run_path(str(ROOT / "scripts/evaluate.py"))["main"]


def changed(path: Path, **arrays: Any) -> None:
    """Rewrite the file with some arrays replaced."""
    with np.load(path) as content:
        np.savez(path, **({name: content[name] for name in content} | arrays))


def with_network(path: Path, network: dict[str, Any]) -> np.ndarray:
    with np.load(path) as content:
        return np.array(json.dumps(json.loads(str(content["origin"])) | {"network": network}))


def test_one_that_ships_stands_in_a_comparison(shipped, evaluate, tmp_path, capsys):
    arguments = ["--scenario", "online", "--set", "workload.n_jobs=10", "--episodes", "2"]
    assert evaluate([*arguments, "--schedulers", "fifo", "pretrained:tiny", "--out", str(tmp_path / "out")]) == 0
    assert "pretrained:tiny" in capsys.readouterr().out
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["schedulers"]["pretrained:tiny"]["mean_jct_s"] > 0.0


def test_it_tells_what_made_it(shipped, tmp_path):
    origin = agents.origin("pretrained:tiny")
    assert (origin.algorithm, origin.scenario, origin.overrides) == ("cma", "online", TINY)
    (tmp_path / "config.yaml").write_text(origin.config)
    assert load_config(tmp_path / "config.yaml") == tiny_evolution(seed=7)


def test_an_unknown_name_lists_the_known(shipped, evaluate, capsys):
    assert evaluate(["--scenario", "online", "--schedulers", "pretrained:other"]) == 2
    assert capsys.readouterr().err == "error: pretrained:other: no such policy; pretrained are tiny\n"
    for name in ("pretrained:../pretrained/tiny", "pretrained:"):
        with pytest.raises(InputError, match="no such policy"):
            agents.load(name)


def test_it_says_so_when_none_ships(folder):
    with pytest.raises(InputError, match="pretrained are none in this version"):
        agents.load("pretrained:online")


class Trap:
    """Does harm when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("sprung"),)


@pytest.mark.parametrize("name", ["weights", "origin"])
def test_pickled_content_is_refused_and_not_run(shipped, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changed(shipped, **{name: np.array([Trap()], object)})
    with pytest.raises(InputError, match="not a file of a bred policy"):
        agents.load("pretrained:tiny")
    assert not Path("sprung").exists()


@pytest.mark.parametrize(
    "weights",
    [np.zeros(3), np.zeros((2, 2)), np.full(Shape().n_weights, np.nan), np.array(["a"] * Shape().n_weights)],
    ids=["few", "square", "nan", "text"],
)
def test_weights_that_do_not_fit_are_refused(shipped, weights):
    changed(shipped, weights=weights)
    with pytest.raises(InputError, match="its weights do not fit"):
        agents.load("pretrained:tiny")


@pytest.mark.parametrize(
    ("network", "words"),
    [({"pair": 0}, "pair"), ({"pair": "x"}, "pair"), ({"depth": 3}, "depth"), ({"pair": 10**12}, "do not fit")],
)
def test_sizes_that_mean_nothing_are_refused(shipped, network, words):
    changed(shipped, origin=with_network(shipped, network))
    with pytest.raises(InputError, match=words) as caught:
        agents.load("pretrained:tiny")
    assert "\n" not in str(caught.value)


def test_a_file_cut_short_is_refused(shipped):
    shipped.write_bytes(shipped.read_bytes()[:200])
    with pytest.raises(InputError, match=r"tiny\.npz"):
        agents.load("pretrained:tiny")


# --- those that ship ---------------------------------------------------------------------------------

SHIPPED = sorted(path.stem for path in (Path(agents.__file__).parent / "pretrained").glob("*.npz"))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_policy_says_what_made_it(name: str) -> None:
    origin = agents.origin(f"pretrained:{name}")
    config = yaml.safe_load(origin.config)
    assert origin.scenario == config["env_kwargs"]["scenario"] == name
    assert {"algorithm", "seed", "population"} <= set(config)


def mean_jct_s(scenario: Scenario, scheduler: Scheduler, seeds: range) -> float:
    """Over episodes that neither training nor evaluation uses."""
    results = []
    for seed in seeds:
        workload = scenario.draw_workload(np.random.default_rng(seed))
        options = scenario.simulator.model_dump()
        results.append(simulate(workload, scenario.cluster, scheduler, seed=seed, **options).summary()["mean_jct_s"])
    return float(np.mean(results))


def test_the_online_policy_beats_the_best_scheduler() -> None:
    scenario, seeds = load_scenario("online"), range(50_000, 50_012)
    learned = mean_jct_s(scenario, agents.load("pretrained:online"), seeds)
    assert learned < 0.99 * mean_jct_s(scenario, baselines.make("market-tuned", scenario="online"), seeds)


def test_the_elastic_policy_beats_the_best_scheduler() -> None:
    scenario, seeds = load_scenario("online-elastic"), range(50_000, 50_012)
    learned = mean_jct_s(scenario, agents.load("pretrained:online-elastic"), seeds)
    assert learned < 0.995 * mean_jct_s(scenario, baselines.make("market-tuned", scenario="online-elastic"), seeds)


def test_the_helios_policy_beats_the_best_scheduler() -> None:
    scenario, seeds = load_scenario("helios", {"workload": {"n_jobs": 400}}), range(50_000, 50_006)
    learned = mean_jct_s(scenario, agents.load("pretrained:helios"), seeds)
    assert learned < 0.99 * mean_jct_s(scenario, baselines.make("market-tuned", scenario="helios"), seeds)


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_the_slow_server_policy_is_near_the_best_threshold(load: float) -> None:
    scenario, seeds = load_scenario("slow-server", {"workload": {"load": load}}), range(50_000, 50_024)
    rates = (load * 1.1, 1.0, 0.1)  # of the exclusive mean; only their ratios matter
    optimal = mean_jct_s(scenario, Threshold(optimal_threshold(*rates)), seeds)
    assert mean_jct_s(scenario, agents.load("pretrained:slow-server"), seeds) < 1.02 * optimal

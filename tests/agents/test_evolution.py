"""The evolution strategy: what a run leaves behind, and that nothing but configuration and seed decide it."""

from __future__ import annotations

from contextlib import closing

import numpy as np

import agents
from agents.breeds import Scorers
from agents.config import ScorerConfig, load_config
from agents.evolution import seeded_episodes
from agents.figures import Figures
from agents.saving import load_bred
from agents.scheduler import PolicyScheduler
from agents.training import train
from hetenv.config import load_scenario
from hetenv.simulator import simulate
from tests.agents.helpers import tiny_evolution


def test_a_run_leaves_scorers_state_and_figures(tmp_path):
    config = tiny_evolution()
    run = train(config, tmp_path / "run")
    names = {path.name.partition(".tfevents")[0] for path in run.folder.iterdir()}
    assert names == {
        *("config.yaml", "versions.json", "events.out", "best.npz", "last.npz", "strategy.pickle", "evaluation.json")
    }
    assert not run.interrupted
    assert load_config(run.folder / "config.yaml") == config
    steps = [step for step, _ in run.history]
    assert steps[0] == 0
    assert steps == sorted(set(steps))
    assert steps[-1] == run.steps >= config.n_timesteps
    assert load_bred(run.folder / "best.npz")[1].config == (run.folder / "config.yaml").read_text()
    assert agents.load(run.folder / "last.npz").name == "run/last"


def test_seed_and_configuration_decide_the_table_whatever_the_number_of_threads(tmp_path):
    tables = []
    for name, seed, threads in (("a", 1, 1), ("b", 1, 3), ("c", 2, 1)):
        tables.append(train(tiny_evolution(seed=seed, threads=threads), tmp_path / name).history)
    assert tables[0] == tables[1]
    assert [step for step, _ in tables[0]] != [step for step, _ in tables[2]]


def test_figures_are_those_of_a_simulation():
    scenario = load_scenario("online", {"workload": {"n_jobs": 20, "load": 2.0}})
    config = tiny_evolution()
    assert isinstance(config, ScorerConfig)
    with closing(Scorers(config, scenario)) as breed:
        scorer = breed.policy(breed.first)
        played, _ = breed.play(seeded_episodes(scenario, breed, range(5, 6)), breed.first[None])
    workload = scenario.draw_workload(np.random.default_rng(5))
    scheduler = PolicyScheduler(scorer, scenario)
    result = simulate(workload, scenario.cluster, scheduler, seed=5, **scenario.simulator.model_dump())
    wanted = Figures.of_episode(result.summary(), float(result.jobs["queueing_s"].sum()))
    np.testing.assert_allclose(played, [[wanted]], rtol=1e-9)
    assert wanted.queue_length > 0.0

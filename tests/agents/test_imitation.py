"""Behaviour cloning: what is written down, and that a clone does what its teacher does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import baselines
from agents.config import ImitationSettings
from agents.episodes import HeldOutEpisodes
from agents.imitation import Demonstrations, imitate
from agents.network import PairNetwork
from agents.saving import Origin, save_bred
from agents.scheduler import PolicyScheduler
from agents.scorer import PairScorer, Shape
from agents.training import train
from hetenv.config import load_scenario
from hetenv.simulator import simulate
from tests.agents.helpers import TINY, disturb, tiny_config

SHORT = {"workload": {"n_jobs": 30}}


def demonstrated(scenario, teacher) -> Demonstrations:
    demonstrations = Demonstrations(teacher, scenario)
    workload = scenario.draw_workload(np.random.default_rng(0))
    mine, own = (
        simulate(workload, scenario.cluster, scheduler, seed=0, **scenario.simulator.model_dump())
        for scheduler in (demonstrations, teacher)
    )
    np.testing.assert_array_equal(mine.jobs["finish_s"], own.jobs["finish_s"])  # watching changes nothing
    return demonstrations


@pytest.mark.parametrize("name", ["online", "online-elastic"])
def test_every_decision_of_a_policy_is_written_down(name):
    scenario = load_scenario(name, SHORT)
    network = PairNetwork()
    demonstrations = demonstrated(scenario, PolicyScheduler(network, scenario))
    assert demonstrations.share_found == 1.0
    wanted = [network.likeliest(inputs).item() for inputs in demonstrations.inputs]
    assert demonstrations.actions == wanted
    assert len(set(wanted)) > 5


@pytest.mark.parametrize(("name", "least"), [("sjf", 0.9), ("market-tuned", 0.5)])
def test_most_placements_of_a_scheduler_are_actions(name, least):
    demonstrations = demonstrated(load_scenario("online", SHORT), baselines.make(name))
    assert least < demonstrations.share_found <= 1.0
    for inputs, action in zip(demonstrations.inputs, demonstrations.actions, strict=True):
        assert action in inputs.action or (action == inputs.n_actions - 1 and inputs.may_wait[0])


def test_a_clone_agrees_with_its_teacher_and_does_better_than_before(tiny, tmp_path):
    path = tmp_path / "teacher.npz"
    shape = Shape(1, 1)
    origin = Origin(algorithm="cma", scenario="online", overrides=TINY, network=shape._asdict())
    save_bred(PairScorer.initial(shape), origin, path)
    torch.manual_seed(0)
    network = PairNetwork(width=16)
    disturb(network)
    episodes = HeldOutEpisodes(tiny, range(100, 108))
    before = episodes.play(network).mean_jct_s
    settings = ImitationSettings(scheduler=str(path), episodes=30, epochs=10)
    imitated = imitate(network, settings, tiny, seed=0)
    assert imitated.share_found == 1.0
    assert imitated.agreement > 0.9
    after, teacher = (episodes.play(policy).mean_jct_s for policy in (network, PairScorer.initial(shape)))
    assert after < before
    assert after < 1.1 * teacher


def test_a_run_may_begin_with_it(tmp_path):
    config = tiny_config("ppo", imitate={"scheduler": "sjf", "episodes": 2, "epochs": 1})
    train(config, tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    assert 0.0 < events.Scalars("imitation/agreement")[0].value <= 1.0
    assert events.Scalars("imitation/share_found")[0].step == 0

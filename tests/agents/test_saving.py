"""Saved models: whole or not at all, readable here and by Stable-Baselines3, refused by name when not ours."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

import agents
from agents.inputs import Inputs
from agents.policy import PairPolicy
from agents.saving import Origin, load_network, save_model
from hetenv.envs.placement import PlacementEnv
from hetenv.errors import InputError
from hetenv.simulator import simulate
from tests.agents.helpers import TINY, disturb, observations

ORIGIN = Origin(algorithm="ppo", scenario="online", overrides=TINY, network={"width": 16})


@pytest.fixture
def model(tiny) -> PPO:
    model = PPO(
        PairPolicy, PlacementEnv(tiny), n_steps=8, batch_size=8, policy_kwargs={"width": 16}, device="cpu", seed=0
    )
    disturb(model.policy)
    return model


@pytest.fixture
def saved(model, tmp_path) -> Path:
    save_model(model, ORIGIN, tmp_path / "best.zip")
    return tmp_path / "best.zip"


def test_what_is_loaded_is_what_was_saved(model, saved, tiny):
    network, origin = load_network(saved)
    assert origin == ORIGIN
    batch = Inputs.of(observations(tiny, 10))
    torch.testing.assert_close(network(batch), model.policy.network(batch))
    assert PPO.load(saved, device="cpu").hetenv == ORIGIN.model_dump()
    assert [path.name for path in saved.parent.iterdir()] == ["best.zip"]


def test_a_failed_save_leaves_the_old_file(model, saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(self, file):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(PPO, "save", full_disk)
    with pytest.raises(InputError, match=r"best\.zip: cannot be written \(No space"):
        save_model(model, ORIGIN, saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["best.zip"]


def test_agents_load_gives_a_scheduler_of_the_saved_scenario(saved, tiny):
    scheduler = agents.load(saved)
    assert scheduler.scenario.window == tiny.window
    result = simulate(tiny.draw_workload(np.random.default_rng(0)), tiny.cluster, scheduler, seed=0)
    assert np.isfinite(result.jobs["finish_s"]).all()


def test_missing_files_folders_and_other_content_are_refused_by_name(tmp_path):
    text, archive = tmp_path / "text.zip", tmp_path / "other.zip"
    text.write_text("not a zip")
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("readme", "hello")
    for path in (tmp_path / "missing.zip", tmp_path, text, archive):
        with pytest.raises(InputError, match=r"scripts/train\.py") as caught:
            agents.load(path)
        assert str(path) in str(caught.value)


def test_a_model_of_another_project_is_refused(model, tmp_path):
    model.save(tmp_path / "foreign.zip")
    with pytest.raises(InputError, match="another project"):
        agents.load(tmp_path / "foreign.zip")


def test_weights_of_another_shape_are_refused(model, tmp_path):
    save_model(model, ORIGIN.model_copy(update={"network": {"width": 8}}), tmp_path / "best.zip")
    with pytest.raises(InputError, match="do not fit"):
        agents.load(tmp_path / "best.zip")

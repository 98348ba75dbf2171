"""Whole training runs, small ones: what they leave behind, Ctrl-C, reproducibility, and that they learn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import nn

import agents
from agents.config import TrainConfig, load_config
from agents.network import PairNetwork
from agents.on_policy import train_network
from agents.runs import Run
from agents.saving import load_network
from agents.training import train
from hetenv.errors import InputError
from tests.agents.helpers import tiny_config


def files(folder: Path) -> set[str]:
    return {path.name.partition(".tfevents")[0] for path in folder.iterdir()}


ALL_FILES = {"config.yaml", "versions.json", "events.out", "best.zip", "last.zip", "evaluation.json"}


def train_until(callback: BaseCallback, config: TrainConfig, folder: Path) -> Run:
    run = Run(folder, config, {})
    train_network(run, lambda done, total: None, extra_callbacks=(callback,))
    return run


@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_a_run_leaves_models_and_figures(algorithm, tmp_path):
    config = tiny_config(algorithm)
    run = train(config, tmp_path / "run")
    assert files(tmp_path / "run") == ALL_FILES
    assert not run.interrupted
    assert load_config(tmp_path / "run" / "config.yaml") == config
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text()) == run.evaluation

    history = run.evaluation["history"]
    assert [entry["step"] for entry in history] == [0, 128, 256]
    assert run.evaluation["best"] == min(history, key=lambda entry: entry["mean_jct_s"])
    for name in ("best", "last"):
        assert agents.load(tmp_path / "run" / f"{name}.zip").name == f"run/{name}"


class PressCtrlC(BaseCallback):
    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.at:
            raise KeyboardInterrupt
        return True


def test_ctrl_c_keeps_best_and_last(config, tmp_path):
    run = train_until(PressCtrlC(at=200), config, tmp_path / "run")
    assert run.interrupted
    assert run.evaluation["steps"] == 200
    assert files(tmp_path / "run") == ALL_FILES
    best, last = (load_network(tmp_path / "run" / name)[0].state_dict() for name in ("best.zip", "last.zip"))
    assert best.keys() == last.keys()


def test_ctrl_c_in_the_first_step_keeps_the_untrained_policy(config, tmp_path):
    run = train_until(PressCtrlC(at=0), config, tmp_path / "run")
    assert [entry["step"] for entry in run.evaluation["history"]] == [0]
    assert load_network(tmp_path / "run" / "best.zip")[0].beta == pytest.approx(config.policy_kwargs.beta)


def test_the_same_seed_gives_the_same_weights_and_table_and_another_does_not(config, tmp_path):
    weights, tables = [], []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run = train(config.model_copy(update={"seed": seed}), tmp_path / name)
        weights.append(load_network(tmp_path / name / "last.zip")[0].state_dict())
        tables.append(run.history)
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert not all(torch.equal(weights[0][key], weights[2][key]) for key in weights[0])
    assert tables[0] == tables[1]


def test_a_time_limit_ends_the_run(config, tmp_path):
    config = config.model_copy(update={"n_timesteps": None, "max_minutes": 1e-6})
    run = train(config, tmp_path / "run")
    assert not run.interrupted
    assert run.evaluation["steps"] == config.n_envs
    assert files(tmp_path / "run") == ALL_FILES


def test_ctrl_c_before_the_first_step_leaves_nothing(config, tmp_path, monkeypatch):
    def press(self, network):
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.episodes.HeldOutEpisodes.play", press)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_holds_something_is_refused_and_kept(config, tmp_path):
    (tmp_path / "best.zip").write_text("precious")
    with pytest.raises(InputError, match="not empty"):
        train(config, tmp_path)
    assert (tmp_path / "best.zip").read_text() == "precious"
    assert files(tmp_path) == {"best.zip"}


class WaitingNetwork(PairNetwork):
    """Waits wherever it may, to begin with."""

    def __init__(self, width: int, beta: float) -> None:
        super().__init__(width, beta)
        nn.init.constant_(self.wait.bias, 8.0)


def test_training_mends_a_policy_that_waits_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("agents.policy.PairNetwork", WaitingNetwork)
    config = tiny_config(
        "ppo",
        n_envs=8,
        group_size=4,
        n_steps=32,
        n_timesteps=4096,
        learning_rate=0.01,
        policy_kwargs={"beta": 1.0},
        evaluation={"episodes": 16, "every_steps": 10_000, "baselines": []},
    )
    start, end = train(config, tmp_path / "run").evaluation["history"]
    assert end["mean_jct_s"] < 0.75 * start["mean_jct_s"]

"""Runs that were killed go on: full history, no gap; and no failed write costs what was there."""

from __future__ import annotations

import errno
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from stable_baselines3.common.callbacks import BaseCallback
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.summary.writer.record_writer import RecordWriter

from agents.held_out import HeldOut
from agents.on_policy import make_model, train_network
from agents.runs import Run
from agents.saving import load_network, load_policy, restore_model
from agents.training import resume, train
from hetenv.errors import InputError
from tests.agents.helpers import tiny_bending, tiny_config, tiny_evolution

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/train.py"


class Killed(BaseException):
    """Nothing in a run may catch it, as nothing catches a SIGKILL."""


class KillAt(BaseCallback):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.step:
            raise Killed
        return True


@pytest.fixture(scope="module")
def main() -> Callable[[list[str]], int]:
    return runpy.run_path(str(SCRIPT))["main"]


def steps(run: Run) -> list[int]:
    return [step for step, _ in run.history]


def killed_network(folder: Path, at: int, **changes: Any) -> Run:
    """What a network's run in ``folder`` left when it was killed at step ``at``."""
    with pytest.raises(Killed):
        train_network(Run(folder, tiny_config("ppo", **changes), {}), lambda done, total: None, (KillAt(at),))
    return Run.read(folder)


def test_ctrl_c_during_the_first_evaluation_is_told(main, tmp_path, monkeypatch, capsys):
    def press(self, policy):
        raise KeyboardInterrupt

    file = tmp_path / "tiny.yaml"
    file.write_text(yaml.safe_dump(tiny_evolution().model_dump(mode="json")))
    monkeypatch.setattr("agents.showcase.Showcase.play", press)
    assert main(["--config", str(file), "--out", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_run_killed_by_a_signal_goes_on_without_a_gap(main, tmp_path, capsys):
    out, file = tmp_path / "run", tmp_path / "tiny.yaml"
    config = tiny_config("ppo", n_timesteps=10**8, evaluation={"episodes": 2, "every_steps": 128, "baselines": []})
    file.write_text(yaml.safe_dump(config.model_dump(mode="json")))
    arguments = [sys.executable, str(SCRIPT), "--config", str(file), "--out", str(out)]
    with subprocess.Popen(arguments, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL) as process:
        written = out / "evaluation.json"
        try:
            while not written.exists() or len(json.loads(written.read_text())["history"]) < 3:
                assert process.poll() is None
        finally:
            process.send_signal(signal.SIGKILL)
    before = json.loads(written.read_text())
    assert before["interrupted"]
    end = before["steps"] + 256
    settings = yaml.safe_load((out / "config.yaml").read_text())
    (out / "config.yaml").write_text(yaml.safe_dump(settings | {"n_timesteps": end}))

    time.sleep(1.1)  # event files are read in the order of their names, which carry whole seconds
    assert main(["--resume", "--out", str(out)]) == 0
    assert f"last evaluated at step {before['steps']:,}" in capsys.readouterr().out
    after = json.loads(written.read_text())
    assert after["history"][: len(before["history"])] == before["history"]
    assert [entry["step"] for entry in after["history"]] == list(range(0, end + 1, 128))
    assert after["resumed_at"][0] - before["steps"] in (0, 128)  # the last policy may be newer than the table
    assert not after["interrupted"]
    assert after["wall_s"] > before["wall_s"]
    assert [path.name for path in out.iterdir() if path.name.endswith(".part")] == []
    events = EventAccumulator(str(out)).Reload()
    for tag in ("heldout/mean_jct_s", "train/value_loss", "rollout/mean_jct_s"):
        logged = [event.step for event in events.Scalars(tag)]
        assert logged == sorted(set(logged))
        assert logged[-1] == end


def test_a_network_goes_on_from_its_weights_optimizer_and_step(tmp_path):
    config = tiny_config("ppo", n_timesteps=512)
    run = killed_network(tmp_path / "run", at=300, n_timesteps=512)
    assert steps(run) == [0, 128, 256]
    model = make_model(config, config.load_scenario(), run.budget)
    restore_model(model, run.folder / "last.zip")
    assert model.num_timesteps == 256
    assert model.policy.optimizer.state_dict()["state"]  # of Adam, after its first update
    saved = load_network(run.folder / "last.zip")[0].state_dict()
    assert all(torch.equal(value, saved[key]) for key, value in model.policy.network.state_dict().items())

    resume(run)
    assert steps(run) == [0, 128, 256, 384, 512]
    rates = [event.value for event in EventAccumulator(str(run.folder)).Reload().Scalars("train/learning_rate")]
    first = float(config.learning_rate.removeprefix("lin_"))
    assert rates == pytest.approx([first * left for left in (0.75, 0.5, 0.25, 0.0)])


def test_runs_that_were_killed_at_the_same_step_go_on_alike(tmp_path):
    runs = [resume(killed_network(tmp_path / name, at=200)) for name in ("a", "b")]
    assert runs[0].history == runs[1].history
    assert runs[0].resumed_at == runs[1].resumed_at == [128]
    last = [load_network(run.folder / "last.zip")[0].state_dict() for run in runs]
    assert all(torch.equal(last[0][key], last[1][key]) for key in last[0])


@pytest.mark.parametrize("make", [tiny_evolution, tiny_bending], ids=["scorer", "bender"])
def test_an_evolution_strategy_goes_on_as_if_nothing_had_happened(make, tmp_path, monkeypatch):
    whole = train(make(), tmp_path / "whole")
    assert len(whole.history) >= 3
    keep = HeldOut.keep

    def killed(self, step, figures, scalars):
        if len(self.run.history) == 2:
            raise Killed
        keep(self, step, figures, scalars)

    with monkeypatch.context() as patch:
        patch.setattr(HeldOut, "keep", killed)
        with pytest.raises(Killed):
            train(make(), tmp_path / "killed")
    run = resume(Run.read(tmp_path / "killed"))
    assert run.history == whole.history
    assert run.resumed_at == [whole.history[1][0]]
    for name in ("best.npz", "last.npz"):
        ours, others = (load_policy(folder / name)[0].weights for folder in (run.folder, whole.folder))
        assert (ours == others).all()


def test_the_time_that_was_used_counts(tmp_path):
    run = killed_network(tmp_path / "run", at=200, n_timesteps=None, max_minutes=10.0)
    used_s = run.budget.elapsed_s
    assert used_s > 0.0
    content = json.loads((run.folder / "evaluation.json").read_text()) | {"wall_s": 590.0}
    (run.folder / "evaluation.json").write_text(json.dumps(content))
    assert Run.read(run.folder).budget.share_left(10**9) == pytest.approx(10 / 600, abs=1e-3)


@pytest.mark.parametrize("make", [tiny_evolution, lambda: tiny_config("a2c")], ids=["cma", "a2c"])
def test_a_run_that_has_ended_is_refused_until_it_may_go_on(make, main, tmp_path, capsys):
    run = train(make(), tmp_path / "run")
    assert main(["--resume", "--out", str(run.folder)]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "config.yaml: its budget is used up; raise n_timesteps" in errors
    settings = yaml.safe_load((run.folder / "config.yaml").read_text())
    (run.folder / "config.yaml").write_text(yaml.safe_dump(settings | {"n_timesteps": 2 * run.steps}))
    longer = resume(Run.read(run.folder))
    assert longer.history[: len(run.history)] == run.history
    assert longer.steps >= 2 * run.steps
    assert all(first < second for first, second in pairwise(steps(longer)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--resume"], "no run that has evaluated anything"),
        (["--resume", "--minutes", "3"], "--minutes: given with --resume"),
        (["--resume", "--set", "seed=3"], "--set: given with --resume"),
    ],
)
def test_what_cannot_be_resumed_is_refused_in_one_line(arguments, words, main, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path / "nowhere")]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert words in errors
    assert not (tmp_path / "nowhere").exists()


def test_a_lost_state_is_named(tmp_path):
    run = train(tiny_evolution(), tmp_path / "run")
    run.config = tiny_evolution(n_timesteps=10**6)
    (run.folder / "strategy.pickle").write_bytes(b"")
    with pytest.raises(InputError, match=r"strategy\.pickle: no state of a strategy"):
        resume(run)


N_FIRST_WRITES = 5  # config.yaml, versions.json, last, best, evaluation.json


@pytest.mark.parametrize("n_writes", range(N_FIRST_WRITES, N_FIRST_WRITES + 3))
def test_a_full_disk_is_one_line_and_the_run_goes_on_once_there_is_room(n_writes, main, tmp_path, monkeypatch, capsys):
    out, file = tmp_path / "run", tmp_path / "tiny.yaml"
    file.write_text(yaml.safe_dump(tiny_config("ppo").model_dump(mode="json")))
    done = 0

    def fill(descriptor: int) -> None:
        nonlocal done
        done += 1
        if done > n_writes:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fill)
        assert main(["--config", str(file), "--out", str(out)]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "cannot be written (No space left on device)" in errors
    assert [path.name for path in out.iterdir() if path.name.endswith(".part")] == []
    for name in ("best.zip", "last.zip"):
        load_network(out / name)
    assert main(["--resume", "--out", str(out)]) == 0
    history = json.loads((out / "evaluation.json").read_text())["history"]
    assert [entry["step"] for entry in history] == [0, 128, 256]


def test_event_files_that_cannot_be_written_end_the_run_in_one_line(main, tmp_path, monkeypatch, capsys):
    out, file = tmp_path / "run", tmp_path / "tiny.yaml"
    file.write_text(yaml.safe_dump(tiny_config("ppo", n_timesteps=10**6).model_dump(mode="json")))
    written = 0

    def fill(self: RecordWriter, data: bytes) -> None:  # in a thread of TensorBoard's own
        nonlocal written
        written += 1
        if written > 20:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RecordWriter, "write", fill)
    assert main(["--config", str(file), "--out", str(out)]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert errors.startswith(f"error: {out}: cannot be written (No space left on device); make room")
    load_network(out / "best.zip")

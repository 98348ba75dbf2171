"""``scripts/train.py`` from the outside."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.agents.helpers import tiny_config

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/train.py"


@pytest.fixture
def config_file(tmp_path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(tiny_config("ppo").model_dump(mode="json")))
    return path


@pytest.fixture(scope="module")
def main() -> Callable[[list[str]], int]:
    return runpy.run_path(str(SCRIPT))["main"]


def test_trains_says_what_came_of_it_and_spares_the_folder_afterwards(main, config_file, tmp_path, capsys):
    out = tmp_path / "run"
    arguments = ["--config", str(config_file), "--out", str(out)]
    assert main([*arguments, "--seed", "3", "--set", "n_timesteps=128", "policy_kwargs.width=8"]) == 0
    printed = capsys.readouterr().out
    assert f"tensorboard --logdir {out}" in printed
    assert "held-out mean JCT" in printed
    kept = yaml.safe_load((out / "config.yaml").read_text())
    assert (kept["seed"], kept["n_timesteps"], kept["policy_kwargs"]["width"]) == (3, 128, 8)

    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert f"{out}: is not empty" in errors
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--set", "gama=0.9"], "gama"),
        (["--set", "env_kwargs.scenario=offline"], "offline"),
        (["--set", "env_kwargs.overrides.workload.load=-1"], "load"),
        (["--minutes", "-1"], "max_minutes"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(main, options, word, config_file, tmp_path, capsys):
    assert main(["--config", str(config_file), "--out", str(tmp_path / "run"), *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert word in printed.err
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_made_is_named(main, config_file, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["--config", str(config_file), "--out", str(tmp_path / "file" / "run")]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert str(tmp_path / "file") in errors


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_says_where_the_models_are_and_exits_130(config_file, tmp_path):
    out = tmp_path / "run"
    arguments = [sys.executable, str(SCRIPT), "--config", str(config_file), "--out", str(out)]
    arguments += ["--set", "n_timesteps=100000000"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        # Until it trains: where a kernel is being compiled, Python may drop the signal.
        table = out / "evaluation.json"
        while not table.exists() or len(json.loads(table.read_text())["history"]) < 2:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        for _ in range(3):  # Python drops an interrupt that falls into a callback from C: then one presses again
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                _, errors = process.communicate(timeout=90)
                break
    finally:
        process.kill()
    assert process.returncode == 130
    said = [line for line in errors.splitlines() if "compiling kernels" not in line]
    assert len(said) == 1
    assert str(out) in said[0]
    assert {"best.zip", "last.zip", "evaluation.json"} <= {path.name for path in out.iterdir()}

"""Training configurations: what is taken and what is refused, by name."""

from __future__ import annotations

import pytest

from agents.config import load_config
from hetenv.errors import InputError
from tests.agents.helpers import CONFIGS

MINIMAL = "algorithm: a2c\nenv_kwargs: {scenario: online}\nn_timesteps: 10\n"


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_configurations_are_valid_and_round_trip(path, tmp_path):
    import yaml

    config = load_config(path)
    copy = tmp_path / "copy.yaml"
    copy.write_text(yaml.safe_dump(config.model_dump(mode="json")))
    assert load_config(copy) == config


def test_changes_are_merged_into_nested_keys(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(MINIMAL)
    config = load_config(path, {"env_kwargs": {"overrides": {"workload": {"load": 0.5}}}, "learning_rate": 1e-3})
    assert config.env_kwargs.scenario == "online"
    assert config.env_kwargs.overrides == {"workload": {"load": 0.5}}
    assert config.learning_rate == "0.001"
    assert "env_kwargs" not in config.algorithm_arguments
    assert config.algorithm_arguments["rms_prop_eps"] == 1e-5


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("algorithm: dqn", ("algorithm", "dqn", "ppo")),
        ("batch_size: 64", ("batch_size", "unknown key")),  # PPO's, not A2C's
        ("horizon: 0", ("horizon", "0")),
        ("imitate: {scheduler: oracle}", ("imitate.scheduler", "oracle", "jps")),
        ("learning_rate: fast", ("learning_rate", "fast", "lin_3e-4")),
        ("learning_rate: -1", ("learning_rate", "-1")),
        ("n_timesteps: 0", ("n_timesteps", "0")),
        ("n_timesteps: null", ("n_timesteps or max_minutes",)),
        ("evaluation: {baselines: [oracle]}", ("baselines", "oracle", "jps")),
        ("env_kwargs: {}", ("env_kwargs.scenario", "missing")),
        ("policy_kwargs: {beta: 0}", ("policy_kwargs.beta", "0")),
        ("env: hetenv/Other-v0", ("env", "hetenv/Other-v0", "hetenv/Placement-v0", "hetenv/Market-v0")),
        ("env: hetenv/Market-v0", ("algorithm", "a2c", "cma for hetenv/Market-v0")),
    ],
)
def test_bad_values_are_named_in_one_line(line, words, tmp_path):
    path = tmp_path / "c.yaml"
    key = line.partition(":")[0]
    path.write_text("".join(row for row in MINIMAL.splitlines(True) if not row.startswith(key)) + line + "\n")
    with pytest.raises(InputError) as caught:
        load_config(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy_kwargs": {"features": ["weather"]}}, ("policy_kwargs.features", "weather", "queue")),
        ({"policy_kwargs": {"type_features": ["queue"]}}, ("policy_kwargs.type_features", "queue", "affinity")),
        ({"policy_kwargs": {"pair": 8}}, ("policy_kwargs.pair", "unknown key")),
        ({"start": [0.0, 0.5]}, ("start",)),
        ({"threads": 2}, ("threads", "unknown key")),  # it has workers
    ],
)
def test_bad_values_of_a_bender_are_named(changes, words):
    with pytest.raises(InputError) as caught:
        load_config(CONFIGS / "cma-market.yaml", changes)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


def test_groups_must_be_whole(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(MINIMAL + "n_envs: 6\ngroup_size: 4\n")
    with pytest.raises(InputError, match="divides n_envs = 6"):
        load_config(path)
    assert load_config(path, {"group_size": 3}).group_size == 3


def test_ppo_batches_must_be_whole(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "algorithm: ppo\nenv_kwargs: {scenario: online}\nn_timesteps: 1\nn_envs: 3\nn_steps: 10\nbatch_size: 8\n"
    )
    with pytest.raises(InputError, match="divides n_envs \\* n_steps = 30"):
        load_config(path)
    assert load_config(path, {"batch_size": 15}).algorithm_arguments["batch_size"] == 15

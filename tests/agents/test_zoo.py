"""Training files in the form of RL Baselines3 Zoo."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.config import load_config
from hetenv.errors import InputError

ZOO = """
hetenv/Placement-v0:
  policy: PairPolicy
  env_kwargs: {scenario: online}
  n_envs: 8
  n_timesteps: !!float 1e5
  policy_kwargs: {width: 16}
  n_steps: 64
  batch_size: 128
  learning_rate: lin_3e-4
"""
OURS = """
algorithm: ppo
env_kwargs: {scenario: online}
n_envs: 8
n_timesteps: 100000
policy_kwargs: {width: 16}
n_steps: 64
batch_size: 128
learning_rate: lin_3e-4
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_both_forms_mean_the_same(tmp_path: Path) -> None:
    zoo, ours = written(tmp_path / "ppo.yml", ZOO), written(tmp_path / "mine.yaml", OURS)
    assert load_config(zoo) == load_config(ours)
    changes = {"n_envs": 4, "env_kwargs": {"scenario": "philly"}}
    assert load_config(zoo, changes) == load_config(ours, changes)


def test_the_algorithm_may_be_named_instead_of_the_file(tmp_path: Path) -> None:
    named = ZOO.replace("  policy: PairPolicy\n", "  algorithm: ppo\n")
    assert load_config(written(tmp_path / "mine.yml", named)) == load_config(written(tmp_path / "ppo.yml", ZOO))
    with pytest.raises(InputError, match="algorithm: mine; use one of ppo, a2c, cma"):
        load_config(written(tmp_path / "mine.yml", ZOO))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("hetenv/Placement-v0", "hetenv/Other-v0", ("hetenv/Other-v0", "give hetenv/Placement-v0")),
        ("hetenv/Placement-v0", "hetenv/Market-v0", ("policy", "PairPolicy", "MarketBender")),
        ("hetenv/Placement-v0:\n  policy: PairPolicy", "hetenv/Market-v0:", ("algorithm", "ppo", "use one of cma")),
        ("hetenv/Placement-v0", "CartPole-v1", ("CartPole-v1", "give hetenv/Placement-v0")),
        ("\nhetenv", "\nseed: 3\nhetenv", ("seed", "as a mapping under it")),
        ("PairPolicy", "MultiInputPolicy", ("policy", "MultiInputPolicy", "PairPolicy")),
        ("  n_envs: 8", "  normalize: true", ("normalize", "True", "remove it")),
        ("  n_envs: 8", "  frame_stack: 4", ("frame_stack", "remove it")),
        ("  n_envs: 8", "  env_wrapper: some.Wrapper", ("env_wrapper", "some.Wrapper", "no wrappers")),
        ("  n_envs: 8", "  use_sde: true", ("use_sde", "unknown key")),
        ("{width: 16}", "dict(net_arch=[64])", ("policy_kwargs", "net_arch")),
    ],
)
def test_what_has_no_meaning_here_is_refused_by_name(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    path = written(tmp_path / "ppo.yml", ZOO.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_config(path)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in (str(path), *words) if word not in message] == []

"""Fixtures of the agents' tests, which need the packages of the extra "train"."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from hetenv.config import Scenario, load_scenario

if TYPE_CHECKING:
    from agents.config import TrainConfig

if not (find_spec("torch") and find_spec("stable_baselines3")):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def tiny() -> Scenario:
    from tests.agents.helpers import TINY

    return load_scenario("online", TINY)


@pytest.fixture
def config() -> TrainConfig:
    from tests.agents.helpers import tiny_config

    return tiny_config("ppo")

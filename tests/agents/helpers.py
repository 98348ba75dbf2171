"""A tiny scenario, observations of it, and short training runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.config import BenderConfig, EvolutionConfig, TrainConfig, load_config
from hetenv.config import Scenario
from hetenv.envs.placement import PlacementEnv

TINY: dict[str, Any] = {"workload": {"n_jobs": 12}, "window": {"jobs": 4, "candidates": 6}}
CONFIGS = Path(__file__).parents[2] / "configs/train"


def tiny_config(algorithm: str, **changes: Any) -> TrainConfig:
    """A shipped configuration cut down to seconds."""
    small: dict[str, Any] = {
        "env_kwargs": {"scenario": "online", "overrides": TINY},
        "n_envs": 2,
        "group_size": 2,
        "n_steps": 64,
        "n_timesteps": 256,
        "evaluation": {"episodes": 2, "every_steps": 128, "baselines": []},
    }
    if algorithm == "ppo":
        small["batch_size"] = 64
    return load_config(CONFIGS / f"{algorithm}-placement.yaml", small | changes)


def tiny_evolution(**changes: Any) -> EvolutionConfig:
    """The shipped evolution strategy cut down likewise."""
    small: dict[str, Any] = {
        "env_kwargs": {"scenario": "online", "overrides": TINY},
        "n_timesteps": 1500,
        "max_minutes": None,
        "population": 4,
        "episodes": 2,
        "evaluation": {"episodes": 2, "every_steps": 400, "baselines": []},
    }
    config = load_config(CONFIGS / "cma-placement.yaml", small | changes)
    assert isinstance(config, EvolutionConfig)
    return config


def tiny_bending(**changes: Any) -> BenderConfig:
    """The evolution strategy on hetenv/Market-v0 cut down likewise."""
    small: dict[str, Any] = {
        "env_kwargs": {"scenario": "online-elastic", "overrides": TINY},
        "n_timesteps": 500,
        "max_minutes": None,
        "population": 4,
        "episodes": 2,
        "workers": 1,
        "evaluation": {"episodes": 2, "every_steps": 200, "baselines": []},
    }
    config = load_config(CONFIGS / "cma-market.yaml", small | changes)
    assert isinstance(config, BenderConfig)
    return config


def observations(scenario: Scenario, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """A batch of ``n`` observations along an episode of random allowed actions."""
    env = PlacementEnv(scenario)
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    seen = []
    while len(seen) < n:
        seen.append(observation)
        allowed = np.flatnonzero(observation["action_mask"])
        observation, _, done, _, _ = env.step(rng.choice(allowed))
        if done:
            observation, _ = env.reset()
    return {key: np.stack([one[key] for one in seen]) for key in observation}


def tensors(batch: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {key: torch.as_tensor(value) for key, value in batch.items()}


def disturb(module: torch.nn.Module, seed: int = 0) -> None:
    """Move all weights, so that corrections that start at zero no longer are."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)

"""Typed training configurations: YAML with the key names of RL Baselines3 Zoo.

    algorithm: ppo                        # or a2c, cma
    env_kwargs: {scenario: online}        # and overrides, as hetenv/Placement-v0 has them
    n_envs: 16
    n_timesteps: 300000                   # and / or max_minutes; what is reached first ends the run
    policy_kwargs: {width: 32, beta: 3.0}
    learning_rate: lin_3e-4               # falls from 3e-4 to 0 over the run
    evaluation: {baselines: [jps]}

Beside these, arguments of the algorithm in Stable-Baselines3, whose documentation explains them, or those of the
evolution strategy (``EvolutionConfig``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

import baselines
from hetenv.config import Scenario, load_scenario, merged_keys, parse_model, read_yaml
from hetenv.errors import InputError

_Share = Annotated[float, Field(ge=0, le=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class EnvKwargs(_Section):
    """Arguments of ``hetenv/Placement-v0``."""

    scenario: str
    overrides: dict[str, Any] = {}


class PolicyKwargs(_Section):
    """Arguments of ``agents.network.PairNetwork``."""

    width: int = Field(32, ge=1)
    beta: float = Field(3.0, gt=0)


class EvaluationSettings(_Section):
    """Held-out episodes: those that ``scripts/evaluate.py --seed SEED --episodes EPISODES`` plays."""

    seed: int = Field(10_000, ge=0)
    episodes: int = Field(16, ge=1)
    every_steps: int = Field(20_000, ge=1)
    baselines: tuple[str, ...] = ()

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.episodes)

    @field_validator("baselines")
    @classmethod
    def _known(cls, chosen: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := set(chosen) - set(baselines.names()):
            raise ValueError(f"{sorted(unknown)[0]} is unknown; use some of {', '.join(baselines.names())}")
        return chosen


class RunSettings(_Section):
    """What every run has, whatever the algorithm."""

    algorithm: str
    env_kwargs: EnvKwargs
    seed: int = Field(0, ge=0)
    n_timesteps: int | None = Field(None, ge=1)
    max_minutes: float | None = Field(None, gt=0)
    evaluation: EvaluationSettings = EvaluationSettings()

    @model_validator(mode="after")
    def _ends(self) -> RunSettings:
        if self.n_timesteps is None and self.max_minutes is None:
            raise ValueError("give n_timesteps or max_minutes, or the run never ends")
        return self

    def load_scenario(self) -> Scenario:
        return load_scenario(self.env_kwargs.scenario, self.env_kwargs.overrides)


class ScorerKwargs(_Section):
    """Arguments of ``agents.scorer.Shape``."""

    pair: int = Field(6, ge=1)
    wait: int = Field(4, ge=1)


class EvolutionConfig(RunSettings):
    """``agents.evolution``."""

    algorithm: Literal["cma"]
    policy_kwargs: ScorerKwargs = ScorerKwargs()
    population: int = Field(24, ge=4)
    episodes: int = Field(24, ge=1)  # of a generation
    sigma: float = Field(0.1, gt=0)  # the first step size
    threads: int = Field(2, ge=1)


class TrainConfig(RunSettings):
    """Arguments that PPO and A2C share."""

    policy_kwargs: PolicyKwargs = PolicyKwargs()
    n_envs: int = Field(16, ge=1)
    torch_threads: int = Field(1, ge=1)  # two under contention were 70 times slower than one
    learning_rate: str = "lin_3e-4"
    n_steps: int = Field(128, ge=1)
    gamma: _Share = 0.998
    gae_lambda: _Share = 0.95
    ent_coef: float = Field(0.0, ge=0)
    vf_coef: float = Field(0.5, ge=0)
    max_grad_norm: float = Field(0.5, gt=0)
    normalize_advantage: bool = True

    @field_validator("learning_rate")
    @classmethod
    def _is_rate(cls, rate: str) -> str:
        try:
            positive = 0.0 < float(rate.removeprefix("lin_")) < float("inf")
        except ValueError:
            positive = False
        if not positive:
            raise ValueError("give a positive number, or lin_ before it to let it fall to 0, e.g. lin_3e-4")
        return rate

    @property
    def algorithm_arguments(self) -> dict[str, Any]:
        """Arguments of the algorithm's constructor, the learning rate as it stands here."""
        return self.model_dump(exclude={*RunSettings.model_fields, "policy_kwargs", "n_envs", "torch_threads"})


class PPOConfig(TrainConfig):
    """``stable_baselines3.PPO``."""

    algorithm: Literal["ppo"]
    batch_size: int = Field(512, ge=2)
    n_epochs: int = Field(4, ge=1)
    clip_range: float = Field(0.2, gt=0)
    target_kl: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _whole_batches(self) -> PPOConfig:
        if self.n_envs * self.n_steps % self.batch_size:
            raise ValueError(f"choose a batch_size that divides n_envs * n_steps = {self.n_envs * self.n_steps}")
        return self


class A2CConfig(TrainConfig):
    """``stable_baselines3.A2C``."""

    algorithm: Literal["a2c"]
    use_rms_prop: bool = True
    rms_prop_eps: float = Field(1e-5, gt=0)


_CONFIGS: Mapping[str, type[RunSettings]] = {"ppo": PPOConfig, "a2c": A2CConfig, "cma": EvolutionConfig}


def load_config(path: str | Path, changes: Mapping[str, Any] | None = None) -> RunSettings:
    """A training configuration from a YAML file, with some keys changed.

    Args:
        changes: nested mapping merged over the file, as ``hetenv.config.parse_overrides`` makes it.

    Raises:
        InputError: unreadable file, or a key that is missing, unknown or out of range.
    """
    content = merged_keys(read_yaml(Path(path)), changes or {})
    algorithm = str(content.get("algorithm"))
    if algorithm not in _CONFIGS:
        raise InputError(f"{path}, algorithm", algorithm, f"use one of {', '.join(_CONFIGS)}")
    config: RunSettings = parse_model(_CONFIGS[algorithm], content, str(path))
    config.load_scenario()  # so that its faults show now
    return config

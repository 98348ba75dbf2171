"""Typed training configurations: YAML with the key names of RL Baselines3 Zoo.

    env: hetenv/Placement-v0              # may be left out; hetenv/Market-v0 has cma alone
    algorithm: ppo                        # or a2c, cma
    env_kwargs: {scenario: online}        # and overrides, as the environment has them
    imitate: {scheduler: market-tuned}    # before the training; may be left out
    n_envs: 16
    group_size: 8                         # of them replay the same arrivals
    n_timesteps: 300000                   # and / or max_minutes; what is reached first ends the run
    policy_kwargs: {width: 32, beta: 3.0}
    learning_rate: lin_3e-4               # falls from 3e-4 to 0 over the run
    evaluation: {baselines: [jps]}

All of it may also stand under the environment's id as a key, as in the zoo's own files; see ``agents.zoo``. There are
besides arguments of the algorithm in Stable-Baselines3, whose documentation explains them, and those of the evolution
strategy (``EvolutionConfig``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

import baselines
from agents import is_policy
from agents.bender import FEATURES, TYPE_FEATURES
from agents.zoo import MARKET, PLACEMENT, flattened
from hetenv.config import Scenario, load_scenario, merged_keys, parse_model, read_yaml
from hetenv.errors import InputError

# What is no argument of the algorithm.
_OWN = ("policy_kwargs", "imitate", "n_envs", "group_size", "against_heuristic", "horizon", "torch_threads")
_Share = Annotated[float, Field(ge=0, le=1)]
_Bend = Annotated[float, Field(allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class EnvKwargs(_Section):
    """Arguments of the environment."""

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


class ImitationSettings(_Section):
    """What the network imitates before it is trained; see ``agents.imitation``."""

    scheduler: str  # one of baselines, or a policy: pretrained:NAME or a file
    episodes: int = Field(40, ge=2)
    epochs: int = Field(10, ge=1)
    batch_size: int = Field(256, ge=1)
    learning_rate: float = Field(3e-3, gt=0)

    @field_validator("scheduler")
    @classmethod
    def _known(cls, name: str) -> str:
        if not (is_policy(name) or name in baselines.names()):
            raise ValueError(f"is unknown; use a policy or one of {', '.join(baselines.names())}")
        return name


class RunSettings(_Section):
    """What every run has, whatever the algorithm."""

    env: str = PLACEMENT
    algorithm: str
    env_kwargs: EnvKwargs
    policy_kwargs: _Section
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


class BenderKwargs(_Section):
    """Arguments of ``agents.bender.Inputs``."""

    features: tuple[str, ...] = ()
    type_features: tuple[str, ...] = ()

    @field_validator("features", "type_features")
    @classmethod
    def _known(cls, chosen: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        names = FEATURES if info.field_name == "features" else TYPE_FEATURES
        if unknown := set(chosen) - set(names):
            raise ValueError(f"{sorted(unknown)[0]} is unknown; use some of {', '.join(names)}")
        return chosen


class EvolutionConfig(RunSettings):
    """``agents.evolution``, whatever it breeds."""

    algorithm: Literal["cma"]
    population: int = Field(24, ge=4)
    episodes: int = Field(24, ge=1)  # of a generation
    sigma: float = Field(0.1, gt=0)  # the first step size


class ScorerConfig(EvolutionConfig):
    """Breeds ``agents.scorer.PairScorer``."""

    policy_kwargs: ScorerKwargs = ScorerKwargs()
    threads: int = Field(2, ge=1)


class BenderConfig(EvolutionConfig):
    """Breeds ``agents.bender.MarketBender``."""

    policy_kwargs: BenderKwargs = BenderKwargs()
    start: tuple[_Bend, _Bend, _Bend, _Bend, _Bend] | None = (
        None  # constants of agents.bender.BENDS; None: market-tuned
    )
    workers: int = Field(2, ge=1)  # processes


class TrainConfig(RunSettings):
    """Arguments that PPO and A2C share."""

    policy_kwargs: PolicyKwargs = PolicyKwargs()
    imitate: ImitationSettings | None = None
    n_envs: int = Field(16, ge=1)
    group_size: int = Field(1, ge=1)  # environments that replay the same arrivals
    against_heuristic: bool = True  # rewards less those of the heuristic on the same jobs
    torch_threads: int = Field(1, ge=1)  # two under contention were 70 times slower than one
    learning_rate: str = "lin_3e-4"
    n_steps: int = Field(128, ge=1)
    horizon: float = Field(1.0, gt=0)  # time scales of the scenario: what lies so far ahead counts 1 / e
    gae_lambda: _Share = 1.0  # of each step that takes time; below 1 the critic has a say, which foresees little here
    ent_coef: float = Field(0.0, ge=0)
    vf_coef: float = Field(0.5, ge=0)
    max_grad_norm: float = Field(0.5, gt=0)
    normalize_advantage: bool = True

    @model_validator(mode="after")
    def _whole_groups(self) -> TrainConfig:
        if self.n_envs % self.group_size:
            raise ValueError(f"choose a group_size that divides n_envs = {self.n_envs}")
        return self

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
        return self.model_dump(exclude={*RunSettings.model_fields, *_OWN})


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


_CONFIGS: Mapping[str, Mapping[str, type[RunSettings]]] = {
    PLACEMENT: {"ppo": PPOConfig, "a2c": A2CConfig, "cma": ScorerConfig},
    MARKET: {"cma": BenderConfig},
}


def as_yaml(config: RunSettings) -> str:
    """The text of a file that ``load_config`` reads as ``config``."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def load_config(path: str | Path, changes: Mapping[str, Any] | None = None) -> RunSettings:
    """A training configuration from a YAML file, with some keys changed.

    Args:
        changes: nested mapping merged over the file, as ``hetenv.config.parse_overrides`` makes it.

    Raises:
        InputError: unreadable file, or a key that is missing, unknown or out of range.
    """
    content = merged_keys(flattened(read_yaml(Path(path)), Path(path)), changes or {})
    env, algorithm = str(content.get("env", PLACEMENT)), str(content.get("algorithm"))
    if env not in _CONFIGS:
        raise InputError(f"{path}, env", env, f"use one of {', '.join(_CONFIGS)}")
    if algorithm not in _CONFIGS[env]:
        raise InputError(f"{path}, algorithm", algorithm, f"use one of {', '.join(_CONFIGS[env])} for {env}")
    config: RunSettings = parse_model(_CONFIGS[env][algorithm], content, str(path))
    config.load_scenario()  # so that its faults show now
    return config

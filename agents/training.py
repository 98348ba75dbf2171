"""``train``: one training run, from a configuration to a folder."""

from __future__ import annotations

import json
import math
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import yaml
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import baselines
from agents.budget import Budget
from agents.callbacks import BudgetCallback, EpisodeCallback, HeldOutCallback
from agents.config import TrainConfig
from agents.episodes import AgainstHeuristic, HeldOutEpisodes, TrainingEpisodes
from agents.policy import PairPolicy
from agents.saving import Origin
from hetenv.config import Scenario
from hetenv.envs.placement import PlacementEnv
from hetenv.errors import InputError
from hetenv.evaluation import evaluate

_ALGORITHMS: dict[str, type[OnPolicyAlgorithm]] = {"ppo": PPO, "a2c": A2C}
_PACKAGES = ("hetenv", "stable_baselines3", "torch", "gymnasium", "numpy", "numba")


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run.

    Attributes:
        evaluation: the content of ``evaluation.json``.
    """

    interrupted: bool
    evaluation: dict[str, Any]


class LearningRate:
    """A schedule for Stable-Baselines3 that falls with the budget, time included, or stays.

    Args:
        text: a number, or ``lin_`` and the first value, e.g. ``lin_3e-4``.
    """

    def __init__(self, text: str, budget: Budget) -> None:
        self.initial, self.falls, self.budget = float(text.removeprefix("lin_")), text.startswith("lin_"), budget

    def __call__(self, progress_remaining: float) -> float:
        if not self.falls:
            return self.initial
        return self.initial * min(progress_remaining, self.budget.share_left(0))


def train(
    config: TrainConfig,
    folder: Path,
    baseline_jct_s: Mapping[str, float] | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
    extra_callbacks: tuple[BaseCallback, ...] = (),
) -> Run:
    """Train a policy and leave in ``folder`` what came of it.

    The folder then holds config.yaml, versions.json, TensorBoard events, best.zip, last.zip and evaluation.json.
    Ctrl-C ends the training early and keeps what was learned. The same configuration gives the same weights,
    unless ``max_minutes`` ends the run.

    Args:
        folder: new or empty.
        baseline_jct_s: what ``play_baselines`` found, for comparison.
        progress: called with percents of the budget used, and 100.
        extra_callbacks: run after the run's own.

    Raises:
        InputError: bad configuration, or a folder that holds something; nothing has been written then.
        KeyboardInterrupt: before there was anything to keep; likewise.
    """
    torch.set_num_threads(config.torch_threads)
    require_empty(folder)
    scenario = config.load_scenario()
    budget = Budget(config.n_timesteps, config.max_minutes)
    model = make_model(config, scenario, budget)
    origin = Origin(
        algorithm=config.algorithm, network=config.policy_kwargs.model_dump(), **config.env_kwargs.model_dump()
    )
    episodes = HeldOutEpisodes(scenario, config.evaluation.seeds)
    held_out = HeldOutCallback(episodes, config.evaluation.every_steps, folder, origin, baseline_jct_s or {})
    held_out.init_callback(model)
    start = held_out.play()

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
    _write_json(folder / "versions.json", {"python": platform.python_version()} | {p: version(p) for p in _PACKAGES})
    model.set_logger(configure(str(folder), ["tensorboard"]))
    held_out.keep(start)
    interrupted = False
    try:
        callbacks = [BudgetCallback(budget, progress), EpisodeCallback(), held_out, *extra_callbacks]
        model.learn(config.n_timesteps or sys.maxsize, callbacks, log_interval=1)
    except KeyboardInterrupt:
        interrupted = True
        held_out.save_last()
    finally:
        model.logger.close()
    evaluation = _summary(config, held_out, model.num_timesteps, budget.elapsed_s) | {"interrupted": interrupted}
    _write_json(folder / "evaluation.json", evaluation)
    return Run(interrupted, evaluation)


def require_empty(folder: Path) -> None:
    """Refuse, by InputError, a folder in which a run could overwrite something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(str(folder), "is not empty", "choose another folder, or move this one away")


def make_model(config: TrainConfig, scenario: Scenario, budget: Budget) -> OnPolicyAlgorithm:
    """The untrained model with its training environments."""
    envs = DummyVecEnv([lambda: AgainstHeuristic(Monitor(TrainingEpisodes(PlacementEnv(scenario))))] * config.n_envs)
    # Rewards at unit scale: at their own, the critic's gradients drown the actor's in the common clipping.
    scaled = VecNormalize(envs, norm_obs=False, clip_reward=math.inf, gamma=config.gamma)
    arguments = config.algorithm_arguments
    arguments["learning_rate"] = LearningRate(arguments["learning_rate"], budget)
    return _ALGORITHMS[config.algorithm](
        PairPolicy,
        scaled,
        policy_kwargs=config.policy_kwargs.model_dump(),
        seed=config.seed,
        device="cpu",
        **arguments,
    )


def play_baselines(config: TrainConfig, progress: Callable[[int, int], object]) -> dict[str, float]:
    """Mean JCT in seconds of the configured baselines on the held-out episodes.

    Args:
        progress: called with the episodes played, over all baselines, and their number.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C.
    """
    settings = config.evaluation
    if not settings.baselines:
        return {}
    evaluation = evaluate(
        config.load_scenario(),
        {name: partial(baselines.make, name) for name in settings.baselines},
        episodes=settings.episodes,
        seed=settings.seed,
        progress=progress,
    )
    if evaluation.interrupted:
        raise KeyboardInterrupt
    figures = evaluation.summary()["schedulers"]
    return {name: figures[name]["mean_jct_s"] for name in settings.baselines}


def _summary(config: TrainConfig, held_out: HeldOutCallback, n_steps: int, wall_s: float) -> dict[str, Any]:
    def entry(step: int, figures: Any) -> dict[str, Any]:
        return {"step": step} | figures._asdict()

    return {
        "scenario": config.env_kwargs.scenario,
        "seed": config.evaluation.seed,
        "episodes": config.evaluation.episodes,
        "steps": n_steps,
        "wall_s": wall_s,
        "baseline_jct_s": dict(held_out.baseline_jct_s),
        "best": entry(*held_out.best),
        "history": [entry(*evaluation) for evaluation in held_out.history],
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)

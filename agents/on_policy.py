"""Training of a network by PPO or A2C of Stable-Baselines3."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from agents.budget import Budget
from agents.callbacks import BudgetCallback, EpisodeCallback, HeldOutCallback
from agents.config import TrainConfig
from agents.episodes import AgainstHeuristic, HeldOutEpisodes, TrainingEpisodes
from agents.held_out import HeldOut
from agents.policy import PairPolicy
from agents.runs import Run, begin_folder, end_folder, event_logger, require_empty
from agents.saving import Origin, save_model
from hetenv.config import Scenario
from hetenv.envs.placement import PlacementEnv

_ALGORITHMS: dict[str, type[OnPolicyAlgorithm]] = {"ppo": PPO, "a2c": A2C}


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


def train_network(
    config: TrainConfig,
    folder: Path,
    baseline_jct_s: Mapping[str, float],
    progress: Callable[[int, int], object],
    extra_callbacks: tuple[BaseCallback, ...] = (),
) -> Run:
    """Train a ``PairPolicy`` and leave in ``folder`` what came of it; see ``agents.training.train``.

    Args:
        extra_callbacks: run after the run's own.
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
    assert isinstance(model.policy, PairPolicy)
    start = episodes.play(model.policy.network)

    begin_folder(folder, config)
    logger = event_logger(folder)
    model.set_logger(logger)
    every_steps = config.evaluation.every_steps
    held_out = HeldOut(every_steps, partial(save_model, model, origin), folder, ".zip", logger, baseline_jct_s)
    evaluation = HeldOutCallback(episodes, held_out)
    evaluation.init_callback(model)
    evaluation.keep(start)
    interrupted = False
    try:
        callbacks = [BudgetCallback(budget, progress), EpisodeCallback(), evaluation, *extra_callbacks]
        model.learn(config.n_timesteps or sys.maxsize, callbacks, log_interval=1)
    except KeyboardInterrupt:
        interrupted = True
        held_out.save(held_out.last_path)
    finally:
        logger.close()
    return end_folder(folder, config, held_out, model.num_timesteps, budget.elapsed_s, interrupted)


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

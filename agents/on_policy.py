"""Training of a network by PPO or A2C of Stable-Baselines3."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from agents.budget import Budget
from agents.callbacks import BudgetCallback, EpisodeCallback, HeldOutCallback
from agents.config import TrainConfig
from agents.episodes import HeldOutEpisodes
from agents.held_out import HeldOut
from agents.imitation import imitate
from agents.policy import PairPolicy
from agents.runs import Run
from agents.saving import restore_model, save_model
from agents.time_discount import TimeDiscountBuffer
from agents.vec_env import PlacementVecEnv
from hetenv.config import Scenario

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
    run: Run,
    progress: Callable[[int, int], object],
    extra_callbacks: tuple[BaseCallback, ...] = (),
) -> None:
    """Train a ``PairPolicy``, or go on training it; see ``agents.training``.

    Args:
        extra_callbacks: run after the run's own.
    """
    config = run.config
    assert isinstance(config, TrainConfig)
    torch.set_num_threads(config.torch_threads)
    scenario = config.load_scenario()
    model = make_model(config, scenario, run.budget)
    assert isinstance(model.policy, PairPolicy)
    network = model.policy.network
    episodes = HeldOutEpisodes(scenario, config.evaluation.seeds)
    start = imitated = None
    if run.history:
        restore_model(model, run.folder / "last.zip")
        model.set_random_seed(_later_seed(config.seed, model.num_timesteps))
    else:
        if config.imitate is not None:
            imitated = imitate(network, config.imitate, scenario, config.seed)
        start = episodes.play(network)
        run.begin()

    held_out = HeldOut(run, model.num_timesteps, lambda: network, partial(save_model, model, run.origin), ".zip")
    model.set_logger(held_out.events.logger)
    evaluation = HeldOutCallback(episodes, held_out)
    evaluation.init_callback(model)
    try:
        if imitated is not None:
            for name, value in imitated._asdict().items():
                model.logger.record(f"imitation/{name}", value)
        if start is not None:
            evaluation.keep(start)
        callbacks = [BudgetCallback(run.budget, progress), EpisodeCallback(), evaluation, *extra_callbacks]
        left = (config.n_timesteps or sys.maxsize) - model.num_timesteps
        model.learn(left, callbacks, log_interval=1, reset_num_timesteps=False)
        held_out.end(model.num_timesteps)
    except KeyboardInterrupt:
        held_out.end(model.num_timesteps, interrupted=True)
    finally:
        held_out.events.close()


def _later_seed(seed: int, step: int) -> int:
    """For a session that goes on at ``step``: its jobs and its sampled actions are fresh, and the same each time."""
    return int(np.random.SeedSequence([seed, step]).generate_state(1)[0])


def make_model(config: TrainConfig, scenario: Scenario, budget: Budget) -> OnPolicyAlgorithm:
    """The untrained model with its training environments."""
    envs = PlacementVecEnv(
        scenario, config.n_envs, group_size=config.group_size, against_heuristic=config.against_heuristic
    )
    arguments = config.algorithm_arguments
    arguments["learning_rate"] = LearningRate(arguments["learning_rate"], budget)
    model = _ALGORITHMS[config.algorithm](
        PairPolicy,
        envs,
        policy_kwargs=config.policy_kwargs.model_dump(),
        rollout_buffer_class=TimeDiscountBuffer,
        rollout_buffer_kwargs={
            "horizon_s": config.horizon * scenario.time_scale_s,
            "group_size": config.group_size,
        },
        seed=config.seed,
        device="cpu",
        **arguments,
    )
    assert isinstance(model.rollout_buffer, TimeDiscountBuffer)
    model.rollout_buffer.watch(envs)
    return model

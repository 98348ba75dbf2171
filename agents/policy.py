"""``PairPolicy``: the pair network as a policy of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.policies import MultiInputActorCriticPolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule

from agents.network import PairNetwork


class PairPolicy(MultiInputActorCriticPolicy):
    """Actor and critic for the Dict observation of ``hetenv/Placement-v0``; for PPO, A2C and their like.

    Actions that ``observation["action_mask"]`` forbids have probability 0 wherever a distribution is made, so
    that no algorithm has to know of masks. The weights do not depend on the sizes of the observation.

    Args:
        observation_space, action_space, lr_schedule: see Stable-Baselines3.
        width, beta: see ``agents.network.PairNetwork``.
        kwargs: further arguments of ``ActorCriticPolicy``; those about its own layers have no effect.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        width: int = 32,
        beta: float = 3.0,
        **kwargs: Any,
    ) -> None:
        self.width, self.beta = width, beta  # ``_build`` needs them, and the parent calls it
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        self.network = PairNetwork(self.width, self.beta)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return super()._get_constructor_parameters() | {"width": self.width, "beta": self.beta}

    def forward(self, obs: Any, deterministic: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions (B,), values (B, 1) and log-probabilities (B,)."""
        distribution = self.get_distribution(obs)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.network.values(obs), distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: Any, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Values (B, 1), log-probabilities (B,) of ``actions``, and entropies (B,)."""
        distribution = self.get_distribution(obs)
        return self.network.values(obs), distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: PyTorchObs) -> Distribution:
        """The masked distribution over actions."""
        assert isinstance(obs, Mapping)
        return self.action_dist.proba_distribution(self.network(obs))

    def predict_values(self, obs: PyTorchObs) -> torch.Tensor:
        """(B, 1)."""
        assert isinstance(obs, Mapping)
        return self.network.values(obs)

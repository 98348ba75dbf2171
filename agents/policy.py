"""``PairPolicy``: the pair network as a policy of Stable-Baselines3."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.policies import MultiInputActorCriticPolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule

from agents.inputs import Inputs
from agents.network import PairNetwork


class PairActorCritic:
    """What turns an actor-critic policy of Stable-Baselines3 or of sb3-contrib, its next base, into ours.

    Actions that ``observation["action_mask"]`` forbids have probability 0 wherever a distribution is made, so
    that no algorithm has to know of masks; ``action_masks``, which some hand over, say the same.
    """

    optimizer_class: Any
    optimizer_kwargs: dict[str, Any]
    action_dist: Any

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
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)  # type: ignore[call-arg]

    def _build(self, lr_schedule: Schedule) -> None:
        self.network = PairNetwork(self.width, self.beta)
        self.optimizer = self.optimizer_class(self.network.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {"width": self.width, "beta": self.beta}
        return super()._get_constructor_parameters() | own  # type: ignore[misc]

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions (B,), values (B, 1) and log-probabilities (B,)."""
        inputs = _as_inputs(obs)
        distribution = self.action_dist.proba_distribution(self.network(inputs))
        actions = self.network.likeliest(inputs) if deterministic else distribution.sample()
        return actions, self.network.values(inputs), distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: Any, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Values (B, 1), log-probabilities (B,) of ``actions``, and entropies (B,).

        Args:
            obs: observations, or the ``Inputs`` that ``TimeDiscountBuffer`` keeps of them.
        """
        inputs = _as_inputs(obs)
        return self.network.values(inputs), *self.network.log_probs(inputs, actions)

    def get_distribution(self, obs: PyTorchObs, action_masks: Any = None) -> Distribution:
        """The masked distribution over actions."""
        distribution: Distribution = self.action_dist.proba_distribution(self.network(_as_inputs(obs)))
        return distribution

    def predict_values(self, obs: PyTorchObs) -> torch.Tensor:
        """(B, 1)."""
        return self.network.values(_as_inputs(obs))

    def _predict(self, observation: PyTorchObs, deterministic: bool = False, action_masks: Any = None) -> torch.Tensor:
        """Actions (B,)."""
        if deterministic:
            return self.network.likeliest(_as_inputs(observation))
        return self.get_distribution(observation).sample()


class PairPolicy(PairActorCritic, MultiInputActorCriticPolicy):
    """Actor and critic for the Dict observation of ``hetenv/Placement-v0``; for PPO, A2C and their like.

    The weights do not depend on the sizes of the observation.

    Args:
        observation_space, action_space, lr_schedule: see Stable-Baselines3.
        width, beta: see ``agents.network.PairNetwork``.
        kwargs: further arguments of ``ActorCriticPolicy``; those about its own layers have no effect.
    """


def _as_inputs(obs: Any) -> Inputs:
    if isinstance(obs, Inputs):
        return obs
    return Inputs.of({name: array.numpy(force=True) for name, array in obs.items()})

"""``MaskablePairPolicy``: the pair network for ``MaskablePPO`` of sb3-contrib, which is not installed by default.

from sb3_contrib import MaskablePPO
model = MaskablePPO(MaskablePairPolicy, gym.make("hetenv/Placement-v0", scenario="online"))
"""

from __future__ import annotations

from sb3_contrib.common.maskable.policies import (  # type: ignore[import-not-found, unused-ignore]
    MaskableMultiInputActorCriticPolicy,
)

from agents.policy import PairActorCritic


class MaskablePairPolicy(PairActorCritic, MaskableMultiInputActorCriticPolicy):
    """``agents.policy.PairPolicy`` with the interface that ``MaskablePPO`` asks for."""

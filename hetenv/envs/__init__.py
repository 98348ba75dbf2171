"""Gymnasium environments, and their registration under ``hetenv/``."""

from typing import Any

import gymnasium

_ENTRY_POINTS: dict[str, dict[str, Any]] = {
    "hetenv/Placement-v0": {
        "entry_point": "hetenv.envs.placement:PlacementEnv",
        "vector_entry_point": "hetenv.envs.vector:PlacementVectorEnv",
    },
    "hetenv/Market-v0": {
        "entry_point": "hetenv.envs.market:MarketEnv",
        "vector_entry_point": "hetenv.envs.vector:MarketVectorEnv",
    },
}


def register_environments() -> None:
    """Make ``gym.make("hetenv/...")`` work; harmless when called again."""
    for name, entry_points in _ENTRY_POINTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, **entry_points)

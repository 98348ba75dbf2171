"""Gymnasium environments, and their registration under ``hetenv/``."""

import gymnasium

_ENTRY_POINTS = {
    "hetenv/Placement-v0": "hetenv.envs.placement:PlacementEnv",
    "hetenv/Market-v0": "hetenv.envs.market:MarketEnv",
}


def register_environments() -> None:
    """Make ``gym.make("hetenv/...")`` work; harmless when called again."""
    for name, entry_point in _ENTRY_POINTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=entry_point)

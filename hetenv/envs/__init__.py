"""Gymnasium environments, and their registration under ``hetenv/``."""

import gymnasium


def register_environments() -> None:
    """Make ``gym.make("hetenv/...")`` work; harmless when called again."""
    if "hetenv/Placement-v0" not in gymnasium.registry:
        gymnasium.register("hetenv/Placement-v0", entry_point="hetenv.envs.placement:PlacementEnv")

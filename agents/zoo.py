"""Files of RL Baselines3 Zoo: the environment's id as the one key, and under it what else stands at the top level.

    hetenv/Placement-v0:      # or hetenv/Market-v0
      algorithm: ppo          # else told from the file's name, as in the zoo: ppo.yml
      env_kwargs: {scenario: online}
      n_envs: 16

The zoo's keys that are arguments of the algorithm, and n_envs, n_timesteps, env_kwargs and policy_kwargs, mean the
same here. Its others are refused by name rather than ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hetenv.errors import InputError

PLACEMENT, MARKET = "hetenv/Placement-v0", "hetenv/Market-v0"
POLICIES = {PLACEMENT: "PairPolicy", MARKET: "MarketBender"}

_UNSUPPORTED = {
    "normalize": "remove it: observations lie in [-1, 1] and rewards are in time scales already",
    "env_wrapper": "remove it: the training environments are compiled and take no wrappers",
    "vec_env_wrapper": "remove it: the training environments are compiled and take no wrappers",
    "frame_stack": "remove it: an observation tells the whole state",
    "callback": "remove it, or call agents.on_policy.train_network with extra_callbacks",
    "device": "remove it: training runs on the CPU",
}


def flattened(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The content of a training file in the form of ``agents.config``, whichever of the two forms it has.

    Raises:
        InputError: another environment or policy, keys beside the environment's, or a key of the zoo without a meaning
            here.
    """
    ids = [key for key in content if "/" in str(key) or str(key).rpartition("-v")[2].isdigit()]
    flat = dict(content)
    if ids:
        if ids[0] not in POLICIES or len(content) > 1 or not isinstance(content[ids[0]], Mapping):
            found, known = ", ".join(map(str, content)), " or ".join(POLICIES)
            raise InputError(str(path), found, f"give {known} as the one key, and all others as a mapping under it")
        flat = {"env": ids[0], "algorithm": path.stem} | dict(content[ids[0]])
    for key, remedy in _UNSUPPORTED.items():
        if key in flat:
            raise InputError(f"{path}, {key}", repr(flat[key]), remedy)
    only = POLICIES.get(str(flat.get("env", PLACEMENT)))
    if (policy := flat.pop("policy", only)) != only:
        raise InputError(f"{path}, policy", repr(policy), f"remove it: {only} is the one there is")
    return flat

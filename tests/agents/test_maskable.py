"""The pair network inside sb3-contrib's MaskablePPO."""

from __future__ import annotations

import numpy as np
import pytest

from agents.vec_env import PlacementVecEnv
from hetenv.envs.placement import PlacementEnv
from tests.agents.helpers import observations

sb3_contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib, which is no dependency")


@pytest.mark.parametrize("batched", [False, True])
def test_maskable_ppo_trains_it_and_plays_allowed_actions(tiny, batched, tmp_path):
    from agents.maskable import MaskablePairPolicy

    env = PlacementVecEnv(tiny, 2, seed=0) if batched else PlacementEnv(tiny)
    model = sb3_contrib.MaskablePPO(MaskablePairPolicy, env, n_steps=64, batch_size=64, seed=0, device="cpu")
    before = model.policy.network.pair.weight.clone()
    model.learn(256)
    assert not model.policy.network.pair.weight.equal(before)

    model.save(tmp_path / "model.zip")
    twin = sb3_contrib.MaskablePPO.load(tmp_path / "model.zip", device="cpu")
    batch = observations(tiny, 30)
    masks = batch["action_mask"] > 0
    for deterministic in (False, True):
        actions, _ = twin.predict(batch, deterministic=deterministic, action_masks=masks)
        assert masks[np.arange(30), actions].all()
    assert actions.tolist() == model.policy.network.greedy_actions(batch).tolist()

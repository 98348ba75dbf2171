"""``PairPolicy`` inside Stable-Baselines3."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_checker import check_env

from agents.policy import PairPolicy
from hetenv.config import load_scenario
from hetenv.envs.placement import PlacementEnv
from tests.agents.helpers import disturb, observations, tensors


@pytest.fixture
def policy(tiny) -> PairPolicy:
    torch.manual_seed(0)
    env = PlacementEnv(tiny)
    policy = PairPolicy(env.observation_space, env.action_space, lambda _: 1e-3, width=16, beta=0.1)
    disturb(policy)
    return policy


def test_masked_actions_are_never_sampled_and_have_probability_zero(policy, tiny):
    batch = tensors(observations(tiny, 30))
    allowed = batch["action_mask"] > 0
    rows = torch.arange(30)
    for _ in range(50):
        actions, values, log_prob = policy(batch)
        assert allowed[rows, actions].all()
    assert values.shape == (30, 1)
    assert (log_prob <= 0).all()

    probabilities = policy.get_distribution(batch).distribution.probs
    assert (probabilities[~allowed] == 0).all()
    assert (probabilities[allowed] > 0).all()
    sampled, _ = policy.predict({key: value.numpy() for key, value in batch.items()})
    assert allowed[rows, torch.as_tensor(sampled)].all()


def test_evaluate_actions_agrees_with_forward_and_refuses_masked_ones(policy, tiny):
    batch = tensors(observations(tiny, 30))
    actions, values, log_prob = policy(batch)
    again = policy.evaluate_actions(batch, actions)
    torch.testing.assert_close(again[0], values)
    torch.testing.assert_close(again[1], log_prob)
    n_allowed = batch["action_mask"].sum(dim=1)
    assert (again[2] <= n_allowed.log() + 1e-4).all()
    assert torch.isfinite(again[2]).all()

    forbidden = batch["action_mask"].argmin(dim=1)
    assert (policy.evaluate_actions(batch, forbidden)[1] < -1e6).all()


def test_the_weights_load_into_a_policy_for_another_window_and_cluster(policy):
    env = PlacementEnv("philly")
    other = PairPolicy(env.observation_space, env.action_space, lambda _: 1e-3, width=16)
    other.load_state_dict(policy.state_dict())
    batch = observations(load_scenario("philly"), 3)
    actions, _ = other.predict(batch, deterministic=True)
    assert actions.tolist() == policy.network.greedy_actions(batch).tolist()


def test_policy_saves_and_loads_by_itself(policy, tiny, tmp_path):
    policy.save(str(tmp_path / "policy.pth"))
    twin = PairPolicy.load(str(tmp_path / "policy.pth"), device="cpu")
    batch = tensors(observations(tiny, 5))
    assert twin.width == 16
    torch.testing.assert_close(twin.predict_values(batch), policy.predict_values(batch))


@pytest.mark.parametrize("algorithm", [PPO, A2C])
def test_learning_moves_every_weight(algorithm, tiny):
    arguments = {"batch_size": 64} if algorithm is PPO else {}
    model = algorithm(PairPolicy, PlacementEnv(tiny), n_steps=64, seed=0, device="cpu", **arguments)
    before = {name: value.clone() for name, value in model.policy.named_parameters()}
    model.learn(256)
    after = dict(model.policy.named_parameters())
    assert all(torch.isfinite(value).all() for value in after.values())
    assert not [name for name, value in after.items() if torch.equal(value, before[name])]


@pytest.mark.parametrize("scenario", ["online", "online-elastic", "paper-batch"])
def test_stable_baselines_check_env(scenario):
    """It knows vectors and images only: its notes on the shapes of our boxes are the only ones allowed."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        check_env(PlacementEnv(scenario))
    messages = [str(note.message) for note in notes]
    assert [text for text in messages if " image " not in text and "unconventional shape" not in text] == []


def test_a_forbidden_action_of_check_env_is_harmless(tiny):
    env = PlacementEnv(tiny)
    observation, _ = env.reset(seed=0)
    _, reward, _, _, info = env.step(np.int64(observation["action_mask"].argmin()))
    assert reward == 0.0
    assert info["invalid_action"]

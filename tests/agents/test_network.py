"""The pair network: masks, symmetry, sizes, and what it plays untrained."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents import heuristic
from agents.inputs import Inputs
from agents.network import IMPOSSIBLE, PairNetwork
from hetenv.config import load_scenario
from hetenv.envs.view import CANDIDATE_FEATURES, GLOBAL_FEATURES, JOB_FEATURES
from tests.agents.helpers import disturb, observations


@pytest.fixture
def network() -> PairNetwork:
    torch.manual_seed(0)
    network = PairNetwork(width=16)
    disturb(network)
    return network


def test_forbidden_actions_have_the_impossible_logit_and_no_other(network, tiny):
    batch = observations(tiny, 40)
    log_probs = network(Inputs.of(batch)).detach().numpy()
    assert log_probs.shape == batch["action_mask"].shape
    assert ((log_probs == IMPOSSIBLE) == (batch["action_mask"] == 0.0)).all()
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1.0, rtol=1e-5)


def test_log_probabilities_and_entropies_are_those_of_all_actions(network, tiny):
    inputs = Inputs.of(observations(tiny, 40))
    log_probs = network(inputs).detach()
    for actions in log_probs.topk(2, dim=1).indices.T:
        chosen, entropy = network.log_probs(inputs, actions)
        torch.testing.assert_close(chosen, log_probs[torch.arange(40), actions])
    torch.testing.assert_close(entropy, -(log_probs.exp() * log_probs).sum(dim=1))


def test_greedily_it_waits_if_that_is_likelier_than_all_placements_together(network, tiny):
    batch = observations(tiny, 60)
    with torch.no_grad():  # it shall wait half of the time
        network.wait.bias -= network(Inputs.of(batch))[:, -1].exp().logit(eps=1e-9).median()
    probabilities = network(Inputs.of(batch)).detach().exp().numpy()
    wait = probabilities[:, -1] > 0.5
    assert 0 < wait.sum() < 60
    wanted = np.where(wait, probabilities.shape[1] - 1, probabilities[:, :-1].argmax(axis=1))
    assert network.greedy_actions(batch).tolist() == wanted.tolist()


def test_permuting_jobs_and_candidates_permutes_the_logits(network, tiny):
    batch = observations(tiny, 20)
    n_jobs, n_places = batch["candidates"].shape[1:3]
    rng = np.random.default_rng(1)
    jobs, places = rng.permutation(n_jobs), rng.permutation(n_places)

    def permute(pairs: np.ndarray) -> np.ndarray:  # (B, W * S + 1)
        grid = pairs[:, :-1].reshape(-1, n_jobs, n_places)[:, jobs][:, :, places]
        return np.concatenate([grid.reshape(len(pairs), -1), pairs[:, -1:]], axis=1)

    permuted = batch | {
        "jobs": batch["jobs"][:, jobs],
        "candidates": batch["candidates"][:, jobs][:, :, places],
        "action_mask": permute(batch["action_mask"]),
    }
    before, after = (network(Inputs.of(one)).detach().numpy() for one in (batch, permuted))
    assert not np.allclose(after, before)
    np.testing.assert_allclose(after, permute(before), rtol=1e-4, atol=1e-4)
    values = [network.values(Inputs.of(one)).detach().numpy() for one in (batch, permuted)]
    np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-4)


def test_empty_places_of_a_wider_window_change_nothing(network, tiny):
    batch = observations(tiny, 20)
    n_jobs, n_places = batch["candidates"].shape[1:3]

    def widen(array: np.ndarray, *widths: int) -> np.ndarray:
        return np.pad(array, [(0, 0), *((0, width) for width in widths), *[(0, 0)] * (array.ndim - 1 - len(widths))])

    mask = batch["action_mask"]
    grid = widen(mask[:, :-1].reshape(-1, n_jobs, n_places), 3, 2)
    wider = batch | {
        "jobs": widen(batch["jobs"], 3),
        "candidates": widen(batch["candidates"], 3, 2),
        "action_mask": np.concatenate([grid.reshape(len(mask), -1), mask[:, -1:]], axis=1),
    }
    narrow, wide = (network(Inputs.of(one)).detach() for one in (batch, wider))
    inside = wide[:, :-1].view(-1, n_jobs + 3, n_places + 2)[:, :n_jobs, :n_places].flatten(1)
    torch.testing.assert_close(inside, narrow[:, :-1])
    torch.testing.assert_close(wide[:, -1], narrow[:, -1])


@pytest.mark.parametrize("scenario", ["online", "slow-server", "philly", "online-elastic"])
def test_the_same_weights_serve_every_scenario(network, scenario):
    batch = observations(load_scenario(scenario), 6)
    actions = network.greedy_actions(batch)
    assert (batch["action_mask"][np.arange(6), actions] == 1).all()


@pytest.mark.parametrize("scenario", ["online", "online-elastic"])
def test_untrained_it_plays_the_heuristic(scenario):
    batch = observations(load_scenario(scenario), 60)
    wanted = [heuristic.greedy_action({key: value[at] for key, value in batch.items()}) for at in range(60)]
    assert len(set(wanted)) > 5
    assert PairNetwork().greedy_actions(batch).tolist() == wanted


def test_beta_is_positive_and_scales_the_heuristic(tiny):
    inputs = Inputs.of(observations(tiny, 10))
    at = inputs.row[0], inputs.action[:2]
    low, high = PairNetwork(beta=0.5), PairNetwork(beta=2.0)
    assert high.beta == pytest.approx(2.0)
    (first, second), (steep_first, steep_second) = (network(inputs)[at] for network in (low, high))
    assert first != second
    torch.testing.assert_close(4.0 * (first - second), steep_first - steep_second)


def test_the_heuristic_prefers_short_jobs_and_waits_for_suitable_gpus():
    """Worked by hand: waiting jobs of 1/2 and 2 time scales, two candidates each, the second twice as slow."""
    at = {name: heuristic.feature(CANDIDATE_FEATURES, name) for name in ("remaining time", "GPUs / cluster")}
    jobs = np.zeros((1, 2, len(JOB_FEATURES)), np.float32)
    jobs[0, :, heuristic.feature(JOB_FEATURES, "work")] = [1 / 3, 2 / 3]
    candidates = np.zeros((1, 2, 2, len(CANDIDATE_FEATURES)), np.float32)
    candidates[..., at["GPUs / cluster"]] = 0.25
    candidates[..., at["remaining time"]] = [[1 / 3, 1 / 2], [2 / 3, 4 / 5]]
    nothing = np.zeros((1, len(GLOBAL_FEATURES)), np.float32)
    scores = heuristic.score({"jobs": jobs, "candidates": candidates, "globals": nothing})
    log2 = np.log(2.0)
    np.testing.assert_allclose(scores.regret[0], [[0, log2], [0, log2]], atol=1e-5)
    np.testing.assert_allclose(scores.pairs[0], [[log2, log2 - 4 * log2], [-log2, -log2 - 4 * log2]], rtol=1e-5)
    assert scores.wait[0] == pytest.approx(-2.4)
    assert scores.pairs[0, 0, 1] > scores.wait[0] > scores.pairs[0, 1, 1]


def test_a_busy_cluster_counts_gpus_for_more():
    """Twice the GPUs for 1.6 times the speed: the rule takes them while the queue is short only."""
    candidates = np.zeros((2, 1, 2, len(CANDIDATE_FEATURES)), np.float32)
    candidates[..., heuristic.feature(CANDIDATE_FEATURES, "GPUs / cluster")] = [0.25, 0.5]
    candidates[..., heuristic.feature(CANDIDATE_FEATURES, "remaining time")] = [1.6 / 2.6, 1 / 2]
    queues = np.zeros((2, len(GLOBAL_FEATURES)), np.float32)
    queues[1, heuristic.feature(GLOBAL_FEATURES, "waiting jobs")] = 0.8
    jobs = np.zeros((2, 1, len(JOB_FEATURES)), np.float32)
    regret = heuristic.score({"jobs": jobs, "candidates": candidates, "globals": queues}).regret
    assert (regret[:, 0] == 0.0).tolist() == [[False, True], [True, False]]


def test_scores_are_finite_for_times_of_zero_and_infinity():
    observations = {
        "jobs": np.zeros((1, 1, len(JOB_FEATURES)), np.float32),
        "candidates": np.ones((1, 1, 3, len(CANDIDATE_FEATURES)), np.float32),
        "globals": np.ones((1, len(GLOBAL_FEATURES)), np.float32),
    }
    observations["candidates"][0, 0, 1] = 0.0
    assert all(np.isfinite(array).all() for array in heuristic.score(observations))

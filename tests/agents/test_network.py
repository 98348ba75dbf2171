"""The pair network: masks, symmetry, sizes, and what it plays untrained."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents import heuristic
from agents.network import IMPOSSIBLE, PairNetwork
from hetenv.config import load_scenario
from hetenv.envs.view import JOB_FEATURES
from tests.agents.helpers import disturb, observations, tensors


@pytest.fixture
def network() -> PairNetwork:
    torch.manual_seed(0)
    network = PairNetwork(width=16)
    disturb(network)
    return network


def test_forbidden_actions_have_the_impossible_logit_and_no_other(network, tiny):
    batch = tensors(observations(tiny, 40))
    logits = network(batch).detach()
    assert logits.shape == batch["action_mask"].shape
    assert torch.equal(logits == IMPOSSIBLE, batch["action_mask"] == 0)


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
    before, after = network(tensors(batch)).detach().numpy(), network(tensors(permuted)).detach().numpy()
    assert not np.allclose(after, before)
    np.testing.assert_allclose(after, permute(before), rtol=1e-4, atol=1e-4)
    values = [network.values(tensors(one)).detach().numpy() for one in (batch, permuted)]
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
    narrow, wide = network(tensors(batch)).detach(), network(tensors(wider)).detach()
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
    batch = tensors(observations(tiny, 10))
    allowed = batch["action_mask"] > 0
    low, high = PairNetwork(beta=0.5), PairNetwork(beta=2.0)
    assert high.beta == pytest.approx(2.0)
    torch.testing.assert_close(4.0 * low(batch)[allowed], high(batch)[allowed])


def test_the_heuristic_prefers_short_jobs_and_waits_for_suitable_gpus(tiny):
    """Worked by hand: two jobs of 0.5 and 2 time scales, two candidates each, an empty queue."""
    jobs = torch.zeros(1, 2, len(JOB_FEATURES))
    jobs[0, :, heuristic.FASTEST] = torch.tensor([0.5 / 1.5, 2.0 / 3.0])
    batch = tensors(observations(tiny, 1))
    candidates = torch.zeros(1, 2, 2, batch["candidates"].shape[3])
    time, gpus = 4, 3
    candidates[..., gpus] = 0.25
    candidates[0, 0, :, time] = torch.tensor([0.5 / 1.5, 1.0 / 2.0])  # twice as slow on the second one
    candidates[0, 1, :, time] = torch.tensor([2.0 / 3.0, 4.0 / 5.0])
    scores = heuristic.score({"jobs": jobs, "candidates": candidates, "globals": torch.zeros(1, 8)})
    log2 = np.log(2.0)
    expected = [[log2, log2 - 4 * log2], [-log2, -log2 - 4 * log2]]
    np.testing.assert_allclose(scores.pairs[0], expected, rtol=1e-4)
    assert float(scores.wait[0]) == pytest.approx(-2.4)
    assert scores.pairs[0, 0, 1] > scores.wait[0] > scores.pairs[0, 1, 1]


def test_log_time_inverts_the_squashing_and_stays_finite():
    times = torch.tensor([0.01, 1.0, 250.0])
    torch.testing.assert_close(heuristic.log_time(times / (times + 1.0)), times.log(), rtol=1e-3, atol=1e-3)
    assert torch.isfinite(heuristic.log_time(torch.tensor([0.0, 1.0]))).all()

"""The network's inputs: those of the scorer, and the same however observations are batched."""

from __future__ import annotations

import numpy as np
import pytest

from agents.inputs import Inputs
from agents.scorer import PairScorer, Shape, as_layers
from hetenv.config import load_scenario
from tests.agents.helpers import observations

SHAPE = Shape(pair=3, wait=1)


@pytest.mark.parametrize("scenario", ["online", "online-elastic", "slow-server"])
def test_pairs_are_scored_from_them_as_the_scorer_does(scenario):
    batch = observations(load_scenario(scenario), 80)
    batch["action_mask"][:, -1] = 0.0  # its best pair
    batch = {name: array[batch["action_mask"].any(axis=1)] for name, array in batch.items()}
    rng = np.random.default_rng(0)
    weights = PairScorer.initial(SHAPE).weights
    weights[4:] += rng.normal(size=len(weights) - 4)
    layers = as_layers(weights, SHAPE)

    inputs = Inputs.of(batch)
    with_bias = np.insert(inputs.pairs, 0, 1.0, axis=1)
    scores = np.full(batch["action_mask"].shape, -np.inf)
    scores[inputs.row, inputs.action] = inputs.score + np.tanh(with_bias @ layers.pair_in.T) @ layers.pair_out
    assert scores.argmax(axis=1).tolist() == PairScorer(weights, SHAPE).greedy_actions(batch).tolist()


def assert_equal(some: Inputs, others: Inputs) -> None:
    for name, mine, theirs in zip(Inputs._fields, some, others, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


def test_batches_may_be_joined_and_taken_from(tiny):
    batch = observations(tiny, 30)
    whole = Inputs.of(batch)
    parts = [Inputs.of({name: array[rows] for name, array in batch.items()}) for rows in (slice(0, 9), slice(9, 30))]
    assert_equal(Inputs.concatenate(parts), whole)
    chosen = np.random.default_rng(0).permutation(30)[:17]
    assert_equal(whole.take(chosen), Inputs.of({name: array[chosen] for name, array in batch.items()}))


def test_they_are_finite_at_the_ends_of_all_features(tiny):
    batch = observations(tiny, 20)
    for fill in (0.0, 1.0):
        extreme = {name: np.full_like(array, fill) for name, array in batch.items()}
        inputs = Inputs.of(extreme | {"action_mask": np.ones_like(batch["action_mask"])})
        assert all(np.isfinite(array).all() for array in inputs[:-1])

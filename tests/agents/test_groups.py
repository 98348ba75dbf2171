"""The baseline of a group of environments on the same arrivals."""

from __future__ import annotations

import numpy as np

from agents.groups import less_group_mean


def test_the_rest_of_the_group_at_the_same_time_is_subtracted():
    """Worked by hand: two environments of one group, the second ahead by one decision."""
    time_s = np.array([[0.0, 10.0], [10.0, 30.0], [20.0, 5.0]])
    episode = np.array([[1, 1], [1, 1], [1, 2]])
    advantages = np.array([[1.0, 4.0], [2.0, 8.0], [3.0, 100.0]])
    wanted = [
        [1.0, 4.0 - 2.0],  # the other is not known at 0 s, and at 10 s decides too
        [2.0 - 4.0, 8.0],
        [3.0 - 6.0, 100.0],  # half-way between the other's decisions; another episode has nothing to do with it
    ]
    np.testing.assert_allclose(less_group_mean(advantages, time_s, episode, 2), wanted)


def test_what_all_members_share_cancels_and_groups_are_apart():
    rng = np.random.default_rng(0)
    time_s = np.repeat(np.arange(20.0)[:, None], 6, axis=1)
    own, shared = rng.normal(size=(20, 6)), np.repeat(rng.normal(size=(20, 2)), 3, axis=1)
    episode = np.ones((20, 6))
    alone = less_group_mean(own, time_s, episode, 3)
    np.testing.assert_allclose(less_group_mean(own + shared, time_s, episode, 3), alone)
    np.testing.assert_allclose(alone[:, 0], own[:, 0] - own[:, 1:3].mean(axis=1))


def test_without_others_nothing_changes():
    advantages = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(less_group_mean(advantages, advantages, np.ones((3, 2)), 1), advantages)

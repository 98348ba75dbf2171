"""Behaviour cloning: a network learns to do what a scheduler or another policy does, as a warm start.

A scheduler decides whole plans, a policy of ``hetenv/Placement-v0`` one placement after the other. ``Demonstrations``
turns each plan into placements, in an order that keeps within the free GPUs, and the end of an epoch in which something
could still be placed into waiting. What no action stands for cannot be imitated, and is skipped: categories that are
not among a job's candidates, jobs outside the window, the choice of nodes, and swaps of running jobs that only
fit when both move at once. The demonstrated episode goes on as the scheduler decided, so that one such gap does not
spoil what follows; ``imitation/share_found`` tells how many changes were matched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

import baselines
from agents import is_policy, load
from agents.config import ImitationSettings
from agents.inputs import Inputs
from agents.network import PairNetwork
from hetenv.cluster import Cluster
from hetenv.config import Scenario
from hetenv.envs.session import PlacementSession
from hetenv.scheduler import Plan, Scheduler, Snapshot
from hetenv.simulator import simulate

_SPAWN_KEY = 2  # episodes apart from those that are trained on and from held-out ones, as in ``agents.episodes``


class Demonstrations:
    """A scheduler that follows ``teacher`` and writes its decisions down as placement actions.

    Args:
        scenario: gives window, number of candidates and time scale.

    Attributes:
        inputs: one for each decision, of a single observation.
        actions: what was decided.
    """

    name = "demonstrations"

    def __init__(self, teacher: Scheduler, scenario: Scenario) -> None:
        self.teacher, self.scenario, self.decides = teacher, scenario, teacher.decides
        self.inputs: list[Inputs] = []
        self.actions: list[int] = []
        self._n_found = self._n_changes = 0

    @property
    def share_found(self) -> float:
        """Share of the teacher's changes that were among the actions."""
        return self._n_found / max(self._n_changes, 1)

    def reset(self, cluster: Cluster, seed: int) -> None:
        self.teacher.reset(cluster, seed)
        self._rng = np.random.default_rng(seed)  # a policy as teacher is offered the same candidates
        self._session: PlacementSession | None = None

    def plan(self, snapshot: Snapshot) -> Plan:
        plan = self.teacher.plan(snapshot)
        simulator = snapshot.clone_simulator()
        if self._session is None:
            self._session = PlacementSession(simulator, self.scenario, self._rng)
        self._session.simulator = simulator
        self._session.epoch += 1
        for row in self._in_order(plan):
            self._follow(plan, row)
        if self._session.refresh() and self._session.mask[-1]:
            self._write_down(len(self._session.mask) - 1)
        return plan

    def _in_order(self, plan: Plan) -> list[int]:
        """Rows of ``plan``: first those that only give GPUs back."""
        rows: list[int] = np.argsort(plan.counts.any(axis=1), kind="stable").tolist()
        return rows

    def _follow(self, plan: Plan, row: int) -> None:
        """Carry one change of ``plan`` out, by an action if there is one for it."""
        session = self._session
        assert session is not None
        self._n_changes += 1
        session.refresh()
        view, job, counts = session.view, plan.jobs[row], plan.counts[row]
        n_places = view.counts.shape[1]
        for w in np.flatnonzero(view.window == job):
            allowed = session.mask[w * n_places : (w + 1) * n_places]
            same = np.flatnonzero(allowed & (view.counts[job] == counts).all(axis=1))
            if len(same):
                action = int(w * n_places + same[0])
                self._write_down(action)
                session.place(action)
                self._n_found += 1
                return
        held = session.simulator.state.counts[job]
        free = session.simulator.state.uses["free"] + held
        if (counts <= free).all():
            session.simulator.apply(Plan(np.array([job]), counts[None]))

    def _write_down(self, action: int) -> None:
        assert self._session is not None
        observation = self._session.observation()
        self.inputs.append(Inputs.of({name: array[None] for name, array in observation.items()}))
        self.actions.append(action)


class Imitated(NamedTuple):
    """What came of an imitation."""

    share_found: float  # of the teacher's changes that were among the actions
    agreement: float  # share of the decisions of the last tenth of the episodes, not trained on, that are the same


def imitate(network: PairNetwork, settings: ImitationSettings, scenario: Scenario, seed: int) -> Imitated:
    """Train ``network`` to choose what the configured teacher chooses; its value is left alone."""
    demonstrations = Demonstrations(teacher(settings.scheduler, scenario), scenario)
    ends = [0]  # decisions until each episode
    for episode_seed in _episode_seeds(seed, settings.episodes):
        workload = scenario.draw_workload(np.random.default_rng(episode_seed))
        simulate(workload, scenario.cluster, demonstrations, seed=episode_seed, **scenario.simulator.model_dump())
        ends.append(len(demonstrations.actions))
    first_test = ends[-1 - max(1, settings.episodes // 10)]
    inputs, actions = Inputs.concatenate(demonstrations.inputs), torch.tensor(demonstrations.actions)
    _fit(network, inputs, actions, np.arange(first_test), settings, np.random.default_rng(seed))
    test = np.arange(first_test, len(actions))
    with torch.no_grad():
        agrees = network.likeliest(inputs.take(test)) == actions[test]
    return Imitated(demonstrations.share_found, float(agrees.float().mean()))


def teacher(name: str, scenario: Scenario) -> Scheduler:
    """A scheduler of ``baselines``, tuned for the scenario if it can be, or, as ``agents.load`` has them, a policy."""
    return load(name) if is_policy(name) else baselines.make_for(scenario.name, name)


def _fit(
    network: PairNetwork,
    inputs: Inputs,
    actions: torch.Tensor,
    rows: np.ndarray,
    settings: ImitationSettings,
    rng: np.random.Generator,
) -> None:
    """Maximize the likelihood of the decisions ``rows``."""
    optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate)
    for _ in range(settings.epochs):
        order = rng.permutation(rows)
        for first in range(0, len(order), settings.batch_size):
            chosen = order[first : first + settings.batch_size]
            log_prob, _ = network.log_probs(inputs.take(chosen), actions[chosen])
            optimizer.zero_grad()
            (-log_prob.mean()).backward()
            optimizer.step()


def _episode_seeds(seed: int, n_episodes: int) -> Iterator[int]:
    stream = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_SPAWN_KEY,)))
    for episode_seed in stream.integers(2**62, size=n_episodes):
        yield int(episode_seed)

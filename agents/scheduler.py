"""``PolicyScheduler``: a trained policy as a scheduler."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from agents.saving import GreedyPolicy, load_policy
from hetenv.cluster import Cluster
from hetenv.config import Scenario, load_scenario
from hetenv.envs.session import PlacementSession
from hetenv.scheduler import DECISIONS, Plan, Snapshot


class PolicyScheduler:
    """Plays the likeliest action of a policy, placement by placement, until it waits or nothing can be placed.

    What it decides within an epoch it tries on a copy of the simulator, and returns as one plan. Window, number of
    candidates and time scale are those it was trained with, cluster and jobs may be others. Reset with the
    seed of an environment that replays the same workload, it is offered the same candidates and does the same.

    Args:
        policy: chooses the actions.
        scenario: gives window, time scale, and whether all jobs must be placed at once.
    """

    decides = DECISIONS

    def __init__(self, policy: GreedyPolicy, scenario: Scenario, name: str = "policy") -> None:
        self.policy, self.scenario, self.name = policy, scenario, name

    def reset(self, cluster: Cluster, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._session: PlacementSession | None = None

    def plan(self, snapshot: Snapshot) -> Plan:
        if not (snapshot.preemptive or snapshot.free.any() or snapshot.malleable.any()):
            return Plan.nothing(len(snapshot.total))  # and spare the copy
        simulator = snapshot.clone_simulator()
        if self._session is None:
            self._session = PlacementSession(simulator, self.scenario, self._rng)
        session = self._session
        session.simulator = simulator
        session.epoch += 1
        changed: list[int] = []
        while session.refresh():
            batch = {key: value[None] for key, value in session.observation().items()}
            action = int(self.policy.greedy_actions(batch)[0])
            if action == len(session.mask) - 1:
                break
            changed.append(session.place(action))
        # The nodes too: packed all at once, the jobs could land on others than one after the other.
        nodes = [np.array(simulator.holds(job), np.int64).reshape(-1, 2) for job in changed]
        return Plan(np.array(changed, np.int64), simulator.state.counts[changed], nodes)


def load_scheduler(path: Path, name: str) -> PolicyScheduler:
    """See ``agents.load``."""
    policy, origin = load_policy(path)
    return PolicyScheduler(policy, load_scenario(origin.scenario, origin.overrides), name=name)

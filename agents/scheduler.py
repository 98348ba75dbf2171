"""Trained policies as schedulers: ``PolicyScheduler`` of hetenv/Placement-v0, ``BendScheduler`` of hetenv/Market-v0."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from agents.saving import GreedyPolicy, load_policy
from agents.zoo import MARKET
from hetenv.cluster import Cluster
from hetenv.config import Scenario, load_scenario
from hetenv.envs.market_session import bend_of, plan_bent
from hetenv.envs.market_view import observe_market
from hetenv.envs.session import PlacementSession
from hetenv.epoch import anyone_competes
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


class BendScheduler:
    """Plans each epoch by the market as a policy bends it, exactly as ``hetenv/Market-v0`` does under its actions.

    The time scale is the one it was trained with, cluster and jobs may be others.

    Args:
        policy: chooses the actions.
        scenario: gives the time scale.
    """

    decides = DECISIONS

    def __init__(self, policy: GreedyPolicy, scenario: Scenario, name: str = "policy") -> None:
        self.policy, self.time_scale_s, self.name = policy, scenario.time_scale_s, name

    def reset(self, cluster: Cluster, seed: int) -> None:
        self._price_s = np.zeros(len(cluster.types))  # (M,) per GPU, of the last decision

    def plan(self, snapshot: Snapshot) -> Plan:
        n_types = len(snapshot.total)
        action = np.zeros(n_types + 4)
        if anyone_competes(snapshot):  # otherwise all bends plan alike, and the environment asks for no action
            observation = observe_market(snapshot.clone_simulator(), self._price_s, self.time_scale_s)
            action = self.policy.greedy_actions({key: value[None] for key, value in observation.items()})[0]
        plan, price_s = plan_bent(snapshot, bend_of(action, n_types, self.time_scale_s))
        if price_s is not None:
            self._price_s = price_s
        return plan


def load_scheduler(path: Path, name: str) -> PolicyScheduler | BendScheduler:
    """See ``agents.load``."""
    policy, origin = load_policy(path)
    kind = BendScheduler if origin.env == MARKET else PolicyScheduler
    return kind(policy, load_scenario(origin.scenario, origin.overrides), name=name)

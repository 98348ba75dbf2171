"""One decision epoch as a placement problem: who competes, for which GPUs, and what waiting is worth.

Shared by every scheduler that solves ``hetenv.matching`` online. The paper (DOI 10.1109/TPDS.2024.3390109) places a
batch of jobs; all of the following is our extension to a stream.

Who competes. Waiting jobs that fit, and running jobs that may change: all of them where the simulator allows
preemption, otherwise the malleable ones, which may be resized but never paused. The others keep what they hold.

What it costs. ``w (J(c) + rho restart)`` on a category c, where restart applies to a running job that changes, and
``w (kappa tau + J(best))`` without GPUs, plus rho restart for a running job. rho is the restart factor: 1 counts on the
change to last for the rest of the job, more of it on further changes to come. J(best) is the job's remaining time alone
on the cluster (on the categories it is offered, if those are fewer than it accepts), kappa the waiting factor, tau the
expected wait: the mean time until the GPUs that running jobs give back serve a waiting job (``expected_wait_s``; the
very next release would not do: with hundreds of jobs running it is seconds away, however many wait for it), or, when
none runs, the least J(best) of the jobs competing, which is the first release their plan could bring.
``w = J(best) ** -exponent * J_eq ** -fairness``, J_eq the remaining time on an equal share of the GPUs on offer
(``exclusive_share_s``). With kappa = rho = 1 and both exponents 0 the objective is the paper's sum of J.

What is left out. J is estimated from the category: as few empty nodes as possible, batches split in
proportion to speed even where the simulator splits them evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hetenv.compiled import njit
from hetenv.matching import OnlineTerms, Placement, PlacementProblem
from hetenv.posing import carry_out, finish_plan, open_epoch, pose, value_waiting
from hetenv.scheduler import Plan, Snapshot

Solve = Callable[[PlacementProblem, OnlineTerms], Placement]


class OnlineObjective(NamedTuple):
    """How waiting and weights enter, and how many jobs one decision considers.

    Args:
        waiting_factor: kappa, at least 0; more of it starts jobs sooner on slower GPUs.
        weight_exponent: above 0 favours short jobs.
        max_jobs: most jobs that compete in one decision. Beyond it, half the places go to waiting jobs, half
            of those to the ones of least J(best) and the rest to the oldest, so that none starves
            out of sight; the others go to the running jobs of most remaining time. Places that one side leaves
            empty go to the other.
        fairness_exponent: above 0 favours jobs that an equal share of the GPUs would serve fast, so that
            none takes many times as long as on that share.
        restart_factor: rho, at least 0; more of it leaves running jobs where they are.
    """

    waiting_factor: float = 1.0
    weight_exponent: float = 0.0
    max_jobs: int = 128
    fairness_exponent: float = 0.0
    restart_factor: float = 1.0


def plan_epoch(snapshot: Snapshot, objective: OnlineObjective, solve: Solve) -> Plan:
    """The plan of one epoch: ``solve`` decides, and something runs whenever something can.

    Jobs with more than ``MOST_CATEGORIES`` categories even at their least size do not compete: they take their
    fastest free allocation before the others do. New allocations are packed largest first, which leaves fewer
    fragments. When nothing would run at all, or a placement does not survive packing (a measured rate of 0 once
    spread over nodes), waiting jobs take their fastest free allocation by arrival instead.
    """
    simulator = snapshot.simulator
    parts = simulator.fixed, simulator.state
    opening, sketch = open_epoch(*parts, simulator.running_may_change)
    sound = True
    if opening.competes.any():
        posed = pose(*parts, simulator.exclusive_s, opening, objective.max_jobs, objective.restart_factor)
        if len(posed.rows):
            problem = PlacementProblem.unchecked(posed.capacity, posed.model)
            weights, waiting, penalty = value_waiting(
                *parts, opening, posed, problem.offers, problem.kind,
                objective.waiting_factor, objective.weight_exponent, objective.fairness_exponent,
            )  # fmt: skip
            current = opening.counts[posed.rows]
            terms = OnlineTerms(weights=weights, waiting=waiting, current=current, restart_penalty=penalty)
            sound = carry_out(*parts, opening, posed.rows, solve(problem, terms).counts, sketch)
    return Plan(*finish_plan(*parts, sketch, sound))


def anyone_competes(snapshot: Snapshot) -> bool:
    """Whether ``plan_epoch`` has something to solve; otherwise its plan is the same under every objective."""
    simulator = snapshot.simulator
    return bool(_anyone_competes(simulator.fixed, simulator.state, simulator.running_may_change))


@njit
def _anyone_competes(fixed, state, running_may_change):
    return open_epoch(fixed, state, running_may_change)[0].competes.any()

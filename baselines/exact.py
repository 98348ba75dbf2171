"""The optimal placement at every epoch, by integer programming."""

from __future__ import annotations

from baselines.online_matcher import OnlineMatcher
from hetenv.matching import OnlineTerms, Placement, PlacementProblem, solve_exact


class Exact(OnlineMatcher):
    """The optimum of each epoch's placement problem (HiGHS), the reference of "Sampling-Based Multi-Job Placement
    for Heterogeneous Deep Learning Clusters" (Liu et al., IEEE TPDS 2024, DOI 10.1109/TPDS.2024.3390109).

    The model is reconstructed from the abstract and sibling papers, the online terms are ours. Optimal for the
    epoch, not for the stream: an optimum solved afresh at each event may lose to a scheduler that looks ahead.
    It decides everything: place, size, and, where the simulator allows it, preempt, resize and migrate.

    Args:
        waiting_factor, weight_exponent, max_jobs, fairness_exponent, restart_factor: see ``OnlineScheduler``. An
            integer program may take long; fewer ``max_jobs`` bound it.
    """

    name = "exact"

    def _solve(self, problem: PlacementProblem, terms: OnlineTerms) -> Placement:
        return solve_exact(problem, **terms)

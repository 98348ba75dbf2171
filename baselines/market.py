"""The matching market with prices per GPU type, solved afresh at every epoch."""

from __future__ import annotations

from baselines.online_matcher import OnlineMatcher
from hetenv.matching import OnlineTerms, Placement, PlacementProblem, solve_market


class Market(OnlineMatcher):
    """Price-based matching of jobs and GPUs, after "Sampling-Based Multi-Job Placement for Heterogeneous Deep
    Learning Clusters" (Liu et al., IEEE TPDS 2024, DOI 10.1109/TPDS.2024.3390109).

    Categorisation, matching markets and proportional split are the paper's; reconstructed from its abstract and
    sibling papers, so details may differ. Prices per type on whole categories, repair, local search and the
    online terms are ours. It decides everything: place, size, and, where the simulator allows it, preempt,
    resize and migrate.

    Args:
        waiting_factor, weight_exponent, max_jobs: see ``OnlineMatcher``.
    """

    name = "market"

    def _solve(self, problem: PlacementProblem, terms: OnlineTerms) -> Placement:
        return solve_market(problem, **terms)

"""The matching market with prices per GPU type, solved afresh at every epoch."""

from __future__ import annotations

import numpy as np

from baselines.online_matcher import OnlineScheduler
from baselines.options import one_of
from hetenv.cluster import Cluster
from hetenv.market_epoch import plan_market
from hetenv.scheduler import Plan, Snapshot


class Market(OnlineScheduler):
    """Price-based matching of jobs and GPUs, after "Sampling-Based Multi-Job Placement for Heterogeneous Deep
    Learning Clusters" (Liu et al., IEEE TPDS 2024, DOI 10.1109/TPDS.2024.3390109).

    Categorisation, matching markets and proportional split are the paper's; reconstructed from its abstract and
    sibling papers, so details may differ. Prices per type on whole categories, repair, local search and the
    online terms are ours. It decides everything: place, size, and, where the simulator allows it, preempt,
    resize and migrate.

    Args:
        waiting_factor, weight_exponent, max_jobs, fairness_exponent, restart_factor: see ``OnlineScheduler``.
        start: where the search for prices begins. "cold": afresh at every epoch, the plans of ``solve_market`` and of
            the zero action of hetenv/Market-v0. "warm": at the prices of the last epoch, which takes about half
            the time to placements of the same quality, though not always the same ones.
    """

    name = "market"

    def __init__(
        self,
        waiting_factor: float = 1.0,
        weight_exponent: float = 0.0,
        max_jobs: int = 128,
        fairness_exponent: float = 0.0,
        restart_factor: float = 1.0,
        start: str = "cold",
    ) -> None:
        super().__init__(waiting_factor, weight_exponent, max_jobs, fairness_exponent, restart_factor)
        self._warm = one_of("start", start, ("cold", "warm")) == "warm"
        self._prices: np.ndarray | None = None  # (M,) cost per GPU at the last epoch; None for a cold start

    def reset(self, cluster: Cluster, seed: int) -> None:
        super().reset(cluster, seed)
        self._prices = None

    def plan(self, snapshot: Snapshot) -> Plan:
        plan, prices, _ = plan_market(snapshot, self._objective, start_prices=self._prices)
        if self._warm and prices is not None:
            self._prices = prices
        return plan

"""The paper's sampling-based job placement scheduler, solved afresh at every epoch."""

from __future__ import annotations

import numpy as np

from baselines.online_matcher import OnlineMatcher
from baselines.options import number, whole
from hetenv.matching import OnlineTerms, Placement, PlacementProblem, solve_jps


class JPS(OnlineMatcher):
    """Sampling-based placement of "Sampling-Based Multi-Job Placement for Heterogeneous Deep Learning Clusters"
    (Liu et al., IEEE TPDS 2024, DOI 10.1109/TPDS.2024.3390109).

    Sampled size vectors, and a matching market of GPUs and jobs inside each. Reconstructed from the abstract and
    sibling papers, so details may differ from the published algorithm; the online terms are ours. It decides
    everything: place, size, and, where the simulator allows it, preempt, resize and migrate.

    Our decision: samples are drawn without regard to what runs, so a placement that moves running jobs is taken
    only if it beats the one that samples for the waiting jobs on the free GPUs alone.

    Args:
        samples: size vectors tried in one decision.
        beta: weight of the mean JCT against fairness, from 0 to 1.
        waiting_factor, weight_exponent, max_jobs: see ``OnlineScheduler``.
    """

    name = "jps"

    def __init__(
        self,
        samples: int = 100,
        beta: float = 1.0,
        waiting_factor: float = 1.0,
        weight_exponent: float = 0.0,
        max_jobs: int = 128,
    ) -> None:
        super().__init__(waiting_factor, weight_exponent, max_jobs)
        self._samples = whole("samples", samples, least=1)
        self._beta = number("beta", beta, least=0.0, most=1.0)

    def _solve(self, problem: PlacementProblem, terms: OnlineTerms) -> Placement:
        afresh = self._sample(problem, terms)
        held = np.asarray(terms["current"])
        if not held.any():
            return afresh
        settled = self._sample_around(problem, terms, held)
        return min(settled, afresh, key=lambda placement: placement.total)

    def _sample(self, problem: PlacementProblem, terms: OnlineTerms) -> Placement:
        return solve_jps(problem, self._samples, int(self._rng.integers(2**63)), beta=self._beta, **terms)

    def _sample_around(self, problem: PlacementProblem, terms: OnlineTerms, held: np.ndarray) -> Placement:
        """The placement that leaves all running jobs what they hold (S, M)."""
        running = held.any(axis=1)
        weights, waiting = np.asarray(terms["weights"]), np.asarray(terms["waiting"])
        total = sum(float(weights[i]) * problem.cost_s(i, held[i]) for i in np.flatnonzero(running).tolist())
        free = problem.capacity - held.sum(axis=0)
        if running.all() or not free.any():
            return Placement(held, total + float(waiting[~running].sum()))
        model = problem.model
        assert model is not None
        queue = PlacementProblem(
            free,
            model.speed[~running],
            model.batch[~running],
            model.iterations[~running],
            model.grad_bytes[~running],
            model.bandwidth,
            model.min_gpus[~running],
            model.max_gpus[~running],
            local_bandwidth=model.local_bandwidth,
            node_gpus=model.node_gpus,
            measured_rate=np.where(model.measured[:, None, None], model.measured_rate, np.nan)[~running],
        )
        started = self._sample(queue, OnlineTerms(weights=weights[~running], waiting=waiting[~running]))
        counts = held.copy()
        counts[~running] = started.counts
        return Placement(counts, total + started.total)

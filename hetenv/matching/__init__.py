"""The matching-market scheduler of "Sampling-Based Multi-Job Placement for Heterogeneous Deep Learning Clusters".

Reconstructed from the abstract (DOI 10.1109/TPDS.2024.3390109) and sibling papers; details may differ from the
published algorithm. A ``PlacementProblem`` goes into one of three solvers, and a ``Placement`` comes out:

``solve_jps``     the paper's form. Samples size vectors (GPUs per job) and clears a market in each. Inside a size
                  category the market is exact for its linearised valuations: clearing prices exist, and
                  epsilon-complementary slackness holds with epsilon = 0 (``size_market``). Across categories
                  there is no guarantee but that of sampling: the best of N uniform draws is in the top fraction q
                  with probability 1 - (1 - q)^N.
``solve_market``  prices per GPU type on whole categories, repair, local search. Clearing prices need not exist here,
                  so the result carries a certified dual bound: ``total - lower_bound`` is a proven gap. The bound is
                  exact over all categories, although only the best few of each job are kept (``pricing``). The linear
                  relaxation has a vertex with at most M (types) jobs split, so the optimum is at most its value plus
                  the M largest ranges of a job's cost, if each job can run on any single GPU. The placement itself
                  has no a-priori guarantee.
``solve_exact``   the optimum to a relative 1e-6: prices rule out most categories, HiGHS settles the rest.

Jobs in another order get the same placement, from the same seed, save that jobs alike in everything may exchange
places. Types in another order, or GPUs of a type split into two alike, may end in another placement: the optimum is
the same, ``solve_exact`` finds it to 1e-6, the market within its certified gap.

``jain_index`` and ``exclusive_share_s`` measure fairness.
"""

from __future__ import annotations

from hetenv.matching.exact import solve_exact
from hetenv.matching.fairness import exclusive_share_s
from hetenv.matching.jps import solve_jps
from hetenv.matching.market import solve_market
from hetenv.matching.offers import OnlineTerms
from hetenv.matching.problem import Placement, PlacementProblem
from hetenv.metrics import jain_index

__all__ = [
    "OnlineTerms",
    "Placement",
    "PlacementProblem",
    "exclusive_share_s",
    "jain_index",
    "solve_exact",
    "solve_jps",
    "solve_market",
]

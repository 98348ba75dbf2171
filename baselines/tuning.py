"""The search for the parameters of ``market-tuned``: successive halving, then again in a smaller box.

Candidates are spread evenly over a box (Halton points). All of them play a few episodes, the better half plays on, and
so forth until the last ones have played all (Karnin et al., ICML 2013; Jamieson and Talwalkar, AISTATS 2016). A second
search in a quarter of the box about the best refines it. All candidates play the same arrivals, and plain ``market``
plays all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import qmc

from baselines.market import Market
from baselines.market_tuned import Parameters
from hetenv.config import Scenario
from hetenv.errors import InputError
from hetenv.evaluation import evaluate

HELD_OUT = 1000  # seeds from here on are for evaluation
PLAIN = Parameters(waiting_factor=1.0, weight_exponent=0.0)  # the paper's objective, ``market``
BOX = np.array([[np.log(0.25), np.log(32.0)], [0.0, 1.25]])  # log waiting factor, weight exponent
CANDIDATES = (16, 8)  # of the search in BOX, and of the one in a quarter of it about the best
SHARES = (8, 4, 2, 1)  # candidates play 1/8 of the episodes, the better half of them 1/4, ...


@dataclass(frozen=True)
class Tuning:
    """What a search found.

    Attributes:
        parameters: of the least score: the geometric mean over scenarios and episodes of mean JCT / that of ``market``.
        episodes: of each scenario that they have played.
        jct_s: scenario -> mean JCT of market and of the parameters on these episodes, seconds.
        interrupted: whether Ctrl-C ended the search early.
    """

    parameters: Parameters
    episodes: int
    jct_s: Mapping[str, tuple[float, float]]
    interrupted: bool


def tune(
    scenarios: Sequence[Scenario],
    episodes: int,
    seed: int,
    workers: int = 1,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Tuning:
    """The parameters of least mean JCT, relative to ``market``, over the episodes ``seed``, ``seed + 1``, ... of all
    ``scenarios`` together; after Ctrl-C the best so far.

    Args:
        scenarios: of different names.
        episodes: of each scenario.
        workers: processes to run in.
        progress: called with the trials done and the most there can be.

    Raises:
        InputError: seeds of 1000 or more, which are for evaluation, or another number out of range.
        KeyboardInterrupt: before the candidates had played one round.
    """
    if episodes < 1:
        raise InputError("episodes", episodes, "give a whole number of at least 1")
    if seed + episodes > HELD_OUT:
        raise InputError("seed", f"{seed} with {episodes} episodes", "tune on seeds below 1000; the others evaluate")
    search = _Search(scenarios, episodes, seed, workers, progress)
    interrupted, box = False, BOX
    try:
        for n_candidates in CANDIDATES:
            search.halve(_spread(box, n_candidates))
            box = _around(search.best())
    except KeyboardInterrupt:
        if not search.jct_s:
            raise
        interrupted = True
    best = search.best()
    return Tuning(best, search.played(best), search.mean_jct_s(best), interrupted)


class _Search:
    """What every candidate has played so far: ``jct_s[candidate]`` (scenarios, episodes), mean JCTs in seconds."""

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        episodes: int,
        seed: int,
        workers: int,
        progress: Callable[[int, int], object],
    ) -> None:
        self.jct_s: dict[Parameters, np.ndarray] = {}
        self._scenarios, self._episodes, self._seed, self._workers = scenarios, episodes, seed, workers
        self._progress, self._done, self._most = progress, 0, len(scenarios) * _most_trials(episodes)

    def halve(self, candidates: Sequence[Parameters]) -> None:
        """All candidates play a few episodes, the better half of them plays on, and so forth."""
        for n_kept, until in _rungs(len(candidates), self._episodes):
            if n_kept < len(candidates):
                candidates = sorted(candidates, key=self.score)[:n_kept]
            self._play([PLAIN, *candidates], until)

    def best(self) -> Parameters:
        """The candidate of least score among those that have played most."""
        return min(self.jct_s, key=lambda candidate: (-self.played(candidate), self.score(candidate)))

    def played(self, candidate: Parameters) -> int:
        """Episodes of each scenario."""
        return self.jct_s[candidate].shape[1]

    def score(self, candidate: Parameters) -> float:
        """Geometric mean of mean JCT / that of plain market on the same jobs: no heavy episode outweighs all."""
        own_s = self.jct_s[candidate]
        return float(np.exp(np.log(own_s / self.jct_s[PLAIN][:, : own_s.shape[1]]).mean()))

    def mean_jct_s(self, candidate: Parameters) -> dict[str, tuple[float, float]]:
        """See ``Tuning.jct_s``."""
        plain_s = self.jct_s[PLAIN][:, : self.played(candidate)].mean(axis=1).tolist()
        own_s = self.jct_s[candidate].mean(axis=1).tolist()
        return {s.name: (plain, own) for s, plain, own in zip(self._scenarios, plain_s, own_s, strict=True)}

    def _play(self, candidates: Sequence[Parameters], until: int) -> None:
        """Bring the candidates to ``until`` episodes of every scenario; interrupted, none of it counts."""
        nothing = np.empty((len(self._scenarios), 0))
        so_far = {candidate: self.jct_s.get(candidate, nothing) for candidate in candidates}
        for played in sorted({jct_s.shape[1] for jct_s in so_far.values()}):
            if played < until:
                group = [candidate for candidate, jct_s in so_far.items() if jct_s.shape[1] == played]
                more = np.stack([self._evaluate(scenario, group, played, until) for scenario in self._scenarios])
                so_far |= {candidate: np.hstack([so_far[candidate], more[:, at]]) for at, candidate in enumerate(group)}
        self.jct_s |= so_far

    def _evaluate(self, scenario: Scenario, candidates: Sequence[Parameters], first: int, until: int) -> np.ndarray:
        """(candidates, episodes) mean JCT of the episodes from ``first`` to before ``until``, seconds."""
        evaluation = evaluate(
            scenario,
            {str(at): partial(Market, **c.model_dump(), start="warm") for at, c in enumerate(candidates)},
            episodes=until - first,
            seed=self._seed + first,
            workers=self._workers,
            progress=lambda done, total: self._progress(self._done + done, self._most),
        )
        if evaluation.interrupted:
            raise KeyboardInterrupt
        self._done += len(candidates) * (until - first)
        return np.array([[trial.figures["mean_jct_s"] for trial in trials] for trials in evaluation.trials.values()])


def _rungs(n_candidates: int, episodes: int) -> Iterator[tuple[int, int]]:
    """How many candidates play up to which episode: half as many, twice as far."""
    played = 0
    for share in SHARES:
        until = -(-episodes // share)
        if until > played:
            yield n_candidates, until
            n_candidates, played = -(-n_candidates // 2), until


def _most_trials(episodes: int) -> int:
    """Episodes of one scenario that a whole search plays at most."""
    most = episodes  # of plain market
    for n_candidates in CANDIDATES:
        played = 0
        for n_kept, until in _rungs(n_candidates, episodes):
            most += n_kept * (until - played)
            played = until
    return most


def _spread(box: np.ndarray, n_candidates: int) -> list[Parameters]:
    """Halton points of a ``box`` (2, 2) of [least, most]: log waiting factor, weight exponent."""
    points = qmc.Halton(len(box), scramble=False).fast_forward(1).random(n_candidates)  # the first is a corner
    return [
        Parameters(waiting_factor=round(float(np.exp(log_factor)), 2), weight_exponent=round(float(exponent), 2))
        for log_factor, exponent in qmc.scale(points, box[:, 0], box[:, 1])
    ]


def _around(centre: Parameters) -> np.ndarray:
    """The box a quarter as wide as ``BOX`` about the ``centre``, cut where it leaves ``BOX``."""
    middle = np.array([np.log(centre.waiting_factor), centre.weight_exponent])
    reach = (BOX[:, 1] - BOX[:, 0]) / 8
    return np.clip(np.stack([middle - reach, middle + reach], axis=1), BOX[:, :1], BOX[:, 1:])

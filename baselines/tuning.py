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
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from baselines.market import Market
from baselines.market_tuned import Parameters
from hetenv.config import Scenario
from hetenv.errors import InputError
from hetenv.evaluation import evaluate

HELD_OUT = 1000  # seeds from here on are for evaluation
PLAIN = Parameters(waiting_factor=1.0, weight_exponent=0.0)  # the paper's objective, ``market``
CANDIDATES = (8, 4)  # a parameter: of the search in the box, and of the one in a quarter of it about the best
SHARES = (8, 4, 2, 1)  # candidates play 1/8 of the episodes, the better half of them 1/4, ...


class Side(NamedTuple):
    """Of the box: a parameter from ``least`` to ``most``, spread evenly by itself or by its logarithm."""

    least: float
    most: float
    logarithmic: bool


BOX: Mapping[str, Side] = {
    "waiting_factor": Side(0.25, 32.0, logarithmic=True),
    "weight_exponent": Side(0.0, 1.25, logarithmic=False),
    "restart_factor": Side(0.5, 16.0, logarithmic=True),  # last: searched only where running jobs may change
}


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
    for name, value, least in (("episodes", episodes, 1), ("seed", seed, 0)):
        if value < least:
            raise InputError(name, value, f"give a whole number of at least {least}")
    if seed + episodes > HELD_OUT:
        raise InputError("seed", f"{seed} with {episodes} episodes", "tune on seeds below 1000; the others evaluate")
    box = [side for name, side in BOX.items() if name != "restart_factor" or _jobs_restart(scenarios, seed)]
    most_trials = len(scenarios) * _most_trials(len(box), episodes)
    search = _Search(scenarios, episodes, seed, workers, lambda done: progress(done, most_trials))
    interrupted = False
    try:
        for n_candidates in CANDIDATES:
            search.halve(_spread(box, n_candidates * len(box)))
            box = _around(search.best(), box)
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
        progress: Callable[[int], object],
    ) -> None:
        self.jct_s: dict[Parameters, np.ndarray] = {}
        self._scenarios, self._episodes, self._seed, self._workers = scenarios, episodes, seed, workers
        self._progress, self._done = progress, 0

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
            progress=lambda done, total: self._progress(self._done + done),
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


def _most_trials(n_parameters: int, episodes: int) -> int:
    """Episodes of one scenario that a whole search plays at most."""
    most = episodes  # of plain market
    for n_candidates in CANDIDATES:
        played = 0
        for n_kept, until in _rungs(n_candidates * n_parameters, episodes):
            most += n_kept * (until - played)
            played = until
    return most


def _jobs_restart(scenarios: Sequence[Scenario], seed: int) -> bool:
    """Whether running jobs may change in some of the ``scenarios``."""
    return any(
        scenario.simulator.preemptive or scenario.draw_workload(np.random.default_rng(seed)).malleable.any()
        for scenario in scenarios
    )


def _spread(box: Sequence[Side], n_candidates: int) -> list[Parameters]:
    """Halton points of a ``box`` of the first parameters of ``BOX``."""
    points = qmc.Halton(len(box), scramble=False).fast_forward(1).random(n_candidates)  # the first is a corner
    ends = np.array([_scaled([side.least, side.most], side) for side in box])  # (parameters, 2)
    columns = qmc.scale(points, ends[:, 0], ends[:, 1]).T
    values = np.transpose([np.exp(own) if side.logarithmic else own for own, side in zip(columns, box, strict=True)])
    return [Parameters(**dict(zip(BOX, own.round(2).tolist(), strict=False))) for own in values]


def _around(centre: Parameters, box: Sequence[Side]) -> list[Side]:
    """The ``box`` a quarter as wide about the ``centre``, cut where it leaves the box."""
    narrow = []
    for (_, value), side in zip(centre, box, strict=False):
        least, most = _scaled([side.least, side.most], side)
        middle, reach = _scaled([value], side)[0], (most - least) / 8
        ends = np.clip([middle - reach, middle + reach], least, most)
        least, most = (np.exp(ends) if side.logarithmic else ends).tolist()
        narrow.append(Side(least, most, side.logarithmic))
    return narrow


def _scaled(values: Sequence[float], side: Side) -> np.ndarray:
    """``values`` on the scale on which a side is spread evenly."""
    return np.log(values) if side.logarithmic else np.array(values)

"""``MarketBender``: a policy of a few dozen numbers for ``hetenv/Market-v0``; what the evolution strategy breeds there.

    price of type m, weight exponent, waiting, fairness, restart = constant + slopes . features
    price of type m                                             += slopes . features of type m

in the units of the environment's action, prices in a quarter of them; the action is clipped. The slopes are shared over
the types, so that one policy serves any cluster. Without features the action is constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from baselines.market_tuned import Parameters
from hetenv.envs import market_view
from hetenv.envs.market_session import FACTOR_REACH

BENDS = ("price", "weight exponent", "waiting factor", "fairness exponent", "restart factor")

PRICE_UNIT = 0.25  # of the action: so that a step in any weight bends the market about as much


def _column(names: tuple[str, ...], beginning: str) -> int:
    (found,) = [at for at, name in enumerate(names) if name.startswith(beginning)]
    return found


# name -> array of the observation and where in it, of one observation
FEATURES: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "queue": ("globals", (_column(market_view.GLOBAL_FEATURES, "waiting jobs /"),)),
    "running": ("globals", (_column(market_view.GLOBAL_FEATURES, "running jobs / GPUs"),)),
    "free": ("globals", (_column(market_view.GLOBAL_FEATURES, "free GPUs"),)),
    "finished": ("globals", (_column(market_view.GLOBAL_FEATURES, "finished jobs"),)),
    "backlog": ("globals", (_column(market_view.GLOBAL_FEATURES, "backlog"),)),
    "release": ("globals", (_column(market_view.GLOBAL_FEATURES, "next release"),)),
    "gap": ("globals", (_column(market_view.GLOBAL_FEATURES, "mean gap between arrivals"),)),
    "latest gap": ("globals", (_column(market_view.GLOBAL_FEATURES, "mean gap between the latest"),)),
    "since arrival": ("globals", (_column(market_view.GLOBAL_FEATURES, "time since"),)),
    "least work": ("waiting", (0, _column(market_view.WAITING_FEATURES, "work"))),
    "median work": ("waiting", (market_view.QUANTILES.index(0.5), _column(market_view.WAITING_FEATURES, "work"))),
}
# name -> array of the observation and the column of it, of every type
TYPE_FEATURES: Mapping[str, tuple[str, int]] = {
    "affinity": ("affinity", market_view.QUANTILES.index(0.5)),
    "share": ("types", _column(market_view.TYPE_FEATURES, "GPUs /")),
    "free": ("types", _column(market_view.TYPE_FEATURES, "free")),
    "price": ("types", _column(market_view.TYPE_FEATURES, "price")),
    "demand": ("types", _column(market_view.TYPE_FEATURES, "demand")),
}


class Inputs(NamedTuple):
    """What a bender looks at: names of ``FEATURES`` and of ``TYPE_FEATURES``."""

    features: tuple[str, ...] = ()
    type_features: tuple[str, ...] = ()

    @property
    def n_weights(self) -> int:
        return len(BENDS) * (1 + len(self.features)) + len(self.type_features)


class MarketBender:
    """A policy for the observations of ``hetenv/Market-v0``.

    Args:
        weights: (inputs.n_weights,) float64: a constant and the slopes for each of ``BENDS``, then the slopes of the
            price in the features of its type.
    """

    def __init__(self, weights: np.ndarray, inputs: Inputs) -> None:
        self.weights, self.inputs = np.array(weights, np.float64), inputs
        n_shared = len(BENDS) * (1 + len(inputs.features))
        self._shared = self.weights[:n_shared].reshape(len(BENDS), -1)  # (5, 1 + F)
        self._of_type = self.weights[n_shared:]  # (T,)

    @classmethod
    def constant(cls, inputs: Inputs, constants: Sequence[float]) -> MarketBender:
        """Bends alike in every state: ``constants`` (5,), one for each of ``BENDS``; all slopes are 0."""
        weights = np.zeros(inputs.n_weights)
        weights[: len(BENDS) * (1 + len(inputs.features)) : 1 + len(inputs.features)] = constants
        return cls(weights, inputs)

    def greedy_actions(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """(B, M + 4) float32, the action for each of a batch of observations."""
        n_batch, n_types = observations["types"].shape[:2]
        features = np.ones((n_batch, 1 + len(self.inputs.features)))
        for column, name in enumerate(self.inputs.features, start=1):
            array, places = FEATURES[name]
            own = observations[array]
            for at in places:
                own = own[:, at]
            features[:, column] = own
        bends = features @ self._shared.T  # (B, 5)
        price = np.repeat(bends[:, :1], n_types, axis=1)  # (B, M)
        for slope, name in zip(self._of_type, self.inputs.type_features, strict=True):
            array, column = TYPE_FEATURES[name]
            price += slope * observations[array][:, :, column]
        return np.clip(np.concatenate([PRICE_UNIT * price, bends[:, 1:]], axis=1), -1.0, 1.0).astype(np.float32)


def constants_of(tuned: Parameters) -> tuple[float, ...]:
    """(5,) for ``BENDS``: what market-tuned does under its parameters, as far as the environment's actions reach."""
    factors = np.array([tuned.waiting_factor, tuned.restart_factor])
    waiting, restart = (np.log(np.maximum(factors, 1.0 / FACTOR_REACH)) / np.log(FACTOR_REACH)).tolist()
    return 0.0, *np.clip((tuned.weight_exponent, waiting, 0.0, restart), -1.0, 1.0).tolist()

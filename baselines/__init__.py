"""Schedulers to compare with: ``make("jps")`` gives one by name, ``names()`` lists them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from baselines.exact import Exact
from baselines.fifo import FIFO
from baselines.fifo_perf import FIFOPerf
from baselines.gavel import Gavel
from baselines.jps import JPS
from baselines.market import Market
from baselines.market_tuned import MarketTuned, tuned_for
from baselines.sjf import SJF
from baselines.srtf import SRTF
from baselines.tiresias import Tiresias
from hetenv.errors import InputError
from hetenv.scheduler import Scheduler

__all__ = ["make", "make_for", "names"]

# Name -> what makes it, and the options the name stands for.
_REGISTRY: Mapping[str, tuple[Callable[..., Scheduler], Mapping[str, Any]]] = {
    "fifo": (FIFO, {}),
    "fifo-skip": (FIFO, {"backfill": "skip"}),
    "fifo-easy": (FIFO, {"backfill": "easy"}),
    "fifo-perf": (FIFOPerf, {}),
    "sjf": (SJF, {}),
    "srtf": (SRTF, {}),
    "tiresias": (Tiresias, {}),
    "gavel": (Gavel, {}),
    "jps": (JPS, {}),
    "market": (Market, {}),
    "market-tuned": (MarketTuned, {}),
    "exact": (Exact, {}),
}


def names() -> tuple[str, ...]:
    """The names that ``make`` knows."""
    return tuple(_REGISTRY)


def make(name: str, **options: Any) -> Scheduler:
    """A scheduler by name, with its options.

    Raises:
        InputError: an unknown name, an option the scheduler does not have, or a bad value of one.
    """
    if name not in _REGISTRY:
        raise InputError("scheduler", repr(name), f"use one of {', '.join(_REGISTRY)}")
    factory, preset = _REGISTRY[name]
    known = inspect.signature(factory).parameters
    if unknown := sorted(set(options) - (set(known) - set(preset))):
        free = ", ".join(option for option in known if option not in preset) or "none"
        raise InputError(f"scheduler {name}, option {unknown[0]}", "unknown", f"its options: {free}")
    return factory(**preset, **options)


def make_for(scenario: str, name: str, /, **options: Any) -> Scheduler:
    """``make``, tuned for the scenario of that name where the scheduler has parameters that are; see ``tuned_for``."""
    if name in _REGISTRY and "scenario" in inspect.signature(_REGISTRY[name][0]).parameters:
        options = {"scenario": tuned_for(scenario)} | options
    return make(name, **options)

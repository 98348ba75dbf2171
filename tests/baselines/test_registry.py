"""Schedulers by name."""

from __future__ import annotations

import numpy as np
import pytest

import baselines
from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.scheduler import DECISIONS, Scheduler


@pytest.mark.parametrize("name", baselines.names())
def test_every_name_makes_a_scheduler_of_that_name(name):
    scheduler = baselines.make(name)
    assert isinstance(scheduler, Scheduler)
    assert scheduler.name == name
    assert scheduler.decides <= DECISIONS
    scheduler.reset(Cluster.from_counts({"a": 1}), 0)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match=r"scheduler: 'fio'; use one of fifo, fifo-skip, .*exact"):
        baselines.make("fio")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("sjf", {"speed": 1}, "scheduler sjf, option speed: unknown; its options: none"),
        ("fifo-easy", {"backfill": "skip"}, "scheduler fifo-easy, option backfill"),
        (
            "market",
            {"samples": 3},
            "option samples: unknown; its options: waiting_factor, weight_exponent, max_jobs, fairness",
        ),
        ("fifo", {"backfill": "lazy"}, "option backfill: 'lazy'; use one of strict, skip, easy"),
        ("jps", {"samples": 0}, "option samples: 0; give a whole number of at least 1"),
        ("jps", {"samples": 2.5}, "option samples: 2.5"),
        ("jps", {"beta": 1.5}, "option beta: 1.5; give a finite number of at least 0 and of at most 1"),
        ("market", {"waiting_factor": -1}, "option waiting_factor: -1; give a finite number of at least 0"),
        ("market", {"weight_exponent": np.nan}, "option weight_exponent: nan; give a finite number"),
        ("exact", {"max_jobs": True}, "option max_jobs: True"),
        ("market", {"fairness_exponent": "much"}, "option fairness_exponent: 'much'; give a finite number"),
        ("market", {"start": "hot"}, "option start: 'hot'; use one of cold, warm"),
    ],
)
def test_bad_options_are_named(name, options, words):
    with pytest.raises(InputError, match=words):
        baselines.make(name, **options)

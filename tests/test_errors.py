"""Errors keep their message on the way home from a worker process."""

from __future__ import annotations

import pickle

from hetenv.errors import InputError


def test_input_errors_travel_between_processes() -> None:
    error = InputError("jobs.csv, line 3, min_gpus", 0, "give a whole number of at least 1")
    assert str(error) == "jobs.csv, line 3, min_gpus: 0; give a whole number of at least 1"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_long_values_are_cut() -> None:
    message = str(InputError("jobs.csv, line 3, model", "a" * 70_000, "give one of " + "b" * 70_000))
    assert message.startswith("jobs.csv, line 3, model: aaa")
    assert "; give one of bbb" in message
    assert len(message) < 1_100

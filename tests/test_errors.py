"""Errors keep their message on the way home from a worker process."""

from __future__ import annotations

import pickle

from hetenv.errors import InputError


def test_input_errors_travel_between_processes() -> None:
    error = InputError("jobs.csv, line 3, min_gpus", 0, "give a whole number of at least 1")
    assert str(error) == "jobs.csv, line 3, min_gpus: 0; give a whole number of at least 1"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)

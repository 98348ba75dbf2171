"""Errors keep their message on the way home from a worker process."""

from __future__ import annotations

import pickle

from hetenv.errors import InputError


def test_input_errors_travel_between_processes() -> None:
    error = InputError("jobs.csv, line 3, min_gpus", 0, "give a whole number of at least 1")
    assert str(error) == "jobs.csv, line 3, min_gpus: 0; give a whole number of at least 1"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_users_wrote_is_cut_and_stays_on_one_line() -> None:
    message = str(InputError(f"jobs.csv, line 3, job {'c' * 70_000}", "a\nb" * 70_000, "give one of " + "d" * 70_000))
    assert message.startswith("jobs.csv, line 3, job ccc")
    assert ": a ba b" in message
    assert "; give one of ddd" in message
    assert len(message) < 1_600
    assert "\n" not in message

"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

import hetenv.compiled

hetenv.compiled._FirstCompilation.said = True  # no line about it amid what tests expect on stderr

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of traces and outside results that lies beside a checkout; tests skip without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"needs the traces and oracles of {SHARED}, which is absent")
    return SHARED

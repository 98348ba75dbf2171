"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
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


@pytest.fixture(scope="session", autouse=True)
def _learners_log_where_pytest_tidies_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stable-Baselines3 makes a folder for each learner without a logger of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))
        yield

"""Where hetenv keeps what it can make or fetch again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_dir() -> Path:
    """The user's cache folder for hetenv; ``HETENV_CACHE_DIR`` moves it."""
    return Path(os.environ.get("HETENV_CACHE_DIR") or user_cache_path("hetenv"))

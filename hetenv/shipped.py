"""Where the shipped YAML and CSV files are."""

from __future__ import annotations

from pathlib import Path


def config_dir() -> Path:
    """The folder ``configs``: inside the installed package, or at the top of the checkout."""
    installed = Path(__file__).parent / "configs"
    return installed if installed.is_dir() else Path(__file__).parents[1] / "configs"

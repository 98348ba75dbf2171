"""Checks of scheduler options: what is wrong, and what would be right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hetenv.errors import InputError


def one_of(option: str, value: str, choices: Sequence[str]) -> str:
    """``value`` if it is one of ``choices``; otherwise InputError names the option."""
    if value not in choices:
        raise InputError(f"option {option}", repr(value), f"use one of {', '.join(choices)}")
    return value


def whole(option: str, value: int, least: int) -> int:
    """``value`` if it is a whole number of at least ``least``; otherwise InputError names the option."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"option {option}", repr(value), f"give a whole number of at least {least}")
    return value


def number(option: str, value: float, least: float = -math.inf, most: float = math.inf) -> float:
    """``value`` if it is a finite number from ``least`` to ``most``; otherwise InputError names the option."""
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not math.isfinite(value)
        or not least <= value <= most
    ):
        bounds = [f"of at least {least:g}"] * (least > -math.inf) + [f"of at most {most:g}"] * (most < math.inf)
        raise InputError(
            f"option {option}", repr(value), " ".join(["give a finite number", " and ".join(bounds)]).strip()
        )
    return float(value)

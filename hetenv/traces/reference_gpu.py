"""Recorded run times as work, and the relative speeds of the types that carry it out.

Most traces tell how long a job ran on how many GPUs of a cluster whose hardware they leave open.
One rule makes such a record a job: *the recorded duration is the run time on reference GPUs of
speed 1*. A job of ``n`` GPUs and ``d`` seconds becomes ``d`` iterations of ``n`` samples, so that
``n`` GPUs of speed 1 sample/s need exactly ``d`` seconds, and GPUs of relative speed 2 half of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hetenv.errors import InputError


def relative_speed(type_speed: Mapping[str, float], types: Sequence[str]) -> np.ndarray:
    """(M,) speed of each of ``types`` relative to the reference GPU; all 1 where ``type_speed`` is empty.

    Entries for types that are not asked for are ignored, so that one mapping serves several clusters.

    Raises:
        InputError: a type without an entry, a negative or infinite speed, or no positive speed at all.
    """
    if not type_speed:
        return np.ones(len(types))
    if missing := [name for name in types if name not in type_speed]:
        known = ", ".join(type_speed)
        raise InputError("type_speed", f"no speed for GPU type {missing[0]}", f"add it to those given ({known})")
    speed = np.array([type_speed[name] for name in types], float)
    if not (np.isfinite(speed).all() and (speed >= 0).all() and (speed > 0).any()):
        raise InputError("type_speed", dict(type_speed), "give speeds of 0 or more, at least one of them positive")
    return speed


def recorded_work(duration_s: np.ndarray, n_gpus: np.ndarray, speed: np.ndarray) -> dict[str, Any]:
    """Columns of rigid jobs that ran ``duration_s`` (J,) on ``n_gpus`` (J,) reference GPUs.

    Args:
        duration_s: (J,) seconds.
        n_gpus: (J,) GPUs, held from start to end.
        speed: (M,) relative speeds, the same for every job.
    """
    return {
        "iterations": duration_s,
        "batch": n_gpus,
        "min_gpus": n_gpus,
        "max_gpus": n_gpus,
        "speed": np.tile(speed, (len(duration_s), 1)),  # (J, M)
    }

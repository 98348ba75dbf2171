"""Recorded run times as work, and the relative speeds of the types that carry it out.

Most traces tell how long a job ran on how many GPUs of a cluster whose hardware they leave open.
One rule makes such a record a job: *the recorded duration is the run time on reference GPUs of
speed 1*. A job of ``n`` GPUs and ``d`` seconds becomes ``d`` iterations of ``n`` samples, so that
``n`` GPUs of speed 1 sample/s need exactly ``d`` seconds, and GPUs of relative speed 2 half of it.
Where a record names the type it ran on and ``type_speed`` knows that type, its speed takes the place
of 1: the same record on a GPU twice as fast is twice the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hetenv.errors import InputError


def relative_speed(type_speed: Mapping[str, float], types: Sequence[str]) -> np.ndarray:
    """(M,) speed of each of ``types`` relative to the reference GPU; all 1 where ``type_speed`` is empty. Read-only.

    Entries for types that are not asked for are ignored, so that one mapping serves several clusters.

    Raises:
        InputError: a type without an entry, a negative or infinite speed, or no positive speed at all.
    """
    return _relative_speed(tuple(type_speed.items()), tuple(types))


@lru_cache(maxsize=64)  # generators ask at every reset of an environment
def _relative_speed(items: tuple[tuple[str, float], ...], types: tuple[str, ...]) -> np.ndarray:
    type_speed = dict(items)
    if missing := [name for name in types if name not in type_speed and type_speed]:
        known = ", ".join(type_speed)
        raise InputError("type_speed", f"no speed for GPU type {missing[0]}", f"add it to those given ({known})")
    speed = np.array([type_speed[name] if type_speed else 1.0 for name in types], float)
    if not (np.isfinite(speed).all() and (speed >= 0).all() and (speed > 0).any()):
        raise InputError("type_speed", type_speed, "give speeds of 0 or more, at least one of them positive")
    speed.flags.writeable = False
    return speed


def speed_of_records(type_speed: Mapping[str, float], gpu_type: np.ndarray) -> np.ndarray:
    """(J,) relative speed of the type that each record ran on; 1 where the record or ``type_speed`` leaves it open.

    A record that allows several types, such as "V100M16|V100M32", is taken to have run on the first.
    """
    speed = {name: type_speed.get(name.partition("|")[0]) or 1.0 for name in set(gpu_type)}
    return np.array([speed[name] for name in gpu_type], float)


def recorded_work(
    duration_s: np.ndarray, n_gpus: np.ndarray, speed: np.ndarray, ran_at: np.ndarray | float = 1.0
) -> dict[str, Any]:
    """Columns of rigid jobs that ran ``duration_s`` on ``n_gpus`` GPUs of speed ``ran_at``.

    The work is duration x GPUs x speed of the type it ran on: so many iterations as a GPU of speed 1
    needs seconds, of one sample a GPU.

    Args:
        duration_s: (J,) seconds.
        n_gpus: (J,) GPUs, held from start to end.
        speed: (M,) relative speeds, the same for every job.
        ran_at: (J,) relative speed of the GPUs that the record ran on.
    """
    return {
        "iterations": duration_s * ran_at,
        "batch": n_gpus,
        "min_gpus": n_gpus,
        "max_gpus": n_gpus,
        "speed": np.tile(speed, (len(duration_s), 1)),  # (J, M)
    }

"""Learned policies: ``load("runs/ppo/best.zip")`` gives one as a scheduler.

Training is in ``agents.training``; torch and Stable-Baselines3 are imported only once they are needed.
"""

from __future__ import annotations

from pathlib import Path

from hetenv.scheduler import Scheduler

__all__ = ["load"]


def load(path: str | Path) -> Scheduler:
    """The policy that ``scripts/train.py`` saved in ``best.zip`` or ``last.zip``, playing its likeliest actions.

    Raises:
        InputError: no such file, or not a policy that this project saved.
    """
    from agents.scheduler import load_scheduler

    return load_scheduler(Path(path))

"""Learned policies: ``load("runs/ppo/best.zip")`` gives one as a scheduler.

Training is in ``agents.training``; torch and Stable-Baselines3 are imported only once they are needed.
"""

from __future__ import annotations

from pathlib import Path

from hetenv.scheduler import Scheduler

__all__ = ["load", "policy_name"]


def load(path: str | Path) -> Scheduler:
    """The policy that ``scripts/train.py`` saved in ``best.zip`` or ``last.zip``, playing its likeliest actions.

    Raises:
        InputError: no such file, or not a policy that this project saved.
    """
    from agents.scheduler import load_scheduler

    return load_scheduler(Path(path))


def policy_name(path: str | Path) -> str:
    """What tables call the policy in ``path``: its folder and its name, as in ``ppo/best``."""
    whole = Path(path).resolve().with_suffix("")
    return f"{whole.parent.name}/{whole.name}"

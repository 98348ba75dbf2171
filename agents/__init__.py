"""Learned policies: ``load("runs/ppo/best.zip")`` or ``load("pretrained:online")`` gives one as a scheduler.

``origin`` tells how one was made.

Training is in ``agents.training``; torch and Stable-Baselines3 are imported only once they are needed.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from hetenv.errors import InputError
from hetenv.scheduler import Scheduler

if TYPE_CHECKING:
    from agents.saving import Origin

__all__ = ["is_policy", "load", "origin", "policy_name", "policy_path"]

PRETRAINED = "pretrained:"
_FOLDER = Path(__file__).parent / "pretrained"


def load(source: str | Path) -> Scheduler:
    """A policy that plays its likeliest actions.

    Args:
        source: a file that ``scripts/train.py`` saved, .zip or .npz, or ``pretrained:`` and the name of one that
            ships, which is that of the scenario it was trained on.

    Raises:
        InputError: no such file or name, or not a policy that this project saved.
    """
    path = policy_path(source)  # before the seconds that importing torch takes
    from agents.scheduler import load_scheduler

    return load_scheduler(path, policy_name(source))


def origin(source: str | Path) -> Origin:
    """What made a policy: algorithm, scenario with its overrides, and the YAML of the whole run, seed included.

    Args:
        source: as for ``load``.
    """
    path = policy_path(source)
    from agents.saving import load_policy

    return load_policy(path)[1]


def is_policy(text: str) -> bool:
    """Whether ``text`` names a policy rather than a scheduler of ``baselines``."""
    return text.startswith(PRETRAINED) or text.endswith((".zip", ".npz"))


def policy_path(source: str | Path) -> Path:
    """The file that ``load`` would read; InputError if there is none."""
    text = str(source)
    if text.startswith(PRETRAINED):
        path = _FOLDER / f"{text.removeprefix(PRETRAINED)}.npz"
        if path.parent != _FOLDER or not path.is_file():
            names = ", ".join(sorted(file.stem for file in _FOLDER.glob("*.npz"))) or "none in this version"
            raise InputError(text, "no such policy", f"pretrained are {names}")
        return path
    path = Path(source)
    if not zipfile.is_zipfile(path):  # .npz is one as well
        fault = "not a zip file" if path.exists() else "no such file"
        raise InputError(text, fault, "name a policy that scripts/train.py saved")
    return path


def policy_name(source: str | Path) -> str:
    """What tables call a policy: ``pretrained:online``, or its folder and its name, as in ``ppo/best``."""
    if str(source).startswith(PRETRAINED):
        return str(source)
    whole = Path(source).resolve().with_suffix("")
    return f"{whole.parent.name}/{whole.name}"

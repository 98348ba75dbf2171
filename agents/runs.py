"""The folder that a training run leaves behind: what it was, and what came of it."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from stable_baselines3.common.logger import Logger, configure

from agents.config import RunSettings
from agents.held_out import HeldOut
from hetenv.errors import InputError

_PACKAGES = ("hetenv", "cma", "stable_baselines3", "torch", "gymnasium", "numpy", "numba")


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run.

    Attributes:
        evaluation: the content of ``evaluation.json``.
    """

    interrupted: bool
    evaluation: dict[str, Any]


def require_empty(folder: Path) -> None:
    """Refuse, by InputError, a folder in which a run could overwrite something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(str(folder), "is not empty", "choose another folder, or move this one away")


def begin_folder(folder: Path, config: RunSettings) -> None:
    """Write config.yaml and versions.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
    _write_json(
        folder / "versions.json",
        {"python": platform.python_version(), "git": _revision()} | {p: version(p) for p in _PACKAGES},
    )


def event_logger(folder: Path) -> Logger:
    """Writes TensorBoard events into ``folder``."""
    return configure(str(folder), ["tensorboard"])


def end_folder(
    folder: Path, config: RunSettings, held_out: HeldOut, n_steps: int, wall_s: float, interrupted: bool
) -> Run:
    """Write evaluation.json."""

    def entry(step: int, figures: Any) -> dict[str, Any]:
        return {"step": step} | figures._asdict()

    evaluation = {
        "scenario": config.env_kwargs.scenario,
        "seed": config.evaluation.seed,
        "episodes": config.evaluation.episodes,
        "steps": n_steps,
        "wall_s": wall_s,
        "baseline_jct_s": dict(held_out.baseline_jct_s),
        "best": entry(*held_out.best),
        "history": [entry(*evaluation) for evaluation in held_out.history],
        "interrupted": interrupted,
    }
    _write_json(folder / "evaluation.json", evaluation)
    return Run(interrupted, evaluation)


def _revision() -> str | None:
    """Git revision of this code, with a mark if it was changed since; None outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40", "--match="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)

"""The folder of a training run: what it is, how far it has come, and what came of it."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agents.budget import Budget
from agents.config import RunSettings, as_yaml, load_config
from agents.figures import Figures
from agents.saving import Origin
from hetenv.errors import InputError
from hetenv.files import remove_drafts, replace_file

_PACKAGES = ("hetenv", "cma", "stable_baselines3", "torch", "gymnasium", "numpy", "numba")
_EVALUATION = "evaluation.json"


class Run:
    """A run on its way, or one that has ended.

    ``evaluation.json`` is written last of all files of an evaluation, so that whatever it tells of is there.

    Args:
        folder: new, empty or, for ``read``, that of an earlier session.
        baselines: figures of other schedulers on the held-out episodes.
        used_s: seconds that earlier sessions took.

    Attributes:
        history: step and figures of each evaluation so far.
        steps: environment steps taken.
        wall_s: seconds the run took in all sessions until it was last written.
        resumed_at: steps at which a later session took over.
        interrupted: whether budget is left; so it stands in the file until the run has ended.
    """

    def __init__(
        self, folder: Path, config: RunSettings, baselines: Mapping[str, Figures], used_s: float = 0.0
    ) -> None:
        self.folder, self.config, self.baselines = folder, config, baselines
        self.budget = Budget(config.n_timesteps, config.max_minutes, used_s)
        self.history: list[tuple[int, Figures]] = []
        self.resumed_at: list[int] = []
        self.steps, self.wall_s, self.interrupted = 0, used_s, True

    @classmethod
    def read(cls, folder: Path) -> Run:
        """What a run that was killed or interrupted has left.

        Raises:
            InputError: there is none, or it had used up its budget.
        """
        try:
            content = json.loads((folder / _EVALUATION).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            remedy = "name the folder of a run that was stopped, or start one with --config"
            raise InputError(str(folder), "no run that has evaluated anything", remedy) from None
        config = load_config(folder / "config.yaml")
        baselines = {name: Figures(**own) for name, own in content["baselines"].items()}
        run = cls(folder, config, baselines, content["wall_s"])
        run.history = [(entry.pop("step"), Figures(**entry)) for entry in content["history"]]
        run.resumed_at, run.steps = content["resumed_at"], content["steps"]
        if run.budget.share_left(run.steps) == 0.0:
            remedy = "raise n_timesteps or max_minutes there to let it go on"
            raise InputError(str(folder / "config.yaml"), "its budget is used up", remedy)
        remove_drafts(folder)
        return run

    @property
    def origin(self) -> Origin:
        """What the run's policies carry with them."""
        return Origin(
            env=self.config.env,
            algorithm=self.config.algorithm,
            network=self.config.policy_kwargs.model_dump(),
            config=as_yaml(self.config),
            **self.config.env_kwargs.model_dump(),
        )

    @property
    def best(self) -> tuple[int, Figures]:
        """Step and figures of the evaluation with the least mean JCT."""
        return min(self.history, key=lambda entry: entry[1].mean_jct_s)

    @property
    def evaluation(self) -> dict[str, Any]:
        """The content of ``evaluation.json``.

        All but ``wall_s`` follows from the configuration, unless the run was resumed or time ended it.
        """

        def entry(step: int, figures: Figures) -> dict[str, Any]:
            return {"step": step} | figures._asdict()

        return {
            "scenario": self.config.env_kwargs.scenario,
            "seed": self.config.evaluation.seed,
            "episodes": self.config.evaluation.episodes,
            "steps": self.steps,
            "wall_s": self.wall_s,
            "baselines": {name: figures._asdict() for name, figures in self.baselines.items()},
            "best": entry(*self.best),
            "history": [entry(*evaluation) for evaluation in self.history],
            "resumed_at": self.resumed_at,
            "interrupted": self.interrupted,
        }

    def begin(self) -> None:
        """Write config.yaml and versions.json."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replace_file(self.folder / "config.yaml") as file:
            file.write(as_yaml(self.config))
        versions = {"python": platform.python_version(), "git": _revision()} | {p: version(p) for p in _PACKAGES}
        _write_json(self.folder / "versions.json", versions)

    def write(self) -> None:
        """Write evaluation.json."""
        self.wall_s = self.budget.elapsed_s
        _write_json(self.folder / _EVALUATION, self.evaluation)


def require_empty(folder: Path) -> None:
    """Refuse, by InputError, a folder in which a run could overwrite something."""
    if (folder / _EVALUATION).is_file():
        raise InputError(str(folder), "is not empty", "choose another folder, or continue its run with --resume")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(str(folder), "is not empty", "choose another folder, or move this one away")


def _revision() -> str | None:
    """Git revision of this code, with a mark if it was changed since; None outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40", "--match="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    with replace_file(path) as file:
        file.write(json.dumps(content, indent=2) + "\n")

"""The matching market with parameters tuned on training seeds: the strongest scheduler here that learns no policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from baselines.market import Market
from hetenv.config import config_dir, parse_model, read_yaml
from hetenv.errors import InputError

DEFAULT = "default"  # the file found over all scenarios with a stream of jobs, all but paper-batch


class Parameters(BaseModel):
    """What scripts/tune.py searches: three numbers of ``hetenv.epoch.OnlineObjective``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    waiting_factor: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    weight_exponent: Annotated[float, Field(allow_inf_nan=False)]
    restart_factor: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 1.0  # without effect where no job changes


class _TunedFile(BaseModel):
    parameters: Parameters  # beside them the file says how they were found


class MarketTuned(Market):
    """``market`` with the waiting, restart factor and weight exponent of least mean JCT on training seeds (ours).

    The paper's objective, solved afresh at each event, is not optimal over a stream: it knows of the next releases,
    not of the arrivals to come, and takes a change of running jobs for the last one. Short jobs first, less patience
    and dearer restarts mend part of that. The parameters lie in
    ``configs/tuned``, one file a scenario, found by scripts/tune.py on seeds below 1000. It decides what ``market``
    does, and starts each search for prices warm.

    Args:
        scenario: a name of ``configs/tuned``, or the path of a .yaml file that scripts/tune.py wrote; by default
            robust parameters, found over all shipped scenarios with a stream of jobs.
        waiting_factor, weight_exponent, restart_factor: instead of those of the file.
        max_jobs: see ``OnlineScheduler``.

    Raises:
        InputError: no such file, a fault in it, or a bad option.
    """

    name = "market-tuned"

    def __init__(
        self,
        scenario: str = DEFAULT,
        waiting_factor: float | None = None,
        weight_exponent: float | None = None,
        max_jobs: int = 128,
        restart_factor: float | None = None,
    ) -> None:
        given = {
            "waiting_factor": waiting_factor,
            "weight_exponent": weight_exponent,
            "restart_factor": restart_factor,
        }
        tuned = tuned_parameters(scenario).model_dump()
        chosen = tuned | {name: value for name, value in given.items() if value is not None}
        super().__init__(max_jobs=max_jobs, start="warm", **chosen)


def tuned_scenarios() -> list[str]:
    """Names of the files in ``configs/tuned``."""
    return sorted(file.stem for file in (config_dir() / "tuned").glob("*.yaml"))


def tuned_for(scenario: str) -> str:
    """The file of ``configs/tuned`` for the scenario of that name: its own, or the one for all."""
    return scenario if scenario in tuned_scenarios() else DEFAULT


def tuned_parameters(scenario: str) -> Parameters:
    """The parameters in a file of ``configs/tuned``, by name, or in a .yaml file by path.

    Raises:
        InputError: no such name or file, or a key that is missing, unknown or out of range.
    """
    folder = config_dir() / "tuned"
    shipped, own = folder / f"{scenario}.yaml", Path(str(scenario))
    if shipped.parent == folder and shipped.is_file():
        path = shipped
    elif own.suffix in (".yaml", ".yml") and own.is_file():
        path = own
    else:
        names = ", ".join(tuned_scenarios())
        raise InputError(
            "option scenario", repr(scenario), f"use one of {names}, or the path of a .yaml file of scripts/tune.py"
        )
    tuned: _TunedFile = parse_model(_TunedFile, read_yaml(path), str(path))
    return tuned.parameters

"""Trained models as files: the zip of Stable-Baselines3, with what is needed to play the policy again.

``PPO.load`` reads these files too. Reading one here takes the JSON and the weights alone: no code in it is run.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from stable_baselines3.common.base_class import BaseAlgorithm

from agents.network import PairNetwork
from hetenv.config import parse_model
from hetenv.errors import InputError

_REMEDY = "give a policy that scripts/train.py saved"


class Origin(BaseModel):
    """Where a model comes from; kept in the zip as the plain attribute ``hetenv`` of the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    algorithm: str
    scenario: str
    overrides: dict[str, Any]
    network: dict[str, Any]  # arguments of PairNetwork


def save_model(model: BaseAlgorithm, origin: Origin, path: Path) -> None:
    """Write ``model`` to ``path``, which holds the old or the new content at every moment."""
    vars(model).update(hetenv=origin.model_dump())  # Stable-Baselines3 saves all plain attributes
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("wb") as file:
            model.save(file)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def load_network(path: Path) -> tuple[PairNetwork, Origin]:
    """The network in a file that ``save_model`` wrote, on the CPU.

    Raises:
        InputError: no such file, or not one of ours.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            attributes = json.loads(archive.read("data"))
            weights = io.BytesIO(archive.read("policy.pth"))
    except OSError as error:
        raise InputError(str(path), error.strerror or error, _REMEDY) from None
    except (zipfile.BadZipFile, KeyError, ValueError):
        raise InputError(str(path), "not a zip of Stable-Baselines3", _REMEDY) from None
    if "hetenv" not in attributes:
        raise InputError(str(path), "a model of another project", _REMEDY)
    origin = parse_model(Origin, attributes["hetenv"], str(path))
    network = PairNetwork(**origin.network)
    prefix = "network."  # as PairPolicy calls it
    try:
        state = torch.load(weights, map_location="cpu", weights_only=True)
        network.load_state_dict({key.removeprefix(prefix): value for key, value in state.items()})
    except (RuntimeError, pickle.UnpicklingError):
        raise InputError(str(path), "its weights do not fit this version's network", "train it again") from None
    return network.eval(), origin

"""Trained policies as files, with what is needed to play them again; reading one runs no code that is in it.

A network lies in the zip of Stable-Baselines3, which ``PPO.load`` reads too; here only its JSON and its weights
are read. A scorer lies in a .npz of plain arrays.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from stable_baselines3.common.base_class import BaseAlgorithm

from agents.config import PolicyKwargs, ScorerKwargs
from agents.network import PairNetwork
from agents.scorer import PairScorer, Shape
from hetenv.config import parse_model
from hetenv.errors import InputError
from hetenv.files import replace_file

_REMEDY = "give a policy that scripts/train.py saved"


class GreedyPolicy(Protocol):
    """What plays placements."""

    def greedy_actions(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """(B,) the likeliest action for each of a batch of observations."""


class Origin(BaseModel):
    """Where a model comes from; kept in the zip as the plain attribute ``hetenv`` of the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    algorithm: str
    scenario: str
    overrides: dict[str, Any]
    network: dict[str, Any]  # arguments of PairNetwork, or the Shape of a PairScorer
    config: str = ""  # YAML of the run that made it, seed included; empty before runs told it


def save_model(model: BaseAlgorithm, origin: Origin, path: Path) -> None:
    """Write ``model`` to ``path``, which holds the old or the new content at every moment."""
    vars(model).update(hetenv=origin.model_dump())  # Stable-Baselines3 saves all plain attributes
    with replace_file(path, "wb") as file:
        model.save(file)  # type: ignore[arg-type]  # any open file will do


def save_scorer(scorer: PairScorer, origin: Origin, path: Path) -> None:
    """Write ``scorer`` to ``path`` likewise."""
    arrays: dict[str, Any] = {"weights": scorer.weights, "origin": np.array(origin.model_dump_json())}
    with replace_file(path, "wb") as file:
        np.savez(file, **arrays)


def load_policy(path: Path) -> tuple[GreedyPolicy, Origin]:
    """The policy in a file of ours, whatever its kind.

    Raises:
        InputError: no such file, or not one of ours.
    """
    return load_scorer(path) if path.suffix == ".npz" else load_network(path)


def load_scorer(path: Path) -> tuple[PairScorer, Origin]:
    """The scorer in a file that ``save_scorer`` wrote."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            weights, content = arrays["weights"], json.loads(str(arrays["origin"]))
    except OSError as error:
        raise InputError(str(path), error.strerror or error, _REMEDY) from None
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError):
        raise InputError(str(path), "not a file of a scorer", _REMEDY) from None
    origin: Origin = parse_model(Origin, content, str(path))
    shape = Shape(**parse_model(ScorerKwargs, origin.network, str(path)).model_dump())
    if weights.dtype != np.float64 or weights.shape != (shape.n_weights,) or not np.isfinite(weights).all():
        raise InputError(str(path), "its weights do not fit this version's scorer", "train it again")
    return PairScorer(weights, shape), origin


def restore_model(model: BaseAlgorithm, path: Path) -> None:
    """Weights, state of the optimizer and number of steps from a file that ``save_model`` wrote.

    Args:
        model: made with the same arguments as the one that was saved.

    Raises:
        InputError: no such file, or not one of ours.
    """
    attributes, _ = _read_zip(path)
    model.set_parameters(str(path), device="cpu")
    model.num_timesteps, model._n_updates = attributes["num_timesteps"], attributes["_n_updates"]


def load_network(path: Path) -> tuple[PairNetwork, Origin]:
    """The network in a file that ``save_model`` wrote, on the CPU.

    Raises:
        InputError: no such file, or not one of ours.
    """
    attributes, weights = _read_zip(path)
    if "hetenv" not in attributes:
        raise InputError(str(path), "a model of another project", _REMEDY)
    origin = parse_model(Origin, attributes["hetenv"], str(path))
    network = PairNetwork(**parse_model(PolicyKwargs, origin.network, str(path)).model_dump())
    prefix = "network."  # as PairPolicy calls it
    try:
        state = torch.load(weights, map_location="cpu", weights_only=True)
        network.load_state_dict({key.removeprefix(prefix): value for key, value in state.items()})
    except (RuntimeError, pickle.UnpicklingError):
        raise InputError(str(path), "its weights do not fit this version's network", "train it again") from None
    return network.eval(), origin


def _read_zip(path: Path) -> tuple[dict[str, Any], IO[bytes]]:
    """The attributes of a model as Stable-Baselines3 saved it, none of them unpickled, and its policy's weights."""
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read("data")), io.BytesIO(archive.read("policy.pth"))
    except OSError as error:
        raise InputError(str(path), error.strerror or error, _REMEDY) from None
    except (zipfile.BadZipFile, KeyError, ValueError):
        raise InputError(str(path), "not a zip of Stable-Baselines3", _REMEDY) from None

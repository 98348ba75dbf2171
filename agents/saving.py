"""Trained policies as files, with what is needed to play them again; reading one runs no code that is in it.

A network lies in the zip of Stable-Baselines3, which ``PPO.load`` reads too; here only its JSON and its weights
are read. What was bred, a scorer or a bender, lies in a .npz of plain arrays.
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

from agents.bender import Inputs, MarketBender
from agents.config import BenderKwargs, PolicyKwargs, ScorerKwargs
from agents.network import PairNetwork
from agents.scorer import PairScorer, Shape
from agents.zoo import MARKET, PLACEMENT
from hetenv.config import parse_model
from hetenv.errors import InputError
from hetenv.files import replace_file

_REMEDY = "give a policy that scripts/train.py saved"
Bred = PairScorer | MarketBender


class GreedyPolicy(Protocol):
    """What plays one of the environments."""

    def greedy_actions(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """(B, ...) the likeliest action for each of a batch of observations."""


class Origin(BaseModel):
    """Where a model comes from; kept in the zip as the plain attribute ``hetenv`` of the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: str = PLACEMENT
    algorithm: str
    scenario: str
    overrides: dict[str, Any]
    network: dict[str, Any]  # arguments of PairNetwork, the Shape of a PairScorer or the Inputs of a MarketBender
    config: str = ""  # YAML of the run that made it, seed included; empty before runs told it


def save_model(model: BaseAlgorithm, origin: Origin, path: Path) -> None:
    """Write ``model`` to ``path``, which holds the old or the new content at every moment."""
    vars(model).update(hetenv=origin.model_dump())  # Stable-Baselines3 saves all plain attributes
    with replace_file(path, "wb") as file:
        model.save(file)  # type: ignore[arg-type]  # any open file will do


def save_bred(policy: Bred, origin: Origin, path: Path) -> None:
    """Write ``policy`` to ``path`` likewise."""
    arrays: dict[str, Any] = {"weights": policy.weights, "origin": np.array(origin.model_dump_json())}
    with replace_file(path, "wb") as file:
        np.savez(file, **arrays)


def load_policy(path: Path) -> tuple[GreedyPolicy, Origin]:
    """The policy in a file of ours, whatever its kind.

    Raises:
        InputError: no such file, or not one of ours.
    """
    return load_bred(path) if path.suffix == ".npz" else load_network(path)


def load_bred(path: Path) -> tuple[Bred, Origin]:
    """The policy in a file that ``save_bred`` wrote."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            weights, content = arrays["weights"], json.loads(str(arrays["origin"]))
    except OSError as error:
        raise InputError(str(path), error.strerror or error, _REMEDY) from None
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError):
        raise InputError(str(path), "not a file of a bred policy", _REMEDY) from None
    origin: Origin = parse_model(Origin, content, str(path))
    if origin.env == MARKET:
        inputs = Inputs(**parse_model(BenderKwargs, origin.network, str(path)).model_dump())
        return MarketBender(_fitting(weights, inputs.n_weights, path), inputs), origin
    shape = Shape(**parse_model(ScorerKwargs, origin.network, str(path)).model_dump())
    return PairScorer(_fitting(weights, shape.n_weights, path), shape), origin


def _fitting(weights: np.ndarray, n_weights: int, path: Path) -> np.ndarray:
    if weights.dtype != np.float64 or weights.shape != (n_weights,) or not np.isfinite(weights).all():
        raise InputError(str(path), "its weights do not fit this version's policy", "train it again")
    return weights


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

"""Checks of the arrays a caller gives: shapes, signs, missing values, each fault named by job or type."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from hetenv.compiled import njit
from hetenv.errors import InputError


def number_array(name: str, value: ArrayLike) -> np.ndarray:
    """``value`` as float64 of any shape, in C order; an array that is so already is not copied."""
    try:
        return np.asarray(value, float, order="C")
    except (TypeError, ValueError):
        raise InputError(name, "not a rectangular array of numbers", "give numbers, as many in each row") from None


def check_entries(
    name: str,
    values: np.ndarray,
    remedy: str | None = None,
    *,
    of: str = "job",
    low: float = -np.inf,
    above: float = -np.inf,
    whole: bool = False,
    finite: bool = True,
) -> None:
    """Raise for the first entry that is no number, or below ``low``, or not ``above``, named as by ``refuse_entry``.

    ``whole``: only whole numbers will do. ``finite``: inf will not. Without an ``above`` nor will -inf.
    The ``remedy`` says as much if it is left out.
    """
    fault = _first_fault(values.reshape(-1), low, above, whole, finite)
    if fault >= 0:
        if remedy is None:
            kind = "a whole number" if whole else "a finite number" if finite else "a number or inf"
            bound = f" above {above:g}" if above > -np.inf else f" of at least {low:g}" if low > -np.inf else ""
            remedy = f"give {kind}{bound}"
        refuse_entry(name, values, fault, remedy, of)


def refuse_entry(name: str, values: np.ndarray, position: int, remedy: str, of: str = "job") -> NoReturn:
    """Raise for the entry at a flat ``position``, named by its leading index ``of`` a job or type."""
    index = tuple(int(n) for n in np.unravel_index(position, values.shape))
    where = f"{name} of {of} {index[0]}" + (f" on type {index[1]}" if len(index) > 1 else "")
    raise InputError(where, values[index], remedy)


@njit
def _first_fault(values, low, above, whole, finite):
    """Position of the first of ``values`` (N,) that ``check_entries`` refuses, or -1."""
    for at in range(values.shape[0]):
        value = values[at]
        good = value >= low and value > above and (value < np.inf or not finite)
        if not good or (whole and value != np.floor(value)):
            return at
    return -1


def per_job(
    name: str,
    value: ArrayLike,
    n_jobs: int,
    *,
    low: float = -np.inf,
    above: float = -np.inf,
    whole: bool = False,
    finite: bool = True,
) -> np.ndarray:
    """(S,) float64 from a scalar or (S,) ``value``, checked as by ``check_entries``; InputError names the job."""
    array = _one_each(name, value, n_jobs, "job")
    check_entries(name, array, low=low, above=above, whole=whole, finite=finite)
    return array


def per_type(name: str, value: ArrayLike, n_types: int, *, low: float = -np.inf, above: float = -np.inf) -> np.ndarray:
    """(M,) float64 from a scalar or (M,) ``value``: at least ``low``, more than ``above``, as ``per_job``."""
    array = _one_each(name, value, n_types, "type")
    finite = above == -np.inf  # a limit from below leaves room for "as fast as you like"
    check_entries(name, array, of="type", low=low, above=above, finite=finite)
    return array


def _one_each(name: str, value: ArrayLike, number: int, of: str) -> np.ndarray:
    array = number_array(name, value)
    if array.shape == (number,):
        return array.copy()
    if array.shape != ():
        raise InputError(name, f"shape {array.shape}", f"give one number or {number}, one per {of}")
    return np.full(number, array)


def gpu_capacity(value: ArrayLike) -> np.ndarray:
    """(M,) int64 GPUs per type, some possibly 0, not all."""
    array = number_array("capacity", value)
    if array.ndim != 1 or array.size == 0:
        raise InputError("capacity", f"shape {array.shape}", "give one number of GPUs per type")
    check_entries("capacity", array, of="type", low=0.0, whole=True)
    if not array.any():
        raise InputError("capacity", "0 GPUs of every type", "give at least one GPU")
    return array.astype(np.int64)


def measured_rates(rate: ArrayLike | None, n_jobs: int, n_types: int) -> tuple[np.ndarray, np.ndarray]:
    """Rates (S, M, G + 1) with 0 for what was not measured, and which jobs (S,) have any."""
    if rate is None:
        return np.zeros((n_jobs, n_types, 1)), np.zeros(n_jobs, bool)
    array = number_array("measured_rate", rate)
    if array.ndim != 3 or array.shape[:2] != (n_jobs, n_types):
        raise InputError("measured_rate", f"shape {array.shape}", f"give shape ({n_jobs}, {n_types}, GPUs + 1)")
    known = np.where(np.isnan(array), 0.0, array)
    check_entries("measured_rate", known, "give iterations/s or NaN", low=0.0)
    return known, ~np.isnan(array).all(axis=(1, 2))

"""Checks of the arrays a caller gives: shapes, signs, missing values, each fault named by job or type."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hetenv.errors import InputError


def number_array(name: str, value: ArrayLike) -> np.ndarray:
    """``value`` as float64 of any shape."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(name, "not a rectangular array of numbers", "give numbers, as many in each row") from None


def check_entries(name: str, values: np.ndarray, good: np.ndarray, remedy: str, of: str = "job") -> None:
    """Raise for the first entry that is not ``good``, named by its leading index ``of`` a job or type."""
    if not good.all():
        index = tuple(int(n) for n in np.argwhere(~good)[0])
        where = f"{name} of {of} {index[0]}" + (f" on type {index[1]}" if len(index) > 1 else "")
        raise InputError(where, values[index], remedy)


def per_job(
    name: str,
    value: ArrayLike,
    n_jobs: int,
    *,
    low: float = -np.inf,
    above: float = -np.inf,
    whole: bool = False,
    infinite: bool = False,
) -> np.ndarray:
    """(S,) float64 from a scalar or (S,) ``value``: at least ``low``, more than ``above``; InputError names the job."""
    array = _one_each(name, value, n_jobs, "job")
    good = (array >= low) & ((array > above) | (above == -np.inf))
    good &= np.isfinite(array) | (infinite & (array == np.inf))
    if whole:
        good &= array == np.floor(array)
    kind = "a whole number" if whole else "a number or inf" if infinite else "a finite number"
    bound = f" above {above:g}" if above > -np.inf else f" of at least {low:g}" if low > -np.inf else ""
    check_entries(name, array, good, f"give {kind}{bound}")
    return array


def per_type(name: str, value: ArrayLike, n_types: int, *, low: float = -np.inf, above: float = -np.inf) -> np.ndarray:
    """(M,) float64 from a scalar or (M,) ``value``: at least ``low``, more than ``above``, as ``per_job``."""
    array = _one_each(name, value, n_types, "type")
    good = (array >= low) & ((array > above) | ((above == -np.inf) & np.isfinite(array)))
    bound = f" above {above:g}" if above > -np.inf else f" of at least {low:g}" if low > -np.inf else ""
    check_entries(name, array, good, f"give a number{bound}", of="type")
    return array


def _one_each(name: str, value: ArrayLike, number: int, of: str) -> np.ndarray:
    array = number_array(name, value)
    if array.shape not in ((), (number,)):
        raise InputError(name, f"shape {array.shape}", f"give one number or {number}, one per {of}")
    return np.broadcast_to(array, (number,)).copy()


def gpu_capacity(value: ArrayLike) -> np.ndarray:
    """(M,) int64 GPUs per type, some possibly 0, not all."""
    array = number_array("capacity", value)
    if array.ndim != 1 or array.size == 0:
        raise InputError("capacity", f"shape {array.shape}", "give one number of GPUs per type")
    good = (array >= 0) & np.isfinite(array) & (array == np.floor(array))
    check_entries("capacity", array, good, "give a whole number of at least 0", of="type")
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
    good = np.isnan(array) | ((array >= 0) & (array < np.inf))
    check_entries("measured_rate", array, good, "give iterations/s or NaN")
    return np.nan_to_num(array, nan=0.0), ~np.isnan(array).all(axis=(1, 2))

"""The workload: a validated table of training jobs, one row a job, sorted by arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hetenv.errors import InputError
from hetenv.job_table import (
    DTYPES,
    GPU_COUNT_REMEDY,
    SPEED_PREFIX,
    Fault,
    complete_columns,
    find_faults,
    is_gpu_count,
    parse_columns,
    report_dropped,
)
from hetenv.performance import MeasuredTable

if TYPE_CHECKING:
    import pandas as pd

    from hetenv.cluster import Cluster


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs to run. Every array has one entry a job, in order of arrival (ties keep the given order).

    Args:
        types: names of the M GPU types that ``speed`` speaks of.
        job_id: (J,) str, unique.
        arrival_s: (J,) seconds since the start of the workload.
        iterations: (J,) work; whole numbers are usual, fractions are kept.
        batch: (J,) samples of one iteration over all workers.
        speed: (J, M) samples/s of one GPU of each type; 0: the job cannot run there.
        grad_bytes: (J,) gradient bytes reduced in each iteration; 0: no communication.
        min_gpus, max_gpus: (J,) sizes the job accepts; equal for a rigid job.
        malleable: (J,) whether the job may be resized while it runs; others are sized at their start.
        restart_s: (J,) seconds of no progress after a preemption, a migration or a resize.
        model: (J,) str, name of the model; the row of ``measured`` where that has one.
        outcome: (J,) str, one of completed, failed, killed; all occupy GPUs until their work is done.
        measured: measured throughputs; a job whose model it holds follows it instead of ``speed``.

    Raises:
        InputError: the first job and field that break the schema, with the remedy.
    """

    types: tuple[str, ...]
    job_id: np.ndarray
    arrival_s: np.ndarray
    iterations: np.ndarray
    batch: np.ndarray
    speed: np.ndarray
    grad_bytes: np.ndarray
    min_gpus: np.ndarray
    max_gpus: np.ndarray
    malleable: np.ndarray
    restart_s: np.ndarray
    model: np.ndarray
    outcome: np.ndarray
    measured: MeasuredTable | None = None

    def __post_init__(self) -> None:
        if len(self.job_id) == 0:
            raise InputError("workload", "no jobs", "give at least one job")
        if fault := next(iter(find_faults(self.columns(), self.types)), None):
            raise fault.error(f"job {self.job_id[fault.row]}")
        if (np.diff(self.arrival_s) < 0).any():
            order = np.argsort(self.arrival_s, kind="stable")
            for name in self.columns():
                object.__setattr__(self, name, getattr(self, name)[order])

    @classmethod
    def build(cls, types: Sequence[str], speed: np.ndarray, arrival_s: np.ndarray, **columns: Any) -> Workload:
        """A workload from arrays; scalars are repeated and columns left out take their defaults."""
        if unknown := set(columns) - {field.name for field in fields(cls)}:
            raise InputError("workload column", sorted(unknown)[0], f"use one of {', '.join(DTYPES)}")
        if "iterations" not in columns:
            raise InputError("workload column", "iterations is missing", "give one value per job")
        for name in ("min_gpus", "max_gpus"):
            gpus = np.atleast_1d(np.asarray(columns.get(name, 1), float))
            if not (good := is_gpu_count(gpus)).all():  # here, since int32 would cut fractions off
                job = int(np.argmin(good))
                raise InputError(f"job {job}, {name}", gpus[job], GPU_COUNT_REMEDY)
        measured = columns.pop("measured", None)
        table = complete_columns(len(types), speed, arrival_s, columns)
        own = {name: array if array.flags.writeable else array.copy() for name, array in table.items()}
        return cls(tuple(types), measured=measured, **own)

    @classmethod
    def unchecked(
        cls,
        types: tuple[str, ...],
        speed: np.ndarray,
        arrival_s: np.ndarray,
        *,
        measured: MeasuredTable | None = None,
        **columns: Any,
    ) -> Workload:
        """``build`` for generators, whose jobs obey the schema and the order of arrival by construction.

        It leaves the validation out (most of the cost of a small workload), and columns of one value are read-only and
        shared, so that an environment can draw new jobs at every reset. Data from outside goes through ``build`` or
        ``from_frame``.
        """
        workload = object.__new__(cls)
        workload.__dict__.update(
            types=types, measured=measured, **complete_columns(len(types), speed, arrival_s, columns)
        )
        return workload

    def __len__(self) -> int:
        return len(self.job_id)

    def columns(self) -> dict[str, np.ndarray]:
        """The arrays by name, each with one entry (or row) a job."""
        return {name: getattr(self, name) for name in (*DTYPES, "speed")}

    def take(self, rows: np.ndarray) -> Workload:
        """The workload of ``rows`` (indices or a mask) alone."""
        return Workload(self.types, measured=self.measured, **{k: v[rows] for k, v in self.columns().items()})

    def replace(self, **columns: Any) -> Workload:
        """The same workload with some columns replaced; scalars are repeated."""
        table = self.columns() | {
            name: np.array(np.broadcast_to(value, len(self)), DTYPES[name]) for name, value in columns.items()
        }
        return Workload(self.types, measured=self.measured, **table)

    # --- the workload on a cluster -------------------------------------------------------------

    def speed_on(self, cluster: Cluster) -> np.ndarray:
        """(J, M) samples/s of one GPU in the cluster's type order; 0 for types the workload does not know."""
        if self.types == cluster.type_names:
            return self.speed.copy()
        speed = np.zeros((len(self), len(cluster.types)))
        for m, name in enumerate(cluster.type_names):
            if name in self.types:
                speed[:, m] = self.speed[:, self.types.index(name)]
        return speed

    def measured_rows(self) -> np.ndarray:
        """(J,) int32, row of each job in ``measured``; -1 where the job follows its speeds."""
        if self.measured is None:
            return np.full(len(self), -1, np.int32)
        rows = {name: row for row, name in enumerate(self.measured.models)}
        return np.array([rows.get(name, -1) for name in self.model], np.int32)

    def runnable(self, cluster: Cluster) -> np.ndarray:
        """(J,) bool, whether some allocation of the whole cluster lets the job run."""
        fits = (self.speed_on(cluster) > 0) @ cluster.total >= self.min_gpus
        if self.measured is None:
            return fits
        rows = self.measured_rows()
        if (rows >= 0).any():
            rate = self.measured.for_types(cluster.type_names)  # (R, M, G + 1, 2) iterations/s
            gpus = np.arange(rate.shape[2])
            packed = np.where(gpus <= cluster.largest_node[:, None], rate[..., 0], rate[..., 1])
            exists = (packed > 0) & (gpus <= cluster.total[:, None])
            for job in np.flatnonzero(rows >= 0):
                sized = (gpus >= self.min_gpus[job]) & (gpus <= self.max_gpus[job])
                fits[job] = bool((exists[rows[job]] & sized).any())
        return fits

    def check_runnable(self, cluster: Cluster) -> None:
        """Raise InputError naming the first job that can never run on ``cluster``."""
        runs = self.runnable(cluster)
        if not runs.all():
            raise self._never_runs(int(np.argmin(runs)), cluster)

    def _never_runs(self, job: int, cluster: Cluster, prefix: str = "") -> InputError:
        have = ", ".join(f"{n} {name}" for n, name in zip(cluster.total, cluster.type_names, strict=True))
        return InputError(
            f"{prefix}job {self.job_id[job]}",
            f"needs {self.min_gpus[job]} GPUs of {self._usable_types(job)}, which the cluster ({have}) lacks",
            "drop the job (--lenient does), lower min_gpus or use a larger cluster",
        )

    def _usable_types(self, job: int) -> str:
        return " or ".join(name for name, speed in zip(self.types, self.speed[job], strict=True) if speed > 0)

    def cluster_seconds(self, cluster: Cluster) -> np.ndarray:
        """(J,) seconds of the whole cluster's compute that each job is worth, communication left out.

        ``iterations * batch / sum_m N_m speed_m``: the job's exclusive GPU time divided by the capacity.
        """
        return self.iterations * self.batch / (self.speed_on(cluster) @ cluster.total)

    def offered_load(self, cluster: Cluster) -> float:
        """Arrival rate x mean exclusive GPU time / capacity; above 1 the queue must grow.

        The rate counts the gaps between arrivals; a workload that arrives all at once has infinite load.
        """
        span_s = float(self.arrival_s[-1] - self.arrival_s[0])
        if span_s == 0:
            return float("inf")
        return float((len(self) - 1) / span_s * self.cluster_seconds(cluster).mean())

    # --- table form ------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """The job table: the columns of the CSV format, one ``speed_<type>`` column a type."""
        import pandas as pd

        speeds = {SPEED_PREFIX + name: self.speed[:, m] for m, name in enumerate(self.types)}
        return pd.DataFrame({name: getattr(self, name) for name in DTYPES} | speeds)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        where: str = "job table",
        first_line: int = 2,
        faults: Sequence[Fault] = (),
        lenient: bool = False,
        measured: MeasuredTable | None = None,
        cluster: Cluster | None = None,
    ) -> Workload:
        """Validate a raw table (text or numbers) and make it a workload.

        Args:
            frame: columns of the CSV format; ``arrival_s``, ``iterations`` and one ``speed_<type>``
                or more are required, the others have defaults. The index counts data rows from 0.
            where: file name for error messages.
            first_line: line of the file that holds row 0.
            faults: what the reader of the file already found wrong.
            lenient: drop faulty rows with one warning that counts them by reason, instead of raising.
            measured: measured throughputs of the models in the table.
            cluster: where given, jobs that can never run on it are faulty too.
        """
        types = tuple(name.removeprefix(SPEED_PREFIX) for name in frame.columns if name.startswith(SPEED_PREFIX))
        required = ("arrival_s", "iterations")
        if missing := [name for name in required if name not in frame.columns]:
            raise InputError(
                where, f"column {missing[0]} is missing", f"give the columns {', '.join(required)}, speed_<type>"
            )
        if not types:
            raise InputError(
                where, "no speed_<type> column", "give samples/s of one GPU for each type, e.g. speed_v100"
            )
        if unknown := [n for n in frame.columns if n not in DTYPES and not n.startswith(SPEED_PREFIX)]:
            raise InputError(where, f"unknown column {unknown[0]}", f"use {', '.join(DTYPES)} or speed_<type>")
        if frame.empty:
            raise InputError(where, "no jobs", "give at least one row")
        table = parse_columns(frame, types)
        found = [  # show the text of the table, not the NaN that it was read as
            replace(fault, value=frame[fault.field].iat[fault.row]) if fault.field in frame else fault
            for fault in find_faults(table, types)
        ]
        lines = np.asarray(frame.index, np.int64) + first_line
        return cls.from_rows(
            types,
            table,
            [*faults, *found],
            where=where,
            lines=lines,
            lenient=lenient,
            measured=measured,
            cluster=cluster,
        )

    @classmethod
    def from_rows(
        cls,
        types: Sequence[str],
        columns: Mapping[str, np.ndarray],
        faults: Sequence[Fault],
        *,
        where: str,
        lines: np.ndarray,
        lenient: bool = False,
        measured: MeasuredTable | None = None,
        cluster: Cluster | None = None,
    ) -> Workload:
        """The last step of every file reader: settle the faults it found and build the workload.

        Args:
            types: names of the M GPU types.
            columns: every column of the job table, one entry a row of the file, in any order of arrival.
            faults: what is wrong with which row.
            where: file name for error messages.
            lines: line of the file that each row came from.
            lenient: drop faulty rows with one warning that counts them by reason, instead of raising.
            measured: measured throughputs.
            cluster: where given, jobs that can never run on it are faulty too.

        Raises:
            InputError: the first fault, by row; or no row is left.
        """
        first = {fault.row: fault for fault in reversed(faults)}  # each row's own first fault
        if first and not lenient:
            row = min(first)
            raise first[row].error(f"{where}, line {lines[row]}")
        reasons = [f"{fault.field}: {fault.remedy}" for fault in first.values()]
        by_arrival = np.argsort(columns["arrival_s"], kind="stable")
        keep = by_arrival[~np.isin(by_arrival, list(first))]
        arrays = {name: np.array(values[keep], DTYPES.get(name, np.float64)) for name, values in columns.items()}
        workload = cls(tuple(types), measured=measured, **arrays) if len(keep) else None
        if workload is not None and cluster is not None:
            runs = workload.runnable(cluster)
            if not runs.all() and not lenient:
                job = int(np.argmin(runs))
                raise workload._never_runs(job, cluster, f"{where}, line {lines[keep[job]]}, ")
            reasons += ["GPUs: more than the cluster has of the types the job runs on"] * int((~runs).sum())
            workload = workload.take(runs) if runs.any() else None
        if reasons:
            report_dropped(where, reasons)
        if workload is None:
            raise InputError(where, "no valid row", "fix the rows that the warning counts")
        return workload

    def save(self, path: str | Path) -> None:
        """Write the CSV format; a measured table goes into ``<stem>.throughputs.csv`` beside it."""
        from hetenv.traces.own_csv import write_workload

        write_workload(self, Path(path))

"""What the agent of ``hetenv/Market-v0`` sees: queue, cluster and prices in summaries of fixed size.

Times enter as t / (t + time scale). A quantity of many jobs enters by its quantiles, all zeros without jobs.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from hetenv.envs.episode import unit_box
from hetenv.simulator import Simulator

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
WAITING_FEATURES = (
    "work: remaining time alone on the cluster, squashed",
    "age, squashed",
    "progress bound: that remaining time / (age + remaining time)",
    "least GPUs / cluster",
    "most GPUs / cluster",
)
RUNNING_FEATURES = (
    "release: time to the finish, squashed",
    "age, squashed",
    "progress bound: time to the finish / (age + time to the finish)",
    "held GPUs / cluster",
)
TYPE_FEATURES = (
    "GPUs / cluster",
    "free / total",
    "next release, squashed",
    "price of the last decision, squashed",
    "demand: share of the waiting jobs for which it is the fastest type",
)
GLOBAL_FEATURES = (
    "waiting jobs / (waiting jobs + GPUs of the cluster)",
    "running jobs / GPUs of the cluster",
    "running jobs that may change / GPUs of the cluster",
    "free GPUs / cluster",
    "finished jobs / all jobs",
    "backlog: time the whole cluster would need for the waiting work, squashed",
    "next release, squashed",
    "mean gap between arrivals, squashed",
    "mean gap between the latest arrivals, squashed",
    "time since the last arrival, squashed",
)
LATEST_GAPS = 8  # gaps in the recent estimate of the arrival rate


def observation_space(n_types: int) -> spaces.Dict:
    return spaces.Dict(
        {
            "waiting": unit_box(len(QUANTILES), len(WAITING_FEATURES)),
            "running": unit_box(len(QUANTILES), len(RUNNING_FEATURES)),
            "affinity": unit_box(n_types, len(QUANTILES)),
            "types": unit_box(n_types, len(TYPE_FEATURES)),
            "globals": unit_box(len(GLOBAL_FEATURES)),
        }
    )


def observe_market(simulator: Simulator, price_s: np.ndarray, time_scale_s: float) -> dict[str, np.ndarray]:
    """Fresh float32 arrays within ``observation_space``.

    Args:
        price_s: (M,) seconds per GPU, prices of the last decision.
    """

    def squash(time_s: np.ndarray) -> np.ndarray:
        return time_s / (time_s + time_scale_s)

    snapshot, cluster = simulator.snapshot(), simulator.cluster
    n_gpus, total, free = cluster.n_gpus, snapshot.total, snapshot.free
    waiting, age_s = snapshot.waiting, snapshot.age_s  # (A,)
    running = ~waiting
    counts, finish_in_s = snapshot.counts[running], snapshot.finish_in_s[running]  # (R, M), (R,)
    speed = snapshot.speed[waiting]  # (Q, M)
    least, most = snapshot.size_limits
    work_s = snapshot.exclusive_remaining_s[waiting]

    queue = (
        squash(work_s),
        squash(age_s[waiting]),
        _ratio(work_s, age_s[waiting] + work_s),
        least[waiting] / n_gpus,
        most[waiting] / n_gpus,
    )
    releases = (
        squash(finish_in_s),
        squash(age_s[running]),
        _ratio(finish_in_s, age_s[running] + finish_in_s),
        counts.sum(axis=1) / n_gpus,
    )
    release = np.where(counts > 0, squash(finish_in_s)[:, None], 1.0).min(axis=0, initial=1.0)  # (M,)
    fastest = np.bincount(speed.argmax(axis=1), minlength=len(total)) / max(len(speed), 1)  # (M,)
    clock = simulator.state.clock[0]
    arrived_s = simulator.workload.arrival_s[: clock["next_arrival"]]
    backlog_s = _ratio(snapshot.remaining[waiting] * snapshot.batch[waiting], speed @ total).sum()
    times_s = (
        backlog_s,
        _mean_gap_s(arrived_s),
        _mean_gap_s(arrived_s[-1 - LATEST_GAPS :]),
        snapshot.time_s - arrived_s[-1],
    )
    backlog, gap, latest_gap, since_arrival = squash(np.array(times_s))
    movable = running & (snapshot.malleable | snapshot.preemptive)
    overall = (
        len(speed) / (len(speed) + n_gpus),
        len(counts) / n_gpus,
        movable.sum() / n_gpus,
        free.sum() / n_gpus,
        clock["n_done"] / len(simulator.workload),
        backlog,
        release.min(),
        gap,
        latest_gap,
        since_arrival,
    )
    return {
        "waiting": _quantiles(np.column_stack(queue)),
        "running": _quantiles(np.column_stack(releases)),
        "affinity": _quantiles(_ratio(speed, speed.max(axis=1, keepdims=True))).T.copy(),
        "types": np.column_stack((total / n_gpus, free / total, release, squash(price_s), fastest)).astype(np.float32),
        "globals": np.array(overall, np.float32),
    }


def _quantiles(values: np.ndarray) -> np.ndarray:
    """(len(QUANTILES), F) float32 of the columns of ``values`` (n, F); zeros when n is 0."""
    if len(values) == 0:
        return np.zeros((len(QUANTILES), values.shape[1]), np.float32)
    return np.quantile(values, QUANTILES, axis=0).astype(np.float32)


def _ratio(value: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """``value / unit``, 0 where the unit is: a job of age and work 0, or a measured one without speeds."""
    return np.divide(value, unit, out=np.zeros_like(value), where=unit > 0)


def _mean_gap_s(arrival_s: np.ndarray) -> float:
    return float(arrival_s[-1] - arrival_s[0]) / max(len(arrival_s) - 1, 1)

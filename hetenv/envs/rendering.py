"""Pictures of a running simulation: text for terminals, a Gantt chart as pixels."""

from __future__ import annotations

import numpy as np

from hetenv.envs.view import View
from hetenv.simulator import Simulator


def text(simulator: Simulator, view: View) -> str:
    """Time, free GPUs of each type, and the jobs in view with what they hold or could take now."""
    cluster = simulator.cluster
    snapshot = simulator.snapshot()
    n_waiting = int(snapshot.waiting.sum())
    lines = [f"t = {simulator.time_s:,.0f} s   {n_waiting} waiting, {snapshot.n_active - n_waiting} running"]
    width = max(len(name) for name in cluster.type_names)
    for name, free, total in zip(cluster.type_names, snapshot.free, cluster.total, strict=True):
        busy = round(20 * (total - free) / total)
        lines.append(f"  {name:{width}}  {'#' * busy}{'.' * (20 - busy)}  {free}/{total} free")
    takeable = view.mask[:-1].reshape(len(view.window), -1)
    for w, job in enumerate(view.window):
        if job >= 0:
            held = _category(simulator.state.counts[job], cluster.type_names)
            offers = [_category(view.counts[job, s], cluster.type_names) for s in np.flatnonzero(takeable[w])]
            state = (
                f"holds {held}"
                if held != "none"
                else f"age {simulator.time_s - simulator.workload.arrival_s[job]:,.0f} s"
            )
            lines.append(f"  job {simulator.workload.job_id[job]}: {state}; can take {', '.join(offers) or 'nothing'}")
    return "\n".join(lines)


def _category(counts: np.ndarray, names: tuple[str, ...]) -> str:
    return " + ".join(f"{n} {name}" for n, name in zip(counts, names, strict=True) if n) or "none"


_LANE, _GAP, _WIDTH, _MARGIN = 6, 3, 800, 12
_PAPER = np.array([255, 255, 255], np.uint8)
_IDLE = np.array([238, 238, 238], np.uint8)
_RULER = np.array([200, 200, 200], np.uint8)


def gantt(simulator: Simulator) -> np.ndarray:
    """(H, W, 3) uint8: one lane a GPU, nodes set apart, time from the first arrival to now, a colour a job.

    The strip on the left tells the GPU types apart; ten hairlines divide the time shown.
    """
    cluster = simulator.cluster
    node_top = np.zeros(cluster.n_nodes + 1, int)  # pixel rows
    node_top[1:] = np.cumsum(cluster.node_gpus * _LANE + _GAP)
    image = np.full((node_top[-1] + _GAP, _MARGIN + _WIDTH, 3), _PAPER)
    begin_s = float(simulator.workload.arrival_s[0])
    span_s = max(simulator.time_s - begin_s, 1e-9)

    def column(time_s: float) -> int:
        return _MARGIN + int(_WIDTH * (time_s - begin_s) / span_s)

    for node in range(cluster.n_nodes):
        rows = slice(node_top[node], node_top[node + 1] - _GAP)
        image[rows, : _MARGIN - 4] = hue_colour(cluster.node_type[node] / len(cluster.types))
        image[rows, _MARGIN:] = _IDLE
    image[:, [min(column(begin_s + span_s * k / 10), image.shape[1] - 1) for k in range(11)]] = _RULER

    lane_free_s = [np.full(gpus, -np.inf) for gpus in cluster.node_gpus]  # end of the last bar on each lane
    bars = [tuple(segment) for segment in simulator.timeline.tolist()]
    for job in np.flatnonzero(simulator.state.jobs["n_gpus"] > 0):
        since_s = float(simulator.state.jobs["since_s"][job])
        bars += [(since_s, simulator.time_s, int(job), node, gpus) for node, gpus in simulator.holds(int(job))]
    for start_s, end_s, job, node, gpus in sorted(bars):
        lanes = np.flatnonzero(lane_free_s[node] <= start_s)[:gpus]
        lane_free_s[node][lanes] = end_s
        for lane in lanes:
            top = node_top[node] + lane * _LANE
            image[top : top + _LANE - 1, column(start_s) : max(column(end_s), column(start_s) + 1)] = job_colour(job)
    return image


def job_colour(job: int) -> np.ndarray:
    """(3,) uint8: hues by the golden ratio, so that neighbours differ; the same job always looks the same."""
    return hue_colour(job * 0.618033988749895 % 1.0)


def hue_colour(hue: float) -> np.ndarray:
    """(3,) uint8 of a hue in [0, 1), softened for white paper."""
    ramp = np.clip(np.abs((6.0 * hue + np.array([0.0, 4.0, 2.0])) % 6.0 - 3.0) - 1.0, 0.0, 1.0)
    return (60 + 160 * ramp).astype(np.uint8)

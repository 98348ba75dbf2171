"""What an agent sees of a simulator, and the records that belong to its side alone.

``View`` lies beside the simulator's ``State``. Times enter observations as t / (t + time scale), numbers of jobs as
n / (n + W): finite, bounded, cheap.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hetenv.compiled import njit_in_place as njit
from hetenv.config import Scenario
from hetenv.envs.candidates import CANDIDATE, IDEAL
from hetenv.simulator.state import Fixed

JOB_FEATURES = (
    "present",
    "work: remaining time under its fastest candidate, squashed",
    "GPU work: least GPU-seconds remaining over the candidates, squashed",
    "age, squashed",
    "progress bound: fastest remaining time / (age + fastest remaining time)",
    "least GPUs / cluster",
    "most GPUs / cluster",
    "running",
    "held GPUs / most GPUs",
    "restart cost, squashed",
    "changed in this decision epoch, so fixed until the next",
)
CANDIDATE_FEATURES = (
    "present",
    "can be taken now",
    "GPUs / most GPUs",
    "GPUs / cluster",
    "remaining time under it, restart included, squashed",
    "speed: fastest remaining time / remaining time under it",
    "efficiency: least GPU-seconds / GPU-seconds under it",
    "same size: its rate / rate of the fastest category of that size",
    "scarcity: largest share it takes of the free GPUs of a type",
    "fits one node",
    "gain over the current allocation: (now - then) / (now + then), -1 for giving all back",
    "wait: time until running jobs have given its GPUs back, squashed",
)
TYPE_FEATURES = (
    "GPUs / cluster",
    "free / total",
    "next release, squashed",
    "demand: share of the window's jobs for which it is the fastest type",
)
GLOBAL_FEATURES = (
    "waiting jobs, squashed",
    "running jobs / GPUs of the cluster",
    "free GPUs / cluster",
    "finished jobs / all jobs",
    "next release, squashed",
    "mean gap between arrivals, squashed",
    "time since the last arrival, squashed",
    "may wait",
)


# Record types have no padding, so that equal states have equal bytes.
AGENT = np.dtype(
    [
        ("time_scale_s", "f8"),
        ("epoch", "i8"),  # decision epochs that have passed
        ("one_shot", "i4"),  # every waiting job must be placed before time moves on
        ("running_may_change", "i4"),  # running jobs can be placed anew
        ("reward", "f8"),  # of the last step
        ("invalid", "i4"),  # the last action was outside the mask
        ("stalled", "i4"),  # jobs wait and nothing can happen
    ],
    align=True,
)
SEEN = np.dtype(
    [
        ("best_rate", "f8"),  # iterations/s of the fastest candidate
        ("least_gpu_s", "f8"),  # least GPU-seconds of one iteration over the candidates
        ("changed_at", "i8"),  # decision epoch in which the job last changed, -1 before
        ("n_candidates", "i4"),  # 0 until the job comes into view
        ("fastest_type", "i4"),
    ],
    align=True,
)
CACHE_LINE = 64  # bytes
# What a row of the observation holds, where it is no job's constant features.
EMPTY, OTHER = -1, -2


class View(NamedTuple):
    """The agent's side of one environment."""

    agent: np.ndarray  # (1,) AGENT
    seen: np.ndarray  # (J,) SEEN
    counts: np.ndarray  # (J, S, M) int32, candidate categories; the last place of a preemptive scenario is "give back"
    candidates: np.ndarray  # (J, S) CANDIDATE
    draws: np.ndarray  # (J, S, M + 1) float32, uniform draws for sampled mixes
    ideal: np.ndarray  # (GPUs + 1,) IDEAL, room in which candidates are made
    scratch: np.ndarray  # (2, M) int64, likewise
    release_s: np.ndarray  # (M,) float64, likewise for the next release of each type
    window: np.ndarray  # (W,) int64, jobs shown, -1: empty place
    mask: np.ndarray  # (W * S + 1,) bool, last: wait


class Observation(NamedTuple):
    """Private buffers that the kernels keep up to date; whoever hands them out copies them."""

    jobs: np.ndarray  # (W, len(JOB_FEATURES)) float32
    candidates: np.ndarray  # (W, S, len(CANDIDATE_FEATURES)) float32
    types: np.ndarray  # (M, len(TYPE_FEATURES)) float32
    globals: np.ndarray  # (len(GLOBAL_FEATURES),) float32
    action_mask: np.ndarray  # (W * S + 1,) float32
    rows: np.ndarray  # (W,) int64, the waiting job whose constant features a row holds; EMPTY: zeros; OTHER

    def arrays(self) -> dict[str, np.ndarray]:
        """What the observation space of ``hetenv/Placement-v0`` describes."""
        return {name: getattr(self, name) for name in ("jobs", "candidates", "types", "globals", "action_mask")}


def make_view(scenario: Scenario, n_jobs: int, n_types: int, n_gpus: int, lead: tuple[int, ...] = ()) -> View:
    """Room for the view of one environment, or with ``lead`` (N,) of N of them; ``begin_view`` fills it."""
    window, n_candidates = scenario.window.jobs, scenario.window.candidates
    return View(
        agent=aligned_zeros((*lead, 1), AGENT),
        seen=aligned_zeros((*lead, n_jobs), SEEN),
        counts=aligned_zeros((*lead, n_jobs, n_candidates, n_types), np.int32),
        candidates=aligned_zeros((*lead, n_jobs, n_candidates), CANDIDATE),
        draws=aligned_zeros((*lead, n_jobs, n_candidates, n_types + 1), np.float32),
        ideal=aligned_zeros((*lead, n_gpus + 1), IDEAL),
        scratch=aligned_zeros((*lead, 2, n_types), np.int64),
        release_s=aligned_zeros((*lead, n_types), np.float64),
        window=aligned_zeros((*lead, window), np.int64),
        mask=aligned_zeros((*lead, window * n_candidates + 1), np.bool_),
    )


def make_observation(scenario: Scenario, n_types: int, lead: tuple[int, ...] = ()) -> Observation:
    """Zeros for one environment, or with ``lead`` (N,) for N of them."""
    window, n_candidates = scenario.window.jobs, scenario.window.candidates
    observation = Observation(
        jobs=aligned_zeros((*lead, window, len(JOB_FEATURES)), np.float32),
        candidates=aligned_zeros((*lead, window, n_candidates, len(CANDIDATE_FEATURES)), np.float32),
        types=aligned_zeros((*lead, n_types, len(TYPE_FEATURES)), np.float32),
        globals=aligned_zeros((*lead, len(GLOBAL_FEATURES)), np.float32),
        action_mask=aligned_zeros((*lead, window * n_candidates + 1), np.float32),
        rows=aligned_zeros((*lead, window), np.int64),
    )
    observation.rows[:] = EMPTY
    return observation


def begin_view(view: View, scenario: Scenario, fixed: Fixed, rng: np.random.Generator) -> None:
    """Forget all jobs and draw the mixes anew from ``rng``; ``view`` has one entry for each of the J jobs."""
    set_constants(view, scenario)
    rng.random(dtype=np.float32, out=view.draws)
    forget_jobs(fixed, view)


def set_constants(view: View, scenario: Scenario) -> None:
    """What the scenario alone settles, in a view of one environment or of many."""
    view.agent["time_scale_s"], view.agent["one_shot"] = scenario.time_scale_s, scenario.one_shot


@njit
def forget_jobs(fixed, view):
    """Make the view that of an episode's beginning, but for its draws."""
    agent = view.agent[0]
    agent.epoch = 0
    agent.running_may_change = fixed.rules[0].preemptive
    agent.reward = 0.0
    agent.invalid = 0
    agent.stalled = 0
    for job in range(fixed.jobs.shape[0]):
        agent.running_may_change |= fixed.jobs[job].malleable
        view.seen[job].n_candidates = 0
        view.seen[job].changed_at = -1


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """``np.zeros`` that begins on a cache line: copies between arrays aligned otherwise are several times slower."""
    dtype = np.dtype(dtype)
    block = np.zeros(math.prod(shape) * dtype.itemsize + CACHE_LINE, np.uint8)
    begin = -block.__array_interface__["data"][0] % CACHE_LINE
    return np.ndarray(shape, dtype, block, begin)

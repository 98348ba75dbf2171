"""Independent right answers, written plainly in numpy, and random problems to ask for them."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from hetenv.matching import PlacementProblem
from hetenv.performance import category_link, iteration_s


def job_cost_s(job: dict, counts: tuple[int, ...]) -> float:
    """J of a job given as the arguments of ``problem_of``, straight from the performance model; inf if not allowed."""
    n_gpus = sum(counts)
    if not job["min_gpus"] <= n_gpus <= job["max_gpus"]:
        return np.inf
    each = np.array(counts)
    link = np.full(len(counts), job["bandwidth"])
    slowest = category_link(each, link, link, each)
    return job["iterations"] * iteration_s(
        each, np.array(job["speed"], float), job["batch"], job["grad_bytes"], slowest, False
    )


def problem_of(capacity: list[int], jobs: list[dict]) -> PlacementProblem:
    """The placement problem of job dicts with speed, batch, iterations, grad_bytes, min_gpus, max_gpus, bandwidth."""
    column = {name: [job[name] for job in jobs] for name in jobs[0]}
    return PlacementProblem(
        capacity, column["speed"], column["batch"], column["iterations"], column["grad_bytes"],
        jobs[0]["bandwidth"], column["min_gpus"], column["max_gpus"],
    )  # fmt: skip


def cost_tables(capacity: list[int], jobs: list[dict]) -> list[dict[tuple[int, ...], float]]:
    """Per job the cost of every count vector within capacity, the empty one (inf) included."""
    vectors = list(itertools.product(*(range(n + 1) for n in capacity)))
    return [{counts: job_cost_s(job, counts) if any(counts) else np.inf for counts in vectors} for job in jobs]


def lattice_optimum(capacity: list[int], tables: list[dict[tuple[int, ...], float]]) -> float:
    """Least total by dynamic programming over the GPUs left: after job i, best[left] = min_c best[left + c] + cost."""
    shape = tuple(n + 1 for n in capacity)
    best = np.full(shape, np.inf)
    best[tuple(capacity)] = 0.0
    for table in tables:
        after = np.full(shape, np.inf)
        for counts, cost in table.items():
            if np.isfinite(cost):
                kept = tuple(slice(0, n + 1 - c) for n, c in zip(capacity, counts, strict=True))
                given = tuple(slice(c, n + 1) for n, c in zip(capacity, counts, strict=True))
                after[kept] = np.minimum(after[kept], best[given] + cost)
        best = after
    return float(best.min())


def brute_force_optimum(capacity: list[int], tables: list[dict[tuple[int, ...], float]]) -> float:
    """Least total by trying every combination."""
    best = np.inf
    options = [[(counts, cost) for counts, cost in table.items() if np.isfinite(cost)] for table in tables]
    for combination in itertools.product(*options):
        if (np.sum([counts for counts, _ in combination], axis=0) <= capacity).all():
            best = min(best, sum(cost for _, cost in combination))
    return float(best)


def random_problem(seed: int, n_jobs: int, capacity: list[int], max_gpus: int = 8) -> PlacementProblem:
    """Jobs of mixed length on types of different speed, with all-reduce over a 10 Gbit/s network."""
    rng = np.random.default_rng(seed)
    n_types = len(capacity)
    speed = 100 * np.sort(rng.uniform(1, 6, n_types)) * rng.uniform(0.6, 1.6, (n_jobs, n_types))
    return PlacementProblem(
        capacity, speed, rng.integers(64, 1024, n_jobs), rng.lognormal(6, 1.2, n_jobs),
        rng.uniform(0, 5e7, n_jobs), 1.25e9, max_gpus=max_gpus,
    )  # fmt: skip


@st.composite
def small_instances(draw, most_jobs: int = 4, most_gpus: int = 3, most_types: int = 3):
    """(capacity, job dicts) with enough GPUs for every job to run on at least its fewest."""
    capacity = draw(st.lists(st.integers(1, most_gpus), min_size=1, max_size=most_types))
    n_jobs = draw(st.integers(1, min(most_jobs, sum(capacity))))
    speed = st.lists(st.integers(1, 9).map(float), min_size=len(capacity), max_size=len(capacity))
    jobs = [
        {
            "speed": draw(speed),
            "batch": draw(st.integers(1, 20).map(float)),
            "iterations": draw(st.integers(1, 50).map(float)),
            "grad_bytes": draw(st.sampled_from([0.0, 0.5, 4.0])),
            "min_gpus": 1,
            "max_gpus": draw(st.integers(1, 6)),
            "bandwidth": 2.0,
        }
        for _ in range(n_jobs)
    ]
    return capacity, jobs

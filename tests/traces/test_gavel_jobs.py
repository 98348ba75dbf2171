"""Gavel's own stream: the same jobs as its generator draws, and how they become an episode."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from hetenv.catalogue import load_catalogue
from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces.gavel_jobs import GavelJobs, draw_stream

ORACLE = Path(__file__).parents[3] / "shared" / "oracles" / "gavel_stream_seed0_single.csv"
TABLE = load_catalogue().throughputs["gavel"].table
CLUSTER = Cluster.from_counts({"k80": 36, "p100": 36, "v100": 36}, gpus_per_node=4)


@pytest.mark.skipif(not ORACLE.is_file(), reason="needs the outside figures beside the checkout")
def test_the_stream_is_gavels_to_the_last_bit():
    with ORACLE.open() as file:
        rows = list(csv.DictReader(file))
    stream = draw_stream(TABLE, len(rows), seed=0, multi_gpu=False)
    assert stream.job_type == [row["job_type"] for row in rows]
    for name, values in (
        ("scale_factor", stream.scale_factor),
        ("duration_v100_s", stream.duration_s),
        ("total_steps", stream.total_steps),
        ("arrival_unit_exp", stream.arrival),
    ):
        np.testing.assert_array_equal(values, [float(row[name]) for row in rows], err_msg=name)


def test_mix_of_the_stream():
    stream = draw_stream(TABLE, 20_000, seed=1, multi_gpu=True)
    share = [np.mean(stream.scale_factor == gpus) for gpus in (1, 2, 4, 8)]
    np.testing.assert_allclose(share, [0.7, 0.1, 0.15, 0.05], atol=0.01)
    assert np.mean(stream.duration_s >= 60e3) == pytest.approx(0.2, abs=0.01)
    assert 60 * 10**1.5 <= stream.duration_s.min() < stream.duration_s.max() <= 60 * 10**4
    assert np.diff(stream.arrival).mean() == pytest.approx(1, abs=0.03)
    assert set(stream.job_type) == set(TABLE.models)
    distributed = {
        name.split(" (")[0] for name, gpus in zip(stream.job_type, stream.scale_factor, strict=True) if gpus > 1
    }
    assert distributed == {"ResNet-18", "ResNet-50", "Transformer", "LM"}


def test_single_gpu_jobs_arrive_with_those_of_the_full_mix():
    single, full = (draw_stream(TABLE, 50, seed=3, multi_gpu=multi_gpu) for multi_gpu in (False, True))
    np.testing.assert_array_equal(single.arrival, full.arrival)
    assert (single.scale_factor == 1).all()


@pytest.mark.parametrize("load", [0.4, 1.1])
def test_load_is_exact(load):
    for seed in range(5):
        workload = GavelJobs(load=load).draw(CLUSTER, np.random.default_rng(seed))
        assert workload.offered_load(CLUSTER) == pytest.approx(load, rel=1e-9)
        assert workload.arrival_s[0] == 0
        assert (workload.min_gpus == workload.max_gpus).all()
        assert (workload.measured_rows() >= 0).all()


def test_arrival_rate_of_the_experiments():
    workload = GavelJobs(n_jobs=5_000, jobs_per_hour=0.4).draw(CLUSTER, np.random.default_rng(0))
    assert workload.arrival_s[-1] / 4_999 == pytest.approx(9_000, rel=0.05)


def test_a_job_runs_its_duration_on_the_reference_gpu():
    stream = draw_stream(TABLE, 200, seed=5, multi_gpu=True)
    rate = [
        TABLE.rate[TABLE.row(name), 2, gpus, 0] for name, gpus in zip(stream.job_type, stream.scale_factor, strict=True)
    ]
    np.testing.assert_allclose(stream.total_steps / rate, stream.duration_s)


def test_errors():
    with pytest.raises(ValidationError, match="jobs_per_hour"):
        GavelJobs(jobs_per_hour=0)
    with pytest.raises(ValidationError, match="give 2 jobs or more"):
        GavelJobs(n_jobs=1)
    with pytest.raises(InputError, match="job "):
        GavelJobs().draw(Cluster.from_counts({"h100": 8}), np.random.default_rng(0))

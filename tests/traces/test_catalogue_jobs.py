"""Jobs at the measured speeds of the catalogue."""

import numpy as np
import pytest

from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces.catalogue_jobs import CatalogueJobs
from hetenv.workload import Workload

CLUSTER = Cluster.from_counts({"v100": 16, "a100-80": 8, "h100": 8}, gpus_per_node=8)


def test_speeds_and_gradients_are_those_of_the_model():
    workload = CatalogueJobs(n_jobs=200).draw(CLUSTER, np.random.default_rng(0))
    Workload(workload.types, **workload.columns())  # validates
    bert = workload.model == "BERT-large"
    assert 60 < bert.sum() < 140
    np.testing.assert_array_equal(workload.speed[bert], np.tile([57, 152, 310], (bert.sum(), 1)))
    np.testing.assert_array_equal(workload.speed[~bert], np.tile([833, 1582, 2790], ((~bert).sum(), 1)))
    assert set(workload.grad_bytes.tolist()) == {1360e6, 102.2e6}


def test_load_is_the_asked_one():
    loads = [
        CatalogueJobs(n_jobs=100, load=0.7).draw(CLUSTER, np.random.default_rng(s)).offered_load(CLUSTER)
        for s in range(300)
    ]
    expected = 0.7 * 99 / 98  # n - 1 gaps: E[1 / span] = rate / (n - 2)
    assert abs(np.mean(loads) - expected) < 4 * np.std(loads) / np.sqrt(300)
    assert np.std(loads) / np.sqrt(300) < 0.02


def test_a_model_that_runs_on_some_types_alone():
    source = CatalogueJobs(source="gavel", models=("LM (batch size 80)", "A3C"))
    workload = source.draw(Cluster.from_counts({"v100": 4, "h100": 4}), np.random.default_rng(0))
    assert (workload.speed[:, 0] > 0).all()
    assert (workload.speed[:, 1] == 0).all()
    assert (workload.grad_bytes == 0).all()  # not known


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "nowhere"}, "source: 'nowhere'; use one of elasticflow, gavel, generations, pollux"),
        ({"models": ("GPT-9",)}, "model: 'GPT-9'"),
        (
            {"source": "pollux", "models": ("ncf (batch size 32)",)},
            "model ncf .*: measured on no GPU of the cluster; .*t4",
        ),
    ],
)
def test_errors(options, message):
    with pytest.raises(InputError, match=message):
        CatalogueJobs(**options).draw(CLUSTER, np.random.default_rng(0))

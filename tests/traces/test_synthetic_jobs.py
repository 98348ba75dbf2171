"""Synthetic jobs: offered load, size laws, speeds, limits and configuration errors."""

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from hetenv.cluster import Cluster
from hetenv.config import load_scenario
from hetenv.errors import InputError
from hetenv.traces.generate import JobSource, PhillyJobs, SyntheticJobs, TraceJobs
from hetenv.workload import Workload

CLUSTER = Cluster.from_counts({"a": 8, "b": 8, "c": 4})
ONLINE = SyntheticJobs(
    n_jobs=100,
    load=0.8,
    type_speed={"a": 1.0, "b": 2.0, "c": 5.0},
    affinity_sigma=0.4,
    job_speed_sigma=0.5,
    batch=(64, 128, 256),
    grad_bytes=(1e7, 1e9),
    max_gpus=(1, 2, 4, 8),
)


def draws(source, n, cluster=CLUSTER):
    return [source.draw(cluster, np.random.default_rng(seed)) for seed in range(n)]


def within_standard_errors(sample, expected, bound=4.0):
    """Whether the mean lies within ``bound`` standard errors (odds of 1 in 16,000 otherwise)."""
    sample = np.asarray(sample)
    return abs(sample.mean() - expected) < bound * sample.std(ddof=1) / np.sqrt(sample.size)


@pytest.mark.parametrize("law", ["lognormal", "exponential"])
def test_measured_load_is_the_asked_one(law):
    source = ONLINE.model_copy(update={"size_law": law})
    loads = [workload.offered_load(CLUSTER) for workload in draws(source, 400)]
    assert within_standard_errors(loads, 0.8 * 99 / 98)  # n - 1 gaps: E[1 / span] = rate / (n - 2)
    assert np.std(loads) / np.sqrt(400) < 0.01  # so that the bound above means something


def test_load_does_not_depend_on_speeds():
    plain = ONLINE.model_copy(update={"type_speed": {"a": 9.0, "b": 0.0, "c": 3.0}, "base_speed": 7.0})
    for one, other in zip(draws(ONLINE, 5), draws(plain, 5), strict=True):
        assert one.offered_load(CLUSTER) == pytest.approx(other.offered_load(CLUSTER), rel=1e-12)


def test_jobs_obey_the_schema():
    for workload in draws(ONLINE, 20):
        checked = Workload(workload.types, **workload.columns())  # validates
        assert (checked.job_id == workload.job_id).all()  # already in order of arrival
        workload.check_runnable(CLUSTER)


def test_speeds_have_the_asked_means_and_spreads():
    speed = (
        np.concatenate([workload.speed for workload in draws(ONLINE, 100)]) / 100.0
    )  # (10,000, 3), base speed taken out
    for m, expected in enumerate((1.0, 2.0, 5.0)):
        assert within_standard_errors(speed[:, m], expected)
    log = np.log(speed)
    assert np.std(log[:, 0]) == pytest.approx(np.hypot(0.4, 0.5), rel=0.03)
    # What two types of a job do not share is the affinity noise alone.
    assert np.std(log[:, 0] - log[:, 1]) == pytest.approx(0.4 * np.sqrt(2), rel=0.03)


def test_choices_and_ranges():
    workloads = draws(ONLINE, 20)
    assert {int(value) for w in workloads for value in w.batch} == {64, 128, 256}
    assert {int(value) for w in workloads for value in w.max_gpus} == {1, 2, 4, 8}
    grad = np.concatenate([w.grad_bytes for w in workloads])
    assert grad.min() >= 1e7
    assert grad.max() <= 1e9
    assert within_standard_errors(np.log10(grad), 8.0)
    sizes = {len(w) for w in draws(SyntheticJobs(n_jobs=(4, 5)), 20)}
    assert sizes == {4, 5}


def test_size_laws():
    def sizes(**options):
        workload = SyntheticJobs(n_jobs=20_000, mean_gpu_s=100.0, **options).draw(CLUSTER, np.random.default_rng(1))
        return workload.cluster_seconds(CLUSTER) * CLUSTER.n_gpus

    exponential = sizes(size_law="exponential")
    assert within_standard_errors(exponential, 100.0)
    assert exponential.std() == pytest.approx(100.0, rel=0.05)
    lognormal = sizes(size_sigma=0.7)
    assert within_standard_errors(lognormal, 100.0)
    assert np.log(lognormal).std() == pytest.approx(0.7, rel=0.03)


def test_the_four_scenarios():
    batch = SyntheticJobs(n_jobs=(4, 5), load=None).draw(CLUSTER, np.random.default_rng(0))
    assert (batch.arrival_s == 0).all()
    elastic = SyntheticJobs(malleable=True, restart_s=60, max_gpus=8).draw(CLUSTER, np.random.default_rng(0))
    assert elastic.malleable.all()
    assert (elastic.restart_s == 60).all()
    assert (elastic.min_gpus == 1).all()
    assert (elastic.max_gpus == 8).all()
    pair = Cluster.from_counts({"fast": 1, "slow": 1})
    slow = SyntheticJobs(size_law="exponential", type_speed={"fast": 10.0, "slow": 1.0}).draw(
        pair, np.random.default_rng(0)
    )
    assert (slow.speed[:, 0] == 10 * slow.speed[:, 1]).all()
    assert len(np.unique(slow.speed)) == 2  # no noise


def test_the_generator_alone_decides():
    first, second = (ONLINE.draw(CLUSTER, np.random.default_rng(7)) for _ in range(2))
    other = ONLINE.draw(CLUSTER, np.random.default_rng(8))
    for name, values in first.columns().items():
        assert values.tolist() == second.columns()[name].tolist()
    assert (first.arrival_s[1:] != other.arrival_s[1:]).all()


def test_a_type_without_speed_is_named():
    with pytest.raises(InputError, match="type_speed: no speed for GPU type c"):
        SyntheticJobs(type_speed={"a": 1.0, "b": 2.0}).draw(CLUSTER, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": (5, 4)}, "n_jobs"),
        ({"load": 0}, "load"),
        ({"load": float("nan")}, "load"),
        ({"mean_gpu_s": -1}, "mean_gpu_s"),
        ({"size_law": "pareto"}, "size_law"),
        ({"type_speed": {"a": -1}}, "type_speed"),
        ({"batch": ()}, "batch"),
        ({"batch": (0,)}, "batch"),
        ({"grad_bytes": (0, 5)}, "grad_bytes"),
        ({"grad_bytes": (5, 1)}, "grad_bytes"),
        ({"max_gpus": ()}, "max_gpus"),
        ({"min_gpus": 4, "max_gpus": (2, 8)}, "max_gpus"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_configuration_errors_name_the_field(options, field):
    with pytest.raises(ValidationError, match=field):
        SyntheticJobs(**options)


def test_sources_are_immutable():
    with pytest.raises(ValidationError, match="frozen"):
        ONLINE.load = 0.5


def test_kind_chooses_the_source():
    read = TypeAdapter(JobSource).validate_python
    assert isinstance(read({"kind": "synthetic", "n_jobs": [4, 5]}), SyntheticJobs)
    assert isinstance(read({"kind": "philly"}), PhillyJobs)
    assert isinstance(read({"kind": "trace", "path": "x.csv"}), TraceJobs)
    with pytest.raises(ValidationError, match="kind"):
        read({"kind": "poisson"})


@pytest.mark.parametrize(
    ("seed", "arrivals_s", "samples", "grad_bytes"),
    [
        (0, 2659398.8341532126, 407558415.31927425, 26882288470.49932),
        (1000, 2403182.006618745, 584381847.2593693, 17824401718.47795),
    ],
)
def test_published_comparisons_see_the_same_jobs(seed, arrivals_s, samples, grad_bytes):
    workload = load_scenario("online").draw_workload(np.random.default_rng(seed))
    assert workload.arrival_s.sum() == pytest.approx(arrivals_s, rel=1e-12)
    assert (workload.iterations * workload.batch).sum() == pytest.approx(samples, rel=1e-12)
    assert workload.grad_bytes.sum() == pytest.approx(grad_bytes, rel=1e-12)

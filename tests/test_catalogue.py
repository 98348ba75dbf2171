"""The catalogue: against the files it comes from, what it shows of GPU types, and its errors."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from hetenv.catalogue import Catalogue, load_catalogue
from hetenv.errors import InputError
from hetenv.shipped import config_dir
from hetenv.traces.gavel import read_throughputs

DATA = Path(__file__).parents[2] / "shared" / "data"
SHIPPED = config_dir() / "catalogue"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def test_every_figure_is_small_and_has_a_source(catalogue):
    for path in SHIPPED.iterdir():
        assert path.stat().st_size <= 100_000
        if path.stem.startswith(("throughputs-", "colocation-")):
            comment = [line for line in path.read_text().splitlines() if line.startswith("#")]
            assert any(line.startswith(("# Source: ", "# Sources: ")) for line in comment)
    assert set(catalogue.throughputs) == {"elasticflow", "gavel", "generations", "pollux"}
    for figures in catalogue.throughputs.values():
        assert (figures.batch >= 1).all()
        assert set(figures.model) <= set(catalogue.models)
        assert set(figures.table.types) <= set(catalogue.gpus)


def test_jobs_measured_two_at_a_time(catalogue):
    shared, alone = catalogue.colocation["gavel"], catalogue.throughputs["gavel"].table
    assert 1_500 < len(shared) < 2_000
    for (one, other, gpu, n_gpus), rates in shared.items():
        assert shared[other, one, gpu, n_gpus] == rates[::-1]
        assert alone.rate[alone.row(one), alone.types.index(gpu), n_gpus, 0] > 0
    # What a pair loses, in sum, against taking turns: most gain by sharing a V100, and not all alike.
    gain = [
        sum(rate / alone.rate[alone.row(name), 2, 1, 0] for name, rate in zip(pair[:2], rates, strict=True))
        for pair, rates in shared.items()
        if pair[2:] == ("v100", 1)
    ]
    assert np.median(gain) > 1.0
    assert min(gain) < 1.0 < max(gain)


def test_colocation_is_what_gavel_measured(catalogue, shared):
    raw = json.loads((shared / "data" / "gavel" / "simulation_throughputs.json").read_text())
    pairs = catalogue.colocation["gavel"]
    names = catalogue.throughputs["gavel"].table.models
    for gpu, n_gpus in itertools.product(("k80", "p100", "v100"), (1, 2, 4, 8)):
        for one, other in itertools.product(names, names):
            rates = raw[gpu].get(str((one, n_gpus)), {}).get(str((other, n_gpus)), (0.0, 0.0))
            kept = pairs.get((one, other, gpu, n_gpus), (0.0, 0.0))
            assert kept == pytest.approx(rates if min(rates) > 0 else (0.0, 0.0), rel=1e-5)


def test_models_of_each_source(catalogue):
    gavel, pollux = catalogue.throughputs["gavel"], catalogue.throughputs["pollux"]
    assert len(gavel.table.models) == 26
    assert gavel.table.types == ("k80", "p100", "v100")
    distributed = (gavel.table.rate[:, 2, 8, 0] > 0).sum()
    assert distributed == 19
    assert set(pollux.model) == {"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"}
    assert pollux.table.types == ("t4",)


def test_the_faster_gpu_depends_on_the_model(catalogue):
    figures = catalogue.throughputs["gavel"]
    k80, p100, v100 = figures.one_gpu_speed(("k80", "p100", "v100")).T
    p100_wins = {name for name, wins in zip(figures.table.models, p100 > v100, strict=True) if wins}
    assert p100_wins == {
        "ResNet-18 (batch size 16)",
        "ResNet-18 (batch size 32)",
        "Transformer (batch size 256)",
        *(f"Recommendation (batch size {2**power})" for power in range(9, 14)),
    }
    k80_wins = {name for name, wins in zip(figures.table.models, k80 > v100, strict=True) if wins}
    assert k80_wins == {f"Recommendation (batch size {2**power})" for power in range(9, 13)}
    ratio = v100 / k80
    assert (ratio.min(), ratio.max()) == (pytest.approx(0.66, abs=0.05), pytest.approx(11.6, abs=0.1))


def test_scaling_is_neither_monotone_nor_linear(catalogue):
    table = catalogue.throughputs["gavel"].table

    def speedup(model, gpus, spread=0):
        rate = table.rate[table.row(model), table.types.index("v100")]
        return rate[gpus, spread] / rate[1, 0]

    lm = [speedup("LM (batch size 5)", gpus) for gpus in (2, 4, 8)]
    np.testing.assert_allclose(lm, [1.70, 1.16, 6.40], atol=0.005)
    assert speedup("ResNet-18 (batch size 16)", 8) == pytest.approx(11.8, abs=0.05)
    assert speedup("LM (batch size 80)", 8) == pytest.approx(8.19, abs=0.005)
    assert speedup("LM (batch size 80)", 8, spread=1) == pytest.approx(1.70, abs=0.005)
    k80 = table.rate[table.row("ResNet-50 (batch size 128)"), 0, :, 0]
    assert k80[1] > 0
    assert k80[2] == k80[4] == k80[8] == 0  # cannot run


def test_generations(catalogue):
    figures = catalogue.throughputs["generations"]
    speed = figures.one_gpu_speed(("v100", "a10", "a100-40", "a100-80", "h100"))
    of = dict(zip(figures.table.models, speed.tolist(), strict=True))
    assert of["BERT-large"] == [57, 42, 117, 152, 310]
    assert of["ResNet-50"] == [833, 638, 1396, 1582, 2790]
    bert, resnet = speed[:2, 4] / speed[:2, 0]  # H100 over V100
    assert bert > 1.5 * resnet


def test_gpu_types_of_the_clusters_have_the_memory_of_the_catalogue(catalogue):
    for path in (config_dir() / "clusters").glob("*.yaml"):
        for gpu in yaml.safe_load(path.read_text())["types"]:
            known = catalogue.gpus.get(gpu["name"])
            if known and "memory_bytes" in gpu:
                assert (gpu["memory_bytes"], gpu["power_w"]) == (known.memory_bytes, known.power_w), path


@pytest.mark.parametrize(
    ("file", "workload"), [("openb", ("t4", "p100", "v100")), ("acme", ("a100-80", "h100"))], ids=["openb", "acme"]
)
def test_relative_speeds_of_scenarios_are_those_of_the_catalogue(catalogue, file, workload):
    type_speed = yaml.safe_load((config_dir() / "scenarios" / f"{file}.yaml").read_text())["workload"]["type_speed"]
    gavel, pollux, generations = (catalogue.throughputs[name] for name in ("gavel", "pollux", "generations"))
    if file == "openb":
        p100, v100 = gavel.one_gpu_speed(("p100", "v100"))[gavel.table.row("ResNet-50 (batch size 32)")]
        t4 = pollux.one_gpu_speed(("t4",))[pollux.table.row("imagenet (batch size 28)"), 0]
        expected = [t4 / v100, p100 / v100, 1]
    else:
        a100, h100 = generations.one_gpu_speed(("a100-80", "h100"))[generations.table.row("BERT-large")]
        expected = [1, h100 / a100]
    np.testing.assert_allclose([type_speed[name] for name in workload], expected, atol=0.006)


# --- against the files that the figures come from --------------------------------------------------


@pytest.mark.skipif(not (DATA / "gavel").is_dir(), reason="needs Gavel's files beside the checkout")
def test_gavel_figures_are_exact(catalogue):
    ours, theirs = (
        catalogue.throughputs["gavel"].table,
        read_throughputs(DATA / "gavel" / "simulation_throughputs.json"),
    )
    assert set(ours.models) == set(theirs.models)
    for model in ours.models:
        np.testing.assert_array_equal(
            ours.for_types(theirs.types)[ours.row(model)], theirs.for_types(theirs.types)[theirs.row(model)]
        )


@pytest.mark.skipif(not (DATA / "pollux").is_dir(), reason="needs Pollux' files beside the checkout")
def test_pollux_figures_are_those_of_its_measurements(catalogue):
    figures = catalogue.throughputs["pollux"]
    where = {"1": (1, 0), "2": (2, 0), "4": (4, 0), "11": (2, 1), "22": (4, 1), "44": (8, 1)}
    compared = 0
    for model in set(figures.model):
        with (DATA / "pollux" / "traces" / model / "placements.csv").open() as file:
            for row in csv.DictReader(file):
                if row["placement"] not in where:
                    continue
                gpus, spread = where[row["placement"]]
                rate = figures.table.rate[
                    figures.table.row(f"{model} (batch size {row['local_bsz']})"), 0, gpus, spread
                ]
                assert rate == pytest.approx(gpus / float(row["step_time"]), rel=1e-5)
                compared += 1
    assert compared > 300


# --- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("models.csv", "46.8e6", "many", r"models\.csv, line 5, grad_bytes: 'many'; give a number of 0 or more"),
        ("models.csv", "16,256,Gavel; 11", "16,,Gavel; 11", r"models\.csv, line 5, batch_max: ''; give both ends"),
        ("models.csv", "16,256,Gavel; 11", "16,8,Gavel; 11", r"models\.csv, line 5, batch_max: '8'; .* batch_min = 16"),
        ("models.csv", "ResNet-50,", "ResNet-18,", r"models\.csv, line 6, model: 'ResNet-18'; give each name once"),
        ("models.csv", "task,", "", r"models\.csv, line 4, columns: "),
        ("gpus.csv", "12e9", "", r"gpus\.csv, line 3, memory_bytes: ''; give a number"),
        ("gpus.csv", "12e9,150", "12e9", r"gpus\.csv, line 3, number of fields: 2; give 3"),
        ("throughputs-gavel.csv", "ResNet-18,16,k80", "ResNet-19,16,k80", r"line 5, model: 'ResNet-19'; name a model"),
        ("throughputs-gavel.csv", "ResNet-18,16,k80", "ResNet-18,16,k81", r"line 5, gpu: 'k81'; name a GPU"),
        (
            "throughputs-gavel.csv",
            "ResNet-18,16,k80",
            "ResNet-18,1.5,k80",
            r"line 5, batch: '1.5'; give a whole number",
        ),
        ("throughputs-gavel.csv", "ResNet-18,16,p100", "ResNet-18,16,k80", r"line 6, gpu: 'k80'; give .* once"),
        ("throughputs-gavel.csv", "4.795294551566172", "-1", r"line 5, on_1: '-1'; give a number of 0 or more"),
    ],
)
def test_errors_name_file_line_and_field(tmp_path, file, old, new, message):
    folder = tmp_path / "catalogue"
    shutil.copytree(SHIPPED, folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        load_catalogue(folder)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gpus\.csv: No such file"):
        load_catalogue(tmp_path)

"""What TensorBoard shows of a run is in its event files."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from agents.events import Events
from agents.figures import Figures
from agents.runs import Run
from agents.training import play_baselines, train
from tests.agents.helpers import tiny_config, tiny_evolution

EVERYTHING = {"images": 0, "histograms": 0, "scalars": 0}
ALIKE = {f"heldout/{name}" for name in (*Figures._fields, "ratio_to_sjf", "ratio_to_market")} | {"rollout/mean_jct_s"}
ALIKE |= {f"best/{name}" for name in ("step", *Figures._fields)}
OWN = {
    "ppo": {
        *("heldout/beta", "rollout/utilization", "rollout/ep_rew_mean", "train/learning_rate"),
        *("train/value_loss", "train/policy_gradient_loss", "train/entropy_loss"),
    },
    "cma": {"evolution/generation", "evolution/sigma", "rollout/best_jct_s"},
}


@pytest.fixture(scope="module", params=["ppo", "cma"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    baselines = ["sjf", "market"]
    if request.param == "ppo":
        config = tiny_config("ppo", evaluation={"episodes": 2, "every_steps": 128, "baselines": baselines})
    else:
        config = tiny_evolution(evaluation={"episodes": 2, "every_steps": 400, "baselines": baselines})
    folder = tmp_path_factory.mktemp("runs") / request.param
    return train(config, folder, play_baselines(config, lambda done, total: None))


def read(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder), size_guidance=EVERYTHING).Reload()


def test_scalars_are_those_of_the_table(run: Run) -> None:
    events = read(run.folder)
    assert ALIKE | OWN[run.config.algorithm] <= set(events.Tags()["scalars"])
    for name in Figures._fields:
        logged = [(event.step, pytest.approx(event.value)) for event in events.Scalars(f"heldout/{name}")]
        assert logged == [(step, getattr(figures, name)) for step, figures in run.history]
    ratios = [event.value for event in events.Scalars("heldout/ratio_to_sjf")]
    sjf = run.baselines["sjf"].mean_jct_s
    assert ratios == pytest.approx([figures.mean_jct_s / sjf for _, figures in run.history])


def test_baselines_are_level_lines_in_the_same_charts(run: Run) -> None:
    assert set(run.baselines) == {"sjf", "market"}
    for name, figures in run.baselines.items():
        events = read(run.folder / name)
        for figure, value in figures._asdict().items():
            line = events.Scalars(f"heldout/{figure}")
            assert [event.step for event in line] == [step for step, _ in run.history]
            assert [event.value for event in line] == pytest.approx([value] * len(line))


def test_each_evaluation_has_a_gantt_picture_and_a_histogram(run: Run) -> None:
    events = read(run.folder)
    steps = [step for step, _ in run.history]
    pictures = events.Images("heldout/gantt")
    assert [event.step for event in pictures] == steps
    pixels = np.asarray(Image.open(io.BytesIO(pictures[-1].encoded_image_string)))
    assert pixels.shape == (pictures[-1].height, pictures[-1].width, 3)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 12  # a colour a job
    histograms = events.Histograms("heldout/jct_s")
    assert [event.step for event in histograms] == steps
    assert all(event.histogram_value.num == 12 for event in histograms)
    assert all(event.histogram_value.min > 0.0 for event in histograms)


def test_hparams_hold_the_settings_and_name_the_best_figures(run: Run) -> None:
    events = read(run.folder)
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    settings = HParamsPluginData.FromString(content).session_start_info.hparams
    assert settings["algorithm"].string_value == run.config.algorithm
    assert settings["seed"].number_value == run.config.seed
    assert settings["env_kwargs.scenario"].string_value == "online"
    content = events.SummaryMetadata("_hparams_/experiment").plugin_data.content
    metrics = {info.name.tag for info in HParamsPluginData.FromString(content).experiment.metric_infos}
    assert metrics == {f"best/{name}" for name in ("step", *Figures._fields)}
    step, best = run.best
    assert events.Scalars("best/step")[-1].value == step
    assert events.Scalars("best/mean_jct_s")[-1].value == pytest.approx(best.mean_jct_s)


def test_a_later_session_takes_the_place_of_what_an_earlier_one_logged_from_its_step_on(tmp_path: Path) -> None:
    figures, picture = Figures(1.0, 2.0, 0.5, 0.1), np.zeros((4, 4, 3), np.uint8)
    baselines = {"sjf": figures}
    for purge_step, steps in ((None, (0, 10, 20, 30)), (11, (15, 25))):
        events = Events(tmp_path, baselines, purge_step)
        for step in steps:
            events.evaluated(step, figures, {}, picture, np.ones(3))
        events.close()
        time.sleep(1.1)  # files are read in the order of their names, which hold the second
    for folder in (tmp_path, tmp_path / "sjf"):
        assert [event.step for event in read(folder).Scalars("heldout/mean_jct_s")] == [0, 10, 15, 25]

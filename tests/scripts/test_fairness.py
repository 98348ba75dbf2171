"""scripts/fairness.py: the table, the files and the figure of the trade-off."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hetenv.errors import InputError
from hetenv.evaluation import Evaluation
from scripts.fairness import CURVES, label, main, trade_off

SMALL = ["--scenario", "slow-server", "--set", "workload.n_jobs=8", "--episodes", "2"]
LABELS = [label(scheduler, value) for scheduler, (_, values) in CURVES.items() for value in values]


def test_table_files_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "fairness"
    assert main([*SMALL, "--seed", "7", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for heading in ("mean JCT (s)", "Jain", "max rho"):
        assert heading in printed
    summary = json.loads((out / "summary.json").read_text())
    assert list(summary["schedulers"]) == LABELS
    assert all(of in printed for of in LABELS)
    assert (summary["episodes"], summary["seed"]) == (2, 7)
    assert (out / "fairness.png").read_bytes().startswith(b"\x89PNG")
    assert {path.suffix for path in out.iterdir()} == {".json", ".csv", ".png", ""}  # TensorBoard's folder the last
    assert len(list(out.glob("*.png"))) == 1


def test_a_line_is_a_scheduler_and_a_point_a_parameter() -> None:
    schedulers = {of: {"jain": 0.5 + at / 100, "mean_jct_s": 100.0 + at} for at, of in enumerate(LABELS)}
    figure = trade_off({"scenario": "x", "episodes": 2, "seed": 7, "schedulers": schedulers})
    (axes,) = figure.axes
    assert axes.get_ylabel() == "mean JCT (s)"
    assert "Jain" in axes.get_xlabel()
    market, jps = axes.get_lines()
    assert (market.get_label(), jps.get_label()) == ("market, by fairness exponent", "jps, by beta")
    assert market.get_ydata().tolist() == [100.0, 101.0, 102.0, 103.0, 104.0]  # type: ignore[union-attr]
    assert jps.get_xdata().tolist() == pytest.approx([0.55, 0.56, 0.57, 0.58, 0.59])  # type: ignore[union-attr]
    assert [text.get_text() for text in axes.texts] == [
        "0",
        "0.25",
        "0.5",
        "0.75",
        "1",
        "1",
        "0.9",
        "0.7",
        "0.5",
        "0.3",
    ]


def test_without_matplotlib_nothing_is_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "fairness"
    assert main([*SMALL, "--out", str(out)]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "error: matplotlib is not installed; use `pip install hetenv[train]`\n")
    assert not out.exists()


def test_a_full_disk_spares_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(evaluation: Evaluation, folder: Path) -> None:
        raise InputError(str(folder), "cannot be written", "make room")

    monkeypatch.setattr(Evaluation, "save", full)
    assert main([*SMALL, "--out", str(tmp_path / "fairness")]) == 2
    captured = capsys.readouterr()
    assert "max rho" in captured.out
    assert captured.err == f"error: {tmp_path / 'fairness'}: cannot be written; make room\n"
    assert not (tmp_path / "fairness").exists()

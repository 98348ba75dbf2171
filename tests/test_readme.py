"""The README's examples run, and the files and commands it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=[code.strip().splitlines()[0] for code in EXAMPLES])
def test_example_runs(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_there_is_a_short_gymnasium_example() -> None:
    gym_examples = [code for code in EXAMPLES if "gym.make" in code]
    assert gym_examples
    assert len(gym_examples[0].strip().splitlines()) <= 10


def test_every_path_it_names_exists() -> None:
    named = re.findall(r"`((?:hetenv|agents|baselines|configs|scripts|tests)/(?![A-Z])[\w/.-]*)`", README)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []

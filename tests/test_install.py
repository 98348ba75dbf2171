"""The built wheel works on its own: scenario files and pretrained policies travel inside it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_makes_an_environment_from_another_folder(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for folder in ("hetenv", "baselines", "agents", "configs"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", ".gitignore"):
        shutil.copy(ROOT / file, source)
    (source / "agents" / "pretrained").mkdir(exist_ok=True)
    (source / "agents" / "pretrained" / "probe.npz").write_bytes(b"")

    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, source, cwd=tmp_path)
    (wheel,) = tmp_path.glob("hetenv-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", wheel, cwd=tmp_path)
    site_packages = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    )
    # The dependencies come from the environment that runs the tests; its own hetenv stays out, for .pth files
    # of a folder named in a .pth file are not read.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    script = """
import pathlib, gymnasium, hetenv, hetenv.config, baselines, agents
gymnasium.make("hetenv/Placement-v0", scenario="paper-batch")
print(hetenv.__file__)
print(*hetenv.config.scenario_names())
print((pathlib.Path(agents.__file__).parent / "pretrained" / "probe.npz").is_file())
"""
    package, names, has_policies = run(python, "-c", script, cwd=tmp_path).splitlines()
    assert Path(package).is_relative_to(tmp_path / "venv")
    assert set(names.split()) >= {"online", "online-elastic", "paper-batch", "philly", "slow-server"}
    assert has_policies == "True"

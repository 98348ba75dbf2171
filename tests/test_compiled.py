"""The kernel cache: never stale across modules, never inside the installation, one compilation serves all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hetenv.cache
import hetenv.compiled
import hetenv.merged

HELPER = """
from hetenv.compiled import njit

@njit
def step(x):
    return x + {}
"""
CALLER = """
from hetenv.compiled import njit
from hetenv.helper import step

@njit
def twice(x):
    return step(step(x))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package named hetenv: what compiles and caches in the real one, a helper and a kernel that calls it."""
    folder = tmp_path / "site" / "hetenv"
    folder.mkdir(parents=True)
    for module in (hetenv.compiled, hetenv.merged, hetenv.cache):
        shutil.copy(module.__file__, folder)
    (folder / "__init__.py").touch()
    (folder / "helper.py").write_text(HELPER.format(1))
    (folder / "caller.py").write_text(CALLER)
    return folder


def run_twice(package: Path, cache: Path) -> int:
    return int(run(package, cache).stdout)


def run(package: Path, cache: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(package.parent), "HETENV_CACHE_DIR": str(cache)} | variables
    script = "from hetenv.caller import twice; print(twice(0))"
    done = subprocess.run([sys.executable, "-c", script], env=env, cwd=package.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def test_compiling_is_announced_in_one_line_and_only_then(package: Path, tmp_path: Path) -> None:
    said = run(package, tmp_path / "cache").stderr
    assert said == f"hetenv: compiling kernels, once; they are kept in {tmp_path / 'cache' / 'numba'}\n"
    assert run(package, tmp_path / "cache").stderr == ""


def test_a_changed_helper_in_another_module_is_compiled_in(package: Path, tmp_path: Path) -> None:
    assert run_twice(package, tmp_path / "cache") == 2
    (package / "helper.py").write_text(HELPER.format(10))
    assert run_twice(package, tmp_path / "cache") == 20


def test_the_cache_is_reused_and_lies_outside_the_package(package: Path, tmp_path: Path) -> None:
    run_twice(package, tmp_path / "cache")
    kernels = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")}
    assert len(kernels) == 1  # the helper is part of it
    run_twice(package, tmp_path / "cache")
    assert kernels == {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")}
    assert not list(package.rglob("*.nbc"))


def test_an_unwritable_cache_folder_is_no_obstacle(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run_twice(package, tmp_path / "file") == 2


def test_processes_that_compile_at_once_leave_a_sound_cache(package: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: run_twice(package, tmp_path / "cache"), range(4))) == [2] * 4
    assert run(package, tmp_path / "cache").stderr == ""  # nothing is compiled again


def test_a_change_compiles_only_what_depends_on_it(package: Path, tmp_path: Path) -> None:
    (package / "prose.py").write_text("x = 1\n")
    (package / "caller.py").write_text("from hetenv.prose import x\n" + CALLER)
    run_twice(package, tmp_path / "cache")
    kernels = set((tmp_path / "cache").rglob("*.nbc"))
    (package / "prose.py").write_text("x = 1  # no kernels in it\n")
    run_twice(package, tmp_path / "cache")
    assert set((tmp_path / "cache").rglob("*.nbc")) == kernels
    (package / "caller.py").write_text("from hetenv.prose import x\n" + CALLER + "# changed\n")
    run_twice(package, tmp_path / "cache")
    (added,) = set((tmp_path / "cache").rglob("*.nbc")) - kernels
    assert "twice" in added.name


def test_a_changed_constant_of_another_module_is_compiled_in(package: Path, tmp_path: Path) -> None:
    (package / "prose.py").write_text("OFFSET = 1\n")
    (package / "helper.py").write_text("from hetenv.prose import OFFSET\n" + HELPER.format("OFFSET"))
    assert run_twice(package, tmp_path / "cache") == 2
    (package / "prose.py").write_text("OFFSET = 10\n")
    assert run_twice(package, tmp_path / "cache") == 20


@pytest.mark.parametrize("decorate", [hetenv.compiled.njit, hetenv.compiled.njit_in_place])
def test_a_kernel_serves_python_and_kernels_whichever_calls_first(decorate: Callable[[Any], Any]) -> None:
    @decorate
    def half(x: float) -> float:
        if x < 0.0:
            raise ValueError("give 0 or more")
        return x / 2

    @decorate
    def quarter(x: float) -> float:
        return half(half(x))

    @decorate
    def eighth(x: float) -> float:
        return quarter(half(x))

    assert eighth(1.0) == 0.125
    assert half(1.0) == 0.5
    assert quarter(1) == 0.25
    assert eighth(2) == 0.25
    for kernel in (half, eighth):
        with pytest.raises(ValueError, match="0 or more"):
            kernel(-1.0)


def test_a_part_can_print(capfd: pytest.CaptureFixture[str]) -> None:
    @hetenv.compiled.njit
    def shout(x: float) -> float:
        print("got", x)
        return x

    @hetenv.compiled.njit
    def whole(x: float) -> float:
        return shout(x)

    assert whole(1.5) == 1.5
    assert capfd.readouterr().out == "got 1.5\n"


def test_a_change_of_how_kernels_are_compiled_compiles_them_anew(package: Path, tmp_path: Path) -> None:
    run_twice(package, tmp_path / "cache")
    with (package / "merged.py").open("a") as file:
        file.write("# changed\n")
    assert "compiling" in run(package, tmp_path / "cache").stderr
    assert run(package, tmp_path / "cache").stderr == ""
    assert "compiling" in run(package, tmp_path / "cache", NUMBA_BOUNDSCHECK="1").stderr


def test_a_part_is_not_compiled_by_itself() -> None:
    @hetenv.compiled.njit
    def part(x: float) -> float:
        return x + 1.0

    @hetenv.compiled.njit
    def whole(x: float) -> float:
        return part(x)

    assert whole(1.0) == 2.0
    assert not part.signatures

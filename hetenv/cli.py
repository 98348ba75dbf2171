"""What the command lines share: exit statuses, one-line errors and notes, output folders, progress."""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import yaml

from hetenv.errors import InputError, PlanError, StallError

if TYPE_CHECKING:
    from rich.console import RenderableType

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

TRAIN_EXTRA = frozenset({"cma", "matplotlib", "stable_baselines3", "tensorboard", "torch"})
PATIENCE_S = 2.0
PIPE_COLUMNS = 160  # width of tables that go into a file or a pipe


class Command(Protocol):
    """The ``main`` of a script; ``argv`` defaults to that of the process, and the status is returned."""

    def __call__(self, argv: Sequence[str] | None = None) -> int: ...


def command(main: Command) -> Command:
    """Make ``main(argv) -> status`` a command line that fails in one line on stderr.

    The status is 2 for bad input, for a scheduler that breaks the rules and for a missing optional package,
    130 for Ctrl-C and 1 when the reader of stdout goes away. Warnings become lines ``note: ...``. Any other
    exception is a fault of ours and keeps its traceback.
    """

    @functools.wraps(main)
    def run(argv: Sequence[str] | None = None) -> int:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            try:
                status = main(argv)
                sys.stdout.flush()  # here, where a closed pipe can still be caught
            except (InputError, PlanError, StallError) as error:
                return _fail(str(error), BAD_INPUT)
            except ImportError as error:
                package = (error.name or "").partition(".")[0]
                if package not in TRAIN_EXTRA:
                    raise
                return _fail(f"{package} is not installed; use `pip install hetenv[train]`", BAD_INPUT)
            except KeyboardInterrupt:
                return _fail("interrupted", INTERRUPTED)
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor may the flush at exit complain
                return FAILED
            return status

    return run


def _fail(message: str, status: int) -> int:
    print(f"error: {_one_line(message)}", file=sys.stderr)
    return status


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"note: {_one_line(str(message))}", file=sys.stderr)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def parse_options(text: str) -> tuple[str, dict[str, Any]]:
    """A name and its options: ``"jps:samples=20,beta=0.7"`` -> ``("jps", {"samples": 20, "beta": 0.7})``.

    Values are YAML.

    Raises:
        InputError: not of this form, or an option given twice.
    """
    name, colon, assignments = text.partition(":")
    options: dict[str, Any] = {}
    for assignment in re.split(r",(?=\s*\w+=)", assignments) if colon else []:
        key, sign, value = assignment.strip().partition("=")
        if not (sign and key.isidentifier()) or key in options:
            fault = f"{key!r} twice" if key in options else f"{assignment!r} is no option"
            raise InputError(repr(text), fault, "write NAME:KEY=VALUE,KEY=VALUE, e.g. jps:samples=20,beta=0.7")
        try:
            options[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise InputError(f"{text!r}, {key}", repr(value), "give a value that is valid YAML") from None
    return name, options


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Have ``folder``, writable; folders that were made for it go away again when the body fails.

    Raises:
        InputError: the folder cannot be made or written.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise InputError(
                str(folder), f"cannot be written ({error.strerror})", "name a folder you may write"
            ) from None
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):  # not empty, or never made
                path.rmdir()
        raise


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """A callback ``(done, total)`` that draws a bar on stderr, once the body has run for two seconds.

    Nothing is drawn where stderr is no terminal.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(description, total=None)
    patience = threading.Timer(PATIENCE_S, bar.start)
    patience.start()
    try:
        yield lambda done, total: bar.update(task, completed=done, total=total)
    finally:
        patience.cancel()
        patience.join()
        if bar.live.is_started:
            bar.stop()


def show(renderable: RenderableType) -> None:
    """Print a rich table on stdout, at its full width where that is no terminal."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS).print(renderable)

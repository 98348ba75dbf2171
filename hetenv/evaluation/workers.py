"""Trials run by several processes.

Each process has a pipe of its own, unlike those of ``ProcessPoolExecutor``, whose shared queues can hang for
good when a process is stopped in the middle of a message. Stopping at once is what Ctrl-C needs here.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait

from hetenv.config import Scenario
from hetenv.errors import InputError
from hetenv.evaluation.trials import SchedulerFactory, Task, Trial, TrialStream, run_trial
from hetenv.scheduler import Scheduler


class WorkerTraceback(Exception):  # noqa: N818, shown as the cause of an exception and never raised itself
    """Where in a worker process the exception arose."""


def run_in_workers(
    tasks: Iterable[Task], scenario: Scenario, factories: Mapping[str, SchedulerFactory], workers: int
) -> TrialStream:
    """The trials of ``tasks`` as they are completed by ``workers`` processes.

    Closing the iterator early, or an exception, stops the processes without waiting for their trials.

    Raises:
        InputError: a process died.
    """
    with _started(scenario, factories, workers) as idle:
        busy: list[Connection] = []
        for task in tasks:
            if not idle:
                yield from _finished(busy, idle)
            worker = idle.pop()
            _send(worker, task)
            busy.append(worker)
        while busy:
            yield from _finished(busy, idle)


@contextmanager
def _started(scenario: Scenario, factories: Mapping[str, SchedulerFactory], workers: int) -> Iterator[list[Connection]]:
    """Connections to ``workers`` processes, which are stopped in the end."""
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks that threads of torch hold
    processes, connections = [], []
    try:
        for _ in range(workers):
            here, there = context.Pipe()
            connections.append(here)
            process = context.Process(target=_serve, args=(there, scenario, factories), daemon=True)
            with ignoring_interrupts():
                process.start()
            processes.append(process)
            there.close()  # the process has the only other end, so that its death closes the pipe
        yield list(connections)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
        for connection in connections:
            connection.close()


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C; processes started meanwhile ignore it for good, so that the parent alone answers it."""
    if threading.current_thread() is not threading.main_thread():  # the only one that may say so, or be interrupted
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _finished(busy: list[Connection], idle: list[Connection]) -> Iterator[Trial]:
    """Wait until a trial is complete; give out all that are, and move their workers from ``busy`` to ``idle``."""
    for worker in wait(busy):
        assert isinstance(worker, Connection)
        busy.remove(worker)
        idle.append(worker)
        yield _receive(worker)


def _send(worker: Connection, task: Task) -> None:
    try:
        worker.send(task)
    except OSError:
        raise worker_died() from None


def _receive(worker: Connection) -> Trial:
    try:
        trial, error, where = worker.recv()
    except (EOFError, OSError):
        raise worker_died() from None
    if error is not None:
        raise error from WorkerTraceback(where)
    return trial


def worker_died() -> InputError:
    return InputError("workers", "a process died", "use fewer if memory is short")


# --- in a worker process ---------------------------------------------------------------------------


def _serve(parent: Connection, scenario: Scenario, factories: Mapping[str, SchedulerFactory]) -> None:
    """Answer tasks with (trial, None, "") or (None, exception, traceback) until this process is stopped."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch loads: the workers share the cores already
    schedulers: dict[str, Scheduler] = {}
    while True:
        task = parent.recv()
        try:
            if task.scheduler not in schedulers:
                schedulers[task.scheduler] = factories[task.scheduler]()
            parent.send((run_trial(task, scenario, schedulers[task.scheduler]), None, ""))
        except BaseException as error:
            parent.send((None, error, traceback.format_exc()))

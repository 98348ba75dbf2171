"""Bring what the next environments of a batch need into the cache while one steps.

Hundreds of environments do not fit into a core's cache, and each touches some sixty places: waiting for one after the
other takes longer than the step itself.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from hetenv.compiled import njit_in_place as njit

_BYTES = 256  # of an array that may be large
_SOONEST = 16  # running jobs


@intrinsic
def _prefetch(typingctx: Any, array: Any, offset: Any = None) -> Any:
    """Ask for the cache line ``offset`` bytes behind the beginning of ``array``."""

    def codegen(context, builder, signature, args):
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = make_array(signature.args[0])(context, builder, args[0]).data
        at = builder.gep(builder.bitcast(data, byte), [args[1]])
        prefetch = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, prefetch, "llvm.prefetch.p0")
        builder.call(function, [at, flag(0), flag(3), flag(1)])  # to read, to all caches, data
        return context.get_dummy_value()

    return types.none(array, types.intp), codegen


@njit
def _prefetch_row(array, row):
    for line in range(row * array.strides[0], (row + 1) * array.strides[0], 64):
        _prefetch(array, line)


@njit
def _prefetch_begin(array):
    for line in range(0, min(array.size * array.itemsize, _BYTES), 64):
        _prefetch(array, line)


@njit
def prefetch_environment(state, view, observation):
    """Ask for what every step needs; two steps ahead, so that ``prefetch_jobs`` finds it."""
    _prefetch_begin(state.clock)
    _prefetch_begin(state.running)
    _prefetch_begin(state.uses)
    _prefetch_begin(state.nodes)
    _prefetch_begin(view.agent)
    _prefetch_begin(view.window)
    _prefetch_begin(view.mask)
    _prefetch_begin(observation.rows)
    _prefetch_row(observation.jobs, 0)
    _prefetch_row(observation.candidates, 0)


@njit
def prefetch_jobs(fixed, state, view):
    """Ask for the jobs that a step is about: the first of the window, the next to arrive and to finish."""
    clock = state.clock[0]
    if view.window[0] >= 0:
        _prefetch_job(fixed, state, view, view.window[0])
    if clock.next_arrival < fixed.jobs.shape[0]:
        _prefetch_job(fixed, state, view, clock.next_arrival)
    for at in range(max(0, clock.n_running - _SOONEST), clock.n_running):
        _prefetch_row(state.jobs, state.running[at])
        _prefetch_row(state.counts, state.running[at])


@njit
def _prefetch_job(fixed, state, view, job):
    _prefetch_row(fixed.jobs, job)
    _prefetch_row(fixed.speed, job)
    _prefetch_row(state.jobs, job)
    _prefetch_row(view.seen, job)
    _prefetch_row(view.counts, job)
    _prefetch_row(view.candidates, job)

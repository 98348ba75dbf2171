"""Where the arrays of N environments lie: one table that a compiled kernel takes instead of thirty arrays.

Handing an array to a compiled kernel costs a fraction of a microsecond, more than a kernel needs for a whole
step. The table holds the address of each array of each environment and the sizes they share; the kernel
makes the tuples ``Fixed``, ``State``, ``View`` and ``Observation`` of one environment from a row of it.
Whoever holds the table keeps the arrays alive, and makes it anew when one of them is replaced.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from hetenv.compiled import njit_in_place as njit
from hetenv.envs.candidates import CANDIDATE, IDEAL
from hetenv.envs.view import AGENT, SEEN, Observation, View
from hetenv.simulator.state import CLOCK, HOLD, JOB, JOB_SPEC, NODE, RULES, SEGMENT, TYPE_SPEC, USE, Fixed, State

_PARTS: tuple[tuple[str, Any], ...] = (("fixed", Fixed), ("state", State), ("view", View), ("observation", Observation))
ADDRESS = np.dtype(
    [(f"{part}_{name}", "i8") for part, record in _PARTS for name in record._fields]
    + [("timeline", "i8")]
    + [(size, "i8") for size in ("n_jobs", "n_types", "n_nodes", "n_gpus", "n_measured", "n_sizes", "n_segments")]
    + [(size, "i8") for size in ("n_rows", "n_places", "n_job", "n_candidate", "n_type", "n_global")]
)
_NAMES = tuple(ADDRESS.fields or ())
SHARED = ("types", "measured", "rules")  # arrays of Fixed that have no axis of environments


def address_table(
    fixed: Fixed, state: State, view: View, observation: Observation, timeline: np.ndarray, n_jobs: np.ndarray
) -> np.ndarray:
    """(N,) ADDRESS of N environments' arrays.

    Args:
        fixed, state, view, observation: arrays with a leading axis of N, but for ``SHARED``; of a single
            environment with or without it.
        timeline: (rows,) SEGMENT, shared too.
        n_jobs: (N,) jobs of each environment, at most as many as the arrays have room for.
    """
    bases, strides = [], []
    for (part, record), arrays in zip(_PARTS, (fixed, state, view, observation), strict=True):
        for name, array in zip(record._fields, arrays, strict=True):
            bases.append(array.ctypes.data)  # not __array_interface__, which describes all fields of a record
            strides.append(0 if part == "fixed" and name in SHARED else array.strides[0])
    sizes = {
        "timeline": timeline.ctypes.data,
        "n_segments": len(timeline),
        "n_types": len(fixed.types),
        "n_nodes": state.nodes.shape[-1],
        "n_gpus": state.holds.shape[-1],
        "n_measured": fixed.measured.shape[0],
        "n_sizes": fixed.measured.shape[2],
        "n_rows": view.window.shape[-1],
        "n_places": view.candidates.shape[-1],
        "n_job": observation.jobs.shape[-1],
        "n_candidate": observation.candidates.shape[-1],
        "n_type": observation.types.shape[-1],
        "n_global": observation.globals.shape[-1],
    }
    row = np.array(bases + [sizes.get(name, 0) for name in _NAMES[len(bases) :]])
    stride = np.array(strides + [0] * (len(row) - len(bases)))
    table = (row + np.arange(len(n_jobs))[:, None] * stride).view(ADDRESS)[:, 0]
    table["n_jobs"] = n_jobs
    return table


@intrinsic
def _array(typingctx: Any, address: Any, shape: Any = None, dtype: Any = None) -> Any:
    """The contiguous array of ``shape`` and ``dtype`` at ``address``; it owns nothing, as with ``numba.carray``."""
    array_type = types.Array(dtype.dtype, shape.count, "C")

    def codegen(context, builder, signature, args):
        array = make_array(array_type)(context, builder)
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(dtype.dtype)))
        sizes = cgutils.unpack_tuple(builder, args[1], shape.count)
        strides = [itemsize]
        for size in reversed(sizes[1:]):
            strides.insert(0, builder.mul(strides[0], size))
        data = builder.inttoptr(args[0], context.get_data_type(dtype.dtype).as_pointer())
        populate_array(array, data, shape=sizes, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue()

    return array_type(address, shape, dtype), codegen


@njit
def arrays_at(at):
    """The tuples Fixed, State, View and Observation, and the timeline, of the environment with ADDRESS ``at``."""
    n_jobs, n_types, n_rows, n_places = at.n_jobs, at.n_types, at.n_rows, at.n_places
    n_actions = n_rows * n_places + 1
    fixed = Fixed(
        _array(at.fixed_jobs, (n_jobs,), JOB_SPEC),
        _array(at.fixed_speed, (n_jobs, n_types), np.float64),
        _array(at.fixed_types, (n_types,), TYPE_SPEC),
        _array(at.fixed_measured, (at.n_measured, n_types, at.n_sizes, 2), np.float64),
        _array(at.fixed_rules, (1,), RULES),
    )
    state = State(
        _array(at.state_jobs, (n_jobs,), JOB),
        _array(at.state_counts, (n_jobs, n_types), np.int32),
        _array(at.state_nodes, (at.n_nodes,), NODE),
        _array(at.state_uses, (n_types,), USE),
        _array(at.state_holds, (at.n_gpus,), HOLD),
        _array(at.state_running, (at.n_gpus,), np.int32),
        _array(at.state_clock, (1,), CLOCK),
    )
    view = View(
        _array(at.view_agent, (1,), AGENT),
        _array(at.view_seen, (n_jobs,), SEEN),
        _array(at.view_counts, (n_jobs, n_places, n_types), np.int32),
        _array(at.view_candidates, (n_jobs, n_places), CANDIDATE),
        _array(at.view_draws, (n_jobs, n_places, n_types + 1), np.float32),
        _array(at.view_ideal, (at.n_gpus + 1,), IDEAL),
        _array(at.view_scratch, (2, n_types), np.int64),
        _array(at.view_release_s, (n_types,), np.float64),
        _array(at.view_window, (n_rows,), np.int64),
        _array(at.view_mask, (n_actions,), np.bool_),
    )
    observation = Observation(
        _array(at.observation_jobs, (n_rows, at.n_job), np.float32),
        _array(at.observation_candidates, (n_rows, n_places, at.n_candidate), np.float32),
        _array(at.observation_types, (n_types, at.n_type), np.float32),
        _array(at.observation_globals, (at.n_global,), np.float32),
        _array(at.observation_action_mask, (n_actions,), np.float32),
        _array(at.observation_rows, (n_rows,), np.int64),
    )
    return fixed, state, _array(at.timeline, (at.n_segments,), SEGMENT), view, observation


@njit
def copy_observation(at, copies, e):
    """Copy the observation of the environment with ADDRESS ``at`` into row ``e`` of arrays (N, ...) float32.

    ``copies`` (5,) int64 has their addresses, in the order of ``Observation``.
    """
    rows: Any = _array(at.observation_rows, (at.n_rows,), np.int64)
    first = 0
    while first < at.n_rows:  # rows that hold a job or not, as many as follow each other
        empty = rows[first] == -1
        end = first + 1
        while end < at.n_rows and (rows[end] == -1) == empty:
            end += 1
        _copy_floats(at.observation_jobs, copies[0], e, at.n_rows * at.n_job, first * at.n_job, end * at.n_job, empty)
        n = at.n_places * at.n_candidate
        _copy_floats(at.observation_candidates, copies[1], e, at.n_rows * n, first * n, end * n, empty)
        first = end
    n = at.n_types * at.n_type
    _copy_floats(at.observation_types, copies[2], e, n, 0, n, False)
    _copy_floats(at.observation_globals, copies[3], e, at.n_global, 0, at.n_global, False)
    n = at.n_rows * at.n_places + 1
    _copy_floats(at.observation_action_mask, copies[4], e, n, 0, n, False)


@njit
def _copy_floats(source, rows, e, n, first, end, zeros):
    """Floats first..end of the ``n`` of one environment; zeros, which need not be read, where they are known to be."""
    source_floats: Any = _array(source, (n,), np.float32)
    target_floats: Any = _array(rows + 4 * n * e, (n,), np.float32)
    if zeros:
        target_floats[first:end] = 0.0
    else:
        for at in range(first, end):
            target_floats[at] = source_floats[at]

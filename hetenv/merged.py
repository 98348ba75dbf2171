"""Kernels that other kernels call are optimised within their callers, not each by itself too.

numba turns every kernel into machine code of its own, then optimises it once more in each of its callers, and theirs.
Here a kernel has two faces: called by Python it is numba's dispatcher, cached like any; called by a kernel it is a
part of that one, handed over as LLVM code, optimised as a whole and turned into machine code there, and cached with it.
A kernel cannot call itself.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering


class Kernel(CPUDispatcher):
    """A kernel as Python calls it."""

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.part)

    @cached_property
    def part(self) -> Any:
        """The kernel as other kernels call it."""
        return _Part(self.py_func, targetoptions=self.targetoptions, pipeline_class=_PartCompiler)

    def add_overload(self, compiled: Any) -> None:
        for environment in compiled._find_referenced_environments():  # of its parts too, which print from theirs
            compiled.library.codegen.set_env(environment.env_name, environment)
        super().add_overload(compiled)


class _Part(CPUDispatcher):
    def add_overload(self, compiled: Any) -> None:
        self.overloads[tuple(compiled.signature.args)] = compiled  # and nothing for Python to call


class _PartLibrary(JITCodeLibrary):
    """The code of a part: linked with that of its own parts, each function optimised by itself, never loaded.

    Without that much, which numba does as it adds a function, the whole would run half as fast.
    """

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _PartCompiler(CompilerBase):
    def define_pipelines(self) -> list[PassManager]:
        state = self.state
        state.flags.no_compile = True
        state.flags.no_cpython_wrapper = True
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        passes = DefaultPassBuilder.define_nopython_pipeline(state)
        passes.add_pass_after(_HandOver, NativeLowering)
        passes.finalize()
        return [passes]


@register_pass(mutates_CFG=False, analysis_only=False)
class _HandOver(LoweringPass):
    """Tell numba which code a call of the part means; it knows calls by an object that Python would call."""

    _name = "hetenv_hand_over"

    def __init__(self) -> None:  # which numba leaves abstract
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        def stand_in() -> None: ...

        state.targetctx.insert_user_function(stand_in, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=stand_in)
        return True

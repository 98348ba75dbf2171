"""``njit`` for this package: compiled once, cached outside the install, never stale.

numba keys a cached kernel by its own file alone, so a kernel that calls a helper of another module
keeps running the old helper after that changes. Here each module's kernels lie in a cache folder whose name
holds a digest of that module, of the constants it imports and of every module with kernels that it imports,
however far down: a change compiles afresh what depends on it and nothing else, and a read-only installation works.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from hetenv.cache import cache_dir
from hetenv.merged import Kernel

KernelT = TypeVar("KernelT", bound=Callable[..., Any])
# Whatever is left out here numba lets a kernel inherit from the one that happens to call it first.
_OPTIONS = {
    "nopython": True,
    "boundscheck": None,  # as NUMBA_BOUNDSCHECK says
    "error_model": "python",
    "forceinline": False,
    "no_cfunc_wrapper": True,
}
# x / 0 is inf or NaN: a check at each division costs a tenth. A call between kernels hands each field of each array
# over on the stack, in an environment a thousand bytes, unless it is inlined: that halves a step.
_IN_PLACE = {"_nrt": False, "error_model": "numpy", "forceinline": True}
_CONSTANTS = (int, float, str, tuple)  # what numba freezes into a kernel that reads a global


class _FirstCompilation(event.Listener):
    """Says once on stderr why a process that finds no compiled kernels seems to hang."""

    said = False

    def on_start(self, event: event.Event) -> None:
        ours = event.data["dispatcher"].__module__.partition(".")[0] in ("hetenv", "baselines", "agents")
        if ours and not self.said:
            self.said = True
            print("hetenv: compiling kernels, once; they are kept in", _cache_root(), file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _FirstCompilation())


def njit(kernel: KernelT) -> KernelT:
    """Compile ``kernel`` in nopython mode at its first call; cache the result on disk."""
    return _compile(kernel, _nrt=True)


def njit_unlocked(kernel: KernelT) -> KernelT:
    """``njit`` for a kernel that lets go of the interpreter lock, to run in several threads at once."""
    return _compile(kernel, _nrt=True, nogil=True)


def njit_in_place(kernel: KernelT) -> KernelT:
    """``njit`` for a kernel that creates and returns no arrays: it counts no references to those it is given.

    numba counts them at every call and slice, one atomic addition an array, which in small kernels on tuples of
    arrays costs more than the work. The caller keeps the arrays alive.
    """
    return _compile(kernel, **_IN_PLACE)


def njit_threaded(kernel: KernelT) -> KernelT:
    """``njit_in_place`` that lets go of the interpreter lock, as ``njit_unlocked`` does."""
    return _compile(kernel, **_IN_PLACE, nogil=True)


def _compile(kernel: KernelT, **options: Any) -> KernelT:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return kernel
    compiled = Kernel(kernel, targetoptions=_OPTIONS | options)
    saved = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = _cache_folder(kernel.__module__)  # type: ignore[attr-defined]
    try:
        compiled.enable_caching()
    finally:
        numba.config.CACHE_DIR = saved  # type: ignore[attr-defined]
    return cast(KernelT, compiled)


@cache
def _cache_folder(module: str) -> str:
    """The folder for a module's kernels; a temporary one where the user's cache cannot be written."""
    try:
        folder = _cache_root() / f"{module}-{_digest(module)}"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return str(folder)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="hetenv-numba-")


def _cache_root() -> Path:
    return cache_dir() / "numba"


@cache
def _digest(module: str) -> str:
    """Digest of a module with kernels, the constants and kernels it imports, and how they are compiled."""
    source = _source(module)
    digest = hashlib.sha256(source + _source(__name__) + _source(Kernel.__module__))
    digest.update(repr((numba.__version__, numba.config.BOUNDSCHECK)).encode())  # type: ignore[attr-defined]
    constants = {name: value for name, value in vars(sys.modules[module]).items() if isinstance(value, _CONSTANTS)}
    digest.update(repr({name: constants[name] for name in sorted(constants) if name[:2] != "__"}).encode())
    for helper in _imports(source):
        if b"hetenv.compiled" in _source(helper):
            digest.update(_digest(helper).encode())
    return digest.hexdigest()[:16]


def _imports(source: bytes) -> list[str]:
    """The loaded modules that ``source`` names in ``from ... import``, the form that kernels use."""
    nodes = ast.walk(ast.parse(source))
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return sorted((names - {__name__}) & sys.modules.keys())


@cache
def _source(module: str) -> bytes:
    """The source of a loaded module; empty for one that has none."""
    path = getattr(sys.modules[module], "__file__", None)
    return Path(path).read_bytes() if path and path.endswith(".py") else b""

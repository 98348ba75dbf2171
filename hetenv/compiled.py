"""``njit`` for this package: compiled once, cached outside the install, never stale.

numba keys a cached kernel by its own file alone, so a kernel that calls a helper of another module
keeps running the old helper after that changes. Here the cache folder's name holds a digest of every
kernel source, so any change compiles afresh, and a read-only installation works.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from platformdirs import user_cache_path

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _sources_digest(package: Path) -> str:
    """Digest of the modules that define kernels, and of numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"hetenv.compiled" in source:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + source)
    return digest.hexdigest()[:16]


def _cache_dir() -> str:
    root = Path(os.environ.get("HETENV_CACHE_DIR") or user_cache_path("hetenv"))
    folder = root / "numba" / _sources_digest(Path(__file__).parent)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return str(folder)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="hetenv-numba-")


_CACHE_DIR = _cache_dir()


def njit(kernel: Kernel) -> Kernel:
    """Compile ``kernel`` in nopython mode at its first call; cache the result on disk."""
    saved = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = _CACHE_DIR  # type: ignore[attr-defined]
    try:
        compiled: Any = numba.njit(cache=True)(kernel)
        return compiled
    finally:
        numba.config.CACHE_DIR = saved  # type: ignore[attr-defined]

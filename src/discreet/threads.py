"""Keep OpenBLAS, below numpy and scipy, to one thread while our numeric kernels run.

Our matrices are small. The threads that OpenBLAS keeps spinning for the next product take CPU time
from everybody else: on a busy machine the same work costs several times the CPU seconds. One thread
also adds numbers in one order, so a kernel gives the same bits on any number of cores.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from threading import Lock
from typing import Any

_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads",
)
_lock = Lock()
_inside = 0  # how many kernels run at this moment
_before: list[int] = []  # threads of each library before the first kernel began


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit OpenBLAS to one thread in this block; do nothing if numpy has no OpenBLAS."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = [count() for count, _ in _libraries()]
            for _, bound in _libraries():
                bound(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for (_, bound), threads in zip(_libraries(), _before, strict=True):
                    bound(threads)


@lru_cache(maxsize=1)
def _libraries() -> tuple[tuple[Any, Any], ...]:
    """Return the functions that read and set the thread count of numpy's and scipy's OpenBLAS."""
    import numpy.linalg

    modules: list[Any] = [numpy.linalg._umath_linalg]
    with suppress(ModuleNotFoundError):  # scipy is an extra
        import scipy.linalg.cython_blas

        modules.append(scipy.linalg.cython_blas)
    functions = []
    for module in modules:
        # The module is loaded already; its symbols include those of the OpenBLAS it is linked to.
        library = ctypes.CDLL(module.__file__)
        for name in _NAMES:
            if hasattr(library, name.format("set")):
                read = getattr(library, name.format("get"))
                write = getattr(library, name.format("set"))
                functions.append((read, write))
                break
    return tuple(functions)

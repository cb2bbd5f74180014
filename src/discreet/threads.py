"""One thread for the linear algebra below numpy and scipy, while our own numeric kernels run.

Their matrices are small. Threads that OpenBLAS keeps waiting for the next product take the
processor from everybody else: on a busy machine the same work then costs several times the CPU
seconds. One thread also adds numbers in one order, so that a kernel gives the same bits however
many cores there are.
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
_before: list[int] = []  # threads of each library when the first of them began


@contextmanager
def one_thread() -> Iterator[None]:
    """Bound OpenBLAS to one thread in this block; a numpy without OpenBLAS is left as it is."""
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
    """Return the functions that read and set the number of threads of numpy's and scipy's
    OpenBLAS.
    """
    import numpy.linalg

    modules: list[Any] = [numpy.linalg._umath_linalg]
    with suppress(ModuleNotFoundError):  # without scipy there is one library less
        import scipy.linalg.cython_blas

        modules.append(scipy.linalg.cython_blas)
    found = []
    for module in modules:
        # loaded already; its symbols include those of what it is linked to
        library = ctypes.CDLL(module.__file__)
        for name in _NAMES:
            if hasattr(library, name.format("set")):
                found.append(
                    (getattr(library, name.format("get")), getattr(library, name.format("set")))
                )
                break
    return tuple(found)

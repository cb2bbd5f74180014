"""Linear algebra below our kernels runs in one thread, and gets its threads back."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Any

import pytest

from discreet import threads
from discreet.continual.strategies import dense
from discreet.synthetic import describe
from discreet.threads import one_thread

if not threads._libraries():
    pytest.skip("this numpy has no OpenBLAS", allow_module_level=True)


def counts() -> list[int]:
    return [count() for count, _ in threads._libraries()]


@pytest.fixture(autouse=True)
def two_threads() -> Any:
    before = counts()
    for _, bound in threads._libraries():
        bound(2)
    yield
    for (_, bound), count in zip(threads._libraries(), before, strict=True):
        bound(count)


def test_one_thread_inside_and_as_many_as_before_outside() -> None:
    assert counts() == [2, 2]
    with one_thread():
        assert counts() == [1, 1]
        with one_thread():
            assert counts() == [1, 1]
        assert counts() == [1, 1]
    assert counts() == [2, 2]


def test_threads_come_back_after_a_failure() -> None:
    with pytest.raises(ValueError, match="in the middle"), one_thread():
        raise ValueError("in the middle")
    assert counts() == [2, 2]


def test_two_kernels_at_once() -> None:
    """The first to end does not give threads to the other, and the last gives back what the first
    found.
    """
    begun, ended, seen = Barrier(2), Barrier(2), []

    def first() -> None:
        with one_thread():
            begun.wait()
        ended.wait()

    other = Thread(target=first)
    other.start()
    with one_thread():
        begun.wait()
        ended.wait()
        seen.append(counts())
    other.join()
    assert seen == [[1, 1]]
    assert counts() == [2, 2]


def test_kernels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def look(*arguments: Any, **named: Any) -> Any:
        seen.append(counts())
        raise KeyboardInterrupt

    monkeypatch.setitem(describe.SYNTHESIZERS, "looking", look)
    monkeypatch.setattr(dense, "eigh", look)
    monkeypatch.setattr(dense, "solve_triangular", look)
    work: Any = type("Work", (), {"synthesizer": "looking"})
    factor = dense.square_root(4)
    for kernel in (
        lambda: describe.description(None, work, {}),  # type: ignore[arg-type]
        lambda: dense.optimise(4, ["daily"], [1.0]),
        lambda: factor.deviations("daily"),
    ):
        with pytest.raises(KeyboardInterrupt):
            kernel()
    assert seen == [[1, 1]] * 3
    assert counts() == [2, 2]

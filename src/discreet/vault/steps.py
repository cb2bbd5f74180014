"""Release a measurement step by step that was paid once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.mechanisms.shapes import (
    Additive,
)
from discreet.noise import Items, Stream
from discreet.vault.exact import Exact, IntegerArray
from discreet.vault.integers import cells_of, exact_product, largest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExactStep:
    """The exact numbers of one step, one row each, and its draws: row i gets the noise signs[i] *
    draws.
    """

    values: IntegerArray
    draws: tuple[int, ...]
    signs: npt.NDArray[np.int64]


class Encoder(Protocol):
    """The exact side of a stream: takes the numbers of a period, returns integer combinations of
    all numbers so far.
    """

    def add(self, values: IntegerArray) -> ExactStep: ...


class Steps:
    """Releases the steps of a stream. The caller feeds every step once and in order, and skips the
    steps that were released before.
    """

    def __init__(
        self,
        mechanism: Additive,
        stream: Stream,
        encoder: Encoder,
        *,
        sizes: Sequence[int],
        forms: Sequence[Sequence[int]],
    ) -> None:
        self._mechanism = mechanism
        self._stream = stream
        self._encoder = encoder
        self._sizes = sizes
        self._forms = forms

    def skip(self, exact: Exact) -> None:
        """Feed a step that this or another process has released already."""
        self._encoder.add(self._numbers(exact))

    def release(self, *exact: Exact) -> list[IntegerArray]:
        """Return the noisy rows of the next steps, one column per cell.

        A draw with the same number has the same noise in every step.
        """
        steps = [self._encoder.add(self._numbers(each)) for each in exact]
        cells = steps[0].values.shape[1]
        numbers = np.unique(np.concatenate([step.draws for step in steps]))
        places = np.add.outer(numbers * cells, np.arange(cells)).ravel()
        drawn = self._mechanism.add_to(
            np.zeros(len(places), dtype=np.int64), self._stream, Items.codes(places)
        )
        noise = drawn.reshape(-1, cells)
        return [_add(step, noise[np.searchsorted(numbers, step.draws)]) for step in steps]

    def _numbers(self, exact: Exact) -> IntegerArray:
        return np.concatenate(cells_of(exact.unwrap(), self._sizes, self._forms))


def _add(step: ExactStep, drawn: IntegerArray) -> IntegerArray:
    """Add combinations of draws to a step's exact rows, in 64 bits if that cannot overflow."""
    noise = exact_product(step.signs, drawn)
    wide = object in (noise.dtype, step.values.dtype)
    wide = wide or largest(noise) + largest(step.values) >= 2**63
    kind = object if wide else np.int64
    return np.asarray(step.values.astype(kind) + noise.astype(kind))

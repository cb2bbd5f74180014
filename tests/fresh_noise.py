"""Fresh noise of a mechanism, as an answer gets it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.noise import Items, Stream


def fresh(mechanism: Any, shape: tuple[int, ...]) -> Any:
    size = math.prod(shape)
    return mechanism.add_to(
        np.zeros(size, dtype=np.int64), Stream.fresh(), Items.positions(size)
    ).reshape(shape)

"""The attack `linkability`: does a release show which two halves of records belong to one person?

For each person, find the nearest record of the release by one half of the columns, and by the other
half. If both find the same record, the release has linked the halves. People who are not in the
data serve as control.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.nearest import encode, nearest, shuffle
from discreet.attacks.experiment.trials import WIDTH, Attempt, RiskFinding, until_narrow
from discreet.errors import UsageError


def linkability(
    release: pa.Table,
    original: pa.Table,
    control: pa.Table | None = None,
    *,
    halves: tuple[Sequence[str], Sequence[str]],
    neighbors: int = 1,
    width: float = WIDTH,
    trials: int | None = None,
) -> RiskFinding:
    """Try to link the two `halves` of the original records by the `neighbors` nearest records of
    the release.
    """
    if set(halves[0]) & set(halves[1]):
        raise UsageError(
            "The two halves share a column, which would link them without the release."
        )
    columns = [*halves[0], *halves[1]]
    tables = [release, original]
    if control is not None:
        tables.append(control)
    coded = encode(*(table.select(columns) for table in tables))
    candidates = shuffle(coded.rows[0], Dice())
    split = len(halves[0])

    def attempt_on(rows: NDArray[np.float32]) -> Attempt:
        def attempt(which: NDArray[np.int64]) -> NDArray[np.bool_]:
            targets = rows[which]
            a, _ = nearest(
                targets[:, :split], candidates[:, :split], coded.numeric[:split], k=neighbors
            )
            b, _ = nearest(
                targets[:, split:], candidates[:, split:], coded.numeric[split:], k=neighbors
            )
            return np.asarray((a[:, :, None] == b[:, None, :]).any(axis=(1, 2)))

        return attempt

    n = max(release.num_rows, 1)
    return until_narrow(
        "linkability",
        attempt_on(coded.rows[1]),
        original.num_rows,
        None if control is None else (attempt_on(coded.rows[2]), control.num_rows),
        chance=1 - (1 - min(neighbors / n, 1)) ** neighbors,
        width=width,
        trials=trials,
    )

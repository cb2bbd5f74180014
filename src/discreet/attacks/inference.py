"""Inference: does a release tell a secret of somebody of whom the other columns are known?

The guess is the secret of the release's nearest record. What can be inferred about people who are
not in the data is knowledge about the world, not a leak: they are the control.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.nearest import encode, nearest
from discreet.attacks.experiment.trials import WIDTH, Attempt, RiskFinding, until_narrow
from discreet.errors import UsageError

TOLERANCE = 0.05  # a number is guessed right within this share of itself


def inference(
    release: pa.Table,
    original: pa.Table,
    control: pa.Table | None = None,
    *,
    secret: str,
    known: Sequence[str] | None = None,
    width: float = WIDTH,
    trials: int | None = None,
) -> RiskFinding:
    """Guess `secret` of the original people from their `known` columns (by default all others)."""
    columns = [
        name for name in (known if known is not None else release.column_names) if name != secret
    ]
    if not columns or secret not in release.column_names:
        raise UsageError(
            f"Name a secret and at least one known column among {', '.join(release.column_names)}."
        )
    tables = [
        table.select([*columns, secret])
        for table in (release, original, *([control] if control else []))
    ]
    coded = encode(*tables)
    order = Dice().order(release.num_rows)  # ties by lot
    candidates = coded.rows[0][order]
    numeric = coded.numeric[:-1]
    answers = _values(tables[0], secret)[order]

    def attempt_on(at: int) -> Attempt:
        truth = _values(tables[at], secret)

        def attempt(which: NDArray[np.int64]) -> NDArray[np.bool_]:
            near, _ = nearest(coded.rows[at][which][:, :-1], candidates[:, :-1], numeric)
            return _right(answers[near[:, 0]], truth[which])

        return attempt

    return until_narrow(
        "inference",
        attempt_on(1),
        original.num_rows,
        None if control is None else (attempt_on(2), control.num_rows),
        chance=_constant(answers, _values(tables[1], secret)),
        width=width,
        trials=trials,
    )


def _values(table: pa.Table, name: str) -> NDArray[np.object_]:
    return np.array(table.column(name).to_pylist(), dtype=object)


def _right(guesses: NDArray[np.object_], truth: NDArray[np.object_]) -> NDArray[np.bool_]:
    if all(isinstance(value, float) for value in truth):
        guess = guesses.astype(float)
        true = truth.astype(float)
        return np.asarray(np.abs(guess - true) <= TOLERANCE * np.abs(true))
    return np.asarray(guesses == truth, dtype=bool)


def _constant(answers: NDArray[np.object_], truth: NDArray[np.object_]) -> float:
    """Return how often the release's most common secret is right for everybody."""
    values, counts = np.unique([str(value) for value in answers], return_counts=True)
    common = answers[[str(value) for value in answers].index(values[counts.argmax()])]
    return float(_right(np.full(len(truth), common, dtype=object), truth).mean())

"""Show on a published table why k-anonymity is not enough: classes whose rows agree on a secret,
and attackers who know some members of a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.measure import classes_of
from discreet.anonymity.source import Groups, Integers, SourceTable, plain
from discreet.engines.quoting import name as quoted

_MOST_VALUES = 200  # a column with more values is a measurement or a name, not a secret
KNOWN = 2  # members of the target's class whose rows the attacker knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One class of the published table: the values that its rows share, and how many of them have
    each value of the secret.
    """

    shows: Mapping[str, str]
    size: int
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How much an attacker learns of one column from the quasi-identifiers alone.

    `homogeneous` counts the rows whose class agrees on the secret: finding the class is knowing the
    secret, however large k is. `nearly` counts the other rows whose class agrees if the attacker
    leaves out up to `KNOWN` members that he knows. `left` is what remains of k for this attacker.
    """

    secret: str
    rows: int
    k: int
    left: int
    homogeneous: int
    homogeneous_classes: int
    nearly: int
    agreeing: Example | None
    thinned: Example | None

    def as_json(self) -> dict[str, object]:
        return {
            "secret": self.secret,
            "homogeneous_rows": self.homogeneous,
            "homogeneous_classes": self.homogeneous_classes,
            "rows_given_away_by_knowing_two": self.nearly,
            "k": self.k,
            "left_of_k": self.left,
        }


def failures(source: SourceTable, *, quasi: Sequence[str], secret: str | None) -> Failures | None:
    """Return the failures for the given secret, or else for the column with the most failures; None
    if no column can be a secret.
    """
    if secret is not None:
        return _about(source.groups([*quasi, secret]), quasi, secret)
    others = _secrets(source, [name for name in source.types if name not in quasi])
    found = [_about(source.groups([*quasi, name]), quasi, name) for name in others]
    return max(found, key=lambda each: each.homogeneous + each.nearly, default=None)


def _secrets(source: SourceTable, names: Sequence[str]) -> list[str]:
    """Return the columns that could be a secret: with at least two values, and not more than
    rows.
    """
    if not names:
        return []
    listed = ", ".join(f"approx_count_distinct({quoted(name)})" for name in names)
    (counts,) = source.connection.execute(f"SELECT {listed} FROM data").fetchall()
    return [
        name
        for name, count in zip(names, counts, strict=True)
        if 2 <= count <= min(_MOST_VALUES, source.rows)
    ]


def _about(groups: Groups, quasi: Sequence[str], secret: str) -> Failures:
    classes, number = classes_of(groups, len(quasi))
    sizes = np.bincount(classes, groups.counts, number).astype(np.int64)
    # members of the class with another value than this row's
    others = sizes[classes] - groups.counts
    largest = np.zeros(number, dtype=np.int64)
    np.maximum.at(largest, classes, groups.counts)
    agree = sizes == largest
    known = (others > 0) & (others <= KNOWN)
    k = int(sizes.min()) if number else 0
    return Failures(
        secret=secret,
        rows=int(sizes.sum()),
        k=k,
        left=max(0, k - KNOWN),
        homogeneous=int(sizes[agree].sum()),
        homogeneous_classes=int(agree.sum()),
        nearly=int(groups.counts[known].sum()),
        agreeing=_example(groups, quasi, classes, sizes, np.flatnonzero(agree)),
        thinned=_example(
            groups, quasi, classes, sizes, np.flatnonzero(~agree & (sizes - largest <= KNOWN))
        ),
    )


def _example(
    groups: Groups, quasi: Sequence[str], classes: Integers, sizes: Integers, candidates: Integers
) -> Example | None:
    """Return the largest of some classes, in which k seems to protect most."""
    if not len(candidates):
        return None
    chosen = int(candidates[np.argmax(sizes[candidates])])
    rows = np.flatnonzero(classes == chosen)
    shows = {
        name: plain(groups.values[i][int(groups.codes[i][rows[0]])].as_py()) or "–"
        for i, name in enumerate(quasi)
    }
    secret = groups.values[len(quasi)]
    values = sorted(
        (
            (
                plain(secret[int(groups.codes[len(quasi)][row])].as_py()) or "–",
                int(groups.counts[row]),
            )
            for row in rows
        ),
        key=lambda pair: -pair[1],
    )
    return Example(shows=shows, size=int(sizes[chosen]), values=tuple(values))

"""Show on a published table why k-anonymity is not enough: classes that agree, and attackers who
know somebody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.measure import classes_of
from discreet.anonymity.source import Groups, Integers, SourceTable, plain
from discreet.engines.quoting import name as quoted

_MOST_VALUES = 200  # of a column that can be a secret: more, and it is a measurement or a name
KNOWN = 2  # members whose rows the attacker knows, besides the target


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One class of the published table: what it shows, and how many of its rows have each value of
    the secret.
    """

    shows: Mapping[str, str]
    size: int
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The ways in which an attacker learns one column from the quasi-identifiers alone.

    `homogeneous`: rows whose class agrees on the secret; whoever finds the class knows the secret,
    whatever k is. `nearly`: further rows whose class agrees once the attacker leaves out up to
    `KNOWN` members whose rows he knows. `left`: what k people become for him.
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
    """Return the failures in the given secret, or in the column that shows them worst; None without
    a column.
    """
    if secret is not None:
        return _about(source.groups([*quasi, secret]), quasi, secret)
    others = _secrets(source, [name for name in source.types if name not in quasi])
    found = [_about(source.groups([*quasi, name]), quasi, name) for name in others]
    return max(found, key=lambda each: each.homogeneous + each.nearly, default=None)


def _secrets(source: SourceTable, names: Sequence[str]) -> list[str]:
    """Return columns that could be a secret: at least two values, and fewer than there are
    people.
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
    """Return the largest of some classes: the one where k seems to protect most."""
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

"""Choosing the largest of noisy scores for many items at once: one choice a group, where `choose` makes one in all.

The same race as `choose.noisy_top`, row by row: float64 decides where it certainly can, enclosures of growing precision
where it cannot: where two noisy scores in the lead are within 2^-29 of each other, or a candidate's word is below 2^34
(which is as likely whatever the scores). `choose` encloses a few in any case and so hides which it was; here a row in
some 2^27 takes about a millisecond longer.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import tape
from discreet.noise.choose import Kind, _bounds, _gaps, _integers, _Racer, _ranked
from discreet.noise.stream import Items, Stream

Table = NDArray[np.int64] | NDArray[np.object_]

_CELLS = 1 << 15  # of a table that are raced at a time: few enough for the caches


def noisy_top_each(
    stream: Stream, items: Items, scores: Table, *, k: int, unit: Fraction, kind: Kind
) -> NDArray[np.int64]:
    """For each item, the positions of the k largest of unit * its row of scores + noise, the largest first."""
    rows, columns = np.shape(scores)
    if rows != len(items):
        raise UsageError(f"There are {rows} rows of scores for {len(items)} items.")
    if kind not in ("exponential", "gumbel"):
        raise UsageError(f"The noise of a choice is 'exponential' or 'gumbel', not {kind!r}.")
    if not 1 <= k <= columns:
        raise UsageError(f"{k} of {columns} candidates cannot be chosen.")
    tape.note(stream, f"noisy_top_each {k} of {columns} {kind}", unit, items)
    own = stream.derive("noisy_top_each", kind, Fraction(unit), k, columns)
    chosen = np.empty((rows, k), dtype=np.int64)
    step = max(1, _CELLS // columns)
    for start in range(0, rows, step):
        some = slice(start, start + step)
        chosen[some] = _raced(own, items.at(some), scores[some], k, unit, kind)
    return np.asarray(tape.chosen(chosen))


def _raced(own: Stream, items: Items, scores: Table, k: int, unit: Fraction, kind: Kind) -> NDArray[np.int64]:
    rows, columns = scores.shape
    # Two blocks of AES chained: a pseudorandom function of (item, position), whatever the shape of the table.
    first = own.words(items, 0)
    ids = np.empty((rows, columns, 2), dtype=np.uint64)
    ids[:, :, 0] = first[:, :1] ^ np.arange(columns, dtype=np.uint64)
    ids[:, :, 1] = first[:, 1:]
    words = own.words(Items(ids.reshape(-1, 2)), 1)
    given = _integers(scores.reshape(-1)).reshape(rows, columns)
    best = given.max(axis=1)
    behind = _gaps(_below_best(given, best), 0, unit)
    low, high = (bound.reshape(rows, columns) for bound in _bounds(words[:, 0], behind, kind))
    chosen = low.argmax(axis=1)[:, None] if k == 1 else np.argpartition(low, columns - k, axis=1)[:, columns - k :]
    chosen = np.take_along_axis(chosen, np.argsort(-np.take_along_axis(low, chosen, axis=1), axis=1), axis=1)
    least = np.take_along_axis(low, chosen, axis=1)
    after = np.take_along_axis(high, chosen, axis=1)  # made: the highest that those further down may be
    np.put_along_axis(high, chosen, -np.inf, axis=1)
    after[:, :-1], after[:, -1] = after[:, 1:].copy(), high.max(axis=1)
    after = np.maximum.accumulate(after[:, ::-1], axis=1)[:, ::-1]
    sure = (least > after).all(axis=1) if k < columns else (least[:, :-1] > after[:, :-1]).all(axis=1)
    for row in np.flatnonzero(~sure):
        may_be = np.union1d(chosen[row], np.flatnonzero(high[row] >= least[row, -1]))
        racers = [
            _Racer(
                place=int(i),
                behind=Fraction(unit) * (int(best[row]) - int(given[row, i])),
                kind=kind,
                prefix=int(words[row * columns + i, 0]) << 64 | int(words[row * columns + i, 1]),
                more=own.derive("more", items.ids[row].tobytes(), int(i)),
            )
            for i in may_be
        ]
        chosen[row] = _ranked(racers, k)
    return chosen


def _below_best(given: Table, best: Table) -> Table:
    """Scores less the best of their row: exactly, in Python's integers where int64 might not hold it."""
    if given.dtype != object and len(given) and int(best.max()) - int(given.min()) >= 1 << 63:
        given, best = given.astype(object), best.astype(object)
    return (given - best[:, None]).reshape(-1)

"""Choose the largest of noisy scores for many items at once, one choice for each item; `choose`
makes a single choice.

Every row is decided as by `choose.noisy_top`. float64 decides if it certainly can. Otherwise
enclosures of growing precision decide: if two leading noisy scores are within 2^-29 of each other,
or if a candidate's word is below 2^34, which does not depend on the scores. Such a row, one of
about 2^27, takes about a millisecond longer. `choose` hides this by always enclosing a few
candidates; here it can be seen in the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import tape
from discreet.noise.choose import Kind, _bounds, _gaps, _integers, _Racer, _rank
from discreet.noise.stream import Items, Stream, Words

Table = NDArray[np.int64] | NDArray[np.object_]
Scored = Callable[[int, int], Table]
Runs = list[tuple[int, int, int]]

_CELLS = 1 << 15  # of a table that are raced at a time: few enough for the caches
# of AES at a time: few enough that their memory is had again without asking for it
_BLOCKS = 1 << 12


def noisy_top_each(
    stream: Stream, items: Items, scores: Table, *, k: int, unit: Fraction, kind: Kind
) -> NDArray[np.int64]:
    """Return for each item the positions of the k largest of unit * scores + noise, the largest
    first.
    """
    rows, columns = np.shape(scores)
    if rows != len(items):
        raise UsageError(f"There are {rows} rows of scores for {len(items)} items.")
    if kind not in ("exponential", "gumbel"):
        raise UsageError(f"The noise of a choice is 'exponential' or 'gumbel', not {kind!r}.")
    if not 1 <= k <= columns:
        raise UsageError(f"{k} of {columns} candidates cannot be chosen.")
    widths = np.full(rows, columns, dtype=np.int64)
    return _top_each(stream, items, widths, lambda start, stop: scores[start:stop], k, unit, kind)


def noisy_max_each(
    stream: Stream,
    items: Items,
    widths: NDArray[np.int64],
    scores: Scored,
    *,
    unit: Fraction,
    kind: Kind,
) -> NDArray[np.int64]:
    """Choose as `noisy_top_each` with k = 1, for items with different numbers of candidates
    (widths). The items are sorted by width.

    `scores` returns the rows from one position to another, as a table with the width of the last of
    them. The cells after an item's own candidates are never chosen.
    """
    return _top_each(stream, items, widths, scores, 1, unit, kind)[:, 0]


def _top_each(
    stream: Stream,
    items: Items,
    widths: NDArray[np.int64],
    scores: Scored,
    k: int,
    unit: Fraction,
    kind: Kind,
) -> NDArray[np.int64]:
    chosen = np.empty((len(items), k), dtype=np.int64)
    runs = _runs(widths)
    owns = {
        width: stream.derive("noisy_top_each", kind, Fraction(unit), k, width)
        for _, _, width in runs
    }
    start = 0
    while start < len(items):
        likely = min(start + max(1, _CELLS // int(widths[start])), len(items))
        stop = min(start + max(1, _CELLS // int(widths[likely - 1])), len(items))
        some = slice(start, stop)
        chosen[some] = _race(owns, items.at(some), widths[some], scores(start, stop), k, unit, kind)
        start = stop
    for begin, end, width in runs:
        tape.note(
            stream, f"noisy_top_each {k} of {width} {kind}", unit, items.at(slice(begin, end))
        )
        chosen[begin:end] = tape.note_choice(chosen[begin:end])
    return chosen


def _runs(widths: NDArray[np.int64]) -> Runs:
    """Yield each of the sorted widths, with its first position and the position after its last."""
    begins = np.flatnonzero(np.diff(widths, prepend=-1))
    ends = np.append(begins, len(widths))[1:]
    return list(zip(begins.tolist(), ends.tolist(), widths[begins].tolist(), strict=True))


def _race(
    owns: Mapping[int, Stream],
    items: Items,
    widths: NDArray[np.int64],
    scores: Table,
    k: int,
    unit: Fraction,
    kind: Kind,
) -> NDArray[np.int64]:
    rows, columns = scores.shape
    runs = _runs(widths)
    leading = _leading(owns, items, runs, columns)
    given = _integers(scores.reshape(-1)).reshape(rows, columns)
    best = given.max(axis=1)
    behind = _gaps(_below_best(given, best), 0, unit)
    low, high = (
        bound.reshape(rows, columns) for bound in _bounds(leading.reshape(-1), behind, kind)
    )
    for begin, end, width in runs:
        low[begin:end, width:] = high[begin:end, width:] = -np.inf
    chosen = (
        low.argmax(axis=1)[:, None]
        if k == 1
        else np.argpartition(low, columns - k, axis=1)[:, columns - k :]
    )
    chosen = np.take_along_axis(
        chosen, np.argsort(-np.take_along_axis(low, chosen, axis=1), axis=1), axis=1
    )
    least = np.take_along_axis(low, chosen, axis=1)
    # made: the highest that those further down may be
    after = np.take_along_axis(high, chosen, axis=1)
    np.put_along_axis(high, chosen, -np.inf, axis=1)
    after[:, :-1], after[:, -1] = after[:, 1:].copy(), high.max(axis=1)
    after = np.maximum.accumulate(after[:, ::-1], axis=1)[:, ::-1]
    sure = (
        (least > after).all(axis=1) if k < columns else (least[:, :-1] > after[:, :-1]).all(axis=1)
    )
    for row in np.flatnonzero(~sure):
        own = owns[int(widths[row])]
        width = int(widths[row])
        words = own.words(_candidates(own.words(items.at(slice(row, row + 1)), 0), width), 1)
        may_be = np.union1d(chosen[row], np.flatnonzero(high[row, :width] >= least[row, -1]))
        racers = [
            _Racer(
                place=int(i),
                behind=Fraction(unit) * (int(best[row]) - int(given[row, i])),
                kind=kind,
                prefix=int(words[i, 0]) << 64 | int(words[i, 1]),
                more=own.derive("more", items.ids[row].tobytes(), int(i)),
            )
            for i in may_be
        ]
        chosen[row] = _rank(racers, k)
    return chosen


def _leading(owns: Mapping[int, Stream], items: Items, runs: Runs, columns: int) -> Words:
    """Return the leading word of each candidate of each item; after an item's own candidates, any
    words.
    """
    words = np.empty((len(items), columns), dtype=np.uint64)
    for begin, end, width in runs:
        first = owns[width].words(items.at(slice(begin, end)), 0)
        second = owns[width].round(1)
        step = max(1, _BLOCKS // width)
        for start in range(0, end - begin, step):
            some = _candidates(first[start : start + step], width)
            words[begin + start : min(begin + start + step, end), :width] = second(some.ids)[
                :, 0
            ].reshape(-1, width)
    return words


def _candidates(first: Words, width: int) -> Items:
    """Return ids of candidates, by two chained blocks of AES: a pseudorandom function of (item,
    position).
    """
    ids = np.empty((len(first), width, 2), dtype=np.uint64)
    ids[:, :, 0] = first[:, :1] ^ np.arange(width, dtype=np.uint64)
    ids[:, :, 1] = first[:, 1:]
    return Items(ids.reshape(-1, 2))


def _below_best(given: Table, best: Table) -> Table:
    """Return the scores minus the best of their row, exactly: in Python's integers if 64 bits may
    not be enough.
    """
    if given.dtype != object and len(given) and int(best.max()) - int(given.min()) >= 1 << 63:
        given = given.astype(object)
        best = best.astype(object)
    return (given - best[:, None]).reshape(-1)

"""Group keys: their public values, the labels of these in the answer, and the position of a value
among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import arrow
from discreet.algebra import (
    Expression,
    call,
)
from discreet.sql.after.estimates import as_written, number_type
from discreet.sql.values.unify import flag_as_number
from discreet.sql.values.value import (
    Category,
    Day,
    Flag,
    Moment,
    Number,
    Text,
    careful,
    widen,
)

MOST_DIGITS = 40  # the most digits of a key's position in its domain
_MONDAY = 0  # as `date.weekday` says

PublicDomain = Number | Category | Flag | Day | Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A group key whose values are public: the engine returns positions, `labels` returns their
    values.
    """

    domain: PublicDomain
    nullable: bool

    @property
    def size(self) -> int:
        """Return the number of values, with NULL if it is one."""
        return self.domain.size + self.nullable

    def labels(self) -> pa.Array:
        """Return the labels of all positions."""
        return self.labels_at(range(self.size))

    def labels_at(self, places: Sequence[int]) -> pa.Array:
        """Return the labels at these positions; NULL has the position after the last value.

        A domain may have millions of values: only the labels asked for are made.
        """
        domain = self.domain
        match domain:
            case Number():
                kind = number_type(domain.step, domain.largest)

                def number(place: int) -> Any:
                    return as_written(domain.at(domain.lo + place), kind)

                return arrow.array(self._each(places, number), kind)
            case Category(values=values):
                return arrow.array([*values, None]).take(arrow.array(places, pa.int64()))
            case Flag():
                return arrow.array([False, True, None]).take(arrow.array(places, pa.int64()))
            case Day() if not domain.stamp:
                return arrow.array(self._each(places, domain.at), pa.date32())
            case Day():
                days = self._each(places, domain.at)
                stamps = [day and datetime(day.year, day.month, day.day) for day in days]
                return arrow.array(stamps, pa.timestamp("us"))
        step = timedelta(microseconds=int(domain.step * 1_000_000))
        moments = self._each(places, lambda place: domain.lo + step * place)
        return arrow.array(moments, pa.timestamp("us"))

    def _each(self, places: Sequence[int], label: Callable[[int], Any]) -> list[Any]:
        """Return the label at each position, and None at that of NULL."""
        null = self.domain.size
        return [None if place == null else label(place) for place in places]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Several public keys as one: only the combinations in `cells` are possible and get measured."""

    keys: tuple[Key, ...]
    cells: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.cells)

    def labels(self) -> list[pa.Array]:
        """Return the labels of each key, with one label for each group."""
        cells = np.array(self.cells, dtype=np.int64)
        sizes = [key.size for key in self.keys]
        columns = zip(self.keys, np.unravel_index(cells, sizes), strict=True)
        return [key.labels_at(places.tolist()) for key, places in columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A group key whose values are not public: a text, or a domain with more values than the policy
    allows as groups.

    The engine returns the text itself; for numbers and dates it returns the position in `domain`.
    """

    domain: PublicDomain | Text
    nullable: bool

    @property
    def letters(self) -> int:
        """Return the most letters of a key as text."""
        return self.domain.letters if isinstance(self.domain, Text) else MOST_DIGITS

    def labels(self, values: pa.ChunkedArray) -> pa.Array:
        """Return the labels of the keys that passed the threshold, as the answer shows them."""
        if isinstance(self.domain, Text):
            if values.nbytes < 2**30 and pa.types.is_large_string(values.type):
                values = values.cast(pa.string())
            return values.combine_chunks()
        size = self.domain.size
        places = [size if value is None else int(value) for value in values.to_pylist()]
        return Key(domain=self.domain, nullable=True).labels_at(places)


def key_position(value: Expression, domain: PublicDomain, *, nullable: bool) -> Expression:
    """Return the expression of a key's position among its public values; with `nullable`, NULL has
    the position after the last.
    """
    match domain:
        case Number(lo=0) | Category():
            position = value
        case Number(lo=lo):
            position = careful(widen(value, domain.largest) - lo)
        case Flag():
            position = flag_as_number(value)
        case Day(lo=first, grain="week") if first.weekday() != _MONDAY:
            # The engine's weeks begin on Monday, these do not: count their days.
            position = careful(call("date_diff", "day", first, value) // 7)
        case Day(lo=first, grain=grain):
            position = careful(call("date_diff", grain, first, value))
        case Moment(lo=start, step=step):
            microseconds = call("epoch_us", value) - call("epoch_us", start)
            position = careful(microseconds // int(step * 1_000_000))
    return call("coalesce", position, domain.size) if nullable else position

"""Group keys: their public values, their labels in the answer, and where a value stands among
them.
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

MOST_DIGITS = 40  # of the position of a key in its domain


PublicDomain = Number | Category | Flag | Day | Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A group key whose values are public: the engine gives its position, `labels` says what stands
    there.
    """

    domain: PublicDomain
    nullable: bool

    @property
    def size(self) -> int:
        return self.domain.size + self.nullable

    def labels(self) -> pa.Array:
        """Return the labels of all places."""
        return self.labels_at(range(self.size))

    def labels_at(self, places: Sequence[int]) -> pa.Array:
        """Return the labels at these places; the place behind the last value is that of NULL.

        Of a domain of millions only the few that can be are written.
        """
        domain = self.domain
        match domain:
            case Number():
                kind = number_type(domain.step, domain.largest)
                return arrow.array(
                    self._each(
                        places, lambda place: as_written(domain.at(domain.lo + place), kind)
                    ),
                    kind,
                )
            case Category(values=values):
                return arrow.array([*values, None]).take(arrow.array(places, pa.int64()))
            case Flag():
                return arrow.array([False, True, None]).take(arrow.array(places, pa.int64()))
            case Day() if not domain.stamp:
                return arrow.array(self._each(places, domain.at), pa.date32())
            case Day():
                days = self._each(places, domain.at)
                return arrow.array(
                    [day and datetime(day.year, day.month, day.day) for day in days],
                    pa.timestamp("us"),
                )
        step = timedelta(microseconds=int(domain.step * 1_000_000))
        return arrow.array(
            self._each(places, lambda place: domain.lo + step * place), pa.timestamp("us")
        )

    def _each(self, places: Sequence[int], label: Callable[[int], Any]) -> list[Any]:
        null = self.domain.size
        return [None if place == null else label(place) for place in places]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Public keys taken together: only the combinations in `cells` can be, and no other group is
    measured.
    """

    keys: tuple[Key, ...]
    cells: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.cells)

    def labels(self) -> list[pa.Array]:
        """Return what stands in each of the keys, group by group."""
        places = np.unravel_index(
            np.array(self.cells, dtype=np.int64), [key.size for key in self.keys]
        )
        return [key.labels_at(place.tolist()) for key, place in zip(self.keys, places, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A group key whose values are not public: text, or more public values than the policy allows
    as groups.

    The engine gives the value itself (for numbers and dates its position in `domain`).
    """

    domain: PublicDomain | Text
    nullable: bool

    @property
    def letters(self) -> int:
        """Return how many letters a key has at most, as text."""
        return self.domain.letters if isinstance(self.domain, Text) else MOST_DIGITS

    def labels(self, values: pa.ChunkedArray) -> pa.Array:
        """Return what surviving keys look like to people."""
        if isinstance(self.domain, Text):
            short = values.nbytes < 2**30 and pa.types.is_large_string(values.type)
            return (values.cast(pa.string()) if short else values).combine_chunks()
        size = self.domain.size
        places = [size if value is None else int(value) for value in values.to_pylist()]
        return Key(domain=self.domain, nullable=True).labels_at(places)


def key_position(value: Expression, domain: PublicDomain, *, nullable: bool) -> Expression:
    """Return a key's position among its public values; NULL comes last where it is meant."""
    match domain:
        case Number(lo=0) | Category():
            position = value
        case Number(lo=lo):
            position = careful(widen(value, domain.largest) - lo)
        case Flag():
            position = flag_as_number(value)
        case Day(lo=first, grain="week") if (
            first.weekday()
        ):  # weeks that begin on another day than Monday
            position = careful(call("date_diff", "day", first, value) // 7)
        case Day(lo=first, grain=grain):
            position = careful(call("date_diff", grain, first, value))
        case Moment(lo=start, step=step):
            passed = call("epoch_us", value) - call("epoch_us", start)
            position = careful(passed // int(step * 1_000_000))
    return call("coalesce", position, domain.size) if nullable else position

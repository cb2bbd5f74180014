"""The labels of group keys: only those that stand in the answer are written."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction

import pyarrow as pa
import pytest

from discreet.sql.plan.keys import Joint, Key, PublicDomain, Unknown
from discreet.sql.values.value import Category, Day, Flag, Moment, Number

NOON = datetime(2024, 11, 3, 12)
HOUR = Moment(lo=NOON, hi=NOON + timedelta(hours=1), step=Fraction(1, 1_000_000))
VAST = Number(step=Fraction(1, 100), lo=-(10**8), hi=10**8)


def test_of_a_vast_range_only_what_can_be_is_written() -> None:
    """The labels of all 3.6 billion moments would fill any memory."""
    keys = (Key(domain=HOUR, nullable=True), Key(domain=VAST, nullable=False))
    width = VAST.size
    cells = (0, 5 * width + 7, 2 * width)
    moments, numbers = Joint(keys=keys, cells=cells).labels()
    micro = timedelta(microseconds=1)
    assert moments.to_pylist() == [NOON, NOON + 5 * micro, NOON + 2 * micro]
    assert [float(each) for each in numbers.to_pylist()] == [-1e6, -1e6 + 0.07, -1e6]


@pytest.mark.parametrize(
    "domain",
    [
        Number(step=Fraction(1, 2), lo=-2, hi=3),
        Category(values=("a", "b")),
        Flag(),
        Day(lo=date(2024, 2, 28), hi=date(2024, 3, 1)),
        Moment(lo=NOON, hi=NOON + timedelta(seconds=3), step=Fraction(1)),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_labels_are_the_same_one_by_one_and_together(domain: PublicDomain) -> None:
    key = Key(domain=domain, nullable=True)
    together = key.labels()
    assert together.to_pylist()[-1] is None
    for place in range(key.size):
        one = key.labels_at([place])
        assert one.type == together.type
        assert one.to_pylist() == together.to_pylist()[place : place + 1]
    if not isinstance(domain, Category | Flag):
        places = pa.chunked_array([pa.array([1, None, 0])])
        found = Unknown(domain=domain, nullable=True).labels(places)
        assert found.equals(key.labels_at([1, domain.size, 0]))

"""MIN(x) and MAX(x): the quantiles 0 and 1, which aim a few ranks inside the data."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from discreet.sql.aggregates.quantile import reader_of_quantile
from discreet.sql.requests.request import Member

MEMBER = Member(
    tags=("minimum", "maximum"),
    names=("MIN", "MAX"),
    readers={exp.Min: reader_of_quantile(Fraction(0)), exp.Max: reader_of_quantile(Fraction(1))},
    line=(
        "`MIN`, `MAX`",
        "the same, a few ranks inside the data",
        "m ranks",
    ),
)

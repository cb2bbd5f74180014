"""Aggregates that would show single people, or that have another name here."""

from __future__ import annotations

from sqlglot import exp

_SINGLE: tuple[type[exp.Expression], ...] = (exp.First, exp.Last, exp.AnyValue, exp.ArgMax, exp.ArgMin)
_LISTS: tuple[type[exp.Expression], ...] = (exp.ArrayAgg, exp.GroupConcat, exp.ArrayUniqueAgg)
REFUSED: tuple[tuple[tuple[type[exp.Expression], ...], str, str], ...] = (
    (
        _SINGLE,
        "shows what stands in one person's row",
        "Ask what many share: MODE(x), MEDIAN(x), or SELECT x, COUNT(*) FROM t GROUP BY x.",
    ),
    (
        (exp.ApproxQuantiles,),
        "is not answered",
        "Write QUANTILE_CONT(x, [0.25, 0.5, 0.75]), and MIN(x) and MAX(x) for the ends.",
    ),
    (_LISTS, "lists the values of people", "Count them: SELECT x, COUNT(*) FROM t GROUP BY x."),
    (
        (exp.LogicalOr, exp.LogicalAnd),
        "is decided by one person",
        "Count them: COUNT_IF(p), or AVG(CASE WHEN p THEN 1 ELSE 0 END).",
    ),
    (
        (exp.ApproxTopK,),
        "lists the values of people",
        "Write SELECT x, COUNT(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 3.",
    ),
)

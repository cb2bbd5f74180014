"""The syntax over rows that we refuse: the reason, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

_CLOCKS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentDatetime)


_REGULAR = (
    *(
        exp.RegexpLike,
        exp.RegexpILike,
        exp.RegexpFullMatch,
        exp.SimilarTo,
        exp.RegexpCount,
        exp.RegexpInstr,
    ),
    *(exp.RegexpExtract, exp.RegexpExtractAll, exp.RegexpReplace, exp.RegexpSplit),
)


REFUSED: tuple[tuple[tuple[type[exp.Expression], ...], str, str], ...] = (
    (
        (exp.Subquery, exp.Exists, exp.Query),
        "a subquery cannot stand in this place.",
        "Join it on the owner, or write WHERE owner IN (SELECT owner FROM ...).",
    ),
    (
        (exp.Window,),
        "{node} looks at other people's rows.",
        "Windows are allowed per person (PARTITION BY the owner), or on aggregated results.",
    ),
    (
        _REGULAR,
        "regular expressions are not answered: their running time depends on the data.",
        "Use LIKE, REPLACE, STARTS_WITH or SPLIT_PART: {this} LIKE 'Ka%'.",
    ),
    (
        (exp.Star,),
        "* stands for rows, and rows never leave.",
        "Aggregate: SELECT COUNT(*) FROM ...",
    ),
    (
        _CLOCKS,
        "{node} changes from one moment to the next, and an answer must be repeatable.",
        "Write the date out: DATE '2024-12-31'.",
    ),
    ((exp.Placeholder, exp.Parameter), "{node} has no value here.", "Write the value out."),
    (
        (exp.Rand, exp.Uuid),
        "{node} would give another answer each time.",
        "Leave it out: the noise is added for you.",
    ),
    (
        (exp.ToChar,),
        "{node} is not answered.",
        "Write STRFTIME(day, '%Y-%m') or TO_CHAR(day, 'YYYY-MM') for dates, CAST(x AS VARCHAR) for numbers.",
    ),
    ((exp.AddMonths,), "{node} is not answered.", "Write day + INTERVAL 3 MONTH."),
    (
        (exp.TimestampDiff, exp.MonthsBetween),
        "{node} is not answered.",
        "Write DATE_DIFF('month', earlier, later).",
    ),
    (
        (exp.Any, exp.All),
        "{node} compares with many values at once.",
        "Write x > (SELECT MIN(y) FROM t) for ANY, x > (SELECT MAX(y) FROM t) for ALL.",
    ),
    ((exp.LastDay,), "{node} is not answered.", "Write DATE_TRUNC('month', day), the first day."),
    (
        (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
        "{node} works on bits.",
        "Use %, AND, OR or <>.",
    ),
)


_OTHER_NAMES: dict[type[exp.Expression], tuple[str, ...]] = {
    exp.CurrentDate: ("now", "today", "getdate", "sysdate", "get_current_timestamp"),
    exp.Rand: ("setseed", "uuid", "gen_random_uuid"),
    exp.ToChar: ("date_format", "format_date"),
    exp.RegexpLike: ("regexp_full_match", "regexp_extract_all", "regexp_split_to_array"),
}


def other_names(kinds: tuple[type[exp.Expression], ...]) -> tuple[str, ...]:
    """Return the names of functions that we refuse for the same reason as some kinds of nodes."""
    return tuple(name for kind in kinds for name in _OTHER_NAMES.get(kind, ()))


NEAREST = {
    "margin": "Write MARGIN(COUNT(*)) beside COUNT(*): it is about numbers of the answer.",
    "date_part": "Write DATE_PART('year', day).",
    "row_to_json": "Aggregate first: SELECT ROW_TO_JSON(t) FROM (SELECT ...) AS t.",
    "to_json": "Aggregate first: SELECT TO_JSON(t) FROM (SELECT ...) AS t.",
    "width_bucket": "Write n // 20, or FLOOR(n / 0.5).",
    "timestampdiff": "Write DATE_DIFF('day', earlier, later).",
    "percentile": "Write QUANTILE_CONT(x, 0.5), with a number between 0 and 1.",
    "top": "Write LIMIT 3 at the end.",
    "age": "Write DATE_DIFF('year', born, DATE '2024-12-31').",
    "datesub": "Write DATE_DIFF('day', earlier, later), or day - INTERVAL 1 MONTH.",
    "date_sub": "Write DATE_DIFF('day', earlier, later), or day - INTERVAL 1 MONTH.",
    "eomonth": "Write DATE_TRUNC('month', day), the first day.",
    "datename": "Write MONTHNAME(day), DAYNAME(day) or STRFTIME(day, '%Y-%m').",
    "to_date": "Write DATE '2024-12-31', or CAST(x AS DATE).",
    "to_varchar": "Write CAST(x AS VARCHAR), or STRFTIME(day, '%Y-%m').",
    "yearweek": "Write ISOYEAR(day) and WEEK(day).",
    "mad": "Ask how x is spread: QUANTILE_CONT(x, [0.25, 0.5, 0.75]).",
    "approx_top_count": "Write SELECT x, COUNT(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 3.",
    "approx_top_k": "Write SELECT x, COUNT(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 3.",
    "topk": "Write SELECT x, COUNT(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 3.",
    "sumif": "Write SUM(x) FILTER (WHERE p).",
    "sum_if": "Write SUM(x) FILTER (WHERE p).",
    "avg_if": "Write AVG(x) FILTER (WHERE p).",
    "avgif": "Write AVG(x) FILTER (WHERE p).",
    "count_distinct": "Write COUNT(DISTINCT x).",
    "uniq": "Write COUNT(DISTINCT x).",
    "ratio_to_report": "Write n / SUM(n) OVER () on the aggregated result.",
    "product": "Write EXP(SUM(LN(x))).",
    "geomean": "Write GEOMEAN(x).",
    "geometric_mean": "Write GEOMEAN(x).",
    "histogram": "Write SELECT x, COUNT(*) FROM t GROUP BY x.",
    "entropy": "Ask for the counts, SELECT x, COUNT(*) FROM t GROUP BY x, and compute it from them.",
    "any": "Write x IN (1, 2).",
}

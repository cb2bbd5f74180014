"""Rewrite what Postgres's clients send into words that the analysis knows: one rule for each habit.

As in `spelling`, a rule turns one spelling into another that means the same, and returns other
nodes as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from zoneinfo import ZoneInfo

from sqlglot import exp

from discreet.sql.text import constants
from discreet.sql.text.parse import reject, show
from discreet.sql.text.rules import comparisons, explode, moments, rare_words, written_out
from discreet.sql.text.rules.formats import rewrite_format

Rule = Callable[[exp.Expression], exp.Expression]
_UTC = ("utc", "etc/utc", "gmt", "z", "zulu", "+00", "+00:00")


def _drop_time_zone(node: exp.Expression) -> exp.Expression:
    """x AT TIME ZONE 'UTC' and CAST(x AS TIMESTAMPTZ): moments are in UTC here."""
    if isinstance(node, exp.AtTimeZone):
        zone = node.args.get("zone")
        if not isinstance(zone, exp.Literal) or zone.name.lower() not in _UTC:
            reason = "moments are in UTC here, and zones with summer time are not answered."
            raise reject(node, f"{show(node)}: {reason}", _shift_instead(node))
        return exp.Cast(this=node.this, to=exp.DataType.build("TIMESTAMP"))
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.TIMESTAMPTZ:
        return exp.DataType.build("TIMESTAMP")
    return node


def _shift_instead(node: exp.AtTimeZone) -> str:
    """Return the hint to add the hours of a zone, without summer time."""
    zone, moment = node.args.get("zone"), node.this
    while isinstance(moment, exp.AtTimeZone | exp.Cast | exp.Paren):
        moment = moment.this
    if isinstance(moment, exp.Anonymous) and moment.name.lower() == "timezone":
        moment = moment.expressions[-1]
    try:
        place = ZoneInfo(zone.name if isinstance(zone, exp.Literal) else "")
        # summer is in January in the south
        offsets = [place.utcoffset(datetime(2024, month, 1)) for month in (1, 7)]
        minutes = min(int(each.total_seconds()) // 60 for each in offsets if each is not None)
    except (ValueError, OSError, KeyError):
        return f"No such zone is known here. Add its hours: {show(moment)} + INTERVAL '1' HOUR."
    count, unit = (abs(minutes), "MINUTE") if minutes % 60 else (abs(minutes) // 60, "HOUR")
    sign = "-" if minutes < 0 else "+"
    return f"Shift by hours, without summer time: {show(moment)} {sign} INTERVAL '{count}' {unit}."


def _drop_collation(node: exp.Expression) -> exp.Expression:
    """name COLLATE "C": texts are in the order of their letters' codes here."""
    if isinstance(node, exp.Collate):
        name = node.expression.name.lower()
        if name not in ("c", "posix", "ucs_basic", "binary"):
            reason = f"{show(node)}: texts are in the order of their letters' codes here."
            raise reject(node, reason, 'Leave COLLATE out, or write COLLATE "C".')
        return node.this
    return node


def _rewrite_symmetric(node: exp.Expression) -> exp.Expression:
    """x BETWEEN SYMMETRIC 40 AND 20: the smaller bound may stand second."""
    if not isinstance(node, exp.Between) or not node.args.get("symmetric"):
        return node
    low, high = node.args["low"], node.args["high"]
    ways = (
        exp.Between(this=node.this.copy(), low=a.copy(), high=b.copy())
        for a, b in ((low, high), (high, low))
    )
    return exp.Paren(this=exp.or_(*ways, copy=False))


def _rewrite_regr(node: exp.Expression) -> exp.Expression:
    """REGR_COUNT(y, x), REGR_AVGX(y, x) and REGR_AVGY(y, x): of rows in which both are known."""
    kinds = exp.RegrCount | exp.RegrAvgx | exp.RegrAvgy
    if not isinstance(node, kinds):
        return node
    y, x = (
        exp.Not(this=exp.Is(this=part.copy(), expression=exp.Null()))
        for part in (node.this, node.expression)
    )
    if isinstance(node, exp.RegrCount):
        both = exp.And(this=y, expression=x)
        return exp.Count(this=exp.Case(ifs=[exp.If(this=both, true=exp.Literal.number(1))]))
    shown, other = (node.expression, y) if isinstance(node, exp.RegrAvgx) else (node.this, x)
    return exp.Avg(this=exp.Case(ifs=[exp.If(this=other, true=shown.copy())]))


def _rewrite_json(node: exp.Expression) -> exp.Expression:
    """JSON_AGG(x ORDER BY y) is TO_JSON(ARRAY_AGG(x ORDER BY y)); JSONB is JSON."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    called = name in ("json_agg", "jsonb_agg") and len(node.expressions) == 1
    if isinstance(node, exp.JSONArrayAgg) or called:
        values = exp.ArrayAgg(this=node.expressions[0] if called else node.this)
        values.meta.update(node.meta)  # where people's values are listed, it is refused by its name
        return exp.Anonymous(this="to_json", expressions=[values])
    if name == "jsonb_build_object":
        return exp.Anonymous(this="json_build_object", expressions=node.expressions)
    return node


def _drop_only(node: exp.Expression) -> exp.Expression:
    """FROM ONLY visits: no table here has others below it."""
    if isinstance(node, exp.Table) and node.args.get("only"):
        node.set("only", None)
    return node


def _drop_distinct_on(node: exp.Expression) -> exp.Expression:
    """DISTINCT ON (k) ... GROUP BY k: a group has one row."""
    if (
        not isinstance(node, exp.Select)
        or not node.args.get("distinct")
        or not node.args.get("group")
    ):
        return node
    on = node.args["distinct"].args.get("on")
    keys = on.expressions if isinstance(on, exp.Tuple) else [on.unnest()] if on is not None else []
    grouped = node.args["group"].expressions
    if (
        keys
        and all(any(key == each for each in keys) for key in grouped)
        and len(keys) >= len(grouped) > 0
    ):
        node.set("distinct", None)
    return node


_PLAIN = re.compile(r"(\^?)((?:[^\\^$.|?*+()\[\]{}%_]|\\[.$*+?()\[\]{}|^-])*)(\$?)")


def _rewrite_regexp(node: exp.Expression) -> exp.Expression:
    """name ~ '^Ka' is name LIKE 'Ka%', where the pattern has nothing but letters between its
    ends.
    """
    if not isinstance(node, exp.RegexpLike | exp.RegexpILike) or not node.expression.is_string:
        return node
    found = _PLAIN.fullmatch(node.expression.name)
    if found is None or any(
        part for name, part in node.args.items() if name not in ("this", "expression", "full_match")
    ):
        return node
    text = re.sub(r"\\(.)", r"\1", found[2])
    pattern = f"{'' if found[1] else '%'}{text}{'' if found[3] else '%'}"
    kind = exp.ILike if isinstance(node, exp.RegexpILike) else exp.Like
    return kind(this=node.this, expression=exp.Literal.string(pattern))


def _years_of(node: exp.Expression) -> exp.Expression:
    """EXTRACT(YEAR FROM AGE(later, earlier)): how many whole years have passed."""
    if not isinstance(node, exp.Extract) or node.this.name.lower() not in ("year", "years"):
        return node
    gap = node.expression.unnest()
    if (
        not isinstance(gap, exp.Anonymous)
        or gap.name.lower() != "age"
        or len(gap.expressions) not in (1, 2)
    ):
        return node
    later, earlier = (
        gap.expressions if len(gap.expressions) == 2 else (exp.CurrentDate(), gap.expressions[0])
    )
    return exp.Anonymous(
        this="timestampdiff", expressions=[exp.Literal.string("year"), earlier, later]
    )


def _sundays(node: exp.Expression) -> exp.Expression:
    """day + (-EXTRACT(DOW FROM day) * INTERVAL '1 DAY'): the Sunday before, as weeks begin in some
    countries.
    """
    if not isinstance(node, exp.Add | exp.Sub):
        return node
    moved = node.expression.unnest()
    if not isinstance(moved, exp.Mul) or not isinstance(moved.expression, exp.Interval):
        return node
    days, length = moved.this.unnest(), moved.expression
    back = isinstance(days, exp.Neg) == isinstance(node, exp.Add)
    days = days.this.unnest() if isinstance(days, exp.Neg) else days
    unit = str(length.args.get("unit") or "").lower().removesuffix("s")
    if (
        not back
        or not isinstance(days, exp.Extract)
        or unit != "day"
        or length.this is None
        or length.this.name != "1"
    ):
        return node
    if days.this.name.lower() not in ("dow", "dayofweek") or not _same_day(
        node.this, days.expression
    ):
        return node
    one = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY"))
    next_day = exp.Add(this=exp.cast(days.expression, "DATE"), expression=one)
    monday = exp.DateTrunc(this=next_day, unit=exp.Literal.string("week"))
    return exp.Paren(this=exp.Sub(this=exp.cast(monday, "DATE"), expression=one.copy()))


def _same_day(node: exp.Expression, other: exp.Expression) -> bool:
    """Return True if both are the day of one expression, whatever is written around it."""

    def bare(part: exp.Expression) -> exp.Expression:
        while isinstance(part, exp.Paren | exp.Cast | exp.DateTrunc | exp.TimestampTrunc):
            unit = part.args.get("unit")
            if unit is not None and unit.name.lower() != "day":
                return part
            part = part.this
        return part

    return bool(bare(node) == bare(other))


def _last_day(node: exp.Expression) -> exp.Expression:
    """LAST_DAY(day): a day before the next month."""
    if not isinstance(node, exp.LastDay) or node.args.get("unit") is not None:
        return node
    month, day = (
        exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit)) for unit in ("MONTH", "DAY")
    )
    first = exp.cast(exp.DateTrunc(this=node.this, unit=exp.Literal.string("month")), "DATE")
    return exp.Paren(this=exp.Sub(this=exp.Add(this=first, expression=month), expression=day))


def _beside(node: exp.Expression) -> exp.Expression:
    """CROSS JOIN LATERAL (SELECT p.c * 2 AS n) AS v: v.n is the expression itself."""
    if not isinstance(node, exp.Select):
        return node
    named: dict[tuple[str, str], exp.Expression] = {}
    kept = []
    for join in node.args.get("joins") or []:
        items = list(_compute(join.this)) if not join.args.get("on") else []
        if items and not join.args.get("side"):
            alias = join.this.alias_or_name.lower()
            named |= {(alias, name.lower()): item for name, item in items}
        else:
            kept.append(join)
    if not named:
        return node
    node.set("joins", kept)
    inside = {name for _, name in named}

    def expression(part: exp.Expression) -> exp.Expression:
        if not isinstance(part, exp.Column):
            return part
        found = named.get((part.table.lower(), part.name.lower()))
        if found is None and not part.table and part.name.lower() in inside:
            found = next(item for (_, name), item in named.items() if name == part.name.lower())
        return exp.Paren(this=found.copy()) if found is not None else part

    node.set(
        "expressions", [_rename(item, item.transform(expression)) for item in node.expressions]
    )
    for clause in ("where", "group", "having", "qualify", "order"):
        if node.args.get(clause):
            node.set(clause, node.args[clause].transform(expression))
    return node


def _rename(item: exp.Expression, made: exp.Expression) -> exp.Expression:
    if isinstance(item, exp.Column) and made is not item and not isinstance(made, exp.Column):
        return exp.alias_(made, item.name, quoted=True)
    return made


def _compute(source: exp.Expression) -> Iterator[tuple[str, exp.Expression]]:
    """Yield the items of LATERAL (SELECT a, b) without a FROM clause."""
    query = source.this if isinstance(source, exp.Lateral) else None
    select = query.this if isinstance(query, exp.Subquery) else query
    plain = isinstance(select, exp.Select) and {
        name for name, part in select.args.items() if part
    } == {"expressions"}
    if (
        plain
        and select is not None
        and not any(item.find(exp.AggFunc, exp.Window) for item in select.expressions)
    ):
        yield from (
            (item.output_name, item.unalias()) for item in select.expressions if item.output_name
        )


def clocks(today: date | None) -> Rule:
    """CURRENT_DATE is the day of asking: a constant of the question."""

    def rule(node: exp.Expression) -> exp.Expression:
        if today is None or not is_clock(node):
            return node
        if isinstance(node, exp.CurrentDate) or node.name.lower() == "today":
            return exp.cast(exp.Literal.string(today.isoformat()), "DATE")
        # A microsecond past midnight: what it is to a day, and to every coarser part of the
        # calendar.
        found = exp.cast(exp.Literal.string(f"{today.isoformat()} 00:00:00.000001"), "TIMESTAMP")
        if not _to_the_day(node):
            found.meta["clock"] = True
        return found

    return rule


def is_clock(node: exp.Expression) -> bool:
    """CURRENT_DATE, NOW() and the like."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) and not node.expressions else ""
    return isinstance(node, _CLOCKS) or name in ("today", *_NOW_NAMES)


_NOW = exp.CurrentTimestamp | exp.Localtimestamp | exp.CurrentDatetime
_CLOCKS = exp.CurrentDate | _NOW
_NOW_NAMES = (
    "now",
    "getdate",
    "sysdate",
    "get_current_timestamp",
    "transaction_timestamp",
    "statement_timestamp",
)
_HOURS = ("hour", "minute", "second", "millisecond", "microsecond")


def _to_the_day(node: exp.Expression) -> bool:
    """Return True if only the day of a moment is looked at: DATE_TRUNC('month', NOW()), CAST(NOW()
    AS DATE).
    """
    kinds = (exp.DateTrunc, exp.TimestampTrunc, exp.Cast, exp.Predicate, exp.Query)
    above = node.find_ancestor(*kinds)
    while isinstance(above, exp.Cast) and above.args["to"].this == exp.DataType.Type.TIMESTAMP:
        above = above.find_ancestor(*kinds)
    if isinstance(above, exp.Cast):
        within = bool(above.args["to"].this == exp.DataType.Type.DATE)
    else:
        unit = (
            above.args.get("unit")
            if isinstance(above, exp.DateTrunc | exp.TimestampTrunc)
            else None
        )
        within = unit is not None and unit.name.lower() not in _HOURS
    units = (
        [str(each.args.get("unit")).lower() for each in above.find_all(exp.Interval)]
        if above is not None
        else []
    )
    return within and not any(unit.removesuffix("s") in _HOURS for unit in units)


RULES: tuple[Rule, ...] = (
    *written_out.RULES,
    *comparisons.RULES,
    *rare_words.RULES,
    rewrite_format,
    _drop_time_zone,
    constants.rewrite_any_array,
    constants.compute_counts,
    constants.read_boolean,
    constants.read_interval,
    constants.rewrite_buckets,
    explode.rewrite_select,
    _drop_collation,
    _rewrite_symmetric,
    _rewrite_regr,
    _rewrite_json,
    _drop_only,
    _drop_distinct_on,
    _rewrite_regexp,
    _years_of,
    _sundays,
    moments.rewrite_floor,
    moments.read_origin,
    moments.rewrite_time_bucket,
    moments.rewrite_make_date,
    moments.split_interval,
    constants.multiply_interval,
    moments.multiply_by_column,
    _last_day,
    _beside,
)

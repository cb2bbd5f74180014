"""Rewrite other ways of writing the same thing to one way, syntax to syntax, before anything is
analyzed.

Analysts bring the habits of other databases. Each rule turns one spelling into another that means
the same whatever the tables are; the analysis then knows one of them. A rule that does not
recognize a node returns it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial

from sqlglot import exp

from discreet.sql.aggregates import NAMED
from discreet.sql.text import constants
from discreet.sql.text.parse import reject, show, whole, word
from discreet.sql.text.rules import clients, first_rows, neutral, semijoins

Rule = Callable[[exp.Expression], exp.Expression]


def spell_one_way(tree: exp.Query, *, database: str = "", today: date | None = None) -> exp.Query:
    """Return the statement in one spelling; `database` is the name of the policy's database, for
    tables with three names.
    """
    schemas = partial(_unqualify, databases=("", database.lower()))
    rules: tuple[Rule, ...] = (
        clients.clocks(today),
        constants.join_pattern,
        *neutral.RULES,
        *RULES,
        *clients.RULES,
        schemas,
    )

    def apply(given: exp.Expression) -> exp.Expression:
        node = given
        for rule in rules:
            other = rule(node)
            if other is node:
                continue
            # a refusal names what was written, where it was written
            for known in ("place", "written"):
                if known in node.meta:
                    other.meta.setdefault(known, node.meta[known])
            other.parent = other.parent or given.parent  # rules look at what is around
            node = other
        if node is not given:  # `transform` does not look into what is new
            for part in list(node.iter_expressions()):
                made = part.transform(apply, copy=False)
                if made is not part:
                    part.replace(made)
        return node

    found = tree.transform(apply, copy=False)
    assert isinstance(found, exp.Query)
    return found


def _rewrite_call(node: exp.Expression) -> exp.Expression:
    """IFF(p, a, b), SUFFIX(x, 'b'), PREFIX(x, 'a') and others of another name."""
    if not isinstance(node, exp.Anonymous):
        return node
    name, parts = node.name.lower(), node.expressions
    if (name, len(parts)) in _CALLS:
        return _CALLS[name, len(parts)](*parts)
    if name in NAMED and len(parts) == 1:
        return exp.AnonymousAggFunc(this=name.upper(), expressions=parts)
    if name in _AGGREGATES and len(parts) == 1:
        return _AGGREGATES[name](this=parts[0])
    return _rewrite_date_call(name, parts) or node


def _rewrite_date_call(name: str, parts: list[exp.Expression]) -> exp.Expression | None:
    """DATE_ADD(day, 1, x), DATE_PART('year', x), TO_DATE(x) and their like, where their arguments
    are of that kind.
    """
    if name == "date_sub" and len(parts) == 2 and isinstance(parts[1], exp.Interval):
        return exp.Sub(this=parts[0], expression=parts[1])
    if (
        name in ("date_add", "dateadd")
        and len(parts) == 3
        and isinstance(parts[0], exp.Column | exp.Literal)
    ):
        return exp.Add(
            this=parts[2], expression=exp.Interval(this=parts[1], unit=exp.var(parts[0].name))
        )
    if (
        name in ("date_part", "datepart")
        and len(parts) == 2
        and (parts[0].is_string or word(parts[0]))
    ):
        return exp.Extract(this=exp.var(parts[0].name), expression=parts[1])
    if name == "to_date" and (
        len(parts) == 1 or (len(parts) == 2 and parts[1].name.upper() in _DASHED)
    ):
        return exp.Cast(this=parts[0], to=exp.DataType.build("DATE"))
    return None


_CALLS: dict[tuple[str, int], Callable[..., exp.Expression]] = {  # by name and number of arguments
    ("iff", 3): lambda test, yes, no: exp.If(this=test, true=yes, false=no),
    ("isnull", 2): lambda value, other: exp.Coalesce(this=value, expressions=[other]),
    ("zeroifnull", 1): lambda value: exp.Coalesce(this=value, expressions=[exp.Literal.number(0)]),
    ("mid", 3): lambda text, start, length: exp.Substring(this=text, start=start, length=length),
    ("approx_percentile", 2): lambda value, share: exp.Quantile(this=value, quantile=share),
    ("quantile_cont", 2): lambda value, share: exp.PercentileCont(this=value, expression=share),
    ("quantile_disc", 2): lambda value, share: exp.PercentileDisc(this=value, expression=share),
    ("strftime", 2): lambda moment, written: exp.TimeToStr(this=moment, format=written),
    ("list_contains", 2): lambda values, one: exp.ArrayContains(this=values, expression=one),
    ("suffix", 2): lambda text, end: exp.EndsWith(this=text, expression=end),
    ("prefix", 2): lambda text, start: exp.StartsWith(this=text, expression=start),
}
_DASHED = ("YYYY-MM-DD", "%Y-%M-%D")  # how dates are written here, in the words of other databases

_AGGREGATES: dict[str, type[exp.Expression]] = {
    "every": exp.LogicalAnd,
    "var": exp.Variance,
    "varp": exp.VariancePop,
    "stdevp": exp.StddevPop,
    "mean": exp.Avg,
    "favg": exp.Avg,
}


def _rewrite_function(node: exp.Expression) -> exp.Expression:
    """SAFE_DIVIDE(a, b), NVL2(a, b, c), EQUAL_NULL(a, b), DATE(seen), GROUPING_ID(a, b), CAST(x AS
    FLOAT64).
    """
    match node:
        case exp.SafeDivide():  # where division by zero is NULL, all division is safe
            return exp.Paren(
                this=exp.Div(this=_bracket(node.this), expression=_bracket(node.expression))
            )
        case exp.Nvl2() if node.args.get("false") is not None:
            present = exp.Not(this=exp.Is(this=_bracket(node.this), expression=exp.Null()))
            return exp.If(this=present, true=node.args["true"], false=node.args["false"])
        case exp.Date() if set(_arguments_given(node)) == {"this"}:
            return exp.Cast(this=node.this, to=exp.DataType.build("DATE"))
        case exp.EqualNull():
            return exp.Paren(
                this=exp.NullSafeEQ(this=_bracket(node.this), expression=_bracket(node.expression))
            )
        case exp.GroupingId() if node.expressions:
            return exp.Grouping(expressions=node.expressions)
        case exp.DataType() if str(node.args.get("kind")).upper() == "FLOAT64":
            return exp.DataType.build("DOUBLE")
        case exp.WidthBucket() if set(_arguments_given(node)) == {
            "this",
            "min_value",
            "max_value",
            "num_buckets",
        }:
            parts = [node.args[name] for name in ("this", "min_value", "max_value", "num_buckets")]
            return exp.Anonymous(this="width_bucket", expressions=parts)
        case exp.TimestampDiff() | exp.DatetimeDiff():
            return _rewrite_difference(node)
    return node


def _rewrite_difference(node: exp.Expression) -> exp.Expression:
    """TIMESTAMP_DIFF(later, earlier, HOUR) counts whole hours, DATETIME_DIFF(later, earlier, HOUR)
    ends of hours.
    """
    unit = node.args["unit"].name.lower() if node.args.get("unit") is not None else ""
    if isinstance(node, exp.DatetimeDiff) and unit in (
        "second",
        "minute",
        "hour",
        "day",
        "month",
        "quarter",
        "year",
    ):
        return exp.DateDiff(
            this=node.this,
            expression=node.expression,
            unit=exp.var(unit.upper()),
            date_part_boundary=True,
        )
    if isinstance(node, exp.TimestampDiff) and unit in ("second", "minute", "hour", "day"):
        parts = [exp.Literal.string(unit), node.expression, node.this]
        return exp.Anonymous(this="timestampdiff", expressions=parts)
    return node


def _drop_escape(node: exp.Expression) -> exp.Expression:
    """LIKE '10!%' ESCAPE '!': without the ESCAPE where nothing is escaped; what the engine cannot
    read is refused.
    """
    if not isinstance(node, exp.Escape) or not isinstance(node.this, exp.Like | exp.ILike):
        return node
    pattern, sign = node.this.expression, node.expression
    if sign.is_string and not sign.name:  # ESCAPE '': nothing is escaped
        return node.this
    written = (
        isinstance(pattern, exp.Literal) and isinstance(sign, exp.Literal) and pattern.is_string
    )
    if not written or len(sign.name) != 1 or not sign.name.isascii() or sign.name.isalnum():
        raise reject(
            node,
            f"{show(node)} needs a pattern and one sign, written out.",
            "Write code LIKE '10!%' ESCAPE '!'.",
        )
    if pattern.name.replace(sign.name * 2, "").endswith(sign.name):
        raise reject(
            node,
            f"{show(node)}: nothing follows the last {sign.name}.",
            "Write code LIKE '10!%' ESCAPE '!'.",
        )
    return node if sign.name in pattern.name else node.this


def _bracket(node: exp.Expression) -> exp.Expression:
    return exp.Paren(this=node) if isinstance(node, exp.Binary) else node


def _inline_windows(node: exp.Expression) -> exp.Expression:
    """RANK() OVER w ... WINDOW w AS (ORDER BY n): the window where it is used."""
    listed = node.args.get("windows") if isinstance(node, exp.Select) else None
    if not listed:
        return node
    known = {each.name.lower(): each for each in listed}
    for window in list(node.find_all(exp.Window)):
        name = window.args.get("alias")
        found = known.get(name.name.lower()) if isinstance(name, exp.Identifier) else None
        plain = (
            set(_arguments_given(window)) == {"this", "alias", "over"}
            and window.find_ancestor(exp.Select) is node
        )
        if found is None or not plain:
            continue
        for part in ("partition_by", "order", "spec"):
            copied = found.args.get(part)
            window.set(
                part,
                [each.copy() for each in copied]
                if isinstance(copied, list)
                else copied and copied.copy(),
            )
        window.set("alias", None)
    if not any(window.args.get("alias") for window in node.find_all(exp.Window)):
        node.set("windows", None)
    return node


def _rewrite_date_add(node: exp.Expression) -> exp.Expression:
    """DATE_ADD(day, INTERVAL 7 DAY)."""
    if (
        isinstance(node, exp.DateAdd)
        and isinstance(node.expression, exp.Interval)
        and not node.args.get("unit")
    ):
        return exp.Add(this=node.this, expression=node.expression)
    return node


def _rewrite_day_name(node: exp.Expression) -> exp.Expression:
    """MONTHNAME(day) and DAYNAME(day)."""
    if isinstance(node, exp.Monthname | exp.Dayname) and not node.args.get("abbreviated"):
        written = "%B" if isinstance(node, exp.Monthname) else "%A"
        return exp.TimeToStr(this=node.this, format=exp.Literal.string(written))
    return node


def _swap_format(node: exp.Expression) -> exp.Expression:
    """Rewrite STRFTIME('%Y', day), whose format stands first, as STRFTIME(day, '%Y')."""
    if isinstance(node, exp.TimeToStr) and isinstance(node.this, exp.Literal):
        written = node.args.get("format")
        if isinstance(written, exp.Expression) and not isinstance(written, exp.Literal):
            return exp.TimeToStr(this=written, format=node.this)
    return node


def _rewrite_approximate(node: exp.Expression) -> exp.Expression:
    """APPROX_COUNT_DISTINCT(x) and APPROX_QUANTILE(x, q): here they are as exact as the noise
    allows.
    """
    if isinstance(node, exp.ApproxDistinct) and set(_arguments_given(node)) == {"this"}:
        return exp.Count(this=exp.Distinct(expressions=[node.this]), big_int=True)
    if isinstance(node, exp.ApproxQuantile) and set(_arguments_given(node)) == {"this", "quantile"}:
        return exp.Quantile(this=node.this, quantile=node.args["quantile"])
    return node


def _rewrite_any_value(node: exp.Expression) -> exp.Expression:
    """ANY_VALUE(x), which the parser reads as ANY_VALUE(x IGNORE NULLS); and RESPECT NULLS, which
    changes nothing.
    """
    meant = isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue)
    return node.this if meant or isinstance(node, exp.RespectNulls) else node


def _rewrite_mode(node: exp.Expression) -> exp.Expression:
    """MODE() WITHIN GROUP (ORDER BY x)."""
    if (
        isinstance(node, exp.WithinGroup)
        and isinstance(node.this, exp.Mode)
        and not _arguments_given(node.this)
    ):
        order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        if len(order) == 1 and not order[0].args.get("desc"):
            return exp.Mode(this=order[0].this)
    return node


def _rewrite_any(node: exp.Expression) -> exp.Expression:
    """x = ANY ([1, 2]), LIST_CONTAINS([1, 2], x) and CONTAINS([1, 2], x) are x IN (1, 2)."""
    if type(node) is exp.EQ and isinstance(node.expression, exp.Any):
        listed = node.expression.this.unnest()
        if isinstance(listed, exp.Array):
            return exp.In(this=node.this, expressions=listed.expressions)
    if isinstance(node, exp.ArrayContains | exp.Contains) and isinstance(node.this, exp.Array):
        return exp.In(this=node.expression, expressions=node.this.expressions)
    return node


def _compare_columns(node: exp.Expression) -> exp.Expression:
    """(a, b) = (1, 2) and (a, b) IN ((1, 2), (3, 4)), column by column; within such rows NULL
    equals NULL.
    """
    if type(node) in (exp.EQ, exp.NEQ) and _are_rows_alike(node.this, node.expression):
        same = _equal_columns(node.this, node.expression)
        return same if isinstance(node, exp.EQ) else exp.Not(this=same)
    listed = isinstance(node, exp.In) and set(_arguments_given(node)) == {"this", "expressions"}
    if listed and all(_are_rows_alike(node.this, each) for each in node.expressions):
        return exp.Paren(
            this=exp.or_(
                *(_equal_columns(node.this, each) for each in node.expressions), copy=False
            )
        )
    return node


def _are_rows_alike(left: exp.Expression, right: exp.Expression) -> bool:
    both = isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)
    return both and 0 < len(left.expressions) == len(right.expressions)


def _equal_columns(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    pairs = zip(left.expressions, right.expressions, strict=True)
    return exp.Paren(
        this=exp.and_(
            *(exp.NullSafeEQ(this=a.copy(), expression=b.copy()) for a, b in pairs), copy=False
        )
    )


def _drop_empty_group(node: exp.Expression) -> exp.Expression:
    """GROUP BY ALL where every item is an aggregate, and GROUP BY (): one group; GROUP BY a, () is
    GROUP BY a.
    """
    group = node.args.get("group") if isinstance(node, exp.Select) else None
    if group is None:
        return node
    every = group.args.get("all") is True and set(_arguments_given(group)) == {"all"}
    none = set(_arguments_given(group)) == {"expressions"} and all(
        key == exp.Tuple() for key in group.expressions
    )
    if (every or none) and all(item.find(exp.AggFunc) for item in node.expressions):
        node.set("group", None)
    elif exp.Tuple() in group.expressions and not none:
        group.set("expressions", [key for key in group.expressions if key != exp.Tuple()])
    return node


def _rewrite_group_by(node: exp.Expression) -> exp.Expression:
    """GROUP BY ALL is by every item without an aggregate; GROUP BY a, b WITH ROLLUP is ROLLUP (a,
    b).
    """
    if not isinstance(node, exp.Group):
        return node
    select = node.parent
    if (
        node.args.get("all") is True
        and set(_arguments_given(node)) == {"all"}
        and isinstance(select, exp.Select)
    ):
        items = [item.unalias() for item in select.expressions]
        keys = [
            item.copy()
            for item in items
            if not item.find(exp.AggFunc, exp.Star, exp.Window, exp.Query)
        ]
        return exp.Group(expressions=keys) if keys else node
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        clause = node.args.get(name)
        if (
            clause
            and len(clause) == 1
            and not clause[0].expressions
            and set(_arguments_given(node)) == {"expressions", name}
        ):
            return exp.Group(expressions=[kind(expressions=node.expressions)])
    return node


def _rewrite_order_by(node: exp.Expression) -> exp.Expression:
    """ORDER BY ALL is by every item, from left to right."""
    select = node.parent
    if (
        isinstance(node, exp.Order)
        and isinstance(select, exp.Select)
        and len(node.expressions) == 1
    ):
        only, listed = node.expressions[0], not any(item.is_star for item in select.expressions)
        if listed and isinstance(only.this, exp.Var) and only.this.name.upper() == "ALL":
            return exp.Order(
                expressions=[_at(only, place) for place in range(1, len(select.expressions) + 1)]
            )
    return node


def _at(ordered: exp.Expression, place: int) -> exp.Expression:
    copy = ordered.copy()
    copy.set("this", exp.Literal.number(place))
    return copy


def _rewrite_fetch(node: exp.Expression) -> exp.Expression:
    """FETCH FIRST 5 ROWS ONLY is LIMIT 5."""
    if isinstance(node, exp.Fetch) and whole(node.args.get("count")) is not None:
        options = node.args.get("limit_options")
        if options is None or not (options.args.get("percent") or options.args.get("with_ties")):
            return exp.Limit(expression=node.args["count"])
    return node


def _unqualify(node: exp.Expression, *, databases: Sequence[str]) -> exp.Expression:
    """main.people, public.people, "town"."public"."people": the only schema there is, of the only
    database.
    """
    named = isinstance(node, exp.Table | exp.Column) and node.text("catalog").lower() in databases
    if named and node.text("db").lower() in ("main", "public"):
        node.set("db", None)
        node.set("catalog", None)
    return node


def _rewrite_slice(node: exp.Expression) -> exp.Expression:
    """code[1:2] of a text is SUBSTR(code, 1, 2); only columns are texts for sure."""
    if (
        isinstance(node, exp.Bracket)
        and isinstance(node.this, exp.Column)
        and len(node.expressions) == 1
    ):
        part = node.expressions[0]
        if isinstance(part, exp.Slice) and set(_arguments_given(part)) <= {"this", "expression"}:
            first, last = whole(part.this), whole(part.expression)
            if first is not None and last is not None and 1 <= first <= last:
                start, length = exp.Literal.number(first), exp.Literal.number(last - first + 1)
                return exp.Substring(this=node.this, start=start, length=length)
    return node


def _arguments_given(node: exp.Expression) -> list[str]:
    return [
        name
        for name, part in node.args.items()
        if part not in (None, False, []) and name != "_type"
    ]


RULES: tuple[Rule, ...] = (
    semijoins.rewrite_semijoin,
    semijoins.rewrite_count_test,
    first_rows.rewrite_ties,
    first_rows.rewrite_distinct_on,
    _inline_windows,
    _rewrite_call,
    _rewrite_function,
    _drop_escape,
    _rewrite_date_add,
    _rewrite_day_name,
    _swap_format,
    _rewrite_approximate,
    _rewrite_any_value,
    _rewrite_mode,
    _rewrite_any,
    _compare_columns,
    _drop_empty_group,
    _rewrite_group_by,
    _rewrite_order_by,
    _rewrite_fetch,
    _rewrite_slice,
)

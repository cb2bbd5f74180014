"""Rewrite stretches of time, as clients write them, in words that the analysis knows.

DATE_TRUNC('hour', x) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM x) / 5)      DATE_BIN
TIME_BUCKET('1h', x), TIME_BUCKET('1 month', x)                          DATE_BIN, DATE_TRUNC
MAKE_DATE(EXTRACT(YEAR FROM x)::int, EXTRACT(MONTH FROM x)::int, 1)      DATE_TRUNC('month', x)
x + INTERVAL '1 month - 1 day'                                           x + 1 month - 1 day
n * INTERVAL '7 days'                                                    INTERVAL (n * 7) DAY
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from discreet.sql.text.constants import whole_number
from discreet.sql.text.parse import whole

_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SHORT = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "y": "year"}
_STRIDE = re.compile(r"\s*([0-9]{1,6})\s*([a-zA-Z]+)\s*")
SHORT_UNITS = {"min": "minute", "sec": "second", "hr": "hour", "mon": "month", "yr": "year"}
_TRUNCATED = exp.DateTrunc | exp.TimestampTrunc


def unit_of(node: exp.Expression | None) -> str:
    """Return the name of a unit of time in small letters, of one."""
    unit = str(getattr(node, "name", node) or "").lower().removesuffix("s")
    return SHORT_UNITS.get(unit, unit)


# --- DATE_TRUNC + INTERVAL * FLOOR(EXTRACT / n) ---------------------------------------------------


def rewrite_floor(node: exp.Expression) -> exp.Expression:
    """Return the start of a stretch of minutes within its hour, and the like."""
    if not isinstance(node, exp.Add):
        return node
    began, passed = node.this.unnest(), node.expression.unnest()
    if not isinstance(began, _TRUNCATED) or not isinstance(passed, exp.Mul):
        return node
    length = _length(list(_factors(passed)), began.this)
    whole_unit = _SECONDS.get(unit_of(began.args.get("unit")), 0)
    if length is None or whole_unit % (length[0] * _SECONDS[length[1]]):
        return node
    return _bin(length[0], length[1], began.this)


def _bin(count: int, unit: str, value: exp.Expression) -> exp.Expression:
    stride = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.var(unit.upper()))
    origin = exp.cast(exp.Literal.string("2000-01-01 00:00:00"), "TIMESTAMP")
    return exp.DateBin(this=stride, expression=value.copy(), origin=origin)


def _factors(node: exp.Expression) -> Iterator[exp.Expression]:
    inner = node.unnest()
    if isinstance(inner, exp.Mul):
        yield from _factors(inner.this)
        yield from _factors(inner.expression)
    else:
        yield inner


def _length(factors: list[exp.Expression], value: exp.Expression) -> tuple[int, str] | None:
    """Return the stretch of INTERVAL '1 minute' * FLOOR(EXTRACT(MINUTE FROM value) / 5) * 5: 5
    minutes.
    """
    spans = [each for each in factors if isinstance(each, exp.Interval)]
    counts = [whole(each) for each in factors if isinstance(each, exp.Literal)]
    parts = [each for each in factors if not isinstance(each, exp.Interval | exp.Literal)]
    if len(spans) != 1 or len(parts) != 1 or None in counts:
        return None
    unit, amount = unit_of(spans[0].args.get("unit")), spans[0].this
    total = int(amount.name) if amount is not None and amount.name.isdigit() else 0
    for count in counts:
        total *= count or 0
    quotient = _whole_quotient(parts[0])
    if quotient is None or unit not in _SECONDS or not total:
        return None
    extracted, divisor = quotient
    same = extracted.expression == value and unit_of(extracted.this) == unit
    return (total, unit) if same and divisor == total else None


def _whole_quotient(node: exp.Expression) -> tuple[exp.Extract, int] | None:
    """EXTRACT(...) and n, of FLOOR(EXTRACT(...) / n) and the like."""
    floored = isinstance(node, exp.Floor | exp.Trunc)
    inner = node.this.unnest() if floored else node
    if not isinstance(inner, exp.Div | exp.IntDiv):
        return None
    above, below = inner.this.unnest(), inner.expression.unnest()
    cut = isinstance(above, exp.Cast)
    above = above.this.unnest() if isinstance(above, exp.Cast) else above
    divisor = whole(below) or whole(exp.Literal.number(str(below.this).removesuffix(".0")))
    drops = floored or isinstance(inner, exp.IntDiv) or (cut and bool(inner.args.get("typed")))
    return (above, divisor) if drops and divisor and isinstance(above, exp.Extract) else None


# --- TIME_BUCKET and MAKE_DATE --------------------------------------------------------------------


def read_origin(node: exp.Expression) -> exp.Expression:
    """Read DATE_BIN('1 day', x, '2024-01-01'), whose last text is parsed as a unit."""
    text = node.args.get("unit") if isinstance(node, exp.DateBin) else None
    if text is None or not _DAY.match(text.name):
        return node
    node.set("unit", None)
    node.set("origin", exp.cast(exp.Literal.string(text.name), "TIMESTAMP"))
    return node


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def rewrite_time_bucket(node: exp.Expression) -> exp.Expression:
    """TIME_BUCKET('1h', x) and of months, which DATE_BIN does not know."""
    if isinstance(node, exp.Anonymous):
        if node.name.lower() != "time_bucket" or len(node.expressions) != 2:
            return node
        return rewrite_time_bucket(
            exp.DateBin(this=node.expressions[0], expression=node.expressions[1])
        )
    if not isinstance(node, exp.DateBin) or node.args.get("origin") or node.args.get("unit"):
        return node
    stride = node.this
    text = stride.name if isinstance(stride, exp.Literal) else ""
    if isinstance(stride, exp.Interval) and stride.this is not None:
        text = f"{stride.this.name} {stride.args.get('unit') or ''}"
    found = _STRIDE.fullmatch(text)
    unit = _SHORT.get(found[2].lower(), unit_of(found[2].lower())) if found else ""
    if unit in _MONTHS and found is not None:
        grain = {1: "month", 3: "quarter", 12: "year"}.get(int(found[1]) * _MONTHS[unit])
        return (
            node
            if grain is None
            else exp.DateTrunc(this=node.expression, unit=exp.Literal.string(grain))
        )
    if found is None or isinstance(stride, exp.Interval):
        return node
    node.set("this", exp.Interval(this=exp.Literal.string(found[1]), unit=exp.var(unit.upper())))
    return node


def rewrite_make_date(node: exp.Expression) -> exp.Expression:
    """MAKE_DATE(year of x, month of x, 1), and of constants."""
    parts = _of_date(node)
    if len(parts) != 3 or not all(isinstance(part, exp.Expression) for part in parts):
        return node
    numbers = [whole_number(part) for part in parts]
    if None not in numbers:
        year, month, day = (int(number or 0) for number in numbers)
        return exp.cast(exp.Literal.string(f"{year:04d}-{month:02d}-{day:02d}"), "DATE")
    grain, read = "day", list(zip(parts, numbers, ("year", "month", "day"), strict=True))
    while read and read[-1][1] == 1:
        grain = read.pop()[2]
    grain = {"month": "year", "day": "month"}.get(grain, "day") if len(read) < 3 else "day"
    values = [_part(part, name) for part, _, name in read]
    if not values or values[0] is None or any(value != values[0] for value in values):
        return node
    began = exp.DateTrunc(this=values[0].copy(), unit=exp.Literal.string(grain))
    return exp.cast(began if grain != "day" else values[0].copy(), "DATE")


def _of_date(node: exp.Expression) -> list[exp.Expression | None]:
    """Return the arguments of MAKE_DATE, however it is parsed; none of another call."""
    if isinstance(node, exp.DateFromParts):
        return [node.args.get(name) for name in ("year", "month", "day")]
    called = isinstance(node, exp.Anonymous) and node.name.lower() == "make_date"
    return list(node.expressions) if called else []


def _part(node: exp.Expression | None, name: str) -> exp.Expression | None:
    """Return x, of EXTRACT(name FROM x) or YEAR(x), whatever it is cast to."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Extract):
        return node.expression if unit_of(node.this) == name else None
    kinds = {"year": exp.Year, "month": exp.Month, "day": exp.Day | exp.DayOfMonth}
    return node.this if isinstance(node, kinds[name]) else None


# --- intervals ------------------------------------------------------------------------------------

_STEP = re.compile(r"\s*([+-]?)\s*([0-9]{1,6})\s*([a-zA-Z]+)\s*")


def split_interval(node: exp.Expression) -> exp.Expression:
    """x + INTERVAL '1 month - 1 day': one step after the other, months first."""
    length = node.expression.unnest() if isinstance(node, exp.Add | exp.Sub) else None
    if not isinstance(length, exp.Interval) or length.args.get("unit") is not None:
        return node
    text = length.this.name if isinstance(length.this, exp.Literal) else ""
    steps = list(_STEP.finditer(text))
    units = [unit_of(step[3].lower()) for step in steps]
    known = all(unit in _ORDER for unit in units)
    if not steps or not known or "".join(step[0] for step in steps) != text:
        return node
    found = node.this
    for unit, step in sorted(
        zip(units, steps, strict=True), key=lambda each: _ORDER.index(each[0])
    ):
        back = (step[1] == "-") != isinstance(node, exp.Sub)
        one = exp.Interval(this=exp.Literal.string(step[2]), unit=exp.var(unit.upper()))
        found = exp.Paren(this=(exp.Sub if back else exp.Add)(this=found, expression=one))
    return found


_ORDER = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def multiply_by_column(node: exp.Expression) -> exp.Expression:
    """n * INTERVAL '7 days' is INTERVAL (n * 7) DAY, and so is TO_DAYS(n * 7)."""
    if isinstance(node, exp.ToDays):
        return exp.Interval(this=exp.Paren(this=node.this), unit=exp.var("DAY"))
    if not isinstance(node, exp.Mul):
        return node
    for times, length in ((node.this, node.expression), (node.expression, node.this)):
        days = {"day": 1, "week": 7}.get(unit_of(getattr(length, "args", {}).get("unit")))
        if not isinstance(length, exp.Interval) or days is None or length.this is None:
            continue
        if not re.fullmatch("[0-9]{1,6}", length.this.name) or not times.find(exp.Column):
            continue
        factor = exp.Literal.number(days * int(length.this.name))
        total = exp.Mul(this=exp.Paren(this=times.copy()), expression=factor)
        return exp.Interval(this=exp.Paren(this=total), unit=exp.var("DAY"))
    return node

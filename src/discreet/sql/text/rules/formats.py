"""TO_CHAR, TO_DATE and TO_TIMESTAMP: formats in the words of Postgres and Oracle, as STRFTIME and
as constants.
"""

from __future__ import annotations

import re
from datetime import datetime

from sqlglot import exp

from discreet.sql.text.parse import reject, show

# What a field is in STRFTIME; None where it is a part of the date that STRFTIME has not.
_FIELDS: dict[str, str | None] = {
    "HH24": "%H",
    "HH12": "%I",
    "YYYY": "%Y",
    "IYYY": None,
    "FMMonth": "%B",
    "FMDay": "%A",
    "FMMM": "%-m",
    "FMDD": "%-d",
    "FMHH24": "%-H",
    "DDD": "%j",
    "Mon": "%b",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "MM": "%m",
    "DD": "%d",
    "YY": "%y",
    "Dy": "%a",
    "ID": "%u",
    "IW": None,
    "AM": "%p",
    "PM": "%p",
    "US": "%f",
    "MS": "%f",
    "Q": None,
    "D": None,
    "WW": None,
    "W": None,
}
# Names of months and days in other letters, or with spaces behind them up to nine: what they are
# in STRFTIME, how they are written, and whether spaces are added.
_SHAPED: dict[str, tuple[str, type[exp.Upper] | type[exp.Lower] | None, bool]] = {
    "Month": ("%B", None, True),
    "MONTH": ("%B", exp.Upper, True),
    "month": ("%B", exp.Lower, True),
    "FMMONTH": ("%B", exp.Upper, False),
    "FMmonth": ("%B", exp.Lower, False),
    "Day": ("%A", None, True),
    "DAY": ("%A", exp.Upper, True),
    "day": ("%A", exp.Lower, True),
    "FMDAY": ("%A", exp.Upper, False),
    "FMday": ("%A", exp.Lower, False),
    "MON": ("%b", exp.Upper, False),
    "mon": ("%b", exp.Lower, False),
    "DY": ("%a", exp.Upper, False),
    "dy": ("%a", exp.Lower, False),
}
_FIELDS |= dict.fromkeys(_SHAPED)
_ALSO = {
    "yyyy": "YYYY",
    "mm": "MM",
    "dd": "DD",
    "hh24": "HH24",
    "mi": "MI",
    "ss": "SS",
    "q": "Q",
    "iw": "IW",
    "ww": "WW",
    "w": "W",
    "iyyy": "IYYY",
    "ddd": "DDD",
    "FMmm": "FMMM",
    "FMdd": "FMDD",
}
_FIELD = re.compile(
    "|".join([r'"([^"]*)"', *sorted([*_FIELDS, *_ALSO], key=len, reverse=True), r"[^A-Za-z\"]"])
)
_FINER = ("US", "MS")  # read in constants, and not written
NAMES = ("TO_CHAR", "TO_DATE", "TO_TIMESTAMP")


def rewrite_format(node: exp.Expression) -> exp.Expression:
    """Return a call of one of `NAMES` with a format, as STRFTIME or a constant; other nodes as they
    are.
    """
    if not isinstance(node, exp.Anonymous) or node.name.upper() not in NAMES:
        return node
    name, parts = node.name.upper(), node.expressions
    if name == "TO_TIMESTAMP" and len(parts) == 1 and not parts[0].is_string:
        return exp.UnixToTime(this=parts[0])
    if name == "TO_DATE" and len(parts) == 1:
        return exp.Cast(this=parts[0], to=exp.DataType.build("DATE"))
    written = parts[1] if len(parts) == 2 else None
    if not isinstance(written, exp.Literal) or not written.is_string:
        raise reject(
            node, f"{show(node)} needs a format written out.", f"Write {name}(x, 'YYYY-MM-DD')."
        )
    fields = _split(written.name)
    if re.fullmatch(r"(FM)?[0-9GDLSMI.,%$ ]*[09][0-9GDLSMI.,%$ ]*", written.name):
        raise reject(
            node,
            f"{show(node)} writes a number in a format, which is not answered.",
            "Write ROUND(x, 2), or CAST(ROUND(x, 2) AS VARCHAR).",
        )
    if fields is None:
        raise reject(
            node,
            f"{show(node)} has a field that is not answered.",
            f"Fields are: {', '.join(each for each in _FIELDS if each not in _FINER)}.",
        )
    if name == "TO_CHAR":
        if any(field in _FINER for field, _ in fields):
            raise reject(node, f"{show(node)} shows parts of a second.", "Leave US and MS out.")
        return _show(parts[0], fields)
    return _constant(node, parts[0], fields)


def _split(text: str) -> list[tuple[str, str]] | None:
    """Return the fields of a format, each with the letters that stand for themselves as the second;
    None if one is unknown.
    """
    fields, place = [], 0
    while place < len(text):
        found = _FIELD.match(text, place)
        if found is None:
            return None
        word = _ALSO.get(found[0], found[0])
        itself = found[1] if found[1] is not None else "" if word in _FIELDS else found[0]
        fields.append((word if not itself and word in _FIELDS else "", itself))
        place = found.end()
    return fields


def _show(value: exp.Expression, fields: list[tuple[str, str]]) -> exp.Expression:
    """TO_CHAR: one STRFTIME, or several parts put together where STRFTIME has no field."""
    parts: list[exp.Expression] = []
    run = ""
    for field, itself in [*fields, ("end", "")]:
        known = _FIELDS.get(field) if field else itself.replace("%", "%%")
        if known is not None:
            run += known
            continue
        if run:
            parts.append(exp.TimeToStr(this=value.copy(), format=exp.Literal.string(run)))
            run = ""
        if field != "end":
            parts.append(_part(field, value))
    found = parts[0] if parts else exp.Literal.string("")
    for part in parts[1:]:
        found = exp.DPipe(this=found, expression=part, safe=True)
    return exp.Paren(this=found) if len(parts) > 1 else found


def _part(field: str, value: exp.Expression) -> exp.Expression:
    """Return a part of the date that STRFTIME has no field for, as text."""
    if field in _SHAPED:
        return _shaped(field, value)
    name = {"Q": "quarter", "IW": "week", "IYYY": "isoyear", "D": "dow", "WW": "doy", "W": "day"}
    number: exp.Expression = exp.Extract(this=exp.var(name[field]), expression=value.copy())
    if field == "D":  # from 1, on Sundays
        number = exp.Add(this=number, expression=exp.Literal.number(1))
    if field in ("WW", "W"):  # weeks of seven days from the first day of the year, or month
        later = exp.Paren(this=exp.Add(this=number, expression=exp.Literal.number(6)))
        number = exp.IntDiv(this=later, expression=exp.Literal.number(7))
    text = exp.cast(number, "VARCHAR")
    if field in ("IW", "WW"):
        return exp.Pad(
            this=text,
            expression=exp.Literal.number(2),
            fill_pattern=exp.Literal.string("0"),
            is_left=True,
        )
    return text


def _shaped(field: str, value: exp.Expression) -> exp.Expression:
    """Return the name of a month or day as `_SHAPED` says."""
    written, letters, padded = _SHAPED[field]
    text: exp.Expression = exp.TimeToStr(this=value.copy(), format=exp.Literal.string(written))
    text = text if letters is None else letters(this=text)
    if not padded:
        return text
    return exp.Pad(
        this=text,
        expression=exp.Literal.number(9),
        fill_pattern=exp.Literal.string(" "),
        is_left=False,
    )


def _constant(
    node: exp.Anonymous, value: exp.Expression, fields: list[tuple[str, str]]
) -> exp.Expression:
    """TO_DATE('2024-01-31', 'YYYY-MM-DD'): the date itself."""
    text = value.this if isinstance(value, exp.Cast) else value
    pattern = "".join(
        _FIELDS.get(field) or "" if field else itself.replace("%", "%%") for field, itself in fields
    )
    try:
        moment = datetime.strptime(text.name if text.is_string else "", pattern)
    except ValueError:
        raise reject(
            node,
            f"{show(node)} is not a date of that format.",
            "Write TO_DATE('2024-12-31', 'YYYY-MM-DD').",
        ) from None
    kind = "DATE" if node.name.upper() == "TO_DATE" else "TIMESTAMP"
    written = moment.date().isoformat() if kind == "DATE" else moment.isoformat(sep=" ")
    return exp.cast(exp.Literal.string(written), kind)

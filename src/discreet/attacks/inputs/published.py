"""Published statistics about a small group of people, read from a file: the input of the census
attack.

    {"domain": {"age": [1, 125], "sex": ["F", "M"]},
     "rules": [{"if": {"marital": "M"}, "then": {"age": [15, 125]}}],
     "statistics": [{"group": {"sex": "F"}, "count": 4, "mean": 33.5, "median": 30},
                    {"group": {"age": {"<": 18}}, "suppressed": true}]}

Each number becomes the range of exact values that would have been printed so; docs/attacks.md is
the reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from math import ceil, floor
from operator import ge, gt, le, lt, ne
from typing import Any, Literal

from discreet.errors import UsageError

Value = int | str | bool
Group = Mapping[str, frozenset[int]]
"""Which of a column's values (by position) belong; a column that is not named is free."""
Rule = Literal["linear", "lower", "higher", "midpoint"]

THRESHOLD = 3
DIGITS = 1
_KEYS = {
    "group",
    "of",
    "count",
    "sum",
    "mean",
    "median",
    "min",
    "max",
    "quantiles",
    "suppressed",
    "threshold",
}
_SETTINGS = {"digits", "rounding", "threshold", "interpolation"}
_REMARKS = {"id", "name", "label", "title", "note"}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "!=": ne}
_SAME = {
    "<": ("lt", "below", "under"),
    "<=": ("le", "lte", "max", "at_most", "to"),
    ">": ("gt", "above", "over"),
}
_SAME |= {">=": ("ge", "gte", "min", "at_least", "from"), "!=": ("ne",)}
_WORDS = {word: sign for sign, words in _SAME.items() for word in words}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordColumn:
    name: str
    values: tuple[Value, ...]
    numeric: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(value for value in self.values if isinstance(value, int))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """low <= number of people in the group <= high."""

    group: Group
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """low <= sum over the group <= high."""

    group: Group
    column: str
    low: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """low <= mean over the group <= high, and somebody is in it."""

    group: Group
    column: str
    low: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """low <= q-quantile over the group <= high; q = 0 is the minimum, 1/2 the median, 1 the
    maximum.
    """

    group: Group
    column: str
    q: Fraction
    low: Fraction
    high: Fraction
    rule: Rule

    def position(self, count: int) -> tuple[int, Fraction]:
        """Return (j, f): of `count` sorted values the quantile is (1 - f) x_j + f x_(j+1), counted
        from 1.
        """
        at = (count - 1) * self.q
        j = floor(at)
        between = at - j
        if between == 0 or self.rule == "lower":
            return j + 1, Fraction(0)
        if self.rule == "higher":
            return j + 2, Fraction(0)
        return j + 1, Fraction(1, 2) if self.rule == "midpoint" else between


Statistic = Count | Sum | Mean | Quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All that was published about one set of people; of a `part`, only the records that its
    statistics are about.
    """

    columns: tuple[RecordColumn, ...]
    rules: tuple[tuple[Group, Group], ...]
    statistics: tuple[Statistic, ...]
    part: bool = False

    def column(self, name: str) -> RecordColumn:
        return _find_column(self.columns, name, "a group or a rule")


def read(source: str | bytes | Mapping[str, Any]) -> Tables:
    """Read tables from JSON text or from the same shape in Python; numbers keep the digits that
    were written.
    """
    try:
        raw = source if isinstance(source, Mapping) else json.loads(source, parse_float=Decimal)
    except ValueError as problem:
        raise UsageError(f"The file of statistics is not JSON: {problem}.") from None
    if not isinstance(raw, Mapping) or not isinstance(raw.get("statistics"), Sequence):
        raise UsageError(
            'A file of statistics is {"domain": {...}, "rules": [...], "statistics": [...]}.'
        )
    _refuse_unknown(raw, {"domain", "rules", "statistics"} | _SETTINGS | _REMARKS, "the file")
    columns = tuple(
        _column(name, values) for name, values in _mapping(raw.get("domain"), "domain").items()
    )
    rules = tuple(_rule(columns, rule) for rule in raw.get("rules", ()))
    settings = {key: raw[key] for key in _SETTINGS if key in raw}
    digits = _digits_shown(raw["statistics"], columns)
    published = [
        s for entry in raw["statistics"] for s in _statistics(columns, entry, settings, digits)
    ]
    return Tables(columns=columns, rules=rules, statistics=tuple(published))


def _column(name: str, values: object) -> RecordColumn:
    if isinstance(values, Mapping):  # as in a policy: {"integer": [1, 125]} or {"values": [...]}
        values = values.get("integer") or values.get("values")
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise UsageError(
            f'The domain of {name} must be a list of values, or [low, high] for whole numbers, not "{values}".'
        )
    numeric = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if numeric and len(values) == 2:
        low, high = values
        values = range(low, high + 1)
    if (
        not values
        or len(set(values)) < len(values)
        or any(not isinstance(value, (int, str)) for value in values)
    ):
        raise UsageError(
            f"The domain of {name} must hold distinct whole numbers or texts, and at least one."
        )
    return RecordColumn(
        name=name, values=tuple(sorted(values)) if numeric else tuple(values), numeric=numeric
    )


def _rule(columns: Sequence[RecordColumn], rule: object) -> tuple[Group, Group]:
    if not isinstance(rule, Mapping) or set(rule) != {"if", "then"}:
        raise UsageError(f'A rule is {{"if": {{...}}, "then": {{...}}}}, not {rule}.')
    return _group(columns, rule["if"]), _group(columns, rule["then"])


def _group(columns: Sequence[RecordColumn], raw: object) -> Group:
    group = {}
    for name, condition in _mapping(raw, "a group").items():
        column = _find_column(columns, name, "a group or a rule")
        group[name] = frozenset(
            i for i, value in enumerate(column.values) if _holds(column, condition, value)
        )
    return group


def _holds(column: RecordColumn, condition: Any, value: Value) -> bool:
    if isinstance(condition, Mapping):
        return all(_compares(column, word, bound, value) for word, bound in condition.items())
    if isinstance(condition, Sequence) and not isinstance(condition, str):
        if column.numeric and len(condition) == 2:
            low, high = condition
            return (low is None or value >= low) and (high is None or value <= high)
        return any(_holds(column, one, value) for one in condition)
    if isinstance(condition, str) and column.numeric:
        for word in sorted(_COMPARE, key=len, reverse=True):
            if condition.startswith(word):
                return _compares(column, word, _number(condition[len(word) :], column.name), value)
        return bool(value == _number(condition, column.name))
    if not column.numeric and condition not in column.values:
        raise UsageError(
            f"{condition!r} is not in the domain of {column.name}, which is {', '.join(map(str, column.values))}."
        )
    return bool(value == condition)


def _compares(column: RecordColumn, word: str, bound: Any, value: Value) -> bool:
    word = _WORDS.get(word, word)
    if word in ("in", "not"):
        listed = bound if isinstance(bound, Sequence) and not isinstance(bound, str) else [bound]
        return (value in listed) == (word == "in")
    if word not in _COMPARE or not (column.numeric or word == "!="):
        allowed = ", ".join((*_COMPARE, "in", "not"))
        raise UsageError(
            f'"{word}" does not compare values of {column.name}; write one of {allowed}.'
        )
    return _COMPARE[word](value, bound)


def _statistics(
    columns: Sequence[RecordColumn], raw: object, settings: Mapping[str, Any], digits: int
) -> list[Statistic]:
    entry = {**settings, **_mapping(raw, "a statistic")}
    names = {column.name for column in columns if column.numeric}
    _refuse_unknown(entry, _KEYS | _SETTINGS | _REMARKS | names, "a statistic")
    group = _group(columns, entry.get("group", {}))
    step = Fraction(1, 10 ** int(entry.get("digits", digits)))
    found: list[Statistic] = [*_counts(group, entry)]
    measured = {name: entry[name] for name in names & set(entry)}
    if set(entry) & {"sum", "mean", "median", "min", "max", "quantiles"}:
        measured[_number_column(columns, entry)] = entry
    for name, numbers in measured.items():
        found += _moments(group, name, _mapping(numbers, name), step)
        found += _quantiles(group, name, numbers, step, _interpolation(entry))
    return found


def _counts(group: Group, entry: Mapping[str, Any]) -> list[Statistic]:
    suppressed = entry.get("suppressed", False)
    if suppressed is not False and suppressed is not None:
        threshold = entry.get("threshold", THRESHOLD) if suppressed is True else suppressed
        return [Count(group=group, low=0, high=int(_number(threshold, "threshold")) - 1)]
    if entry.get("count") is None:
        return []
    low, high = _range(
        entry["count"], Fraction(entry["rounding"]) if "rounding" in entry else Fraction(0), "count"
    )
    return [Count(group=group, low=ceil(low), high=floor(high))]


def _moments(
    group: Group, column: str, numbers: Mapping[str, Any], step: Fraction
) -> list[Statistic]:
    found: list[Statistic] = []
    if numbers.get("sum") is not None:
        low, high = _range(numbers["sum"], Fraction(0), "sum")
        found.append(Sum(group=group, column=column, low=low, high=high))
    if numbers.get("mean") is not None:
        low, high = _range(numbers["mean"], step, "mean")
        found.append(Mean(group=group, column=column, low=low, high=high))
    return found


def _quantiles(
    group: Group, column: str, numbers: Mapping[str, Any], step: Fraction, rule: Rule
) -> list[Statistic]:
    at = {Fraction(0): "min", Fraction(1, 2): "median", Fraction(1): "max"}
    asked = [(q, numbers[name]) for q, name in at.items() if numbers.get(name) is not None]
    asked += [
        (_number(q, "quantiles"), v)
        for q, v in _mapping(numbers.get("quantiles", {}), "quantiles").items()
    ]
    found: list[Statistic] = []
    for q, value in asked:
        if not 0 <= q <= 1:
            raise UsageError(f"A quantile lies between 0 and 1, not at {float(q):g}.")
        low, high = _range(value, step, at.get(q, "quantile"))
        found.append(Quantile(group=group, column=column, q=q, low=low, high=high, rule=rule))
    return found


def _range(value: Any, step: Fraction, name: str) -> tuple[Fraction, Fraction]:
    """Return the exact values that a published number may stand for: within half a step, or a
    stated margin.
    """
    if isinstance(value, Mapping):
        middle = _number(value.get("value"), name)
        margin = _number(value.get("margin", 0), name)
        return middle - margin, middle + margin
    if isinstance(value, Sequence) and not isinstance(value, str):
        low, high = value
        return _number(low, name), _number(high, name)
    return _number(value, name) - step / 2, _number(value, name) + step / 2


def _digits_shown(statistics: Sequence[Any], columns: Sequence[RecordColumn]) -> int:
    """Return the most digits of any number: JSON drops trailing zeros, so that 33.5, 44.0 arrives
    as 33.5, 44.
    """
    shown = [DIGITS]
    for entry in statistics:
        nested = [
            entry[column.name]
            for column in columns
            if isinstance(entry, Mapping) and column.name in entry
        ]
        for numbers in (entry, *nested):
            if isinstance(numbers, Mapping):
                shown += [_digits(numbers.get(name)) for name in ("mean", "median")]
                shown += [_digits(v) for v in numbers.get("quantiles", {}).values()]
    return max(shown)


def _digits(value: Any) -> int:
    if isinstance(value, (float, str, Decimal)):
        exponent = Decimal(str(value)).as_tuple().exponent
        return max(0, -exponent) if isinstance(exponent, int) else 0
    return 0


def _number_column(columns: Sequence[RecordColumn], entry: Mapping[str, Any]) -> str:
    if "of" in entry:
        return _find_column(columns, entry["of"], '"of"').name
    numeric = [column.name for column in columns if column.numeric]
    if len(numeric) != 1:
        raise UsageError(
            f'Which column is this the mean or median of? Write "of": one of {", ".join(numeric) or "no column"}.'
        )
    return numeric[0]


def _interpolation(entry: Mapping[str, Any]) -> Rule:
    rule = entry.get("interpolation", "linear")
    if rule not in ("linear", "lower", "higher", "midpoint"):
        raise UsageError(f'Interpolation is one of linear, lower, higher, midpoint, not "{rule}".')
    return rule  # type: ignore[no-any-return]


def _number(value: Any, name: str) -> Fraction:
    try:
        if isinstance(value, bool):
            raise ValueError
        return value if isinstance(value, Fraction) else Fraction(str(value).strip())
    except ValueError:
        raise UsageError(f"{name} must be a number, not {value!r}.") from None


def _find_column(columns: Sequence[RecordColumn], name: str, where: str) -> RecordColumn:
    for column in columns:
        if column.name == name:
            return column
    raise UsageError(
        f"{where} names the column {name!r}; the domain has {', '.join(c.name for c in columns)}."
    )


def _mapping(raw: object, name: str) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise UsageError(f"{name} must be an object of names and values, not {raw!r}.")
    return raw


def _refuse_unknown(raw: Mapping[str, Any], keys: set[str], where: str) -> None:
    for key in raw:
        if key not in keys:
            near = get_close_matches(key, keys, n=1)
            hint = f'write "{near[0]}"?' if near else f"known are {', '.join(sorted(keys))}."
            raise UsageError(f"{where} has a key {key!r} that means nothing here; {hint}")

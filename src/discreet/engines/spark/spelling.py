"""Trees of `algebra` as Spark's SQL: the same value for every row as DuckDB has, or a refusal that
names what it lacks.

Spark runs with ANSI rules and in UTC: what overflows or cannot be cast is an error, never a wrong
number. It has no TRY for a whole expression, so a `careful` statement takes the form of each
operation that gives NULL where it fails.

Letters are changed by a table that DuckDB itself tells, one letter for one letter: Java makes SS of
ß, and more letters than the analysis has counted. Times are TIMESTAMP_NTZ, whole numbers of 128
bits DECIMAL(38, 0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import ClassVar

from discreet.algebra import (
    Aggregate,
    Call,
    Cast,
    Constant,
    Exists,
    Expression,
    Fold,
    Interval,
    Over,
    Plain,
    PublicScan,
    Reading,
    case,
    walk,
)
from discreet.engines.spark.letters import change_letters, letter_pairs, text_literal, trim
from discreet.engines.spelling import Spelling, by_place
from discreet.engines.words import FOLDS, WORDS, Unspelled, Word, infix, prefix

MOMENT, WHOLE = "TIMESTAMP_NTZ", "DECIMAL(38, 0)"
PRIVATE, PUBLIC = "private", "public"  # what views are called, each before the name of its table
_KINDS = {"VARCHAR": "STRING", "TIMESTAMP": MOMENT, "HUGEINT": WHOLE}
_FAR = 2_000_000_000  # a place in no list
_ESCAPE, _NO_TEXT = "!", "''"
_MICROSECONDS = {
    "microsecond": 1,
    "second": 1_000_000,
    "minute": 60 * 1_000_000,
    "hour": 3600 * 1_000_000,
}
_MONTHS = (  # short, and what makes it long
    *("Jan-uary", "Feb-ruary", "Mar-ch", "Apr-il", "May-", "Jun-e"),
    *("Jul-y", "Aug-ust", "Sep-tember", "Oct-ober", "Nov-ember", "Dec-ember"),
)
_WEEKDAYS = ("Mon-day", "Tue-sday", "Wed-nesday", "Thu-rsday", "Fri-day", "Sat-urday", "Sun-day")


def identifier(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def view(kind: str, table: str) -> str:
    """Write the name of a table's view: one that needs no quotes."""
    simple = re.fullmatch("[a-z0-9_]+", table)
    return f"{kind}_{table}" if simple else f"named_{kind}_{table.encode().hex()}"


# --- letters --------------------------------------------------------------------------------------


# --- days and moments -----------------------------------------------------------------------------


def _moment(value: str) -> str:
    """Write a moment in Spark's own type, by UTC, which is the session's zone."""
    return f"CAST(CAST({value} AS {MOMENT}) AS TIMESTAMP)"


def _microseconds(value: str) -> str:
    return f"unix_micros({_moment(value)})"


def _weekday(day: str) -> str:
    """Write the days since Monday."""
    return f"((dayofweek({day}) + 5) % 7)"


def _isoyear(day: str) -> str:
    """Write the year of the week's Thursday."""
    return f"year(date_add(CAST({day} AS DATE), 3 - {_weekday(day)}))"


_PARTS: Mapping[str, Callable[[str], str]] = {
    **{
        each: f"{each}({{}})".format
        for each in ("year", "quarter", "month", "day", "hour", "minute", "second")
    },
    "week": lambda x: f"weekofyear({x})",
    "dow": lambda x: f"(dayofweek({x}) - 1)",
    "isodow": lambda x: f"({_weekday(x)} + 1)",
    "doy": lambda x: f"dayofyear({x})",
    "decade": lambda x: f"(year({x}) div 10)",
    "century": lambda x: f"((year({x}) - 1) div 100 + 1)",
    "isoyear": _isoyear,
}
_GRAINS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


def _part(arguments: Sequence[str]) -> str:
    name = _unquoted(arguments[0])
    value = arguments[1]
    if name not in _PARTS:
        raise Unspelled(f"The part {name} of a date")
    return f"CAST({_PARTS[name](value)} AS BIGINT)"


def _truncated(arguments: Sequence[str]) -> str:
    grain = _unquoted(arguments[0])
    if grain not in _GRAINS:
        raise Unspelled(f"DATE_TRUNC to {grain}")
    if grain in _MICROSECONDS:
        since = _microseconds(arguments[1])
        return (
            f"CAST(timestamp_micros({since} - pmod({since}, {_MICROSECONDS[grain]})) AS {MOMENT})"
        )
    day = f"CAST({arguments[1]} AS DATE)"
    started = {
        "day": day,
        "week": f"date_add({day}, -{_weekday(day)})",
        "month": f"date_add({day}, 1 - day({day}))",
        "quarter": f"make_date(year({day}), quarter({day}) * 3 - 2, 1)",
        "year": f"make_date(year({day}), 1, 1)",
    }
    return f"CAST({started[grain]} AS {MOMENT})"


def _difference(arguments: Sequence[str]) -> str:
    """Write the number of boundaries of the unit between two moments."""
    unit, first, last = _unquoted(arguments[0]), *arguments[1:]
    if unit in _MICROSECONDS:
        length = _MICROSECONDS[unit]
        return f"({_passed(last, length)} - {_passed(first, length)})"
    match unit:
        case "day":
            found = f"datediff({last}, {first})"
        case "week":  # whole stretches of seven days, not Mondays passed
            found = f"(datediff({last}, {first}) div 7)"
        case "month":
            found = f"((year({last}) - year({first})) * 12 + month({last}) - month({first}))"
        case "quarter":
            found = f"((year({last}) - year({first})) * 4 + quarter({last}) - quarter({first}))"
        case "year":
            found = f"(year({last}) - year({first}))"
        case _:
            raise Unspelled(f"DATE_DIFF in {unit}s")
    return f"CAST({found} AS BIGINT)"


def _passed(value: str, length: int) -> str:
    """Write the whole lengths since 1970, rounded down also before it."""
    since = _microseconds(value)
    return since if length == 1 else f"(({since} - pmod({since}, {length})) div {length})"


def _padded(value: str, digits: int) -> str:
    return f"lpad(CAST({value} AS STRING), {digits}, '0')"


def _one_of(texts: Sequence[str], place: str, *, short: bool) -> str:
    listed = ", ".join(
        f"'{each.split('-')[0] if short else each.replace('-', '')}'" for each in texts
    )
    return f"get(array({listed}), {place})"


def _hour12(x: str) -> str:
    return f"((hour({x}) + 11) % 12 + 1)"


_FIELDS: Mapping[str, Callable[[str], str]] = {
    "%Y": lambda x: _padded(f"year({x})", 4),
    "%y": lambda x: _padded(f"(year({x}) % 100)", 2),
    "%m": lambda x: _padded(f"month({x})", 2),
    "%-m": lambda x: f"CAST(month({x}) AS STRING)",
    "%b": lambda x: _one_of(_MONTHS, f"month({x}) - 1", short=True),
    "%B": lambda x: _one_of(_MONTHS, f"month({x}) - 1", short=False),
    "%d": lambda x: _padded(f"day({x})", 2),
    "%-d": lambda x: f"CAST(day({x}) AS STRING)",
    "%j": lambda x: _padded(f"dayofyear({x})", 3),
    "%a": lambda x: _one_of(_WEEKDAYS, _weekday(x), short=True),
    "%A": lambda x: _one_of(_WEEKDAYS, _weekday(x), short=False),
    "%w": lambda x: f"CAST(dayofweek({x}) - 1 AS STRING)",
    "%u": lambda x: f"CAST({_weekday(x)} + 1 AS STRING)",
    "%H": lambda x: _padded(f"hour({x})", 2),
    "%-H": lambda x: f"CAST(hour({x}) AS STRING)",
    "%I": lambda x: _padded(_hour12(x), 2),
    "%-I": lambda x: f"CAST({_hour12(x)} AS STRING)",
    "%M": lambda x: _padded(f"minute({x})", 2),
    "%-M": lambda x: f"CAST(minute({x}) AS STRING)",
    "%S": lambda x: _padded(f"second({x})", 2),
    "%-S": lambda x: f"CAST(second({x}) AS STRING)",
    "%p": lambda x: f"CASE WHEN hour({x}) < 12 THEN 'AM' ELSE 'PM' END",
    "%%": lambda _: "'%'",
}


# --- words ----------------------------------------------------------------------------------------


def _unquoted(literal: str) -> str:
    return literal[1:-1]


def _nested(function: str) -> Word:
    def spell(arguments: Sequence[str]) -> str:
        found = arguments[0]
        for each in arguments[1:]:
            found = f"{function}({found}, {each})"
        return found

    return spell


def _place_in_list(place: str) -> str:
    """Write a place that counts from 0, outside of every list where it is before the first or far
    behind.
    """
    return f"CAST(least(greatest({place}, 0), {_FAR}) - 1 AS INT)"


def _quotient(operator: str) -> Word:
    return lambda arguments: (
        f"(CASE WHEN {arguments[1]} <> 0 THEN {arguments[0]} {operator} {arguments[1]} END)"
    )


_SAME = (
    *("abs", "cbrt", "exp", "greatest", "least", "ln", "round", "sqrt", "coalesce", "nullif"),
    *("concat_ws", "contains", "length", "lpad", "md5", "replace", "rpad", "split_part"),
)
_WORDS: Mapping[str, Word] = {
    **{
        word: WORDS[word]
        for word in ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "||")
    },
    **{word: WORDS[word] for word in ("negative", "NOT", "is null", "is not null", "in")},
    **{function: prefix(function) for function in _SAME},
    "//": infix("div"),
    "is true": lambda arguments: f"coalesce({arguments[0]}, FALSE)",
    "is false": lambda arguments: f"coalesce(NOT {arguments[0]}, FALSE)",
    "concat": lambda arguments: (
        f"concat({', '.join(f'coalesce({each}, {_NO_TEXT})' for each in arguments)})"
    ),
    "starts_with": prefix("startswith"),
    "ends_with": prefix("endswith"),
    "strpos": prefix("instr"),
    "lower": change_letters("lower"),
    "upper": change_letters("upper"),
    "trim": trim("BOTH"),
    "ltrim": trim("LEADING"),
    "rtrim": trim("TRAILING"),
    "date_diff": _difference,
    "date_part": _part,
    "date_trunc": _truncated,
    "epoch_us": lambda arguments: _microseconds(arguments[0]),
    "make_timestamp": lambda arguments: f"CAST(timestamp_micros({arguments[0]}) AS {MOMENT})",
    "list": prefix("array"),
    "list_extract": lambda arguments: (
        f"get({arguments[0]}, CAST(least(greatest({arguments[1]}, 0), {_FAR}) - 1 AS INT))"
    ),
    "list_position": lambda arguments: f"nullif(array_position({arguments[0]}, {arguments[1]}), 0)",
    "row": prefix("struct"),
    "pair": lambda arguments: f"named_struct('k', {arguments[0]}, 'v', {arguments[1]})",
    "second of pair": lambda arguments: f"({arguments[0]}).v",
    "hash": lambda arguments: f"(xxhash64({', '.join(arguments)}) & 9223372036854775807)",
}
# Forms that are NULL where the plain ones fail.
_CAREFUL: Mapping[str, Word] = {
    **_WORDS,
    "+": _nested("try_add"),
    "-": _nested("try_subtract"),
    "*": _nested("try_multiply"),
    "/": _quotient("/"),
    "//": _quotient("div"),
    "%": _quotient("%"),
}


@dataclass(frozen=True, slots=True)
class SparkSpelling(Spelling):
    """Spark's SQL."""

    words: ClassVar[Mapping[str, Word]] = _WORDS
    folds: ClassVar[Mapping[str, Word]] = FOLDS

    def name(self, identifier_: str) -> str:
        return identifier(identifier_)

    def private_table(self, table: str) -> str:
        return view(PRIVATE, table)

    def place(self, node: PublicScan) -> str:
        return view(PUBLIC, node.table)

    def step(self, step: str, query: str) -> str:
        return f"{step} AS ({query})"

    def wide(self, count: str) -> str:
        return f"CAST({count} AS {WHOLE})"

    def call(self, node: Call) -> str:
        match node:
            case Call(
                name="like" | "ilike", arguments=(value, Constant(value=str(pattern)), *more)
            ):
                escape = more[0].value if more and isinstance(more[0], Constant) else ""
                return self._like(value, pattern, str(escape), fold=node.name == "ilike")
            case Call(name="strftime", arguments=(value, Constant(value=str(written)))):
                return self._formatted(self.expression(value), written)
            case Call(name="left", arguments=(value, Constant(value=int(length)))):
                return self._first_letters(self.expression(value), length)
            case Call(name="right", arguments=(value, Constant(value=int(length)))) if length >= 0:
                return f"right({self.expression(value)}, {length})"
            case Call(name="substr", arguments=(value, Constant(value=int(start)), *rest)):
                most = rest[0].value if rest and isinstance(rest[0], Constant) else None
                return _cut(self.expression(value), start, most if isinstance(most, int) else None)
            case Call(name="+", arguments=(value, Constant(value=Interval()) as interval)):
                return f"(CAST({self.expression(value)} AS {MOMENT}) + {self.expression(interval)})"
            case Call(name="//", arguments=(left, right)) if _is_huge(left) or _is_huge(right):
                return self._wide_quotient(*self.all((left, right)))
            case Call(name=name) if name in _WORDS:
                return self._word(name)(self.all(node.arguments))
        raise Unspelled(f"The function {node.name}")

    def _word(self, name: str) -> Word:
        return (_CAREFUL if self.careful else _WORDS)[name]

    def kind(self, kind: str) -> str:
        if kind == "TIME":
            raise Unspelled("A time of day")
        return f"ARRAY<{self.kind(kind[:-2])}>" if kind.endswith("[]") else _KINDS.get(kind, kind)

    def cast(self, node: Cast) -> str:
        value = node.value
        kind = self.kind(node.kind)
        if node.kind.endswith("[]"):
            if not isinstance(value, Constant) or not isinstance(value.value, str):
                raise Unspelled("A list that is made of a text")
            value = Constant(value.value.strip("[]").replace(" ", ""))
            return f"CAST(split({self.expression(value)}, ',') AS {kind})"
        return f"{'try_cast' if self.careful else 'CAST'}({self.expression(value)} AS {kind})"

    def attempt(self, value: str) -> str:
        return value  # each of its operations is NULL where it fails

    def constant(self, value: Plain) -> str:
        match value:
            case str():
                return text_literal(value)
            case float():
                return f"CAST('{value!r}' AS DOUBLE)"
            case datetime():
                return f"{MOMENT} '{value.isoformat(sep=' ')}'"
            case date():
                return f"DATE '{value.isoformat()}'"
            case Interval(count=count, unit="microsecond"):
                sign, (seconds, rest) = "-" if count < 0 else "", divmod(abs(count), 1_000_000)
                return f"INTERVAL '{sign}{seconds}.{rest:06d}' SECOND"
        return Spelling.constant(self, value)

    def total(self, product: str, bits: int) -> str:
        return f"sum({product})" if bits == 64 else f"sum(CAST({product} AS {WHOLE}))"

    def together(self, values: Sequence[str]) -> str:
        return f"struct({', '.join(values)})"

    def first_of_each(self, relation: str, stage: str, pins: str, most: int) -> str:
        place = identifier("#place")
        numbered = f"*, row_number() OVER (PARTITION BY {pins} ORDER BY {pins}) AS {place}"
        return f"(SELECT * FROM (SELECT {numbered} FROM {relation} AS {stage}) WHERE {place} <= {most}) AS {stage}"

    def place_in_values(self, place: int) -> str:
        return f"col{place + 1}"

    def wide_cell(self, cell: str, width: int) -> str:
        return cell if width == 1 else f"({cell} div {width})"

    def by_all(self, keys: int) -> str:
        return by_place(keys)

    def reading(self, node: Reading, aggregate: Aggregate) -> str:
        if node.where is not None and any(isinstance(each, Exists) for each in walk(node.where)):
            raise Unspelled("EXISTS within FILTER")
        return Spelling.reading(self, node, aggregate)

    def over(self, node: Over) -> str:
        """Write a window. What a filter leaves out is NULL to its function, which is the same to
        all of them.
        """
        function = node.function
        if function.where is not None:
            (value,) = function.arguments or (Constant(1),)
            function = Fold(function.name, (case((function.where, value)),))
        return Spelling.over(self, replace(node, function=function))

    # what takes more than a word

    def _wide_quotient(self, left: str, right: str) -> str:
        """Write the whole part of a quotient of decimals, which Spark's div would make a BIGINT."""
        left, right = (f"CAST({each} AS {WHOLE})" for each in (left, right))
        whole = f"CAST(({left} - {left} % {right}) / {right} AS {WHOLE})"
        return f"(CASE WHEN {right} <> 0 THEN {whole} END)"

    def _like(self, value: Expression, pattern: str, escape: str, *, fold: bool) -> str:
        """Write LIKE by a pattern in which only % and _ are signs, and every sign that is meant as
        a letter is escaped.
        """
        if fold and escape != escape.lower():
            raise Unspelled("ILIKE with a capital letter as its escape")
        text = self.expression(value)
        changed = pattern
        if fold:
            text = change_letters("lower")([text])
            changed = pattern.translate(str.maketrans(*letter_pairs("lower")))
        found = []
        letters = iter(changed)
        for letter in letters:
            if escape and letter == escape:
                letter = next(letters, "")
                if letter not in ("%", "_", escape) or not letter:
                    raise Unspelled("A pattern whose escape stands before a letter")
            elif letter in ("%", "_"):
                found.append(letter)
                continue
            found.append(_ESCAPE + letter if letter in ("%", "_", _ESCAPE) else letter)
        return f"({text} LIKE {text_literal(''.join(found))} ESCAPE '{_ESCAPE}')"

    def _formatted(self, value: str, written: str) -> str:
        pieces = [piece for piece in re.split(r"(%-?.)", written) if piece]
        unknown = [piece for piece in pieces if piece.startswith("%") and piece not in _FIELDS]
        if unknown:
            raise Unspelled(f"The field {unknown[0]} of STRFTIME")
        spelled = [
            _FIELDS[each](value) if each in _FIELDS else text_literal(each) for each in pieces
        ]
        return f"(CASE WHEN {value} IS NOT NULL THEN concat({', '.join(spelled)}) END)"

    def _first_letters(self, value: str, length: int) -> str:
        if length >= 0:
            return f"left({value}, {length})"
        return f"substring({value}, 1, greatest(length({value}) - {-length}, 0))"


def _cut(value: str, start: int, length: int | None) -> str:
    """Write a substring: positions count from 1, negative ones from the end; a length counts from
    the position asked for.
    """
    if start == 0:
        return value if length is None else f"substring({value}, 1, {max(length - 1, 0)})"
    if start > 0:
        return f"substring({value}, {start}{'' if length is None else f', {length}'})"
    before = f"(length({value}) - {-start})"
    begin = f"greatest({before}, 0)"
    kept = "" if length is None else f", greatest({before} + {length}, 0) - {begin}"
    return f"substring({value}, {begin} + 1{kept})"


def _is_huge(node: Expression) -> bool:
    return any(isinstance(each, Cast) and each.kind == "HUGEINT" for each in walk(node))

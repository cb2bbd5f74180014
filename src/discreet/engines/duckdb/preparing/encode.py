"""Write the SQL that moves a value into its public domain, row by row, and that cannot fail.

    integer, decimal   the number of steps of the grid, in the smallest integer type; value = steps
    *
                       step. Rounded to the nearest step, halves away from zero. Numbers outside the
                       range are clamped, infinities too; NaN becomes NULL
    values             the place in the declared list, 0, 1, 2, ...; anything else becomes NULL
    boolean            BOOLEAN; 0 and 1 are understood, anything else becomes NULL
    date               DATE, clamped
    timestamp          TIMESTAMP in UTC, clamped, then rounded down to a step, counted from the
    first
                       moment
    text               a text with at most the declared number of letters; longer texts become NULL.
                       A number has a single spelling
    identifier         whole numbers and UUIDs unchanged, everything else as text

Text that does not parse becomes NULL. Every expression is total: a source may hold anything, and no
value can stop a snapshot or a question, because that would tell something about one person (S4).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from discreet.engines.quoting import literal
from discreet.policy.domain import (
    LETTERS,
    Booleans,
    Categories,
    Dates,
    Decimals,
    Domain,
    Identifier,
    Integers,
    Texts,
    Timestamps,
    write_number,
)
from discreet.policy.reading import AS_IT_IS, Reading

WHOLE, FLOAT, DECIMAL, TEXT, BOOLEAN, DATE, TIMESTAMP, UUID, OTHER = (
    "whole", "float", "decimal", "text", "boolean", "date", "timestamp", "uuid", "other",
)  # fmt: skip
_INTEGERS = {"TINYINT": 2**7, "SMALLINT": 2**15, "INTEGER": 2**31, "BIGINT": 2**63}
_UNSIGNED = {"UTINYINT": 2**8, "USMALLINT": 2**16, "UINTEGER": 2**32}
_FAMILIES = {
    **dict.fromkeys((*_INTEGERS, *_UNSIGNED, "UBIGINT", "HUGEINT"), WHOLE),
    **dict.fromkeys(("FLOAT", "DOUBLE"), FLOAT),
    **dict.fromkeys(
        (
            "TIMESTAMP",
            "TIMESTAMP_S",
            "TIMESTAMP_MS",
            "TIMESTAMP_NS",
            "TIMESTAMP WITH TIME ZONE",
            "TIMESTAMPTZ_NS",
        ),
        TIMESTAMP,
    ),
    "VARCHAR": TEXT,
    "BOOLEAN": BOOLEAN,
    "DATE": DATE,
    "UUID": UUID,
}
NOTHING = '"NULL"'  # the type of a column that holds nothing but NULL
# of keys that are numbers in one table and written otherwise in another: text, in one spelling
NUMBERS = "TEXT"
BLANKS = " \t\r\n\f\v\u00a0\u2007\u202f\ufeff"  # what `trim: true` takes away
_DOUBLE_IS_EXACT = 2**53  # beyond it doubles skip whole numbers
_ROOM = 2**61  # arithmetic on whole numbers stays in BIGINT below it
_DECIMAL_ROOM = 10**37  # a decimal times its own power of ten stays in DECIMAL(38) below it


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnForm:
    """The stored form of a column: the SQL of its value, its type, and two conditions in SQL: the
    value was clamped, and rounding changed it by more than a tenth of itself.
    """

    value: str
    type: str
    clamped: str = "false"
    rounded: str = "false"


def family(type_name: str) -> str:
    """Return the kind of values of a DuckDB type."""
    if type_name.endswith("]"):
        return OTHER
    if type_name.startswith("ENUM("):
        return TEXT
    if match := re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", type_name):
        return DECIMAL if int(match[1]) else WHOLE
    return _FAMILIES.get(type_name, OTHER)


def acceptable_kinds(domain: Domain) -> tuple[str, ...]:
    """Return the kinds of source columns from which a domain can be read."""
    if isinstance(domain, Categories) and isinstance(domain.values[0], str):
        return (WHOLE, TEXT, BOOLEAN, DATE, UUID)  # not 1.0, which is written in more than one way
    return _ENCODERS[type(domain)][0]


def form_of(
    domain: Domain,
    column: str,
    type_name: str,
    *,
    lookup: str = "",
    read: Reading = AS_IT_IS,
    format: str | None = None,
) -> ColumnForm:
    """Return the stored form of a source column (SQL text) of a type that the domain accepts.

    `lookup` is the SQL name of a table ("#value" VARCHAR, "#code") that holds a long list of
    values, see `is_long`. `read` and `format` are how the policy says that the source is written;
    blanks are gone already.
    """
    if isinstance(domain, Categories):
        return _category(domain, column, type_name, lookup, fold=read.fold is not None)
    if isinstance(domain, Dates | Timestamps):
        column = _moment(column, type_name, read.timezone, format)
        type_name = "TIMESTAMP"
    elif (
        isinstance(domain, Integers | Decimals)
        and family(type_name) == TEXT
        and read.decimal is not None
    ):
        column = _with_point(column, read.decimal)
    return _ENCODERS[type(domain)][1](domain, column, type_name)


# --- numbers --------------------------------------------------------------------------------------


def _number(domain: Integers | Decimals, column: str, type_name: str) -> ColumnForm:
    kept = next(
        name for name, most in _INTEGERS.items() if -most <= domain.first and domain.last < most
    )
    digits = _digits_after_point(type_name)
    x = f"CAST({column} AS TINYINT)" if type_name == "BOOLEAN" else column
    largest = max(abs(domain.first), abs(domain.last)) * domain.step
    if digits is None or largest * 10 ** (2 * digits) >= _DECIMAL_ROOM:
        return _from_double(domain, f"TRY_CAST({column} AS DOUBLE)", kept)
    return _from_exact(domain, x, digits, kept)


def _digits_after_point(type_name: str) -> int | None:
    """Return how many decimals a type holds exactly; None for floats and text."""
    if match := re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", type_name):
        return int(match[1])
    return 0 if family(type_name) in (WHOLE, BOOLEAN) else None


def _from_exact(domain: Integers | Decimals, x: str, digits: int, kept: str) -> ColumnForm:
    """Write the steps of a whole number or decimal, without intermediate rounding: clamp, then take
    the nearest n / d in whole numbers.
    """
    ratio = 1 / (domain.step * 10**digits)  # steps = x * 10**digits * ratio
    lo = math.ceil(Fraction(domain.lo) * 10**digits)
    hi = math.floor(Fraction(domain.hi) * 10**digits)
    wide = (
        "BIGINT"
        if 2 * max(abs(lo), abs(hi)) * ratio.numerator + ratio.denominator < _ROOM
        else "HUGEINT"
    )
    low = str(lo)
    high = str(hi)
    if digits:
        x = f"CAST({x} AS DECIMAL(38,{digits}))"
        low, high = (
            f"CAST('{write_number(Fraction(end, 10**digits))}' AS DECIMAL(38,{digits}))"
            for end in (lo, hi)
        )
    inside = (
        f"CAST(least(greatest({x}, {low}), {high}){f' * {10**digits}' if digits else ''} AS {wide})"
    )
    steps = inside if ratio.numerator == 1 else f"{inside} * {ratio.numerator}"
    if ratio.denominator != 1:
        sign = f"CASE WHEN {inside} < 0 THEN -1 ELSE 1 END"
        steps = f"({sign} * ((2 * abs({steps}) + {ratio.denominator}) // {2 * ratio.denominator}))"
    ends = f"WHEN {x} < {low} THEN {domain.first} WHEN {x} > {high} THEN {domain.last}"
    value = f"CASE {ends} WHEN {x} IS NOT NULL THEN {steps} END"
    never = ratio.denominator == 1  # all such numbers are steps
    return ColumnForm(
        value=f"CAST({value} AS {kept})",
        type=kept,
        clamped=f"({x} < {low} OR {x} > {high})",
        rounded="false" if never else _much_rounded(f"CAST({x} AS DOUBLE)", domain.step),
    )


def _from_double(domain: Integers | Decimals, x: str, kept: str) -> ColumnForm:
    p, q = domain.step.numerator, domain.step.denominator
    lo, hi, first, last = (
        _double(each) for each in (domain.lo, domain.hi, domain.first, domain.last)
    )
    scaled = x if q == 1 else f"{x} * {_double(q)}"
    scaled = scaled if p == 1 else f"{scaled} / {_double(p)}"
    steps = f"TRY_CAST(least(greatest(round({scaled}), {first}), {last}) AS BIGINT)"
    if max(abs(domain.first), abs(domain.last)) >= _DOUBLE_IS_EXACT:
        steps = f"least(greatest({steps}, {domain.first}), {domain.last})"
    value = (
        f"CASE WHEN {x} IS NULL OR isnan({x}) THEN NULL"
        f" WHEN {x} <= {lo} THEN {domain.first} WHEN {x} >= {hi} THEN {domain.last} ELSE {steps} END"
    )
    clamped = f"(NOT isnan({x}) AND ({x} < {lo} OR {x} > {hi}))"
    return ColumnForm(
        value=f"CAST({value} AS {kept})",
        type=kept,
        clamped=clamped,
        rounded=_much_rounded(x, domain.step),
    )


def _much_rounded(x: str, step: Fraction) -> str:
    """Return the condition that a number (SQL, a DOUBLE) is farther than a tenth of itself from the
    nearest step.

    Only numbers below five steps can be. For a report, not for answers: doubles are exact enough.
    """
    steps = f"({x} / {_double(step)})"
    return f"(abs({steps}) < 5 AND abs({steps} - round({steps})) > abs({steps}) / 10)"


def _double(value: Fraction | int) -> str:
    return f"{literal(repr(float(value)))}::DOUBLE"


# --- lists, truth, time, text ---------------------------------------------------------------------


def is_long(domain: Domain) -> bool:
    """Return True if a list of values is looked up in a table: DuckDB reads CASE, and casts to
    ENUM, value by value.
    """
    return isinstance(domain, Categories) and domain.size > 16


def _category(
    domain: Categories, column: str, type_name: str, lookup: str, *, fold: bool
) -> ColumnForm:
    kept = next(name for name, most in _UNSIGNED.items() if domain.size <= most)
    text = f"CAST({column} AS VARCHAR)"
    if isinstance(domain.values[0], int):
        text = f"CAST({whole_number(column, type_name)} AS VARCHAR)"
    text = f"lower({text})" if fold else text
    if is_long(domain):
        # Hidden names, so that a source's column called "value" or "code" is not taken for the
        # list's.
        found = f'SELECT "#list"."#code" FROM {lookup} AS "#list" WHERE "#list"."#value" = {text}'
        return ColumnForm(value=f"CAST(({found}) AS {kept})", type=kept)
    listed = [
        f"lower({literal(str(value))})" if fold else literal(str(value)) for value in domain.values
    ]
    codes = " ".join(f"WHEN {value} THEN {code}" for code, value in enumerate(listed))
    return ColumnForm(value=f"CAST(CASE {text} {codes} END AS {kept})", type=kept)


def whole_number(column: str, type_name: str) -> str:
    """Return a value as a HUGEINT, or NULL if it is no whole number. 3.0 and '3' are whole numbers;
    3.5 is not (a cast would make it 4).
    """
    kind = family(type_name)
    if kind in (WHOLE, BOOLEAN):
        return f"CAST({column} AS HUGEINT)"
    if kind == TEXT:
        text = f"trim(CAST({column} AS VARCHAR))"
        return f"CASE WHEN regexp_full_match({text}, '[-+]?[0-9]+') THEN TRY_CAST({text} AS HUGEINT) END"
    x = f"CAST({column} AS DOUBLE)"
    return f"CASE WHEN abs({x}) <= {_DOUBLE_IS_EXACT} AND {x} = trunc({x}) THEN TRY_CAST({x} AS HUGEINT) END"


def _boolean(domain: Booleans, column: str, type_name: str) -> ColumnForm:
    value = {BOOLEAN: column, TEXT: f"TRY_CAST(CAST({column} AS VARCHAR) AS BOOLEAN)"}.get(
        family(type_name)
    )
    return ColumnForm(
        value=value or f"CASE WHEN {column} = 1 THEN true WHEN {column} = 0 THEN false END",
        type="BOOLEAN",
    )


def _date(domain: Dates, column: str, type_name: str) -> ColumnForm:
    day = f"TRY_CAST({column} AS DATE)"
    lo = f"DATE '{domain.lo}'"
    hi = f"DATE '{domain.hi}'"
    value = f"CASE WHEN {day} < {lo} THEN {lo} WHEN {day} > {hi} THEN {hi} ELSE {day} END"
    return ColumnForm(value=value, type="DATE", clamped=f"({day} < {lo} OR {day} > {hi})")


def _timestamp(domain: Timestamps, column: str, type_name: str) -> ColumnForm:
    moment = f"TRY_CAST({column} AS TIMESTAMP)"
    lo = f"TIMESTAMP '{domain.lo}'"
    hi = f"TIMESTAMP '{domain.hi}'"
    first = int((domain.lo - datetime(1970, 1, 1)).total_seconds()) * 10**6 + domain.lo.microsecond
    step = domain.step_microseconds
    floored = f"make_timestamp({first} + ((epoch_us({moment}) - {first}) // {step}) * {step})"
    value = (
        f"CASE WHEN {moment} <= {lo} THEN {lo} WHEN {moment} >= {hi} THEN {hi} ELSE {floored} END"
    )
    return ColumnForm(
        value=value, type="TIMESTAMP", clamped=f"({moment} < {lo} OR {moment} > {hi})"
    )


def _moment(column: str, type_name: str, zone: str | None, format: str | None) -> str:
    """Write days and moments in the declared time zone, or in UTC if none is declared. Moments
    without a zone stay unchanged.

    A text with a zone is read as a moment with a zone, so that '10:00+02' is 08:00.
    """
    clock = f"AT TIME ZONE {literal(zone or 'UTC')}"
    if family(type_name) != TEXT:
        return f"TRY(CAST({column} AS TIMESTAMPTZ) {clock})" if type_name in _ZONED else column
    text = f"CAST({column} AS VARCHAR)"
    if format is not None:
        return f"try_strptime({text}, {literal(format)})"
    if zone is None:
        return f"TRY_CAST({text} AS TIMESTAMPTZ) {clock}"
    with_zone = f"TRY(TRY_CAST({text} AS TIMESTAMPTZ) {clock})"
    return f"CASE WHEN regexp_matches({text}, {_HAS_ZONE}) THEN {with_zone} ELSE TRY_CAST({text} AS TIMESTAMP) END"


_ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
# behind the time of day: Z, +02, Europe/Berlin
_HAS_ZONE = r"'[0-9]:[0-9]{2}[0-9:.]*\s*([A-Za-z]|[-+][0-9])'"


def _with_point(column: str, decimal: str) -> str:
    """Return a number's text as engines read it, from 1.234,5 or 1,234.5; NULL where marks of
    thousands stand elsewhere.
    """
    mark, groups = (",", ".") if decimal == "comma" else (".", ",")
    groups += " '’\u00a0\u202f"
    text = f"trim(CAST({column} AS VARCHAR), {literal(BLANKS)})"
    digits = f"([0-9]{{1,3}}([{groups}][0-9]{{3}})+|[0-9]*)"
    pattern = f"[-+]?{digits}(\\{mark}[0-9]*)?([eE][-+]?[0-9]+)?"
    plain = f"replace(regexp_replace({text}, {literal(f'[{groups}]')}, '', 'g'), '{mark}', '.')"
    return f"CASE WHEN regexp_full_match({text}, {literal(pattern)}) THEN {plain} END"


def trim(text: str) -> str:
    """Return a text (SQL) without the blanks around it; NULL where nothing is left."""
    return f"nullif(trim({text}, {literal(BLANKS)}), '')"


def _text(domain: Texts, column: str, type_name: str) -> ColumnForm:
    return ColumnForm(value=_short(spell(column, type_name), domain.letters), type="VARCHAR")


def _identifier(domain: Identifier, column: str, type_name: str) -> ColumnForm:
    if family(type_name) == WHOLE:
        whole = "BIGINT" if type_name in (*_INTEGERS, *_UNSIGNED) else "HUGEINT"
        return ColumnForm(value=f"CAST({column} AS {whole})", type=whole)
    if family(type_name) == UUID:
        return ColumnForm(value=column, type=type_name)
    return ColumnForm(value=_short(spell(column, type_name), LETTERS), type="VARCHAR")


def _short(text: str, letters: int) -> str:
    return f"CASE WHEN length({text}) <= {letters} THEN {text} END"


def spell(column: str, type_name: str) -> str:
    """Return a value as text. A number has one spelling, whatever its column's type: 2138, 2138.0
    and 2138.00 are '2138'.
    """
    text = f"CAST({column} AS VARCHAR)"
    if family(type_name) == DECIMAL:
        return f"rtrim(rtrim({text}, '0'), '.')"
    if family(type_name) == FLOAT:
        whole = f"abs({column}) <= {_DOUBLE_IS_EXACT} AND {column} = trunc({column})"
        return (
            f"CASE WHEN {whole} THEN CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR) ELSE {text} END"
        )
    return text


_NUMERIC = (WHOLE, FLOAT, DECIMAL, TEXT, BOOLEAN)
_TIME = (DATE, TIMESTAMP, TEXT)
_ANY = (WHOLE, FLOAT, DECIMAL, TEXT, BOOLEAN, DATE, TIMESTAMP, UUID)
_ENCODERS: dict[type[Domain], tuple[tuple[str, ...], Callable[..., ColumnForm]]] = {
    Integers: (_NUMERIC, _number),
    Decimals: (_NUMERIC, _number),
    Categories: (_NUMERIC, _category),
    Booleans: (_NUMERIC, _boolean),
    Dates: (_TIME, _date),
    Timestamps: (_TIME, _timestamp),
    Texts: (_ANY, _text),
    Identifier: (_ANY, _identifier),
}


# --- owners and the keys that lead to them --------------------------------------------------------


def key_kind(type_name: str) -> str:
    """Return the kind of a key, which decides how keys are compared. All files of a table must have
    the same kind, or one file would decide how the keys of others are compared.
    """
    kind = family(type_name)
    if kind in (WHOLE, FLOAT):
        if type_name in (*_INTEGERS, *_UNSIGNED, "FLOAT", "DOUBLE"):
            return "whole numbers"
        return "huge numbers"
    return {DECIMAL: "decimals", TEXT: "text"}.get(kind, type_name)


def key_type(type_names: Iterable[str]) -> str:
    """Return one type in which all these columns can be compared without a cast that could fail or
    confuse two keys.
    """
    types = set(type_names)
    kinds = {family(each) for each in types}
    if kinds <= {WHOLE, FLOAT}:
        return "BIGINT" if {key_kind(each) for each in types} == {"whole numbers"} else "HUGEINT"
    if kinds & {WHOLE, FLOAT, DECIMAL}:
        return NUMBERS
    return types.pop() if len(types) == 1 and kinds <= {UUID, DATE} else "VARCHAR"


def key(column: str, type_name: str, common: str) -> str:
    """Return a column as a key of the common type. It is NULL if it names nobody: a blank or too
    long text, or a fraction.
    """
    if type_name == common != "VARCHAR":
        return column
    if common in ("BIGINT", "HUGEINT"):
        return f"TRY_CAST({whole_number(column, type_name)} AS {common})"
    if common not in ("VARCHAR", NUMBERS):
        return f"CAST({column} AS {common})"
    text = spell(column, type_name)
    if common == NUMBERS and family(type_name) == TEXT:  # '1.0' and '1.00' are 1; '1.50' is 1.5
        text = rf"regexp_replace({text}, '^([-+]?[0-9]+)\.0+$', '\1')"
        text = rf"regexp_replace({text}, '^([-+]?[0-9]+\.[0-9]*[1-9])0+$', '\1')"
    return f"CASE WHEN trim({text}) <> '' AND length({text}) <= {LETTERS} THEN {text} END"


def together(keys: Sequence[str]) -> str:
    """Return one key of several (SQL): a text in which the parts cannot run into each other; NULL
    where one of them is.

    One key is itself; none at all is NULL.
    """
    if len(keys) < 2:
        return keys[0] if keys else "NULL"
    texts = [f"CAST({key} AS VARCHAR)" for key in keys]
    joined = " || ',' || ".join(
        f"CAST(length({text}) AS VARCHAR) || ':' || {text}" for text in texts
    )
    return f"CASE WHEN length({joined}) <= {LETTERS} THEN {joined} END"

"""Parameters: find the types of $1, $2, ... that the client does not declare, and write their
values as literals.

A question is planned with its values written into it, because they are part of what is asked and of
what the ledger keeps. Before it has values, a statement is described with samples of the right
types.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from discreet.policy.domain import (
    Booleans,
    Categories,
    Dates,
    Decimals,
    Domain,
    Integers,
    Timestamps,
)
from discreet.policy.policy import Policy
from discreet.server.pgwire import types
from discreet.server.pgwire.faults import Fault
from discreet.server.pgwire.lexer import Statement, Token

MOST_PARAMETERS = 1_000
MOST_DIGITS = 400  # of a number before its point, and zeros behind it: those of floats are 308
_WHOLE = frozenset((types.INT2, types.INT4, types.INT8, types.OID))
_NUMBERS = frozenset((types.FLOAT4, types.FLOAT8, types.NUMERIC))
_NAMES = {
    "int2": types.INT2, "smallint": types.INT2, "int4": types.INT4, "int": types.INT4, "integer": types.INT4,
    "int8": types.INT8, "bigint": types.INT8, "float4": types.FLOAT4, "real": types.FLOAT4, "float8": types.FLOAT8,
    "double": types.FLOAT8, "numeric": types.NUMERIC, "decimal": types.NUMERIC, "text": types.TEXT,
    "varchar": types.VARCHAR, "char": types.BPCHAR, "name": types.NAME, "bool": types.BOOL, "boolean": types.BOOL,
    "date": types.DATE, "time": types.TIME, "timestamp": types.TIMESTAMP, "timestamptz": types.TIMESTAMPTZ,
    "interval": types.INTERVAL, "oid": types.OID, "json": types.JSON, "uuid": types.UUID,
}  # fmt: skip
_RESULTS = {
    "count": types.INT8, "length": types.INT8, "extract": types.NUMERIC, "date_part": types.FLOAT8,
    "sum": types.NUMERIC, "avg": types.FLOAT8, "lower": types.TEXT, "upper": types.TEXT, "trim": types.TEXT,
    "date_trunc": types.TIMESTAMP, "round": types.NUMERIC,
}  # fmt: skip
_COMPARES = frozenset("=<>!")
_COMPUTES = frozenset("+-*/%")
_LIKE = frozenset(("LIKE", "ILIKE", "SIMILAR", "~"))
_SAMPLES = {
    types.BOOL: "TRUE", types.DATE: "DATE '2000-01-01'", types.TIMESTAMP: "TIMESTAMP '2000-01-01 00:00:00'",
    types.TIMESTAMPTZ: "TIMESTAMP '2000-01-01 00:00:00'", types.TIME: "TIME '00:00:00'",
    types.INTERVAL: "INTERVAL '1 day'",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """The type of a parameter, and a literal of that type, to describe the statement before it has
    a value.
    """

    oid: int
    sample: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of a statement, and what would take long to find for each of its parameters.

    `before` says for each word which one comes before the list of constants that ends there, -1 if
    none; `opened` which bracket a closing one ends; `domains` what stands in the columns of the
    policy, those of named tables first.
    """

    tokens: Sequence[Token]
    before: Sequence[int]
    opened: Mapping[int, int]
    domains: Mapping[str, Domain]

    @classmethod
    def of(cls, tokens: Sequence[Token], policy: Policy) -> _Words:
        before = list[int]()
        opened = dict[int, int]()
        waiting = list[int]()
        for place, token in enumerate(tokens):
            listed = token.text == "," or token.kind in ("parameter", "number", "string")
            before.append(place if not listed else before[-1] if before else -1)
            if token.text == "(":
                waiting.append(place)
            elif token.text == ")" and waiting:
                opened[place] = waiting.pop()
        named = {token.name for token in tokens if token.kind in ("word", "quoted")}
        domains: dict[str, Domain] = {}
        for table in sorted(policy.tables.values(), key=lambda one: one.name.lower() not in named):
            for column, declared in table.columns.items():
                domains.setdefault(column.lower(), declared.domain)
        return cls(tokens=tokens, before=before, opened=opened, domains=domains)


def infer(statement: Statement, declared: Sequence[int], policy: Policy) -> tuple[Parameter, ...]:
    """Return the parameters of a statement, with the types that the client declared, or that follow
    from the words beside them.
    """
    first: dict[int, int] = {}  # of several places the first decides
    for place, token in enumerate(statement.tokens):
        if token.kind == "parameter":
            first.setdefault(int(token.text[1:]), place)
    count = max([len(declared), *first])
    if count > MOST_PARAMETERS or 0 in first:
        raise Fault("42P02", f"Parameters are numbered from $1 to ${MOST_PARAMETERS}.")
    found = [Parameter(oid=types.TEXT, sample="''")] * count
    if first:
        words = _Words.of(statement.tokens, policy)
        for number, place in first.items():
            found[number - 1] = _infer(words, place)
    for index, oid in enumerate(declared):
        if oid not in (0, types.UNKNOWN) and oid != found[index].oid:
            same_kind = oid in _WHOLE | _NUMBERS and found[index].oid in _WHOLE | _NUMBERS
            found[index] = Parameter(
                oid=oid, sample=found[index].sample if same_kind else sample_of(oid)
            )
    return tuple(found)


def sample_of(oid: int) -> str:
    if oid in types.ELEMENTS:
        return f"ARRAY[{sample_of(types.ELEMENTS[oid])}]"
    return "1" if oid in _WHOLE | _NUMBERS else _SAMPLES.get(oid, "''")


def _infer(words: _Words, place: int) -> Parameter:
    tokens = words.tokens
    oid = _cast(tokens, place)
    if oid is not None:
        return Parameter(oid=oid, sample=sample_of(oid))
    before = tokens[place - 1].upper if place else ""
    if before in ("LIMIT", "OFFSET", "FIRST", "NEXT"):
        return Parameter(oid=types.INT8, sample="1")
    if before in _LIKE:
        return Parameter(oid=types.TEXT, sample="'%'")
    many, partner = _partner(words, place)
    if partner is None:
        return Parameter(oid=types.TEXT, sample="''")
    found = _type_at(words, partner)
    if many:
        return Parameter(
            oid=types.ARRAYS.get(found.oid, types.ARRAYS[types.TEXT]),
            sample=f"ARRAY[{found.sample}]",
        )
    return found


def _cast(tokens: Sequence[Token], place: int) -> int | None:
    """Return the type that $1 is cast to: $1::int4[], CAST($1 AS date)."""
    after = tokens[place + 1 : place + 3]
    if len(after) < 2 or after[0].upper not in ("::", "AS"):
        return None
    if after[0].upper == "AS" and (place < 2 or tokens[place - 2].upper != "CAST"):
        return None
    name = after[1].name
    rest = [token.upper for token in tokens[place + 3 : place + 7]]
    if name == "pg_catalog" and rest[:1] == ["."]:
        name = tokens[place + 4].name
        rest = rest[2:]
    oid = _NAMES.get(name, types.TEXT)
    if name in ("timestamp", "time") and rest[:1] == ["WITH"]:
        oid = types.TIMESTAMPTZ
    return types.ARRAYS[oid] if rest[:1] == ["["] else oid


def _partner(words: _Words, place: int) -> tuple[bool, int | None]:
    """Return whether $1 is a list, and the place of what it is compared with or computed with."""
    tokens = words.tokens
    index = place - 1
    if (
        index >= 0
        and tokens[index].text == "("
        and index
        and tokens[index - 1].upper in ("ANY", "ALL", "SOME")
    ):
        return True, _left_of_operator(tokens, index - 2)
    if (left := _left_of_operator(tokens, index)) is not None:
        return False, left
    if (between := _between(tokens, index)) is not None:
        return False, _skip_not(tokens, between - 1)
    index = words.before[index] if index >= 0 else index
    if index >= 1 and tokens[index].text == "(" and tokens[index - 1].upper == "IN":
        return False, _skip_not(tokens, index - 2)
    after = place + 1
    while after < len(tokens) and tokens[after].text in _COMPARES | _COMPUTES:
        after += 1
    return False, after if place + 1 < after < len(tokens) else None


def _between(tokens: Sequence[Token], index: int) -> int | None:
    """Return the place of the BETWEEN whose first or second bound comes behind this token."""
    if index < 0 or tokens[index].upper not in ("BETWEEN", "AND"):
        return None
    least = index - 1 if tokens[index].upper == "BETWEEN" else max(-1, index - 6)
    return next((each for each in range(index, least, -1) if tokens[each].upper == "BETWEEN"), None)


def _left_of_operator(tokens: Sequence[Token], index: int) -> int | None:
    start = index
    while index >= 0 and tokens[index].text in _COMPARES | _COMPUTES:
        index -= 1
    return index if 0 <= index < start else None


def _skip_not(tokens: Sequence[Token], index: int) -> int | None:
    if index > 0 and tokens[index].upper == "NOT":
        return index - 1
    if index >= 0:
        return index
    return None


def _type_at(words: _Words, place: int) -> Parameter:
    """Return the type of the operand that ends, or begins, at a token."""
    tokens, token = words.tokens, words.tokens[place]
    if token.kind == "number":
        oid = types.INT4 if token.text.isdigit() else types.NUMERIC
        return Parameter(oid=oid, sample="1")
    if token.text == ")":
        oid = _result_of(words, place)
        return Parameter(oid=oid, sample=sample_of(oid))
    if token.kind in ("word", "quoted"):
        name = token
        if place + 2 < len(tokens) and tokens[place + 1].text == ".":  # a table before its column
            name = tokens[place + 2]
        domain = words.domains.get(name.name.lower())
        if domain is not None:
            return _of_domain(domain)
        oid = _RESULTS.get(name.name, types.TEXT)
        return Parameter(oid=oid, sample=sample_of(oid))
    return Parameter(oid=types.TEXT, sample="''")


def _result_of(words: _Words, place: int) -> int:
    """Return the type of a call or a cast that ends at a bracket."""
    tokens = words.tokens
    index = words.opened.get(place, -1)
    name = tokens[index - 1].name if index > 0 else ""
    if name == "cast" and place >= 2:
        return _NAMES.get(tokens[place - 1].name, types.TEXT)
    return _RESULTS.get(name, types.TEXT)


def _of_domain(domain: Domain) -> Parameter:
    match domain:
        case Integers():
            return Parameter(oid=types.INT8, sample=_number(domain.lo))
        case Decimals():
            return Parameter(oid=types.NUMERIC, sample=_number(int(domain.lo)))
        case Booleans():
            return Parameter(oid=types.BOOL, sample="TRUE")
        case Dates():
            return Parameter(oid=types.DATE, sample=f"DATE '{domain.lo}'")
        case Timestamps():
            return Parameter(
                oid=types.TIMESTAMP, sample=f"TIMESTAMP '{domain.lo:%Y-%m-%d %H:%M:%S}'"
            )
        case Categories() if isinstance(domain.values[0], int):
            return Parameter(oid=types.INT8, sample=_number(domain.values[0]))
        case Categories():
            return Parameter(oid=types.TEXT, sample=_quote(str(domain.values[0])))
    return Parameter(oid=types.TEXT, sample="''")


# --- values ---------------------------------------------------------------------------------------


def decode(data: bytes, oid: int, *, binary: bool) -> Any:
    """Return a value that a client sent; refuse bytes that are no value of its type."""
    try:
        if oid in types.ELEMENTS:
            if binary:
                return _binary_array(data, types.ELEMENTS[oid])
            return _text_array(data.decode(), oid)
        if binary:
            return _FROM_BINARY[oid](data) if oid in _FROM_BINARY else data.decode()
        return _FROM_TEXT.get(oid, str)(data.decode())
    except (ValueError, KeyError, struct.error, InvalidOperation, OverflowError):
        code = "22P03" if binary else "22P02"
        raise Fault(
            code, "A parameter is no value of its type.", hint="Check the types of what you pass."
        ) from None


def _moment(text: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(text.strip())
    return found if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)


def _truth(text: str) -> bool:
    known = {"t": True, "true": True, "1": True, "on": True, "yes": True, "y": True}
    known |= {"f": False, "false": False, "0": False, "off": False, "no": False, "n": False}
    return known[text.strip().lower()]


def _finite(text: str) -> Decimal:
    found = Decimal(text.strip())
    # 1e999999999 is ten letters, and a literal of a thousand million digits
    if not found.is_finite() or abs(found.adjusted()) > MOST_DIGITS:
        raise ValueError
    return found


_FROM_TEXT: Mapping[int, Callable[[str], Any]] = {
    **dict.fromkeys(_WHOLE, int),
    **dict.fromkeys(_NUMBERS, _finite),
    types.BOOL: _truth,
    types.DATE: lambda text: datetime.date.fromisoformat(text.strip()[:10]),
    types.TIMESTAMP: _moment,
    types.TIMESTAMPTZ: _moment,
    types.TIME: lambda text: datetime.time.fromisoformat(text.strip()),
}


def _binary_moment(data: bytes) -> datetime.datetime:
    return types.EPOCH_TIME + datetime.timedelta(microseconds=struct.unpack("!q", data)[0])


def _binary_number(data: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack("!HhHH", data[:8])
    if sign not in (0, 0x4000) or len(data) != 8 + 2 * count:
        raise ValueError
    value = Decimal(0)
    for index, group in enumerate(struct.unpack(f"!{count}H", data[8:])):
        value += Decimal(group).scaleb(4 * (weight - index))
    if scale:
        return (-value if sign else value).quantize(Decimal(1).scaleb(-scale))
    if sign:
        return -value
    return value


def _binary_time(data: bytes) -> datetime.time:
    microseconds = struct.unpack("!q", data)[0]
    return (datetime.datetime.min + datetime.timedelta(microseconds=microseconds)).time()


def _binary_interval(data: bytes) -> str:
    microseconds, days, months = struct.unpack("!qii", data)
    return f"{months} months {days} days {Decimal(microseconds) / 10**6} seconds"


def _unpack(format: str) -> Callable[[bytes], Any]:
    return lambda data: struct.unpack(format, data)[0]


_FROM_BINARY: Mapping[int, Callable[[bytes], Any]] = {
    types.INT2: _unpack("!h"),
    types.INT4: _unpack("!i"),
    types.INT8: _unpack("!q"),
    types.OID: _unpack("!I"),
    types.FLOAT4: lambda data: _finite(repr(struct.unpack("!f", data)[0])),
    types.FLOAT8: lambda data: _finite(repr(struct.unpack("!d", data)[0])),
    types.NUMERIC: _binary_number,
    types.BOOL: _unpack("!?"),
    types.DATE: lambda data: types.EPOCH + datetime.timedelta(days=struct.unpack("!i", data)[0]),
    types.TIME: _binary_time,
    types.TIMESTAMP: _binary_moment,
    types.TIMESTAMPTZ: _binary_moment,
    types.INTERVAL: _binary_interval,
    types.UUID: bytes.hex,
}


def _binary_array(data: bytes, element: int) -> list[Any]:
    dimensions, _, kind = struct.unpack("!iii", data[:12])
    if dimensions == 0:
        return []
    if dimensions != 1 or kind not in (element, 0, types.VARCHAR, types.TEXT):
        raise ValueError
    count = struct.unpack("!i", data[12:16])[0]
    place = 20
    found = list[Any]()
    for _ in range(count):
        size = struct.unpack("!i", data[place : place + 4])[0]
        place += 4
        if size < 0:
            found.append(None)
            continue
        found.append(decode(data[place : place + size], kind or element, binary=True))
        place += size
    if place != len(data):
        raise ValueError
    return found


def _text_array(text: str, oid: int) -> list[Any]:
    """Read {1,2,NULL,"a b"}; of one dimension."""
    found = list[Any]()
    for item, quoted in _array_items(text.strip()):
        missing = not quoted and item.upper() == "NULL"
        found.append(None if missing else decode(item.encode(), types.ELEMENTS[oid], binary=False))
    return found


def _array_items(inner: str) -> Iterator[tuple[str, bool]]:
    """Yield the items between braces, and whether each stood in quotes."""
    if inner[:1] != "{" or inner[-1:] != "}":
        raise ValueError
    item = ""
    quoted = False
    inside = False
    index = 1
    end = len(inner) - 1
    while index <= end:
        letter = inner[index]
        if inside and letter == "\\" and index < end:
            index += 1
            item += inner[index]
        elif letter == '"':
            inside, quoted = not inside, True
        elif not inside and (letter == "," or index == end):
            if quoted or item.strip():
                yield item if quoted else item.strip(), quoted
            item, quoted = "", False
        elif inside or item or not letter.isspace():  # spaces around an item are none of it
            item += letter if inside or not quoted else ""
        index += 1
    if inside:
        raise ValueError


def literal(value: Any) -> str:
    """Return a value as SQL writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal():
            return _number(value)
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"DATE '{value}'"
        case datetime.time():
            return f"TIME '{value}'"
        case list():
            return f"ARRAY[{', '.join(map(literal, value))}]"
    return _quote(str(value))


def _number(value: int | Decimal) -> str:
    written = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return f"({written})" if value < 0 else written


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def write_in(statement: Statement, literals: Sequence[str], *, most: int) -> str:
    """Return the statement with its parameters written as literals; `= ANY(ARRAY[...])` as an IN
    list. Refuse one that becomes longer than `most` letters: a value may stand in it many times.
    """
    parts = list[str]()
    place = 0
    tokens = statement.tokens
    size = len(statement.text)
    for index, token in enumerate(tokens):
        if token.kind != "parameter":
            continue
        number = int(token.text[1:])
        if number > len(literals):
            raise Fault("42P02", f"There is no parameter {token.text}.")
        written = literals[number - 1]
        start = token.start
        end = token.end
        size += len(written)
        if size > most:
            told = f"With its values the statement is longer than the {most} bytes that the policy allows."
            raise Fault("54000", told, hint="Pass fewer or shorter values.")
        listed = _any_of(tokens, index) if written.startswith("ARRAY[") else None
        if listed is not None:
            start = tokens[listed].start
            end = tokens[index + 1].end
            written = f"IN ({written[6:-1] or 'NULL'})"
        parts += [statement.text[place:start], written]
        place = end
    return "".join((*parts, statement.text[place:]))


def _any_of(tokens: Sequence[Token], index: int) -> int | None:
    """Return the place of = in `= ANY($1)`."""
    before = [token.upper for token in tokens[max(0, index - 3) : index]]
    closed = index + 1 < len(tokens) and tokens[index + 1].text == ")"
    return index - 3 if before in (["=", "ANY", "("], ["=", "SOME", "("]) and closed else None

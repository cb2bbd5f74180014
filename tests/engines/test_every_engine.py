"""One battery for engines: what each reads is held against DuckDB, on the same snapshot, before any
noise.

Every question of plans.sql, on dirty sources; prepared rows one by one; every word of the
vocabulary; empty tables and tables of NULLs; limits of time; what cannot be computed is refused by
name, before it is charged.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conformance import OTHERS, all_rows, choice_of, opened, rows_of, store_on
from small_sources import policy_of

from discreet.algebra import (
    Aggregate,
    Case,
    Cast,
    Column,
    Constant,
    Expression,
    Factor,
    Numbers,
    OwnerJoin,
    Scan,
    Sum,
    call,
)
from discreet.engines.engine import Engine
from discreet.engines.layout import OWNER
from discreet.engines.limits.overrun import Overrun
from discreet.engines.spelling import Spelling
from discreet.engines.words import Unspelled
from discreet.errors import EngineFailure, UsageError
from discreet.policy.engine import EngineChoice
from discreet.sql.plan.block import Block, Shared
from sql import bounded, harness, policies

POLICIES = ("hospital", "census", "isp", "school")
# Questions of plans.sql that an engine refuses by name, because no form of its own has the same
# values.
_ON_SPARK = frozenset(
    {
        "hospital: count / EXISTS / filter",
        "hospital: count / one row / grouping sets of an exists, with exists within filter",
    }
)
REFUSED: dict[str, frozenset[str]] = {"spark": _ON_SPARK, "a real spark": _ON_SPARK}


class Pair:
    """DuckDB and another engine on snapshots of the same source."""

    def __init__(self, truth: Engine, other: Engine, name: str) -> None:
        self.truth, self.other, self.name = truth, other, name


@pytest.fixture(scope="module", params=OTHERS)
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=POLICIES)
def pair(
    request: pytest.FixtureRequest, engine_name: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    name = str(request.param)
    policy, folder = policies.policy(name), tmp_path_factory.mktemp(name)
    tables = {**bounded.dirty(policy, people=60, dice=random.Random(name)), **policies.public(name)}
    with ExitStack() as stack:
        truth = stack.enter_context(opened(policy, EngineChoice(), folder / "duckdb", tables))
        other = stack.enter_context(
            opened(policy, choice_of(engine_name, request), folder / "other", tables)
        )
        yield Pair(truth, other, name)


def queries_of(block: Block) -> Iterator[tuple[Numbers, ...]]:
    """All that a block may ask for: what is read in parts of the keys, as all its parts
    together.
    """
    if block.unknown:
        yield block.in_passes(block.people)
    if block.own_statistics:
        yield block.in_passes(block.sums)
    first = (
        1 + (bool(block.unknown) and bool(block.own_statistics))
        if block.unknown or block.own_statistics
        else 0
    )
    for query in list(block.queries)[first:]:
        yield (query,)


def test_every_plan_reads_the_same_numbers(pair: Pair, engine_name: str) -> None:
    different, refused, seen = [], set[str](), set[tuple[Numbers, ...]]()
    for case in (each for each in harness.cases() if each.policy == pair.name):
        plan = harness.planned(case.sql, policies.policy(pair.name), name=pair.name)
        for block in (each for each in plan.blocks if not isinstance(each.kind, Shared)):
            for queries in set(queries_of(block)) - seen:
                seen.add(queries)
                try:
                    pair.other.check(queries[0])
                except Unspelled:
                    refused.add(case.id)
                    continue
                found = [
                    sum((rows_of(engine, each) for each in queries), Counter())
                    for engine in (pair.truth, pair.other)
                ]
                if found[0] != found[1]:
                    different.append((case.id, pair.other.sql(queries[0])))
    assert different == []
    assert refused == {
        each for each in REFUSED.get(engine_name, frozenset()) if each.startswith(pair.name)
    }
    assert len(seen) > 30


def test_prepared_rows_are_the_same_one_by_one(pair: Pair) -> None:
    """Of sources with values outside their domains, rows of nobody, and people with too many
    rows.
    """
    policy = policies.policy(pair.name)
    for table in (each for each in policy.tables.values() if not each.public):
        ours = all_rows(pair.truth, policy, table.name)
        assert ours
        assert all_rows(pair.other, policy, table.name) == ours
        assert pair.other.columns(table.name) == pair.truth.columns(table.name)


def test_public_tables_are_the_same_bytes(pair: Pair) -> None:
    for table in (each for each in policies.policy(pair.name).tables.values() if each.public):
        assert pair.other.public_table(table.name).equals(pair.truth.public_table(table.name))


def test_a_result_in_parts(pair: Pair) -> None:
    table = next(iter(policies.policy(pair.name).tables.values()))
    query = Aggregate(Scan(table.name, "t"), (Column("t", OWNER),), (Sum(),))
    whole = pair.other.fetch(query, 60).unwrap()
    parts = list(pair.other.fetch_parts(query, 60, 7).unwrap_parts())
    assert all(part.num_rows <= 7 and part.schema == whole.schema for part in parts)
    assert sum(part.num_rows for part in parts) == whole.num_rows > 7
    nobody = Aggregate(Scan(table.name, "t"), (Column("t", OWNER),), (Sum(),), (Constant(False),))
    assert [part.num_rows for part in pair.other.fetch_parts(nobody, 60, 7).unwrap_parts()] == [0]


# --- odd values -----------------------------------------------------------------------------------

ODD = """\
  visits:
    owner: person
    max_rows: 40
    columns:
      cost: {decimal: [-500, 500], step: 0.01, nullable: true}
      days: {integer: [-9000000000000000, 9000000000000000], nullable: true}
      kind: {values: [x, "", "é", "NULL", '"q"'], nullable: true}
      word: {text: true, nullable: true}
      day:  {date: [0001-01-01, 9999-12-31], nullable: true}
      seen: {timestamp: [1900-01-01, 2300-01-01], step: 0.000001, nullable: true}
      well: {boolean: true, nullable: true}
"""
WORDS = (
    *(
        "",
        " ",
        "a",
        "NULL",
        "null",
        '"',
        '""',
        "'",
        "\\",
        "\\.",
        "\\N",
        ",",
        "a,b",
        "a\nb",
        "a\r\nb",
        "\n",
        "\r",
        "\t",
    ),
    *(
        "Straße",
        "ẞ",
        "ŉ",
        "ﬁ",
        "ΟΔΟΣ",
        "ς",
        "İstanbul",
        "ıi",
        "é",
        "e\u0301",
        "日本",
        "\U0001f600",
        "\ue000",
        "\x01",
    ),
    *(
        "50%",
        "a_b",
        "a\\%b",
        "x" * 1000,
        "-",
        "1:2,3",
        "{1,2}",
        "t",
        "f",
        "2024-01-01",
        "infinity",
        "nan",
        "0",
        "007",
    ),
)
SOURCE_KINDS = {
    "person": pa.string(),
    "cost": pa.float64(),
    "days": pa.int64(),
    "kind": pa.string(),
    "word": pa.string(),
    "day": pa.date32(),
    "seen": pa.timestamp("us"),
    "well": pa.bool_(),
}


def odd_rows() -> pa.Table:
    dice = random.Random("odd rows")
    days = (-(719162), 2932896, 0, -1, 1, 11016, 19782, None)
    moments = (
        -(2208988800000000),
        10413791999999999,
        0,
        -1,
        1,
        1709209815000250,
        1709209815250000,
        9007199254740993,
        None,
    )
    rows = [
        {
            "person": dice.choice(("a", "B", "é", "'", "a,b", "x" * 300)),
            "cost": dice.choice(
                (0.0, -0.01, 499.99, 1e300, -1e300, float("inf"), float("nan"), 0.005, None)
            ),
            "days": dice.choice((0, 1, -1, 9 * 10**15, -9 * 10**15, 2**63 - 1, -(2**63), None)),
            "kind": dice.choice(("x", "", "é", "NULL", '"q"', "other", None)),
            "word": word,
            "day": dice.choice(days),
            "seen": dice.choice(moments),
            "well": dice.choice((True, False, None)),
        }
        for word in (*WORDS, *WORDS, None, None)
    ]
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in SOURCE_KINDS.items()}
    )


@pytest.fixture(scope="module")
def odd(
    request: pytest.FixtureRequest, engine_name: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    folder, tables = tmp_path_factory.mktemp("odd"), {"visits": odd_rows()}
    policy = policy_of(ODD, folder)
    with ExitStack() as stack:
        truth = stack.enter_context(opened(policy, EngineChoice(), folder / "duckdb", tables))
        other = stack.enter_context(
            opened(policy, choice_of(engine_name, request), folder / "other", tables)
        )
        yield Pair(truth, other, "odd")


def test_odd_values_arrive(odd: Pair, tmp_path: Path) -> None:
    policy = policy_of(ODD, tmp_path)
    ours = all_rows(odd.truth, policy, "visits")
    assert sum(row[-1] * count for row, count in ours.items()) > 60
    assert all_rows(odd.other, policy, "visits") == ours


VISITS = Scan("visits", "v")
COST, DAYS, KIND, WORD, DAY, SEEN, WELL = (
    Column("v", each) for each in ("cost", "days", "kind", "word", "day", "seen", "well")
)
_GRAINS = ("day", "week", "month", "quarter", "year")
_CLOCK = ("hour", "minute", "second")
_PARTS = (
    "quarter",
    "month",
    "week",
    "day",
    "dow",
    "isodow",
    "doy",
    "year",
    "decade",
    "century",
    "isoyear",
)
_FORMATS = (
    "%Y-%m-%d",
    "%y %b %B|%-m/%-d",
    "%j %a %A %w %u",
    "100%% %H:%M:%S %p %I %-H %-I %-M %-S",
)
_FLOAT = Cast(COST, "DOUBLE")
# One for each word of the vocabulary that looks at values of a row, and for what is known to differ
# between engines.
# Texts in which an engine could see variables, parameters or escapes.
VARIABLES = ("a${b}c", "${env:HOME}", "${spark.app.name}", "$1", ":a", "?", "%s", "{a}", "$$a$$")
_WRITTEN = Case(((WELL, Constant("a")),), Constant("B"))  # a text that no column has
EXPRESSIONS: tuple[Expression, ...] = (
    *(call(sign, COST, each) for sign in ("//", "%") for each in (7, -7, 100)),
    *(
        call(sign, Cast(DAYS, "HUGEINT") * 1000, each)
        for sign in ("//", "%")
        for each in (7, -7, 10**19)
    ),
    *(call(sign, DAYS, call("nullif", COST, 0)) for sign in ("//", "%")),
    *(COST + DAYS, COST - DAYS, Cast(COST, "HUGEINT") * DAYS, -DAYS, call("abs", DAYS)),
    *(
        call("least", COST, 5, DAYS),
        call("greatest", COST, 5),
        call("coalesce", COST, 7),
        call("nullif", COST, 0),
    ),
    *(Cast(call("round", _FLOAT / each), "BIGINT") for each in (2, -2, 10, 7)),
    *(
        Cast(call("round", call(each, _FLOAT / 10_000) * 1000), "BIGINT")
        for each in ("cbrt", "exp")
    ),
    Cast(call("round", call("sqrt", call("abs", _FLOAT)) * 1000), "BIGINT"),
    Cast(call("round", call("ln", call("abs", _FLOAT) + 1) * 1000), "BIGINT"),
    *(call(each, WORD) for each in ("upper", "lower", "trim", "ltrim", "rtrim", "length", "md5")),
    *(
        call("substr", WORD, *each)
        for each in ((1, 3), (2,), (0, 2), (-3, 2), (-3,), (-9, 6), (5, 0))
    ),
    *(call("left", WORD, each) for each in (0, 2, -2)),
    *(call("right", WORD, each) for each in (0, 2)),
    *(call(each, WORD, 5, fill) for each in ("lpad", "rpad") for fill in ("0", "ab")),
    *(
        call("replace", WORD, "a", "éé"),
        call("split_part", WORD, ",", 2),
        call("split_part", WORD, "b", 1),
    ),
    *(
        call(each, WORD, text)
        for each in ("strpos", "contains", "starts_with", "ends_with")
        for text in ("a", "%", "é")
    ),
    *(
        call(each, WORD, text)
        for each in ("like", "ilike")
        for text in ("A%", "a_b", "%\\%", "%ß%", "%Σ", "\\%", "%i%")
    ),
    *(
        call("like", WORD, "a\\%b", "\\"),
        call("like", WORD, "50!%", "!"),
        call("||", WORD, "-", WORD),
    ),
    *(call("concat", WORD, None, "z"), call("concat_ws", "-", WORD, None, "z")),
    *(
        WORD < "b",
        WORD.equals("a"),
        call("in", WORD, "a", "É", ""),
        call("least", WORD, "b"),
        WORD.is_null,
    ),
    *(
        _WRITTEN < "Ab",
        call("least", _WRITTEN, "b"),
        call("list_extract", call("list", "a", "B"), KIND + 1) < "b",
        call("strftime", DAY, "%B") < "a",
        call("greatest", call("concat", "a", Cast(WELL, "VARCHAR")), "B"),
    ),
    *(call("||", WORD, each) for each in VARIABLES),
    *(call("date_diff", each, DAY, SEEN) for each in (*_GRAINS, *_CLOCK)),
    call("date_diff", "microsecond", SEEN, Cast(DAY, "TIMESTAMP")),
    *(call("date_part", part, each) for part in _PARTS for each in (DAY, SEEN)),
    *(call("date_part", part, SEEN) for part in _CLOCK),
    *(Cast(call("date_trunc", each, DAY), "DATE") for each in _GRAINS),
    *(call("date_trunc", each, SEEN) for each in _CLOCK),
    *(call("strftime", each, form) for form in _FORMATS for each in (DAY, SEEN)),
    *(
        call("epoch_us", SEEN),
        call("make_timestamp", call("epoch_us", SEEN)),
        call("make_timestamp", DAYS),
    ),
    *(
        Cast(SEEN, "DATE"),
        Cast(DAY, "TIMESTAMP"),
        Cast(SEEN, "VARCHAR"),
        Cast(DAY, "VARCHAR"),
        Cast(DAYS, "VARCHAR"),
    ),
    *(
        Cast(WELL, "VARCHAR"),
        Cast(WELL, "BIGINT"),
        call("NOT", WELL),
        call("is true", WELL),
        call("is false", WELL),
    ),
    *(
        call("list_extract", call("list", "x", "y"), each)
        for each in (KIND + 1, call("greatest", DAYS, 0))
    ),
    *(
        call("list_position", call("list", "a", "É"), WORD),
        call("list_extract", Cast(Constant("[4, 5]"), "BIGINT[]"), KIND),
    ),
)


@pytest.mark.parametrize("node", EXPRESSIONS, ids=lambda node: Spelling().expression(node)[:60])
def test_an_expression_has_the_same_value_in_every_row(node: Expression, odd: Pair) -> None:
    query = Aggregate(VISITS, (WORD, COST, DAYS, DAY, SEEN, WELL, KIND, node), (Sum(),))
    assert rows_of(odd.other, query) == rows_of(odd.truth, query)


# --- few rows, or none ----------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["nobody", "nothing known"])
def test_tables_of_nobody_and_of_nothing_known(
    content: str, request: pytest.FixtureRequest, engine_name: str, tmp_path: Path
) -> None:
    name, everything = "hospital", policies.policy("hospital")
    tables = bounded.tidy(everything, people=5, dice=random.Random(content))
    if content == "nobody":
        tables = {each: table.slice(0, 0) for each, table in tables.items()}
    else:
        keys = ("person_id", "visit_id")
        tables = {
            each: pa.table(
                {
                    column: table[column]
                    if column in keys
                    else pa.nulls(table.num_rows, table[column].type)
                    for column in table.column_names
                }
            )
            for each, table in tables.items()
        }
    tables |= policies.public(name)
    with ExitStack() as stack:
        truth = stack.enter_context(opened(everything, EngineChoice(), tmp_path / "duckdb", tables))
        other = stack.enter_context(
            opened(everything, choice_of(engine_name, request), tmp_path / "other", tables)
        )
        cases = [each for each in harness.cases() if each.policy == name]
        refused = REFUSED.get(engine_name, frozenset())
        for case in [each for each in cases if each.id not in refused][::4]:
            plan = harness.planned(case.sql, everything, name=name)
            for block in (each for each in plan.blocks if not isinstance(each.kind, Shared)):
                for queries in queries_of(block):
                    ours, theirs = (
                        sum((rows_of(engine, each) for each in queries), Counter())
                        for engine in (truth, other)
                    )
                    assert theirs == ours, case.id


# --- limits ---------------------------------------------------------------------------------------


def slow_query(times: int = 4) -> Numbers:
    """Everybody's rows beside each other, again and again."""
    source: Any = VISITS
    for place in range(times):
        source = OwnerJoin(source, Scan("visits", f"w{place}"))
    return Aggregate(source, (call("md5", WORD),), (Sum(),))


def test_what_takes_too_long_is_an_overrun(odd: Pair) -> None:
    for engine in (odd.truth, odd.other):
        with pytest.raises(Overrun):
            engine.fetch(slow_query(6), 0.3)
        query = Aggregate(VISITS, (), (Sum(),))
        assert sum(rows_of(engine, query).values()) == 1  # and the next question is answered


def test_what_is_not_there_fails_with_one_sentence(odd: Pair) -> None:
    query = Aggregate(Scan("nowhere", "v"), (), (Sum(),))
    with pytest.raises(EngineFailure, match="The engine could not answer this question"):
        odd.other.check(query)
    with pytest.raises(EngineFailure, match="The engine could not answer this question"):
        odd.other.fetch(query, 10)


def test_numbers_of_snapshots(
    request: pytest.FixtureRequest, engine_name: str, tmp_path: Path
) -> None:
    """One after another, each whole; a number is given once; what is removed is gone; another
    policy is refused.
    """
    policy, choice = policy_of(ODD, tmp_path), choice_of(engine_name, request)
    store = store_on(policy, choice, tmp_path / "store")
    assert store.numbers() == []
    with pytest.raises(UsageError, match="no snapshot 1"):
        store.open(1)
    first = store.build(1, {"visits": odd_rows()})
    second = store.build(2, {"visits": odd_rows().slice(0, 5)})
    assert (store.numbers(), store.snapshot(1), store.snapshot(2)) == ([1, 2], first, second)
    with pytest.raises(UsageError, match="there already"):
        store.build(2, {"visits": odd_rows()})
    with pytest.raises(UsageError, match="before the policy's tables"):
        store_on(policy_of(ODD.replace("40", "41"), tmp_path), choice, tmp_path / "store").open(1)
    store.remove(1)
    assert store.numbers() == [2]
    assert not [file for file in (tmp_path / "store").iterdir() if "building" in file.name]


# --- names ----------------------------------------------------------------------------------------

NAMES = (
    *(
        "a b",
        "a.b",
        "a,b",
        "a(b)",
        "a=b",
        "a{b}",
        "${b}",
        "a\\b",
        "a/b",
        "$1",
        ":a",
        "%s",
        "é",
        "日本",
    ),
    *(
        "select",
        "date",
        "user",
        "oid",
        "k0",
        "s0",
        "t1",
        "numbered",
        "_metadata",
        "rowid",
        "length",
    ),
)


def test_odd_names_of_tables_and_columns(
    request: pytest.FixtureRequest, engine_name: str, tmp_path: Path
) -> None:
    columns = "".join(f"      '{name}': {{integer: [0, 99]}}\n" for name in NAMES)
    tables = [each for each in NAMES if not set(each) & set("/\\*?[]")]
    declared = "".join(
        f"  '{each}':\n    owner: person\n    columns:\n{columns}" for each in tables[:3]
    )
    policy = policy_of(declared, tmp_path)
    rows = pa.table({"person": range(9), **{name: [place] * 9 for place, name in enumerate(NAMES)}})
    given = dict.fromkeys(policy.tables, rows)
    with ExitStack() as stack:
        truth = stack.enter_context(opened(policy, EngineChoice(), tmp_path / "duckdb", given))
        other = stack.enter_context(
            opened(policy, choice_of(engine_name, request), tmp_path / "other", given)
        )
        for table in policy.tables:
            assert all_rows(other, policy, table) == all_rows(truth, policy, table)
            for place, name in enumerate(NAMES):
                one = Aggregate(
                    Scan(table, "t1"),
                    (call("length", Cast(Column("t1", name), "VARCHAR")),),
                    (Sum((Factor(Column("t1", name), 0, 99, 1, False),)),),
                    (Column("t1", name).equals(place),),
                )
                assert rows_of(other, one) == rows_of(truth, one)

"""Every kind of node and every word of the vocabulary, spelled and run: DuckDB's values are those
that are meant.

A dialect that is derived is run too, with each of its own forms in the place of DuckDB's, on the
same trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, get_args

import duckdb
import pytest

from discreet import algebra
from discreet.algebra import (
    Aggregate,
    Careful,
    Cast,
    Column,
    Columns,
    Constant,
    ConstantTable,
    Distinct,
    Exists,
    Expression,
    Factor,
    Fold,
    Frame,
    Interval,
    Nearest,
    Order,
    Over,
    OwnerJoin,
    PerPerson,
    Persons,
    Plain,
    PublicJoin,
    PublicScan,
    Rank,
    Scan,
    Select,
    Source,
    Stage,
    Sum,
    UnionAll,
    call,
    case,
    walk,
)
from discreet.engines.duckdb.locked import connect
from discreet.engines.layout import OWNER, PUBLIC, private, public
from discreet.engines.quoting import name
from discreet.engines.spelling import Spelling, by_place
from discreet.engines.words import FOLDS, WORDS


@dataclass(frozen=True, slots=True)
class Other(Spelling):
    """Another dialect: none of the forms that DuckDB alone has, where there is a way that it knows
    too.
    """

    def kind(self, kind: str) -> str:
        return {"VARCHAR": "TEXT", "BIGINT": "INT8", "DOUBLE": "FLOAT8"}.get(kind, kind)

    def total(self, product: str, bits: int) -> str:
        return f"sum({product})"

    def together(self, values: Sequence[str]) -> str:
        return f"({', '.join(values)})"

    def first_of_each(self, relation: str, stage: str, pins: str, most: int) -> str:
        numbered = (
            f"SELECT *, row_number() OVER (PARTITION BY {pins}) AS place FROM {relation} AS {stage}"
        )
        return f"(SELECT * FROM ({numbered}) AS numbered WHERE place <= {most}) AS {stage}"

    def wide_cell(self, cell: str, width: int) -> str:
        return f"CAST(floor({cell} / {width}) AS INT8)"

    def by_all(self, keys: int) -> str:
        return by_place(keys)


@pytest.fixture(params=[Spelling(), Spelling(careful=True), Other(), Other(careful=True)], ids=repr)
def spelling(request: pytest.FixtureRequest) -> Spelling:
    found: Spelling = request.param
    return found


@pytest.fixture(scope="module")
def database() -> Any:
    """Two people of two private tables, and a public one: a has three visits, b one; a has a
    pet.
    """
    connection = connect()
    connection.execute(f"CREATE SCHEMA {PUBLIC}")
    connection.execute(
        f"CREATE TABLE {private('visits')} ({name(OWNER)} VARCHAR, day DATE, cost BIGINT, town VARCHAR)"
    )
    connection.execute(
        f"INSERT INTO {private('visits')} VALUES ('a', '2024-01-05', 10, 'x'), ('a', '2024-02-05', -7, 'y'), "
        "('a', '2024-02-05', NULL, 'x'), ('b', '2024-03-01', 4, NULL)"
    )
    connection.execute(f"CREATE TABLE {private('pets')} ({name(OWNER)} VARCHAR, kind VARCHAR)")
    connection.execute(
        f"INSERT INTO {private('pets')} VALUES ('a', 'cat'), ('a', 'dog'), ('c', 'cat')"
    )
    connection.execute(f"CREATE TABLE {public('towns')} (town VARCHAR, people BIGINT)")
    connection.execute(f"INSERT INTO {public('towns')} VALUES ('x', 100), ('x', 100), ('y', 7)")
    yield connection
    connection.close()


VISITS, PETS = Scan("visits", "v"), Scan("pets", "p")
DAY, COST, TOWN = (Column("v", each) for each in ("day", "cost", "town"))
WHO = Column("v", OWNER)
MOMENT = datetime(2024, 2, 29, 12, 30, 15, 250)
X, NOTHING = Constant("x"), Cast(Constant(None), "BIGINT")

# One row's worth: an expression of constants, and its value. Every word of the vocabulary is among
# them.
VALUES: list[tuple[Expression, object]] = [
    (Constant(5) + 2, 7),
    (Constant(5) - 7, -2),
    (Constant(5) * -3, -15),
    (Constant(7.5) / 2, 3.75),
    (Constant(7) // 2, 3),
    (Constant(-7) % 4, -3),
    (-Constant(7), -7),
    (Constant(1).equals(1), True),
    (call("<>", 1, 1), False),
    (Constant(1) < 2, True),
    (Constant(1) <= 0, False),
    (Constant(1) > 2, False),
    (Constant(1) >= 1, True),
    (call("AND", True, False, True), False),
    (call("OR", None, False, True), True),
    (call("NOT", True), False),
    (call("||", "a", "b", "c"), "abc"),
    (NOTHING.is_null, True),
    (NOTHING.is_known, False),
    (call("is true", None), False),
    (call("is false", False), True),
    (call("in", 3, 1, 2, 3), True),
    (call("like", "50%", r"5_\%", "\\"), True),
    (call("like", "Anna", "an%"), False),
    (call("ilike", "Anna", "an%"), True),
    (call("abs", -5), 5),
    (call("cbrt", 1.0), 1.0),
    (call("exp", 0.0), 1.0),
    (call("ln", 1.0), 0.0),
    (call("sqrt", 6.25), 2.5),
    (call("round", 2.5), 3.0),
    (call("greatest", 1, NOTHING, 3), 3),
    (call("least", 1, 2), 1),
    (call("coalesce", NOTHING, 4), 4),
    (call("nullif", 4, 4), None),
    (call("concat", "a", None, "b"), "ab"),
    (call("concat_ws", "-", "a", None, "b"), "a-b"),
    (call("contains", "hello", "ell"), True),
    (call("starts_with", "hello", "he"), True),
    (call("ends_with", "hello", "he"), False),
    (call("left", "hello", 2), "he"),
    (call("right", "hello", 2), "lo"),
    (call("length", "héllo"), 5),
    (call("lower", "HÉ"), "hé"),
    (call("upper", "hé"), "HÉ"),
    (call("lpad", "7", 3, "0"), "007"),
    (call("rpad", "7", 3, "0"), "700"),
    (call("trim", " a "), "a"),
    (call("ltrim", " a "), "a "),
    (call("rtrim", " a "), " a"),
    (call("md5", "a"), "0cc175b9c0f1b6a831c399e269772661"),
    (call("replace", "banana", "an", "o"), "booa"),
    (call("split_part", "a,b,c", ",", 2), "b"),
    (call("strpos", "hello", "l"), 3),
    (call("substr", "hello", 2, 3), "ell"),
    (call("date_diff", "day", date(2024, 2, 28), date(2024, 3, 1)), 2),
    (call("date_part", "year", MOMENT), 2024),
    (call("date_trunc", "month", MOMENT), datetime(2024, 2, 1)),
    (call("epoch_us", datetime(1970, 1, 1, 0, 0, 2)), 2_000_000),
    (call("make_timestamp", 2_000_000), datetime(1970, 1, 1, 0, 0, 2)),
    (call("strftime", MOMENT, "%Y-%m"), "2024-02"),
    (call("hash", "a", NOTHING).equals(call("hash", "a", NOTHING)), True),
    (call("hash", "a", NOTHING) % 5 >= 0, True),
    (call("list", 3, 1), [3, 1]),
    (call("list_extract", call("list", "a", "b"), 2), "b"),
    (call("list_extract", call("list", "a", "b"), 3), None),
    (call("list_position", call("list", "a", "b"), "b"), 2),
    (call("row", 1, None).equals(call("row", 1, None)), True),
    (call("pair", 1, "z") < call("pair", 2, "a"), True),
    (call("pair", 1, "z") < call("pair", 1, "a"), False),
    (call("second of pair", call("pair", 1, "z")), "z"),
    (Constant(None), None),
    (Constant(True), True),
    (Constant(-3), -3),
    (Constant(2**100), Decimal(2**100)),
    (Constant(1e-7), 1e-7),
    (Constant('it\'s \\ "this"'), 'it\'s \\ "this"'),
    (Constant(date(2024, 2, 29)), date(2024, 2, 29)),
    (Constant(MOMENT), MOMENT),
    (Constant(date(2024, 1, 31)) + Interval(1, "month"), datetime(2024, 2, 29)),
    (Constant(MOMENT) + Interval(-1, "day"), datetime(2024, 2, 28, 12, 30, 15, 250)),
    (Constant(MOMENT) + Interval(3, "second"), datetime(2024, 2, 29, 12, 30, 18, 250)),
    (Constant(MOMENT) + Interval(5, "microsecond"), datetime(2024, 2, 29, 12, 30, 15, 255)),
    (Cast(Constant("12"), "BIGINT"), 12),
    (Cast(Constant(12), "VARCHAR"), "12"),
    (Cast(Constant("0.5"), "DOUBLE"), 0.5),
    (Cast(Constant("1.25"), "DECIMAL(5, 2)"), Decimal("1.25")),
    (Cast(Constant("[4, 5]"), "BIGINT[]"), [4, 5]),
    (case((Constant(False), 1), (Constant(True), 2)), 2),
    (case((Constant(False), 1)), None),
    (Careful(Constant(7) // 2), 3),
]


def run(database: Any, sql: str) -> list[tuple[Any, ...]]:
    found = database.execute(sql).fetchall()
    return sorted(found, key=lambda row: [(each is None, str(each)) for each in row])


@pytest.mark.parametrize(
    ("node", "value"), VALUES, ids=[Spelling().expression(node) for node, _ in VALUES]
)
def test_a_value(node: Expression, value: object, spelling: Spelling, database: Any) -> None:
    ((found,),) = database.sql(f"SELECT {spelling.expression(node)}").fetchall()
    assert found == value
    assert (found is None) == (value is None)


def test_every_word_is_tried() -> None:
    spelled = {
        part.name for node, _ in VALUES for part in walk(node) if isinstance(part, algebra.Call)
    }
    assert spelled == set(WORDS)
    assert {
        type(each.value) for node, _ in VALUES for each in walk(node) if isinstance(each, Constant)
    } == {type(None) if kind is None else kind for kind in get_args(Plain)}


def test_a_word_that_is_not_in_the_vocabulary() -> None:
    with pytest.raises(TypeError, match="no spelling for the call random"):
        Spelling().expression(call("random"))
    with pytest.raises(TypeError, match="no spelling for the aggregate string_agg"):
        Spelling().expression(Fold("string_agg", (TOWN,)))
    with pytest.raises(TypeError, match="no spelling for Expression"):
        Spelling().expression(Expression())


def test_what_fails_on_a_row_is_null_there(database: Any) -> None:
    node = Careful(Cast(Constant("twelve"), "BIGINT"))
    with pytest.raises(duckdb.ConversionException):
        run(database, f"SELECT {Spelling().expression(node)}")
    assert run(database, f"SELECT {Spelling(careful=True).expression(node)}") == [(None,)]


# --- sources and queries: which rows there are, the owner first -----------------------------------


def selected(
    source: Source, *columns: Expression, where: tuple[Expression, ...] = (), distinct: bool = False
) -> Select:
    named: Columns = tuple((f"c{place}", each) for place, each in enumerate(columns))
    return Select(source, named, where, distinct)


TOWNS = PublicScan("towns", "t")
PLACE, PEOPLE = Column("t", "town"), Column("t", "people")
LIST = ConstantTable(("town", "rank"), ("VARCHAR", "BIGINT"), (("x", 1), ("y", 2), (None, 3)), "t")
NOBODY = ConstantTable(("town", "rank"), ("VARCHAR", "BIGINT"), (), "t")
KIND = Column("p", "kind")
FIRST = Over(
    Fold("first_value", (TOWN,)),
    WHO,
    order=(Order(DAY), Order(COST, descending=True, nulls_first=True)),
)
RUNNING = Over(
    Fold("sum", (COST,)),
    WHO,
    (),
    (Order(DAY), Order(TOWN)),
    Frame("ROWS", "1 PRECEDING", "CURRENT ROW"),
)
WHOLE = Frame("ROWS", "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING")
ROWS: dict[str, tuple[algebra.Query, list[tuple[Any, ...]]]] = {
    "scan": (selected(VISITS, COST), [("a", -7), ("a", 10), ("a", None), ("b", 4)]),
    "where": (selected(VISITS, COST, where=(COST > 0, TOWN.is_known)), [("a", 10)]),
    "distinct": (selected(VISITS, TOWN, distinct=True), [("a", "x"), ("a", "y"), ("b", None)]),
    "stage": (
        selected(
            Stage(selected(VISITS, COST + 1), "s"),
            Column("s", "c0") * 2,
            where=(Column("s", "c0") > 0,),
        ),
        [("a", 22), ("b", 10)],
    ),
    "owner join": (
        selected(OwnerJoin(VISITS, PETS, (COST > 0,)), KIND),
        [("a", "cat"), ("a", "dog")],
    ),
    "outer owner join": (
        selected(OwnerJoin(VISITS, PETS, (KIND.equals("cat"),), outer=True), KIND),
        [("a", "cat")] * 3 + [("b", None)],
    ),
    "public join": (
        selected(PublicJoin(VISITS, TOWNS, 1, ((TOWN, PLACE),)), PEOPLE),
        [("a", 100), ("a", 100), ("a", 7)],
    ),
    "public join of all": (
        selected(PublicJoin(VISITS, TOWNS, 2, (), (COST > 5,)), TOWN),
        [("a", "x"), ("a", "x")],
    ),
    "outer public join": (
        selected(PublicJoin(VISITS, TOWNS, 2, ((TOWN, PLACE),), (COST > 5,), outer=True), PEOPLE),
        [("a", 100), ("a", 100), ("a", None), ("a", None), ("b", None)],
    ),
    "written": (
        selected(PublicJoin(VISITS, LIST, 1, ((TOWN, PLACE),)), Column("t", "rank")),
        [("a", 1), ("a", 1), ("a", 2)],
    ),
    "written, of no rows": (
        selected(PublicJoin(VISITS, NOBODY, 1, ((TOWN, PLACE),)), Column("t", "rank")),
        [],
    ),
    "exists": (
        selected(VISITS, COST, where=(Exists(PETS, WHO, (KIND.equals("dog"),)), COST.is_known)),
        [("a", -7), ("a", 10)],
    ),
    "union": (
        UnionAll((selected(VISITS, COST, where=(COST > 0,)), selected(PETS, Constant(0)))),
        [("a", 0), ("a", 0), ("a", 10), ("b", 4), ("c", 0)],
    ),
    "per person": (
        PerPerson(
            VISITS,
            (),
            (
                ("n", Fold("count", ())),
                ("costs", Fold("count", (COST,))),
                ("towns", Fold("count distinct", (TOWN,))),
                ("large", Fold("sum", (COST,), COST > 0)),
                ("least", Fold("min", (COST,))),
                ("any", Fold("bool_or", (COST > 5,))),
                ("all", Fold("bool_and", (COST > 5,))),
                ("last", call("second of pair", Fold("max", (call("pair", DAY, TOWN),)))),
            ),
        ),
        [
            ("a", 3, 2, 2, Decimal(10), -7, True, False, "y"),
            ("b", 1, 1, 0, Decimal(4), 4, False, False, None),
        ],
    ),
    "per person and key": (
        PerPerson(VISITS, (("k", TOWN),), (("n", Fold("count", ())),), (COST.is_known,)),
        [("a", "x", 1), ("a", "y", 1), ("b", None, 1)],
    ),
    "windows": (
        selected(VISITS, COST, FIRST, RUNNING),
        [
            ("a", -7, "x", Decimal(-7)),
            ("a", 10, "x", Decimal(10)),
            ("a", None, "x", Decimal(10)),
            ("b", 4, None, Decimal(4)),
        ],
    ),
    "ranks": (
        selected(
            VISITS,
            DAY,
            *(
                Over(Fold(each, ()), WHO, (), (Order(DAY, descending=True),))
                for each in ("rank", "dense_rank")
            ),
            Over(Fold("lag", (DAY, Constant(1))), WHO, (TOWN,), (Order(DAY),)),
            Over(Fold("lead", (DAY, Constant(1))), WHO, (TOWN,), (Order(DAY),)),
            Over(Fold("row_number", ()), WHO, (), (Order(DAY), Order(TOWN))),
            Over(Fold("ntile", (Constant(2),)), WHO, (), (Order(DAY), Order(TOWN))),
            Over(Fold("last_value", (TOWN,)), WHO, (), (Order(DAY), Order(TOWN)), WHOLE),
            where=(WHO.equals("a"),),
        ),
        [
            ("a", date(2024, 1, 5), 3, 2, None, date(2024, 2, 5), 1, 1, "y"),
            ("a", date(2024, 2, 5), 1, 1, date(2024, 1, 5), None, 2, 1, "y"),
            ("a", date(2024, 2, 5), 1, 1, None, None, 3, 2, "y"),
        ],
    ),
}


@pytest.mark.parametrize(("query", "rows"), ROWS.values(), ids=ROWS)
def test_rows(
    query: algebra.Query, rows: list[tuple[Any, ...]], spelling: Spelling, database: Any
) -> None:
    assert run(database, spelling.query(query)) == rows


# --- what leaves ----------------------------------------------------------------------------------


def _cost(power: int) -> Factor:
    return Factor(COST, -7, 10, power, clamp=False)


def test_numbers(spelling: Spelling, database: Any) -> None:
    """Rows, counts, sums in 64 and in 128 bits, products, what is held to its range, people and
    distinct values.
    """
    readings = (
        Sum(),
        Sum((_cost(0),)),
        Sum((_cost(1),), bits=64),
        Sum((_cost(2), Factor(Constant(3), 3, 3, 1, clamp=False)), where=TOWN.is_known),
        Sum((_cost(1), Factor(Constant(2), 2, 2, 0, clamp=False))),
        Persons(),
        Persons(where=COST > 5),
        Distinct((TOWN,)),
        Distinct((TOWN, COST)),
        Distinct((COST,), ends=(0, 4)),
    )
    found = run(database, spelling.numbers(Aggregate(VISITS, (), readings)))
    # of the costs 10, -7, NULL and 4 only the last lies within 0 and 4
    assert found == [(4, 3, 7, 447, 7, 2, 1, 2, 4, 1)]


def test_what_is_beyond_its_range_adds_no_more_than_its_ends(
    spelling: Spelling, database: Any
) -> None:
    """However it is held to its range, no row adds more than the range's ends."""
    held = Sum((Factor(COST, 0, 5, 1, clamp=True),))
    ((total,),) = run(database, spelling.numbers(Aggregate(VISITS, (), (held,), (COST.is_known,))))
    assert 4 <= total <= 3 * 5


def test_groups(spelling: Spelling, database: Any) -> None:
    counted = Aggregate(VISITS, (TOWN,), (Sum(),))
    assert run(database, spelling.numbers(counted)) == [("x", 2), ("y", 1), (None, 1)]
    known = Aggregate(VISITS, (TOWN,), (Sum(),), (COST.is_known,), known=(0,))
    assert run(database, spelling.numbers(known)) == [("x", 1), ("y", 1)]


@pytest.mark.parametrize("widths", [(1,), (4, 1), (9, 3, 1)])
def test_cells_near_a_rank(widths: tuple[int, ...], spelling: Spelling, database: Any) -> None:
    """Of 0 to 99, each once, those near the median: the cell, its rows, those before it, and
    all.
    """
    cells = "(SELECT 'g' AS g, range AS cell FROM range(100))"
    counted = Aggregate(VISITS, (Column("v", "g"), Column("v", "cell")), (Sum(),), known=(1,))
    sql = spelling.numbers(Nearest(counted, widths, (Rank(1, 2, 0, 3),))).replace(
        '"visits" AS v', f"{cells} AS v"
    )
    found = run(database, sql)
    assert all(row == ("g", row[1], 1, row[1], 100) for row in found)
    assert {48, 49, 50, 51} <= {row[1] for row in found} <= set(range(46, 54))
    every = spelling.numbers(Nearest(counted, widths, (Rank(1, 2, 0, None),))).replace(
        '"visits" AS v', f"{cells} AS v"
    )
    assert len(run(database, every)) == 100


def test_every_kind_of_node_is_tried() -> None:
    """A kind that is added to the algebra needs a value here, or rows."""
    tried = (*(node for node, _ in VALUES), *(query for query, _ in ROWS.values()))
    shown = repr(tried)
    kinds = [
        *Expression.__subclasses__(),
        *get_args(Source),
        *get_args(algebra.Query),
        PublicScan,
        ConstantTable,
    ]
    assert [kind.__name__ for kind in kinds if f"{kind.__name__}(" not in shown] == []
    assert [each for each in FOLDS if f"Fold(name='{each}'" not in shown] == []

"""Read the claim of a finding, in SQL over one public table: a comparison of numbers, or a SELECT
that returns one.

Regressions and Spearman's correlation are no SQL. They are read here, computed by `statistics`, and
stand in the SQL as columns of a table with one row. A comparison also has a gap: how far it is from
turning false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.errors import UsageError
from discreet.evaluate.statistics import FIELDS, is_list
from discreet.policy.document import nearest

FITS = "discreet_fits"  # the table with one row in which statistics stand
REGRESSIONS = ("OLS", "LOGIT")
_PAIRS = {  # SQL's own names for a regression on one column
    "REGR_SLOPE": ("coefficient", 0),
    "REGR_INTERCEPT": ("intercept", None),
    "REGR_R2": ("r2", None),
    "REGR_COUNT": ("rows", None),
}
_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_MOST_TEXT = 20_000
_MOST_COLUMNS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FitNumber:
    """One number of a statistic: which kind of it over which rows, and which field at which
    place.
    """

    kind: str  # OLS, LOGIT or SPEARMAN
    sql: str  # gives y and the columns, or the two columns of a correlation
    field: str = ""
    place: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic:
    """The rule by which gaps make one distance from turning false: the least of all (`and`), the
    most (`or`), or one gap itself.
    """

    word: str  # and, or, not, gap, unknown
    parts: tuple[Logic, ...] = ()
    gap: int = -1

    def distance(self, gaps: Sequence[float | None]) -> float | None:
        """Combine the gaps; None where one that matters is unknown."""
        if self.word == "gap":
            return gaps[self.gap]
        found = [part.distance(gaps) for part in self.parts]
        known = [each for each in found if each is not None]
        if len(known) < len(found) or not found:
            return None
        return {"and": min(known), "or": max(known), "not": -known[0]}[self.word]

    def ends(
        self, lows: Sequence[float | None], highs: Sequence[float | None]
    ) -> tuple[float | None, float | None]:
        """Return the least and the greatest distance, where each gap lies between two numbers."""
        if self.word == "gap":
            return lows[self.gap], highs[self.gap]
        found = [part.ends(lows, highs) for part in self.parts]
        low, high = ([each[end] for each in found if each[end] is not None] for end in (0, 1))
        if not found or len(low) < len(found) or len(high) < len(found):
            return None, None
        if self.word == "not":
            return -high[0], -low[0]  # type: ignore[operator]
        pick = min if self.word == "and" else max
        return pick(low), pick(high)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A claim that was read: `sql` returns holds, value and the gaps, in one row, from the table
    and the statistics.
    """

    text: str
    table: str
    sql: str
    statistics: tuple[FitNumber, ...]
    gaps: int
    logic: Logic
    names: frozenset[str]  # that stand in it, in lower case: columns of the table and others
    # asks a private table for value and gaps; None where only public tables can be asked
    paid: str | None

    @property
    def without_gaps(self) -> str:
        """Return the SQL without gaps, for values that have no difference, such as texts."""
        tree = sqlglot.parse_one(self.sql, dialect="duckdb")
        tree.set("expressions", [each for each in tree.expressions if each.alias == "holds"])
        return str(tree.sql(dialect="duckdb"))

    def columns(self, of: Sequence[str]) -> tuple[str, ...]:
        """Return those of a table's columns that the assertion needs."""
        return tuple(name for name in of if name.lower() in self.names)


def read_assertion(text: str, *, table: str, of: str | None = None) -> Assertion:
    """Read a claim about a table; `of` is the number that a finding's value is about, if not the
    first compared.
    """
    root, claim = _claim(_parse(text, "holds"))
    asked = None if of is None else _parse(of, "of")
    if isinstance(asked, exp.Query):
        raise UsageError("`of` must be one number, such as AVG(income), not a SELECT.")
    _require_one_table(root, table)
    names = {
        each.name.lower()
        for tree in (root, asked)
        if tree is not None
        for each in tree.find_all(exp.Column)
    }
    paid = (
        None
        if _has_statistics(root, asked)
        else _select(root, claim, asked, table=table, holds=False)[0]
    )
    found: list[FitNumber] = []
    root, claim = _claim(_without_statistics(root, table, found))
    asked = None if asked is None else _without_statistics(asked, table, found)
    sql, logic, gaps = _select(root, claim, asked, table=table, holds=True)
    return Assertion(
        text=text,
        table=table,
        sql=sql,
        statistics=tuple(found),
        gaps=gaps,
        logic=logic,
        names=frozenset(names),
        paid=paid if gaps else None,
    )


def _parse(text: str, what: str) -> exp.Expression:
    """Parse one expression or one SELECT."""
    if len(text) > _MOST_TEXT:
        raise UsageError(f"`{what}` is longer than {_MOST_TEXT:,} characters.")
    try:
        trees = sqlglot.parse(text, dialect="duckdb")
    except SqlglotError as error:
        where = error.errors[0] if getattr(error, "errors", None) else {}
        line = where.get("line") or 1
        column = where.get("col") or 1
        raise UsageError(
            f"`{what}` is not SQL that can be read: line {line}, column {column} of it."
        ) from None
    except (RecursionError, ValueError):
        raise UsageError(f"`{what}` is nested too deeply to be read.") from None
    if len(trees) != 1 or trees[0] is None:
        raise UsageError(f"`{what}` must be one assertion, such as AVG(a) > AVG(b).")
    tree: exp.Expression = trees[0]
    if not isinstance(tree, exp.Query | exp.Condition):
        raise UsageError(f"`{what}` must be an assertion, such as AVG(a) > AVG(b), or one SELECT.")
    return tree


def _claim(root: exp.Expression) -> tuple[exp.Expression, exp.Expression]:
    """Return the statement, and what it claims: itself, or the only column of a SELECT."""
    if not isinstance(root, exp.Query):
        return root, root
    while isinstance(root, exp.Subquery):
        root = root.this
    if not isinstance(root, exp.Select):
        raise UsageError("`holds` must be one SELECT, not a UNION of several.")
    if len(root.expressions) != 1 or root.is_star:
        raise UsageError("The SELECT of `holds` must return one column, which is true or false.")
    return root, root.expressions[0].unalias()


def _require_one_table(root: exp.Expression, table: str) -> None:
    """Refuse other tables than the study's; names of WITH are its own."""
    own = {each.alias.lower() for each in root.find_all(exp.CTE)} | {table.lower()}
    for each in root.find_all(exp.Table):
        if each.name.lower() not in own or each.db or not isinstance(each.this, exp.Identifier):
            raise UsageError(
                f"`holds` asks {each.sql(dialect='duckdb')}; a finding is about one table, {table}."
            )
    if FITS in own:
        raise UsageError(f"No table may be called {FITS}.")


# Statistics that SQL lacks.


def _statistic_name(node: exp.Expression) -> str | None:
    if isinstance(node, exp.Anonymous):
        name = str(node.name).upper()
    elif isinstance(node, exp.Func):
        name = node.sql_name()
    else:
        return None
    return name if name in (*REGRESSIONS, *_PAIRS, "SPEARMAN") else None


def _has_statistics(*trees: exp.Expression | None) -> bool:
    return any(_statistic_name(node) for tree in trees if tree is not None for node in tree.walk())


def _without_statistics(tree: exp.Expression, table: str, found: list[FitNumber]) -> exp.Expression:
    """Return the tree with a column of the table of statistics in place of each statistic; add each
    statistic to `found`.
    """
    tree = tree.copy()
    for node in [each for each in tree.walk() if _statistic_name(each)]:
        statistic, outer = _statistic(node, table)
        if statistic not in found:
            found.append(statistic)
        stand_in = sqlglot.parse_one(
            f"(SELECT value{found.index(statistic)} FROM {FITS})", dialect="duckdb"
        )
        if outer is tree:
            return stand_in
        outer.replace(stand_in)
    return tree


def _statistic(node: exp.Expression, table: str) -> tuple[FitNumber, exp.Expression]:
    """Read a call with its FILTER, its field and its place; and the whole expression that it is."""
    name = _statistic_name(node)
    assert name is not None
    outer = node
    where = _rows_of(node, name, table)
    if isinstance(outer.parent, exp.Filter):
        outer = outer.parent
        where.append(outer.expression.this)
    while isinstance(outer.parent, exp.Paren):
        outer = outer.parent
    arguments = list(node.expressions) or [each for each in (node.this, node.expression) if each]
    field, place = "", None
    if name in REGRESSIONS:
        values = _regression_columns(name, arguments)
        field, place, outer = _field(name, outer, len(values) - 1)
    else:
        if len(arguments) != 2:
            raise UsageError(f"{name} takes two columns: {name}(y, x).")
        values = arguments
        if name in _PAIRS:
            field, place = _PAIRS[name]
    query = exp.select(
        *(value.copy().as_(f"v{index}") for index, value in enumerate(values)), copy=False
    )
    query = query.from_(
        exp.to_table(exp.to_identifier(table, quoted=True).sql(dialect="duckdb"), dialect="duckdb")
    )
    for condition in where:
        query = query.where(condition.copy())
    for value in (*values, *where):
        if any(_statistic_name(each) for each in value.walk()) or value.find(
            exp.AggFunc, exp.Query
        ):
            raise UsageError(
                f"{name} takes columns of {table} and expressions over one row, no aggregates."
            )
    kind = "OLS" if name in _PAIRS else name
    return FitNumber(kind=kind, sql=query.sql(dialect="duckdb"), field=field, place=place), outer


def _rows_of(node: exp.Expression, name: str, table: str) -> list[exp.Expression]:
    """Return the conditions on the rows that a statistic is about, where it stands in a SELECT."""
    select = node.find_ancestor(exp.Select)
    if select is None:
        return []
    source = select.args.get("from_") or select.args.get("from")
    one = (
        source is not None
        and isinstance(source.this, exp.Table)
        and source.this.name.lower() == table.lower()
    )
    if not one or any(
        select.args.get(part) for part in ("joins", "group", "having", "distinct", "limit")
    ):
        raise UsageError(
            f"{name} is computed of rows of {table}: write it in a SELECT ... FROM {table} [WHERE ...]."
        )
    where = select.args.get("where")
    return [] if where is None else [where.this]


def _regression_columns(name: str, arguments: Sequence[exp.Expression]) -> list[exp.Expression]:
    listed = arguments[1] if len(arguments) == 2 else None
    if not isinstance(listed, exp.Array) or not 0 < len(listed.expressions) <= _MOST_COLUMNS:
        raise UsageError(f"{name} takes a column and a list of columns: {name}(y, [x1, x2]).")
    return [arguments[0], *listed.expressions]


def _field(name: str, call: exp.Expression, width: int) -> tuple[str, int | None, exp.Expression]:
    """Read which number of a regression is meant: .r2, or .p[2]."""
    dot = call.parent
    if not isinstance(dot, exp.Dot) or dot.this is not call:
        raise UsageError(
            f"Say which number of {name} is meant: {name}(...).coefficient[1], .p[1], .r2 and others."
        )
    field = dot.expression.name.lower()
    if field not in FIELDS:
        raise UsageError(f"{name} has no .{field}. {nearest(field, FIELDS)}")
    if field == "accuracy" and name == "OLS":
        raise UsageError("OLS has no .accuracy; LOGIT has.")
    if not is_list(field):
        return field, None, dot
    bracket = dot.parent
    place = (
        bracket.expressions[0]
        if isinstance(bracket, exp.Bracket) and len(bracket.expressions) == 1
        else None
    )
    if not isinstance(place, exp.Literal) or place.is_string or not str(place.this).isdigit():
        raise UsageError(
            f"Say whose .{field} is meant by its place: {name}(y, [x1, x2]).{field}[1] is that of x1."
        )
    if not 0 <= int(place.this) < width:  # sqlglot counts from 0
        raise UsageError(
            f"{name}(...).{field} has places 1 to {width}, one for each column of the list."
        )
    return field, int(place.this), bracket


# The statement that is asked.


def _select(
    root: exp.Expression,
    claim: exp.Expression,
    asked: exp.Expression | None,
    *,
    table: str,
    holds: bool,
) -> tuple[str, Logic, int]:
    """Write the SELECT of holds (unless it is to be paid for), value and gaps; how gaps combine,
    and their number.
    """
    gaps: list[Gap] = []
    logic = _logic(claim, gaps)
    columns = [claim.copy().as_("holds")] if holds else []
    if asked is not None or gaps:
        number = gaps[0].number if asked is None else asked
        columns.append(number.copy().as_("value"))
    columns += [gap.difference.as_(f"gap{index}") for index, gap in enumerate(gaps)]
    reads_rows = any(
        column.find(exp.AggFunc, exp.Star) or _bare_column(column) for column in columns
    )
    if isinstance(root, exp.Select) and reads_rows:
        query = root.copy()
        query.set("expressions", columns)
    else:
        query = exp.select(*columns, copy=False)
        if reads_rows:
            query = query.from_(exp.Table(this=exp.to_identifier(table, quoted=True)))
    return str(query.sql(dialect="duckdb")), logic, len(gaps)


def _bare_column(tree: exp.Expression) -> bool:
    """Return True if a column stands outside the sub-SELECTs that read statistics."""
    return any(not _in_stand_in(each) for each in tree.find_all(exp.Column))


def _in_stand_in(column: exp.Expression) -> bool:
    select = column.find_ancestor(exp.Select)
    return select is not None and any(each.name == FITS for each in select.find_all(exp.Table))


@dataclass(frozen=True, slots=True)
class Gap:
    """A comparison: the number that it is about, and how far it is from turning false."""

    number: exp.Expression
    difference: exp.Expression


def _logic(claim: exp.Expression, gaps: list[Gap]) -> Logic:
    """Return how a claim is made of comparisons; each is added to `gaps`."""
    claim = claim.unnest()
    if isinstance(claim, exp.And | exp.Or):
        return Logic(word=claim.key, parts=(_logic(claim.left, gaps), _logic(claim.right, gaps)))
    if isinstance(claim, exp.Not):
        return Logic(word="not", parts=(_logic(claim.this, gaps),))
    if isinstance(claim, exp.Between):
        value = claim.this
        low = claim.args["low"]
        high = claim.args["high"]
        return Logic(
            word="and", parts=(_gap(gaps, value, value, low), _gap(gaps, value, high, value))
        )
    if isinstance(claim, _COMPARISONS):
        constant = isinstance(claim.left.unnest(), exp.Literal | exp.Neg)
        number = claim.right if constant else claim.left
        upward = isinstance(claim, exp.GT | exp.GTE)
        more, less = (claim.left, claim.right) if upward else (claim.right, claim.left)
        return _gap(gaps, number, more, less)
    return Logic(word="unknown")


def _gap(
    gaps: list[Gap], number: exp.Expression, more: exp.Expression, less: exp.Expression
) -> Logic:
    zero = isinstance(less, exp.Literal) and not less.is_string and float(less.this) == 0
    difference = (
        more if zero else exp.Sub(this=exp.paren(more.copy()), expression=exp.paren(less.copy()))
    )
    gaps.append(Gap(number, difference.copy()))
    return Logic(word="gap", gap=len(gaps) - 1)

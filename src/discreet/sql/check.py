"""The proof of a plan: how far one person can move each number, derived from what will run and the
policy alone (S24).

This module shares nothing with the analysis but the trees of `algebra`. From them it derives whose
each row is, how many rows and groups one person can have, and the sensitivities of every statistic.
A plan that claims less is stopped before the charge. So the analysis may refuse or answer badly; it
cannot understate a sensitivity. Why this is right:

1. *Whose.* `algebra.owner_of` follows a source to its hidden owner; sources of two people cannot be
   joined, and every query keeps the owner. So each row is a function of rows of one person, and of
   public rows.
2. *How many rows.* A scan has `max_rows`, which the snapshot enforces. A join multiplies, a union
   adds, a filter on a row number within the person cuts. A public row is met at most `meets` times,
   which the query enforces.
3. *How many groups.* A value that is computed from some of a person's sources takes at most as many
   values as there are combinations of their rows (`origins`).
4. *How far.* What one row adds to the numbers of a statistic is a polynomial in values that are
   held to ranges. In the Bernstein basis of those ranges it is a convex combination of finitely
   many vectors (`extremes`). A norm is convex, so it is largest at one of them; a person is at most
   `rows` such rows, in one group or in several.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.algebra import (
    OWNER,
    Aggregate,
    Call,
    Careful,
    Column,
    Constant,
    Distinct,
    Exists,
    Expression,
    Factor,
    Fold,
    Over,
    OwnerJoin,
    PerPerson,
    Persons,
    PublicJoin,
    PublicScan,
    Query,
    Reading,
    Scan,
    Select,
    Source,
    Stage,
    Sum,
    UnionAll,
    Written,
    owner_of,
    walk,
    with_columns,
)
from discreet.budget import Neighbors
from discreet.errors import Unproved
from discreet.policy.domain import MOST_PEOPLE, Decimals, Integers
from discreet.policy.policy import Policy, Table
from discreet.sql.exclusive import together

Vector = tuple[Fraction, ...]
Forms = Sequence[Sequence[int]]  # combinations of readings, by their factors
Sizes = Sequence[int | None]  # how many values each key can have; None where they are not public
Variable = tuple[int, Expression]  # a value, and its place among the factors of a sum
Origins = frozenset[tuple[str, int]]  # sources, each with how many rows of it one person can have


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How much one person can change the numbers of a statistic in all groups together, by each
    norm.
    """

    l1: int
    l2_squared: int
    linf: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Derives bounds from one policy."""

    policy: Policy
    known: dict[tuple[Stage, str], Origins] = field(default_factory=dict, compare=False, repr=False)

    # --- how many rows ----------------------------------------------------------------------------

    def rows(self, source: Source, where: Sequence[Expression] = ()) -> int:
        """Return how many rows of a source that satisfy the conditions one person can have."""
        match source:
            case Scan(table=table):
                found = self.private(table).max_rows
            case OwnerJoin(left=left, right=right, outer=outer):
                found = self.rows(left, where) * max(int(outer), self.rows(right, where))
            case PublicJoin(left=left, meets=meets, outer=outer):
                found = self.rows(left, where) * max(int(outer), meets)
            case Stage(query=query):
                found = self.rows_of(query)
        return min([found, *self.numbered(source, where)])

    def rows_of(self, query: Query) -> int:
        match query:
            case Select(source=source, columns=columns, where=where, distinct=distinct):
                rows = self.rows(source, where)
                return (
                    min(rows, self.values([each for _, each in columns], source))
                    if distinct
                    else rows
                )
            case PerPerson(source=source, keys=keys, where=where):
                return min(
                    self.rows(source, where), self.values([each for _, each in keys], source)
                )
            case UnionAll(parts=parts):
                return sum(self.rows_of(part) for part in parts)

    def numbered(self, source: Source, where: Sequence[Expression]) -> Iterator[int]:
        """Bounds by conditions `row number <= k`, where the number counts each person's rows of
        this very source.
        """
        for name, most in limits(source, where):
            over = self.inside(source, name)
            if (
                isinstance(over, Over)
                and over.function == Fold("row_number", ())
                and not over.partition
            ):
                yield most

    def inside(self, source: Source, name: str) -> Expression | None:
        """Return what a column of a stage is computed as, through SELECTs that keep rows as they
        are.
        """
        while isinstance(source, Stage) and isinstance(source.query, Select):
            found, inner = dict(source.query.columns).get(name), source.query.source
            if (
                not isinstance(found, Column)
                or not isinstance(inner, Stage)
                or found.stage != inner.stage
            ):
                return found
            source, name = inner, found.name
        return None

    def private(self, table: str) -> Table:
        found = self.policy.tables.get(table)
        if found is None or found.public:
            raise Unproved(f"the plan reads {table} as a private table")
        return found

    # --- how many groups --------------------------------------------------------------------------

    def values(self, expressions: Sequence[Expression], source: Source) -> int:
        """Return how many combinations of values of these expressions one person's rows can have,
        at most.
        """
        found = frozenset[tuple[str, int]]().union(
            *(self.origins(each, source) for each in expressions)
        )
        return math.prod(rows for _, rows in found)

    def touched(
        self, keys: Sequence[Expression], source: Source, where: Sequence[Expression]
    ) -> int:
        """Return how many groups of these keys one person's rows can be in."""
        most = [self.rows(source, where), self.values(keys, source)]
        for name, limit in limits(source, where):
            over = self.inside(source, name)
            if (
                isinstance(over, Over)
                and over.function == Fold("dense_rank", ())
                and not over.partition
            ):
                query = source.query if isinstance(source, Stage) else None
                below = query.source if isinstance(query, Select) else source
                ranked = {
                    part
                    for each in over.order
                    for part in (each.value, self.resolved(each.value, below))
                }
                most += [limit] if all(self.resolved(key, source) in ranked for key in keys) else []
        return min(most)

    def resolved(self, key: Expression, source: Source) -> Expression:
        """A key as an expression over the rows inside the stage that it is read from."""
        stage = source.stage if isinstance(source, Stage) else None
        return with_columns(
            key,
            lambda each: (self.inside(source, each.name) if each.stage == stage else None) or each,
        )

    def origins(self, node: Expression, source: Source) -> Origins:
        """The sources whose rows decide the value of an expression; all rows of the person for
        windows and EXISTS.
        """
        found: Origins = frozenset()
        for part in walk(node):
            if isinstance(part, Over | Exists | Fold):
                found |= {("", self.rows(source))}
            elif isinstance(part, Column):
                found |= self.column_origins(part, source)
        return found

    def column_origins(self, column: Column, source: Source) -> Origins:
        if column.name == OWNER:
            return frozenset()
        match source:
            case Scan(stage=stage, table=table) if stage == column.stage:
                return frozenset({(stage, self.private(table).max_rows)})
            case Stage(stage=stage) if stage == column.stage:
                return self.stage_origins(column.name, source)
            case OwnerJoin(left=left, right=right, outer=outer):
                if column.stage in stages(left):
                    return self.column_origins(column, left)
                inner = self.column_origins(column, right)
                return _or_null(inner, column) if outer else inner
            case PublicJoin(left=left, right=right, meets=meets, pins=pins, on=on, outer=outer):
                if column.stage in stages(left):
                    return self.column_origins(column, left)
                if column.stage == right.stage and meets > 1:
                    return frozenset({(right.stage, self.rows(source))})
                if (
                    column.stage == right.stage
                ):  # the one public row that is met is a function of what it is met by
                    met = [*(ours for ours, _ in pins), *on]
                    private = [part for each in met for part in walk(each) if in_source(part, left)]
                    inner = frozenset[tuple[str, int]]().union(
                        *(self.origins(part, left) for part in private)
                    )
                    return _or_null(inner, column) if outer else inner
        raise Unproved(f"the plan reads {column.stage}.{column.name}, which is not there")

    def stage_origins(self, name: str, source: Stage) -> Origins:
        if (
            source,
            name,
        ) not in self.known:  # what is used twice in every stage is looked at once in each
            query, found = source.query, frozenset({(source.stage, self.rows_of(source.query))})
            if isinstance(query, Select):
                if name not in dict(query.columns):
                    raise Unproved(f"the plan reads {source.stage}.{name}, which is not there")
                inner = self.origins(dict(query.columns)[name], query.source)
                # Two uses of one query are different rows: what lies inside is named by its way in.
                found = frozenset((f"{source.stage}.{each}", rows) for each, rows in inner)
            self.known[source, name] = found
        return self.known[source, name]

    # --- how far ----------------------------------------------------------------------------------

    def bound(
        self, aggregate: Aggregate, forms: Forms, *, neighbors: Neighbors, sizes: Sizes
    ) -> Bound:
        """The sensitivities of numbers that are these combinations of an aggregate's readings.

        `sizes` are how many values each key can have, None where they are not public: no more
        groups are noised.
        """
        self.require_own(aggregate)
        used = [
            place for place in range(len(aggregate.readings)) if any(form[place] for form in forms)
        ]
        readings = [aggregate.readings[place] for place in used]
        factors = [[form[place] for place in used] for form in forms]
        cells = math.prod(math.inf if size is None else size for size in sizes)
        match readings:
            case [Persons()] if factors == [[1]]:
                return self.of_persons(aggregate, neighbors, sizes)
            case [Distinct() as reading] if factors == [[1]]:
                return self.of_distinct(aggregate, reading, neighbors, cells)
        for each in readings:
            self.require_held(aggregate, each)
        rows = self.rows(aggregate.source, aggregate.where)
        return of_rows(list(extremes(readings, factors)), rows, neighbors, one_cell=cells == 1)

    def of_persons(self, aggregate: Aggregate, neighbors: Neighbors, sizes: Sizes) -> Bound:
        """People per group: one person adds 1 to each group that they are in, and one replaced
        moves twice as many.
        """
        unknown = [key for key, size in zip(aggregate.keys, sizes, strict=True) if size is None]
        public = math.prod(size for size in sizes if size is not None)
        touched = min(
            self.touched(aggregate.keys, aggregate.source, aggregate.where),
            self.touched(unknown, aggregate.source, aggregate.where) * public,
        )
        moved = touched * (2 if neighbors == "change_one" else 1)
        moved = moved if unknown else min(moved, public)
        return Bound(l1=moved, l2_squared=moved, linf=1)

    def of_distinct(
        self, aggregate: Aggregate, reading: Distinct, neighbors: Neighbors, cells: float
    ) -> Bound:
        """Distinct values per group: each row of a person adds at most one, and a group has at most
        all values.
        """
        rows = self.rows(aggregate.source, aggregate.where)
        values = math.inf if reading.ends is None else reading.ends[1] - reading.ends[0] + 1
        most = int(min(rows, values))
        if not most:  # nobody has a row
            return Bound(l1=0, l2_squared=0, linf=0)
        people = 1 if neighbors == "add_remove" or cells == 1 else 2
        full, rest = divmod(
            rows, most
        )  # groups that one person's rows fill, and what is left for one more
        l1, l2_squared = people * rows, people * (full * most**2 + rest**2)
        return Bound(
            l1=int(min(l1, most * cells)),
            l2_squared=int(min(l2_squared, most**2 * cells)),
            linf=most,
        )

    def holds(self, value: Expression, lo: int, hi: int, *, source: Source) -> bool:
        """Return True if a snapshot holds a value to a range: a stored column whose range lies
        within it.
        """
        known = self.stored_range(value, source)
        return known is not None and lo <= known[0] and known[1] <= hi

    def require_held(self, aggregate: Aggregate, reading: Reading) -> None:
        """Refuse a sum whose values nothing holds to their ranges, or which 2^36 people could make
        overflow.
        """
        if not isinstance(reading, Sum):
            raise Unproved("people or distinct values are noised together with other numbers")
        for factor in reading.factors:
            held = factor.clamp or self.holds(
                factor.value, factor.lo, factor.hi, source=aggregate.source
            )
            if factor.power and not held:
                raise Unproved("a sum's values are held to their range by nothing")
        most = math.prod(max(abs(each.lo), abs(each.hi)) ** each.power for each in reading.factors)
        if MOST_PEOPLE * self.rows(aggregate.source, aggregate.where) * most >= 2 ** (
            reading.bits - 1
        ):
            raise Unproved(f"a sum of 2^36 people can pass {reading.bits} bits")

    # --- claims -----------------------------------------------------------------------------------

    def require(
        self,
        claim: Bound,
        aggregate: Aggregate,
        forms: Forms,
        *,
        neighbors: Neighbors,
        sizes: Sizes,
    ) -> None:
        """Refuse a statistic that claims to move less than it can."""
        found = self.bound(aggregate, forms, neighbors=neighbors, sizes=sizes)
        if claim.l1 < found.l1 or claim.l2_squared < found.l2_squared or claim.linf < found.linf:
            raise Unproved(f"a statistic claims {claim} and can move by {found}")

    def require_touched(self, claim: int, people: Aggregate) -> None:
        """Refuse a threshold on people per key that counts on fewer keys than one person can
        have.
        """
        self.require_own(people)
        if people.readings not in ((Persons(),), (Sum(),)):
            raise Unproved("a threshold tests something else than people")
        if people.readings == (Sum(),) and self.rows(people.source, people.where) > 1:
            raise Unproved("a threshold tests rows, of which one person has several")
        found = self.touched(people.keys, people.source, people.where)
        if claim < found:
            raise Unproved(f"a threshold counts on {claim} keys a person, who can have {found}")

    def require_rows(self, claim: int, counted: Aggregate) -> None:
        """Refuse a choice by rank or by count that counts on fewer rows than one person can
        have.
        """
        self.require_own(counted)
        if counted.readings != (Sum(),) or claim < self.rows(counted.source, counted.where):
            raise Unproved("a choice counts on fewer rows a person than there can be")

    # --- whose ------------------------------------------------------------------------------------

    def require_own(self, aggregate: Aggregate) -> None:
        """Refuse a tree in which an expression reads anything but its own row, or folds rows of
        several people.
        """
        self.require_source(aggregate.source)
        for each in expressions_of(aggregate):
            self.require_row(each, aggregate.source)

    def require_source(self, source: Source) -> None:
        match source:
            case Scan(table=table):
                self.private(table)
            case OwnerJoin(left=left, right=right, on=on):
                self.require_source(left)
                self.require_source(right)
                for each in on:
                    self.require_row(each, source)
            case PublicJoin(left=left, pins=pins, on=on):
                self.require_source(left)
                for ours, theirs in pins:
                    self.require_row(ours, left)
                    self.require_row(theirs, source)
                    if any(in_source(part, left) for part in walk(theirs)):
                        raise Unproved("a public row is pinned by private columns on both sides")
                for each in on:
                    self.require_row(each, source)
            case Stage(query=UnionAll(parts=parts)):
                for part in parts:
                    self.require_query(part)
            case Stage(query=Select() | PerPerson() as query):
                self.require_query(query)

    def require_query(self, query: Select | PerPerson) -> None:
        self.require_source(query.source)
        for each in query.where:
            self.require_row(each, query.source)
        for _, each in query.columns:
            self.require_row(
                each,
                query.source,
                folds=isinstance(query, PerPerson),
                windows=isinstance(query, Select),
            )
        if isinstance(query, PerPerson):
            for _, each in query.keys:
                self.require_row(each, query.source)

    def require_row(
        self,
        node: Expression,
        source: Source,
        *,
        outer: Source | None = None,
        folds: bool = False,
        windows: bool = False,
    ) -> None:
        """Every column is one of the row's own; windows and EXISTS look at rows of the same
        person.
        """
        here = stages(source) | (frozenset() if outer is None else stages(outer))
        for part in walk(node):
            match part:
                case Column(stage=stage) if stage not in here:
                    raise Unproved(f"the plan reads {stage} where it is not")
                case Over(owner=owner):
                    if not windows or owner != owner_of(source):
                        raise Unproved("a window looks at other people's rows")
                case Exists(source=inner, owner=owner, where=where):
                    if owner != owner_of(source):
                        raise Unproved("EXISTS looks at other people's rows")
                    self.require_source(inner)
                    for each in where:
                        self.require_row(each, inner, outer=source)
        allowed = folds or windows
        if not allowed and any(isinstance(part, Fold) for part in walk(node)):
            raise Unproved("the plan folds rows outside of a person")

    # --- ranges -----------------------------------------------------------------------------------

    def stored_range(self, value: Expression, source: Source) -> tuple[int, int] | None:
        """The ends of a stored column, which the snapshot enforces; None for whatever is
        computed.
        """
        if not isinstance(value, Column):
            return None
        match source:
            case Scan(stage=stage, table=table) if stage == value.stage:
                column = self.private(table).columns.get(value.name)
                domain = None if column is None else column.domain
                return (
                    (domain.first, domain.last) if isinstance(domain, Integers | Decimals) else None
                )
            case OwnerJoin(left=left, right=right):
                return self.stored_range(value, left if value.stage in stages(left) else right)
            case PublicJoin(left=left):
                return self.stored_range(value, left) if value.stage in stages(left) else None
            case Stage(stage=stage, query=Select(source=inner, columns=columns)) if (
                stage == value.stage
            ):
                return (
                    self.stored_range(dict(columns)[value.name], inner)
                    if value.name in dict(columns)
                    else None
                )
        return None


# --- a row's contribution -------------------------------------------------------------------------


def extremes(readings: Sequence[Reading], forms: Forms) -> Iterator[Vector]:
    """Vectors whose convex hull holds whatever one row can add to the numbers of a statistic; zero
    is one of them.

    A value x of [lo, hi] to the power p is, in the Bernstein basis of degree d, a convex
    combination of its control values; a product of such powers one of their products. Each value
    may be NULL, each condition false.
    """
    sums = [each for each in readings if isinstance(each, Sum)]
    yield (Fraction(0),) * len(forms)
    factors = [(place, factor) for each in sums for place, factor in enumerate(each.factors)]
    degrees: dict[Variable, int] = {}  # two places of one value are two variables: more than can be
    for place, factor in factors:
        degrees[place, factor.value] = max(degrees.get((place, factor.value), 0), factor.power)
    # Where a value is beyond its range it is NULL, in all sums of the statistic or in none.
    if len({(place, each.value, each.lo, each.hi, each.clamp) for place, each in factors}) > len(
        degrees
    ):
        raise Unproved("a value has two ranges")
    places = [[None, *range(degree + 1)] for degree in degrees.values()]
    for holds in together([each.where for each in sums if each.where is not None]):
        for chosen in itertools.product(*places):
            at = dict(zip(degrees, chosen, strict=True))
            met = [each.where is None or each.where in holds for each in sums]
            read = [
                contribution(each, at, degrees) if now else Fraction(0)
                for each, now in zip(sums, met, strict=True)
            ]
            yield tuple(
                sum((f * x for f, x in zip(form, read, strict=True)), Fraction(0)) for form in forms
            )


def contribution(
    reading: Sum, at: Mapping[Variable, int | None], degrees: Mapping[Variable, int]
) -> Fraction:
    """Return what a row adds to a sum at one choice of control points; nothing where a factor is
    NULL.
    """
    total = Fraction(1)
    for place, factor in enumerate(reading.factors):
        variable = (place, factor.value)
        chosen = at[variable]
        if chosen is None:
            return Fraction(0)
        total *= control(factor, chosen, degrees[variable])
    return total


def control(factor: Factor, place: int, degree: int) -> Fraction:
    """The control value of x^power at a place of the Bernstein basis of a degree on [lo, hi].

    Its blossom: the mean over all choices of `power` of the basis' `degree` arguments, of which
    `place` are hi.
    """
    total = Fraction(0)
    for high in range(factor.power + 1):
        ways = math.comb(place, high) * math.comb(degree - place, factor.power - high)
        total += Fraction(ways * factor.hi**high * factor.lo ** (factor.power - high))
    return total / math.comb(degree, factor.power)


def of_rows(vectors: Sequence[Vector], rows: int, neighbors: Neighbors, *, one_cell: bool) -> Bound:
    """The largest norms of what `rows` rows add; for change_one, of the difference of two such
    persons.
    """
    pairs: list[tuple[Vector, Vector]] = [(each, (Fraction(0),) * len(each)) for each in vectors]
    apart = neighbors == "change_one" and not one_cell
    if neighbors == "change_one":
        pairs = [(one, other) for one in vectors for other in vectors]
    l1 = l2_squared = linf = Fraction(0)
    for one, other in pairs:
        moved = [abs(a - b) for a, b in zip(one, other, strict=True)]
        l1, linf = max(l1, sum(moved, Fraction(0))), max(linf, *moved)
        l2_squared = max(l2_squared, sum((each**2 for each in moved), Fraction(0)))
        if apart:  # out of one group and into another
            both = [abs(each) for each in (*one, *other)]
            l1, linf = max(l1, sum(both, Fraction(0))), max(linf, *both)
            l2_squared = max(l2_squared, sum((each**2 for each in both), Fraction(0)))
    return Bound(
        l1=math.ceil(rows * l1),
        l2_squared=math.ceil(rows**2 * l2_squared),
        linf=math.ceil(rows * linf),
    )


# --- trees ----------------------------------------------------------------------------------------


def stages(source: Source | PublicScan | Written) -> frozenset[str]:
    """The names that stand in a FROM clause."""
    if isinstance(source, OwnerJoin | PublicJoin):
        return stages(source.left) | stages(source.right)
    return frozenset({source.stage})


def in_source(node: Expression, source: Source) -> bool:
    return isinstance(node, Column) and node.stage in stages(source)


def limits(source: Source, where: Sequence[Expression]) -> Iterator[tuple[str, int]]:
    """Yield how many places of a numbering conditions leave: `n <= k`, `n < k`, `n = k` on a stage
    read alone.
    """
    for each in conjuncts(where):
        match each:
            case Call(
                name="<=" | "<" | "=",
                arguments=(Column(stage=stage, name=name), Constant(value=int(k))),
            ):
                if isinstance(source, Stage) and source.stage == stage:
                    yield name, 1 if each.name == "=" else max(int(k) - (each.name == "<"), 0)


def conjuncts(where: Sequence[Expression]) -> Iterator[Expression]:
    """The conditions that must all hold, one by one."""
    for each in where:
        bare = each.value if isinstance(each, Careful) else each
        if isinstance(bare, Call) and bare.name == "AND":
            yield from conjuncts(bare.arguments)
        else:
            yield bare


def expressions_of(aggregate: Aggregate) -> Iterator[Expression]:
    yield from (*aggregate.keys, *aggregate.where)
    for each in aggregate.readings:
        if each.where is not None:
            yield each.where
        if isinstance(each, Sum):
            yield from (factor.value for factor in each.factors)
        if isinstance(each, Distinct):
            yield from each.values


def _or_null(found: Origins, column: Column) -> Origins:
    """In an outer join NULL is one more value; a constant of a side that may be missing is two
    values.
    """
    return frozenset((name, rows + 1) for name, rows in found) or frozenset(
        {(f"{column.stage}.{column.name}", 2)}
    )

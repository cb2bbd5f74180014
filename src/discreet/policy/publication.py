"""Read `hierarchies` and `publications` of a policy: levels of places, and tables of them that add
up (S18).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.budget import number
from discreet.policy.declaration import check_names
from discreet.policy.document import List, Map, Node, Reader, Scalar, nearest, rational

EVERYWHERE = "all"  # the level above the first: one place that holds all others
TOTAL = "total"  # the table without columns

Combination = Mapping[str, tuple[str, ...]]  # for some columns, values of each

_HIERARCHY_KEYS = ("levels", "table")
_KEYS = ("table", "hierarchy", "tables", "epsilon", "split", "zeros", "invariants")
_NEEDED = ("table", "hierarchy", "tables", "epsilon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Columns from coarse to fine: each value of a column lies in one value of the column before
    it.

    `table` is the public table that says which lies in which. None: the one public table that has
    all the columns, or else every combination of the columns' declared values.
    """

    name: str
    levels: tuple[str, ...]
    table: str | None

    def homes(self, columns: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the public tables that could list its places, by the columns of each: the one that
        is named, or any.
        """
        having = [name for name, each in columns.items() if set(self.levels) <= set(each)]
        return having if self.table is None else [name for name in having if name == self.table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabulation:
    """One table: people by these columns, at every level. `weight` says how much its errors
    matter.
    """

    name: str
    columns: tuple[str, ...]
    weight: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """Totals of a level that are published as they are, because a law or a reason says so.

    They are read from the public table `values`, never from private rows: what is exact is public
    already.
    """

    level: str
    values: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationTerms:
    """One publication: which tables of which private table, at which levels, for how much.

    `levels` and `shares` split the budget over levels and over tables; None: the publication
    chooses. `zeros` are combinations of values that nobody can have.
    """

    name: str
    table: str
    hierarchy: Hierarchy
    tables: tuple[Tabulation, ...]
    epsilon: Fraction
    levels: Mapping[str, Fraction] | None
    shares: Mapping[str, Fraction] | None
    zeros: tuple[Combination, ...]
    invariants: tuple[Invariant, ...]

    def meaning(self) -> list[object]:
        """Return all that a publication depends on: changed, it is another one, and paid anew."""
        hierarchy = [self.hierarchy.name, list(self.hierarchy.levels), self.hierarchy.table]
        tables = [[each.name, list(each.columns), str(each.weight)] for each in self.tables]
        splits = [
            None if each is None else {name: str(share) for name, share in each.items()}
            for each in (self.levels, self.shares)
        ]
        zeros = [{name: list(values) for name, values in each.items()} for each in self.zeros]
        invariants = [[each.level, each.values, each.because] for each in self.invariants]
        return [
            self.name,
            self.table,
            hierarchy,
            tables,
            str(self.epsilon),
            splits,
            zeros,
            invariants,
        ]


# --- hierarchies ----------------------------------------------------------------------------------


def hierarchies(
    reader: Reader, node: Node | None, *, public: Mapping[str, bool]
) -> dict[str, Hierarchy]:
    """Read everything under `hierarchies`; `public` tells of each table of the policy if it is
    public.
    """
    entries = reader.fields(node, "hierarchies", ("hierarchies",), None)
    check_names(reader, node, "hierarchy", ())
    read = {name: _hierarchy(reader, name, value, public) for name, value in entries.items()}
    return {name: hierarchy for name, hierarchy in read.items() if hierarchy is not None}


def _hierarchy(
    reader: Reader, name: str, node: Node, public: Mapping[str, bool]
) -> Hierarchy | None:
    what = f"hierarchies.{name}"
    levels, table = node, None
    if isinstance(node, Map):
        fields = reader.fields(node, what, ("hierarchies", name), _HIERARCHY_KEYS)
        if "levels" not in fields:
            reader.problem(
                node,
                f"{what} needs levels, from coarse to fine: write levels: [state, county, block].",
            )
            return None
        levels = fields["levels"]
        table = reader.string(
            fields.get("table"), f"{what}.table", "a public table with these columns"
        )
        if table is not None and not public.get(table, False):
            why = "is private" if table in public else "is not a table here"
            known = nearest(table, [each for each, open_ in public.items() if open_])
            reader.problem(
                fields["table"], f"{what}.table: {table} {why}. It must be a public table. {known}"
            )
    names = _names(
        reader, levels, what, "columns from coarse to fine, such as [state, county, tract, block]"
    )
    if names is None or not names:
        if names is not None:
            reader.problem(levels, f"{what} has no levels: write columns from coarse to fine.")
        return None
    if EVERYWHERE in names:
        reader.problem(
            levels,
            f"{what}: {EVERYWHERE} is the level above the first. Rename the column, or leave it out.",
        )
    return Hierarchy(name=name, levels=names, table=table)


def _names(reader: Reader, node: Node, what: str, expected: str) -> tuple[str, ...] | None:
    """Read different names in a list, which may be empty."""
    if not isinstance(node, List) or not all(
        isinstance(item, Scalar) and item.text for item in node.items
    ):
        reader.wrong(node, what, expected)
        return None
    names = tuple(item.text for item in node.items if isinstance(item, Scalar))
    for place, item in enumerate(node.items):
        if names[place] in names[:place]:
            reader.problem(item, f"{what} names {item} twice.")
            return None
    return names


# --- publications ---------------------------------------------------------------------------------


def publications(
    reader: Reader,
    node: Node | None,
    *,
    columns: Mapping[str, Sequence[str]],
    public: Mapping[str, bool],
    known: Mapping[str, Hierarchy],
    most: Fraction | None,
) -> dict[str, PublicationTerms]:
    """Read everything under `publications`. `columns` are those that each private table
    declares.
    """
    entries = reader.fields(node, "publications", ("publications",), None)
    check_names(reader, node, "publication", ())
    scope = _Scope(reader=reader, columns=columns, public=public, known=known, most=most)
    read = {name: scope.publication(name, value) for name, value in entries.items()}
    return {name: terms for name, terms in read.items() if terms is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """The tables, columns and levels that a publication may name."""

    reader: Reader
    columns: Mapping[str, Sequence[str]]
    public: Mapping[str, bool]
    known: Mapping[str, Hierarchy]
    most: Fraction | None

    def publication(self, name: str, node: Node) -> PublicationTerms | None:
        reader = self.reader
        what = f"publications.{name}"
        if not isinstance(node, Map):
            reader.wrong(node, what, f"a mapping with {', '.join(_NEEDED)}")
            return None
        before = len(reader.problems)
        fields = reader.fields(node, what, ("publications", name), _KEYS)
        missing = [key for key in _NEEDED if key not in fields]
        if missing:
            reader.problem(node, f"{what} needs {', '.join(missing)}.")
        table = reader.string(fields.get("table"), f"{what}.table", "a private table")
        if table is not None and table not in self.columns:
            why = "is public" if table in self.public else "is not a table here"
            reader.problem(
                fields["table"], f"{what}.table: {table} {why}. {nearest(table, self.columns)}"
            )
        hierarchy = self._hierarchy(fields.get("hierarchy"), f"{what}.hierarchy")
        tables = self._tables(fields.get("tables"), f"{what}.tables", table)
        epsilon = reader.amount(fields.get("epsilon"), f"{what}.epsilon")
        if epsilon is not None and self.most is not None and epsilon > self.most:
            reader.problem(
                fields["epsilon"],
                f"{what}.epsilon must be at most the budget's, {number(self.most)}.",
            )
        levels = (EVERYWHERE, *hierarchy.levels) if hierarchy is not None else ()
        path = ("publications", name, "split")
        split = reader.fields(fields.get("split"), f"{what}.split", path, ("levels", "tables"))
        of_levels = self._shares(split.get("levels"), f"{what}.split.levels", levels)
        of_tables = self._shares(
            split.get("tables"), f"{what}.split.tables", [each.name for each in tables]
        )
        zeros = self._zeros(fields.get("zeros"), f"{what}.zeros", tables)
        invariants = self._invariants(fields.get("invariants"), f"{what}.invariants", levels)
        if len(reader.problems) > before or table is None or hierarchy is None or epsilon is None:
            return None
        return PublicationTerms(
            name=name,
            table=table,
            hierarchy=hierarchy,
            tables=tables,
            epsilon=epsilon,
            levels=of_levels,
            shares=of_tables,
            zeros=zeros,
            invariants=invariants,
        )

    def _hierarchy(self, node: Node | None, what: str) -> Hierarchy | None:
        name = self.reader.string(node, what, "the name of a hierarchy of this policy")
        if node is None or name is None:
            return None
        if name not in self.known:
            declare = "Declare it: hierarchies: {geography: [state, county, block]}."
            hint = nearest(name, self.known) if self.known else declare
            self.reader.problem(node, f"{what}: {name} is not a hierarchy of this policy. {hint}")
        return self.known.get(name)

    def _tables(self, node: Node | None, what: str, table: str | None) -> tuple[Tabulation, ...]:
        expected = "a list of lists of columns, such as [[], [sex], [sex, age]]"
        if node is None:
            return ()
        if not isinstance(node, List) or not node.items:
            self.reader.wrong(node, what, expected)
            return ()
        found: dict[str, Tabulation] = {}
        for item in node.items:
            read = self._tabulation(item, what, table)
            if read is None:
                continue
            if read.name in found or any(
                set(read.columns) == set(other.columns) for other in found.values()
            ):
                self.reader.problem(item, f"{what} has the table {read.name} twice.")
            found[read.name] = read
        return tuple(found.values())

    def _tabulation(self, item: Node, what: str, table: str | None) -> Tabulation | None:
        node = item
        weight = Fraction(1)
        if isinstance(item, Map):
            fields = self.reader.fields(item, what, (), ("columns", "weight"))
            if "columns" not in fields:
                self.reader.problem(
                    item,
                    f"{what}: a table needs columns: write {{columns: [sex, age], weight: 2}}.",
                )
                return None
            node = fields["columns"]
            if "weight" in fields:
                read = _positive(self.reader, fields["weight"], f"{what}: a weight")
                weight = Fraction(1) if read is None else read
        names = _names(
            self.reader, node, what, "a list of columns, such as [sex, age]; [] is the total"
        )
        if names is None:
            return None
        known = self.columns.get(table or "")
        for name in names:
            if known is not None and name not in known:
                self.reader.problem(
                    item, f"{what}: {table} declares no column {name}. {nearest(name, known)}"
                )
        return Tabulation(name="_".join(names) or TOTAL, columns=names, weight=weight)

    def _shares(
        self, node: Node | None, what: str, names: Sequence[str]
    ) -> dict[str, Fraction] | None:
        """Read a share for each name; what is not named gets none."""
        if node is None:
            return None
        found = dict.fromkeys(names, Fraction(0))
        if not isinstance(node, Map):
            self.reader.wrong(
                node, what, "a mapping of names to shares, such as {state: 3, county: 1}"
            )
            return None
        for name, (key, value) in node.entries.items():
            if name not in found:
                self.reader.problem(key, f"{what}: there is no {key} here. {nearest(name, names)}")
                continue
            share = _positive(self.reader, value, f"{what}.{name}", zero=True)
            found[name] = Fraction(0) if share is None else share
        if names and not any(found.values()):
            self.reader.problem(
                node,
                f"{what}: every share is zero, so nothing would be measured. Give one of them 1.",
            )
        return found

    def _zeros(
        self, node: Node | None, what: str, tables: Sequence[Tabulation]
    ) -> tuple[Combination, ...]:
        expected = (
            "a list of combinations that nobody has, such as [{age: 3, status: [married, widowed]}]"
        )
        if node is None:
            return ()
        if not isinstance(node, List):
            self.reader.wrong(node, what, expected)
            return ()
        used = {column for each in tables for column in each.columns}
        found = []
        for item in node.items:
            if not isinstance(item, Map) or not item.entries:
                self.reader.wrong(item, what, expected)
                continue
            combination = {}
            for column, (key, value) in item.entries.items():
                if column not in used:
                    self.reader.problem(
                        key, f"{what}: {key} is in none of the tables. {nearest(column, used)}"
                    )
                values = value.items if isinstance(value, List) else (value,)
                texts = tuple(each.text for each in values if isinstance(each, Scalar))
                if len(texts) < len(values) or not texts:
                    self.reader.wrong(value, f"{what}.{column}", "a value or a list of values")
                combination[column] = texts
            found.append(combination)
        return tuple(found)

    def _invariants(
        self, node: Node | None, what: str, levels: Sequence[str]
    ) -> tuple[Invariant, ...]:
        expected = "a list such as [{level: state, values: state_totals, because: the law that publishes them}]"
        if node is None:
            return ()
        if not isinstance(node, List):
            self.reader.wrong(node, what, expected)
            return ()
        read = [self._invariant(item, what, levels, expected) for item in node.items]
        return tuple(each for each in read if each is not None)

    def _invariant(
        self, node: Node, what: str, levels: Sequence[str], expected: str
    ) -> Invariant | None:
        if not isinstance(node, Map):
            self.reader.wrong(node, what, expected)
            return None
        fields = self.reader.fields(node, what, (), ("level", "values", "because"))
        level = self.reader.string(fields.get("level"), f"{what}.level", "a level of the hierarchy")
        values = self.reader.string(
            fields.get("values"), f"{what}.values", "a public table with the exact totals"
        )
        because = self.reader.string(
            fields.get("because"), f"{what}.because", "the law or the reason, in words"
        )
        if "because" not in fields:
            self.reader.problem(
                node,
                f"{what}: exact numbers about people need `because`, the law or reason that makes them public.",
            )
        if "level" not in fields or "values" not in fields:
            self.reader.problem(node, f"{what} must be {expected}.")
        if level is not None and levels and level not in levels:
            self.reader.problem(
                fields["level"], f"{what}: there is no level {level}. {nearest(level, levels)}"
            )
        if values is not None and not self.public.get(values, False):
            public = [each for each, open_ in self.public.items() if open_]
            self.reader.problem(
                fields["values"],
                f"{what}: {values} is not a public table. What is exact comes from a table that is public already, "
                f"never from private rows. {nearest(values, public)}",
            )
        if level is None or values is None or because is None:
            return None
        return Invariant(level=level, values=values, because=because)


def _positive(reader: Reader, node: Node, what: str, *, zero: bool = False) -> Fraction | None:
    """Read a number above zero, or also zero; anything else is a problem."""
    value = rational(node.text) if isinstance(node, Scalar) else None
    if value is None or value < 0 or (value == 0 and not zero):
        reader.wrong(node, what, f"a number {'from' if zero else 'above'} zero")
        return None
    return value

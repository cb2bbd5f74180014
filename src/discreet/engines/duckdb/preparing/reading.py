"""Write the SQL of a table's rows as they will be stored: keys that lead to owners, values on their
grid, and what happened to each value.

Each row is read by itself, by types that the whole source decides. So the result for a row is the
same whether all files are read at once or one by one, here or on a cluster's workers (S4, S23). The
owner of a row may depend on another table, so the caller finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.engines.duckdb.preparing import encode
from discreet.engines.duckdb.preparing.parts import SourcePart
from discreet.engines.duckdb.preparing.schema import Parts, keys_of, kind_of
from discreet.engines.quoting import name
from discreet.engines.snapshot import ColumnReport
from discreet.policy.domain import Categories, Column
from discreet.policy.owners import Through
from discreet.policy.policy import Policy, Table

# of a row: its owner, or what leads to its owner in the table that it goes through
KEY = name("#key")
MISSING, NULLED, CLAMPED, ROUNDED = 1, 2, 3, 4  # what became of a value


@dataclass(frozen=True, slots=True)
class SourceReading:
    """The rules for reading the tables of a policy; `parts` are those of the whole source, by their
    names and types.
    """

    policy: Policy
    parts: Parts

    @property
    def owner_types(self) -> tuple[str, ...]:
        """The types in which the keys of people are compared, of whichever table."""
        tables = self.policy.tables.values()
        direct = [
            each for each in tables if not each.public and not isinstance(each.owner, Through)
        ]
        places = zip(*(each.owner_columns for each in direct), strict=True)
        return tuple(
            encode.key_type(
                kind
                for each, column in zip(direct, place, strict=True)
                for kind in self._kinds(each, column)
            )
            for place in places
        )

    def going_through(self, table: Table) -> list[Table]:
        """Return the tables whose owners are found through this one."""
        throughs = [each for each in self.policy.tables.values() if isinstance(each.owner, Through)]
        return [
            each
            for each in throughs
            if isinstance(each.owner, Through) and each.owner.table == table.name
        ]

    def rows(self, table: Table, parts: Iterable[SourcePart]) -> str:
        """Return the SQL of the rows of these parts of a table: KEY, the keys of tables that go
        through it, and each value with its state.
        """
        used = sorted(
            {
                column.lower(): column for column in (*keys_of(self.policy, table), *table.columns)
            }.values()
        )
        # parts with equal types are worked on together
        alike: dict[tuple[str | None, ...], list[str]] = {}
        for part in parts:
            kinds = tuple(kind_of(part, column) for column in used)
            alike.setdefault(kinds, []).append(source_columns(part, used, trim=table.read.trim))
        pieces = []
        for kinds, rows in alike.items():
            types = _types(used, kinds)
            pieces.append(self._state(table, self._encode(table, " UNION ALL ".join(rows), types)))
        return " UNION ALL ".join(pieces)

    def as_written(self, table: Table, part: SourcePart, column: str) -> str:
        """Return the SQL of a column of a part as the source has it, and of the KEY of each row."""
        used = sorted({each.lower(): each for each in (*table.owner_columns, column)}.values())
        types = _types(used, [kind_of(part, each) for each in used])
        rows = source_columns(part, used, trim=table.read.trim)
        return f"SELECT {self._key(table, types)} AS {KEY}, * FROM ({rows})"

    def _common(self, table: Table) -> str:
        """Return the type in which a table's keys and those of the table it goes through are
        compared.
        """
        assert isinstance(table.owner, Through)
        via = self.policy.tables[table.owner.table]
        on = table.owner.on
        return encode.key_type((*self._kinds(table, on), *self._kinds(via, on)))

    def _kinds(self, table: Table, column: str) -> list[str]:
        return [
            kind for part in self.parts[table.name] if (kind := kind_of(part, column)) is not None
        ]

    def _key(self, table: Table, types: Mapping[str, str | None]) -> str:
        """Return the SQL of a row's owner, or of what leads to it; NULL if the row has none."""
        common = (self._common(table),) if isinstance(table.owner, Through) else self.owner_types
        keys = [
            _as_key(key, types, kind) for key, kind in zip(table.owner_columns, common, strict=True)
        ]
        return encode.together(keys)

    def _encode(self, table: Table, rows: str, types: Mapping[str, str | None]) -> str:
        found = [f"{self._key(table, types)} AS {KEY}"]
        for other in self.going_through(table):
            (on,) = other.owner_columns
            found.append(f"{_as_key(on, types, self._common(other))} AS {key_of(other)}")
        for place, column in enumerate(table.columns.values()):
            kind = types[column.name.lower()]
            if kind is None:
                elsewhere = next(iter(self._kinds(table, column.name)), "VARCHAR")
                nothing = encode.form_of(column.domain, "NULL", elsewhere).type
                found.append(f"CAST(NULL AS {nothing}) AS {_place('value', place)}")
                found.append(
                    f"true AS {_place('missing', place)}, false AS {_place('clamped', place)}, "
                    f"false AS {_place('rounded', place)}"
                )
                continue
            own = encode.form_of(
                column.domain,
                source_column(column.name),
                kind,
                lookup=values_of(table, column),
                read=table.read,
                format=column.format,
            )
            found.append(f"{own.value} AS {_place('value', place)}")
            found.append(f"{is_missing(column.name)} AS {_place('missing', place)}")
            found.append(f"{own.clamped} AS {_place('clamped', place)}")
            found.append(f"{own.rounded} AS {_place('rounded', place)}")
        return f"SELECT {', '.join(found)} FROM ({rows})"

    def _state(self, table: Table, encoded: str) -> str:
        """Return the SQL of rows with the state of each value: what happened to it."""
        listed = [KEY, *(key_of(other) for other in self.going_through(table))]
        for place, column in enumerate(table.columns):
            listed.append(f"{_place('value', place)} AS {name(column)}")
            listed.append(
                f"CAST(CASE WHEN {_place('missing', place)} THEN {MISSING} WHEN {_place('value', place)} IS NULL "
                f"THEN {NULLED} WHEN {_place('clamped', place)} THEN {CLAMPED} "
                f"WHEN {_place('rounded', place)} THEN {ROUNDED} ELSE 0 END AS UTINYINT) "
                f"AS {name(state_name(place))}"
            )
        return f"SELECT {', '.join(listed)} FROM ({encoded})"


def list_values(connection: Any, table: Table) -> None:
    """Make a temporary table from values to codes for each long list."""
    import pyarrow as pa

    for column in table.columns.values():
        if encode.is_long(column.domain) and isinstance(column.domain, Categories):
            values = [str(value) for value in column.domain.values]
            connection.register("#list", pa.table({"#value": values, "#code": range(len(values))}))
            value = 'lower("#value")' if table.read.fold else '"#value"'
            listed = f'SELECT {value} AS "#value", min("#code") AS "#code" FROM {name("#list")} GROUP BY 1'
            connection.execute(f"CREATE TEMP TABLE {values_of(table, column)} AS {listed}")
            connection.unregister("#list")


def counts_of(table: Table, owner: str, *, quote: Callable[[str], str] = name) -> tuple[str, ...]:
    """Return the SQL of the counts of a table's rows. `reports_of` reads these numbers."""
    counts = ["count(*)", f"count({owner})"]
    for place in range(len(table.columns)):
        for each in (MISSING, NULLED, CLAMPED, ROUNDED):
            which = f"{quote(state_name(place))} = {each} AND {owner} IS NOT NULL"
            counts.append(f"count(*) FILTER (WHERE {which})")
    return tuple(counts)


def reports_of(table: Table, counts: Sequence[int]) -> tuple[int, int, tuple[ColumnReport, ...]]:
    """Return the number of rows, the number with an owner, and what happened to their values."""
    rows, owned, *found = counts
    reports = tuple(
        ColumnReport(name=column, missing=missing, nulled=nulled, clamped=clamped, rounded=rounded)
        for column, missing, nulled, clamped, rounded in zip(
            table.columns, *(found[start::4] for start in range(4)), strict=True
        )
    )
    return rows, owned, reports


def source_columns(part: SourcePart, used: list[str], *, trim: bool) -> str:
    """Return the columns of a part that are used, under names of ours; texts that are no UTF-8 are
    NULL, and not missing.
    """
    found = []
    for column in used:
        own = next((each for each in part.columns if each.lower() == column.lower()), None)
        kind = kind_of(part, column)
        if own is None or kind is None:
            found.append(f"NULL AS {source_column(column)}, true AS {is_missing(column)}")
            continue
        value = name(own)
        missing = f"{name(own)} IS NULL"
        if encode.family(kind) == encode.TEXT:
            value = part.readable(own)
        if encode.family(kind) == encode.TEXT and trim:
            missing = f"({missing} OR coalesce({encode.trim(value)} IS NULL AND {value} IS NOT NULL, false))"
            value = encode.trim(value)
        found.append(f"{value} AS {source_column(column)}, {missing} AS {is_missing(column)}")
    return f"SELECT {', '.join(found) or 'true'} FROM {part.relation}"


def key_of(table: Table) -> str:
    """Return the column of the keys by which another table's owners are found."""
    return name(f"#key of {table.name}")


def state_name(place: int) -> str:
    """Return the name of the column with the state of a value: MISSING, NULLED, CLAMPED, ROUNDED or
    0.
    """
    return f"#state {place}"


def source_column(column: str) -> str:
    return name(f"#source {column.lower()}")


def is_missing(column: str) -> str:
    return name(f"#missing {column.lower()}")


def values_of(table: Table, column: Column) -> str:
    """Return the temporary table of a long list."""
    return name(f"#values of {table.name}.{column.name}")


def _place(what: str, place: int) -> str:
    return name(f"#{what} {place}")


def _types(used: Iterable[str], kinds: Iterable[str | None]) -> dict[str, str | None]:
    """Return the types of columns as they are read, by their names in lower case."""
    return {
        column.lower(): "VARCHAR"
        if kind is not None and encode.family(kind) == encode.TEXT
        else kind
        for column, kind in zip(used, kinds, strict=True)
    }


def _as_key(column: str, types: Mapping[str, str | None], common: str) -> str:
    kind = types[column.lower()]
    if kind is None:
        return f"CAST(NULL AS {common})"
    return encode.key(source_column(column), kind, common)

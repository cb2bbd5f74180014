"""Released tables: computed from noisy and public tables, so that anybody may see them.

Each column may have its half-widths beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.sql.after.error_bars import HalfWidth
from discreet.sql.after.rebuild import as_sql
from discreet.sql.after.widths.linear import Form
from discreet.sql.text.parse import reject
from discreet.sql.text.postgres import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A column of a released table; `margin` computes its half-widths from the tables in FROM."""

    name: str
    margin: exp.Expression | None
    estimate: tuple[int, int] | None
    # further estimates in the same column: a UNION ALL has those of both sides
    also: tuple[tuple[int, int], ...] = ()
    # its form if it is linear in noise; one for each side of a UNION ALL
    forms: tuple[Form, ...] = ()
    kind: Kind | None = None  # its type in Postgres, if its meaning depends on it
    half_width: HalfWidth | None = None  # set if MARGIN made the column


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTable:
    """A table that anybody may see: `tree` computes it from noisy and public tables."""

    tree: exp.Select
    outputs: tuple[Output, ...]
    selected: bool = False  # noise may decide which rows it has
    distinct: bool = False  # a row may stand for several rows, so it has no margins
    noisy: bool = True
    stored: str | None = None  # the name of the public table, if this is one unchanged
    # columns, in small letters, that no two rows have alike: GROUP BY; none for a single row. None
    # where this is not known
    keys: frozenset[str] | None = None

    def render(self, *, margins: bool) -> str:
        """Return the SQL; with `margins`, columns of half-widths follow the others."""
        return as_sql(self.with_margin_columns() if margins else self.tree)

    def with_margin_columns(self) -> exp.Select:
        """Return the statement with its columns of half-widths."""
        tree = self.tree.copy()
        if self.distinct:
            return tree
        for output in self.outputs:
            if output.margin is not None:
                margin = exp.alias_(output.margin.copy(), shadow(output.name), quoted=True)
                tree.select(margin, copy=False)
        return tree

    def without_margins(self) -> OutputTable:
        """Return the same table without margins."""
        outputs = [replace(output, margin=None, forms=()) for output in self.outputs]
        return replace(self, outputs=tuple(outputs))

    def rename(self, names: Sequence[str]) -> OutputTable:
        """Return the same table with other names for its first columns."""
        all_names = [*names, *(output.name for output in self.outputs[len(names) :])]
        items = []
        outputs = []
        for output, name in zip(self.outputs, all_names, strict=True):
            item, renamed = pass_on("r", output, name)
            items.append(item)
            if self.distinct:
                renamed = replace(renamed, margin=None, forms=())
            outputs.append(renamed)
        alias = exp.TableAlias(this=exp.to_identifier("r"))
        inner = exp.Subquery(this=self.with_margin_columns(), alias=alias)
        tree = exp.select(*items).from_(inner)
        keys = rename_keys(
            self.keys,
            [(old.name, new) for old, new in zip(self.outputs, all_names, strict=True)],
        )
        return replace(self, tree=tree, outputs=tuple(outputs), stored=None, keys=keys)


def rename_keys(
    keys: frozenset[str] | None, shown: Sequence[tuple[str, str]]
) -> frozenset[str] | None:
    """Return the keys by the names under which they are shown; None if one is not."""
    names = {old.lower(): new.lower() for old, new in shown}
    if keys is None or not keys <= names.keys():
        return None
    return frozenset(names[key] for key in keys)


def require_distinct_names(table: OutputTable, node: exp.Expression) -> OutputTable:
    """Return the table; refuse it if two columns have one name.

    Outer queries find columns by their names.
    """
    names = [output.name.lower() for output in table.outputs]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise reject(
            node, f"two columns are called {twice}.", "Give each a name of its own: x AS a, y AS b."
        )
    return table


def shadow(name: str) -> str:
    """Return the name of the column that has the half-widths of another."""
    return f"#margin {name}"


def pass_on(alias: str, output: Output, name: str) -> tuple[exp.Expression, Output]:
    """Return a column of a table as an outer query selects it: unchanged, with its margins."""
    column = exp.column(output.name, table=alias, quoted=True)
    margin = output.margin and shadowing(alias, output.name)
    return exp.alias_(column, name, quoted=True), replace(output, name=name, margin=margin)


def shadowing(alias: str, name: str) -> exp.Expression:
    """Return the column that has the half-widths of a table's column."""
    return exp.column(shadow(name), table=alias, quoted=True)


# adds to a column the half-width of a form of several numbers
Combine = Callable[[Output, Form], Output]

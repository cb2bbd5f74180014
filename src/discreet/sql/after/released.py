"""Tables that may be shown: computed from noisy and public tables, each column with its half-widths
beside it.
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
    """A column of a released table. `margin` computes its half-widths from the tables in its FROM
    clause.
    """

    name: str
    margin: exp.Expression | None
    estimate: tuple[int, int] | None
    # further estimates in the same column: a UNION ALL has those of both sides
    also: tuple[tuple[int, int], ...] = ()
    # where it is linear in noise: a form, or one for each side of a UNION ALL
    forms: tuple[Form, ...] = ()
    kind: Kind | None = None  # its type in Postgres, as far as its meaning depends on that
    half_width: HalfWidth | None = None  # where MARGIN made it


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTable:
    """A table that may be shown: `tree` computes it from noisy and public tables."""

    tree: exp.Select
    outputs: tuple[Output, ...]
    selected: bool = False
    distinct: bool = False
    noisy: bool = True
    stored: str | None = None  # the public table that this is, if it is one as it stands

    def render(self, *, margins: bool) -> str:
        """Return the SQL; with margins, each output's half-width follows as a column of its own."""
        return as_sql(self.with_margin_columns() if margins else self.tree)

    def with_margin_columns(self) -> exp.Select:
        tree = self.tree.copy()
        if self.distinct:
            return tree
        for output in self.outputs:
            if output.margin is not None:
                tree.select(
                    exp.alias_(output.margin.copy(), shadow(output.name), quoted=True), copy=False
                )
        return tree

    def without_margins(self) -> OutputTable:
        """Return the same table without margins: its rows stand for several."""
        return replace(
            self, outputs=tuple(replace(each, margin=None, forms=()) for each in self.outputs)
        )

    def rename(self, names: Sequence[str]) -> OutputTable:
        """Return the same table with other names for its first columns."""
        alias = exp.TableAlias(this=exp.to_identifier("r"))
        every = [*names, *(output.name for output in self.outputs[len(names) :])]
        pairs = [
            pass_on("r", output, name) for output, name in zip(self.outputs, every, strict=True)
        ]
        tree = exp.select(*(item for item, _ in pairs)).from_(
            exp.Subquery(this=self.with_margin_columns(), alias=alias)
        )
        kept = tuple(
            replace(output, margin=None, forms=()) if self.distinct else output
            for _, output in pairs
        )
        return replace(self, tree=tree, outputs=kept, stored=None)


def require_distinct_names(table: OutputTable, node: exp.Expression) -> OutputTable:
    """Return the table; refuse it if two columns have one name, since outer queries find columns by
    name.
    """
    names = [output.name.lower() for output in table.outputs]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise reject(
            node, f"two columns are called {twice}.", "Give each a name of its own: x AS a, y AS b."
        )
    return table


def shadow(name: str) -> str:
    return f"#margin {name}"


def pass_on(alias: str, output: Output, name: str) -> tuple[exp.Expression, Output]:
    """Return a column as an outer query hands it on: unchanged, with its margins."""
    expression = exp.alias_(exp.column(output.name, table=alias, quoted=True), name, quoted=True)
    return expression, replace(
        output, name=name, margin=output.margin and shadowing(alias, output.name)
    )


def shadowing(alias: str, name: str) -> exp.Expression:
    """Return the half-widths of a table's column."""
    return exp.column(shadow(name), table=alias, quoted=True)


# the column, with the half-width of a form of several numbers
Combine = Callable[[Output, Form], Output]

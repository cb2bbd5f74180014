"""Find statements that the analyst may prefer: the same without one of its columns, or one that
counts each person once.

They may not be better. `asking.savings` plans and prices each like a question, and suggests it only
if its margins are smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from discreet.algebra import Sum
from discreet.policy.policy import Policy
from discreet.sql.plan.block import Statistic
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan
from discreet.sql.text.dialect import Dialect
from discreet.sql.text.parse import parse, quote_if_needed, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A description of another statement."""

    says: str  # the beginning of a sentence about it
    kept: tuple[int, ...]  # the columns of the original statement that it has
    about: int | None = None  # the column to compare; None for the one that gains most


Way = tuple[Alternative, exp.Query]


def alternatives(text: str, found: Plan, policy: Policy, *, dialect: Dialect) -> Iterator[Way]:
    """Yield alternatives to a statement, each with its tree, at most one of each kind.

    The text is parsed only if there may be one.
    """
    spare = _spare(found)
    counts = _counts_rows(found)
    if spare is None and not counts:
        return
    tree = parse(text, limit=policy.limits.statement, dialect=dialect, tables=policy.tables)
    if not isinstance(tree, exp.Select) or len(tree.expressions) != len(found.columns):
        return
    if counts:
        yield from _people(tree if spare is None else tree.copy(), counts, policy)
    if spare is not None and not isinstance(tree.expressions[spare].unalias(), exp.Column):
        yield _without(tree, spare)


def _measures(plan: Plan) -> dict[int, set[tuple[int, str]]]:
    """Return, for each column that is an aggregate, its statistics and picks by block and id."""
    measures: dict[int, set[tuple[int, str]]] = {}
    for place, column in enumerate(plan.columns):
        aggregates = [] if column.estimate is None else [column.estimate]
        for block, number in (*aggregates, *column.also):
            aggregate = plan.blocks[block].aggregates[number]
            one = aggregate if isinstance(aggregate, Pick) else aggregate[0]
            if not isinstance(one, Statistic) or not one.tested:
                measures.setdefault(place, set()).add((block, one.id))
    return measures


def _spare(plan: Plan) -> int | None:
    """Return the column without which the others get the most ε, or None.

    It is the column that needs the most statistics for itself alone; otherwise a column that shares
    a statistic of several numbers. Of several such columns it is the last.
    """
    measures = _measures(plan)
    noisy = [place for place, column in enumerate(plan.columns) if column.measured]
    if len(measures.keys() | noisy) < 2:
        return None
    several = set()
    for index, block in enumerate(plan.blocks):
        several |= {(index, each.id) for each in block.statistics if len(each.forms) > 1}

    def gain(place: int) -> tuple[int, bool, int]:
        others = (own for other, own in measures.items() if other != place)
        alone = measures[place].difference(*others)
        return len(alone), bool(measures[place] & several), place

    best = max(measures, key=gain, default=None)
    if best is None or not any(gain(best)[:2]):
        return None
    return best


def _counts_rows(plan: Plan) -> list[int]:
    """Return the columns that are counts of rows, if a person may have several rows."""
    places = []
    for place, column in enumerate(plan.columns):
        if column.estimate is None:
            continue
        index, number = column.estimate
        block = plan.blocks[index]
        if block.rows < 2:
            continue
        aggregate = block.aggregates[number]
        if isinstance(aggregate, Pick) or len(aggregate[0].forms) > 1:
            continue
        if all(isinstance(each, Sum) and not each.factors for each in aggregate[0].reads):
            places.append(place)
    return places


def _people(tree: exp.Select, counts: list[int], policy: Policy) -> Iterator[Way]:
    """Yield the statement with COUNT(DISTINCT owner) instead of COUNT(*), if the owner of a table is
    a plain column.
    """
    first = tree.args.get("from_")
    joins = [each.this for each in tree.args.get("joins") or ()]
    tables = {name.lower(): table for name, table in policy.tables.items()}
    about = next((place for place in counts if _is_count(tree.expressions[place])), None)
    if first is None or about is None:
        return
    for source in (first.this, *joins):
        table = tables.get(source.name.lower()) if isinstance(source, exp.Table) else None
        if table is None or not isinstance(table.owner, str):
            continue
        alias = source.alias_or_name
        owner = exp.column(exp.to_identifier(table.owner), exp.to_identifier(alias))
        for each in list(tree.find_all(exp.Count)):
            if _counts_all(each) and each.find_ancestor(exp.Select) is tree:
                each.set("this", exp.Distinct(expressions=[owner.copy()]))
        name = quote_if_needed(table.owner)
        if joins:
            name = f"{quote_if_needed(alias)}.{name}"
        alternative = Alternative(
            says=f"COUNT(DISTINCT {name}) counts each {policy.unit} once",
            kept=tuple(range(len(tree.expressions))),
            about=about,
        )
        yield alternative, tree
        return


def _is_count(column: exp.Expression) -> bool:
    """Return True for COUNT(*), with or without a FILTER."""
    item = column.unalias()
    return _counts_all(item.this if isinstance(item, exp.Filter) else item)


def _counts_all(node: exp.Expression) -> bool:
    return isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star))


def _without(tree: exp.Select, place: int) -> Way:
    """Return the statement without one of its columns."""
    says = f"Without {show(tree.expressions[place].unalias())}"
    kept = tuple(each for each in range(len(tree.expressions)) if each != place)
    tree.set("expressions", [tree.expressions[each] for each in kept])
    return Alternative(says=says, kept=kept), tree

"""Find statements that an asker may prefer to the one written: without one of its columns, or
counting each person once.

Nothing here says that they are better: each is planned and priced as a question is, and told only
where its margins are smaller (`asking.savings`).
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
    """Another statement: how a sentence about it begins, and which columns of the written one it
    has.
    """

    says: str
    kept: tuple[int, ...]
    about: int | None = None  # the column that it is about; None: whichever gains most


Way = tuple[Alternative, exp.Query]


def alternatives(text: str, found: Plan, policy: Policy, *, dialect: Dialect) -> Iterator[Way]:
    """Yield what may save with its tree, at most one of each kind; a statement is parsed only where
    one may.
    """
    spare, counts = _spare(found), _counts_rows(found)
    if spare is None and not counts:
        return
    tree = parse(text, limit=policy.limits.statement, dialect=dialect, tables=policy.tables)
    if not isinstance(tree, exp.Select) or len(tree.expressions) != len(found.columns):
        return
    if counts:
        yield from _people(tree if spare is None else tree.copy(), counts, policy)
    if spare is not None and not isinstance(tree.expressions[spare].unalias(), exp.Column):
        yield _without(tree, spare)


def _measures(found: Plan) -> dict[int, set[tuple[int, str]]]:
    """Return which statistics and picks each column that is an aggregate takes: blocks and ids."""
    measures: dict[int, set[tuple[int, str]]] = {}
    for place, column in enumerate(found.columns):
        for block, number in (*([column.estimate] if column.estimate else []), *column.also):
            aggregate = found.blocks[block].aggregates[number]
            one = aggregate if isinstance(aggregate, Pick) else aggregate[0]
            if not isinstance(one, Statistic) or not one.tested:
                measures.setdefault(place, set()).add((block, one.id))
    return measures


def _spare(found: Plan) -> int | None:
    """Return the column without which most ε is left to others: the last of those that alone need
    most statistics, else the last that shares one of several numbers; None where nothing is left.
    """
    measures = _measures(found)
    if sum(column.measured or place in measures for place, column in enumerate(found.columns)) < 2:
        return None
    several = {
        (index, each.id)
        for index, block in enumerate(found.blocks)
        for each in block.statistics
        if len(each.forms) > 1
    }

    def worth(place: int) -> tuple[int, bool, int]:
        others = (own for other, own in measures.items() if other != place)
        alone = measures[place].difference(*others)
        return len(alone), bool(measures[place] & several), place

    best = max(measures, key=worth, default=None)
    return best if best is not None and any(worth(best)[:2]) else None


def _counts_rows(found: Plan) -> list[int]:
    """Return the columns that count rows, of which a person may have several, and nothing else."""
    places = []
    for place, column in enumerate(found.columns):
        if column.estimate is None or found.blocks[column.estimate[0]].rows < 2:
            continue
        aggregate = found.blocks[column.estimate[0]].aggregates[column.estimate[1]]
        if isinstance(aggregate, Pick) or len(aggregate[0].forms) > 1:
            continue
        if all(isinstance(each, Sum) and not each.factors for each in aggregate[0].reads):
            places.append(place)
    return places


def _people(tree: exp.Select, counts: list[int], policy: Policy) -> Iterator[Way]:
    """Yield the statement with COUNT(DISTINCT owner) for each COUNT(*), where a table names its
    owner by a plain column.
    """
    joined = [each.this for each in tree.args.get("joins") or ()]
    tables = {name.lower(): table for name, table in policy.tables.items()}
    begin = tree.args.get("from_")
    about = next((place for place in counts if _shows_rows(tree.expressions[place])), None)
    if begin is None or about is None:
        return
    for source in (begin.this, *joined):
        table = tables.get(source.name.lower()) if isinstance(source, exp.Table) else None
        if table is not None and isinstance(table.owner, str):
            of = f"{quote_if_needed(source.alias_or_name)}." if joined else ""
            owner = exp.column(
                exp.to_identifier(table.owner), exp.to_identifier(source.alias_or_name)
            )
            for each in list(tree.find_all(exp.Count)):
                if _counts_all(each) and each.find_ancestor(exp.Select) is tree:
                    each.set("this", exp.Distinct(expressions=[owner.copy()]))
            way = Alternative(
                says=f"COUNT(DISTINCT {of}{quote_if_needed(table.owner)}) counts each {policy.unit} once",
                kept=tuple(range(len(tree.expressions))),
                about=about,
            )
            yield way, tree
            return


def _shows_rows(column: exp.Expression) -> bool:
    """Return True of COUNT(*), with a FILTER or without one."""
    shown = column.unalias()
    return _counts_all(shown.this if isinstance(shown, exp.Filter) else shown)


def _counts_all(node: exp.Expression) -> bool:
    return isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star))


def _without(tree: exp.Select, place: int) -> Way:
    """Return the statement without one of its columns."""
    says = f"Without {show(tree.expressions[place].unalias())}"
    kept = tuple(each for each in range(len(tree.expressions)) if each != place)
    tree.set("expressions", [tree.expressions[each] for each in kept])
    return Alternative(says=says, kept=kept), tree

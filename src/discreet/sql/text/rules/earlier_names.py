"""A name that a SELECT list gives, used later in the same list: SELECT age * 2 AS b, b + 1 AS c."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from discreet.sql.text.parse import check_weight


def with_meanings(node: exp.Select, known: Collection[str]) -> exp.Select:
    """Return the SELECT with what earlier items mean in the place of their names; `known` columns
    of its tables go first.
    """
    meanings: dict[str, exp.Expression] = {}
    items, changed = [], False
    for item in node.expressions:
        copy = item.copy()
        for column in list(copy.find_all(exp.Column)):
            name = column.name.lower()
            # those of subqueries are theirs
            own = not column.table and column.find_ancestor(exp.Query) is None
            if own and name in meanings and name not in known:
                meant = exp.Paren(this=meanings[name].copy())
                changed = True
                if column is copy:
                    copy = meant
                else:
                    column.replace(meant)
        # each name twice, twice over, would grow without end
        check_weight(sum(1 for _ in copy.walk()))
        items.append(
            copy
            if copy.alias_or_name == item.alias_or_name
            else exp.alias_(copy, item.alias_or_name, quoted=True)
        )
        if isinstance(item, exp.Alias):
            meanings[item.alias.lower()] = copy.this
    if not changed:
        return node
    found = node.copy()
    found.set("expressions", items)
    return found

"""Name the columns of a client's statement as Postgres does."""

from __future__ import annotations

from sqlglot import exp

from discreet.server.catalog.kinds import output_name


def name_outputs(tree: exp.Query) -> None:
    """Give every unnamed column the name that Postgres would give it."""
    for select in tree.find_all(exp.Select):
        named = []
        for item in select.expressions:
            plain = isinstance(item, exp.Alias | exp.Column) or item.is_star
            named.append(item if plain else exp.alias_(item, output_name(item), quoted=True))
        select.set("expressions", named)
    for values in tree.find_all(exp.Values):
        alias = values.args.get("alias") or exp.TableAlias(
            this=exp.to_identifier("*VALUES*", quoted=True)
        )
        width = len(values.expressions[0].expressions) if values.expressions else 0
        if not alias.columns:
            alias.set(
                "columns", [exp.to_identifier(f"column{place}") for place in range(1, width + 1)]
            )
        values.set("alias", alias)

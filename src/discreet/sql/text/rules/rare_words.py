"""Rewrite functions that few tools write in words that the analysis knows: FORMAT, TRANSLATE,
NUM_NULLS, TIMEZONE, and short names of units of time.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from discreet.sql.text.rules.moments import SHORT_UNITS, unit_of

_COUNTED = {"num_nulls": (1, 0), "num_nonnulls": (0, 1)}


def name_unit(node: exp.Expression) -> exp.Expression:
    """INTERVAL '5 min' and INTERVAL '2 hrs', in the full names of units."""
    unit = node.args.get("unit") if isinstance(node, exp.Interval) else None
    if isinstance(unit, exp.Var) and unit.name.lower().removesuffix("s") in SHORT_UNITS:
        node.set("unit", exp.var(unit_of(unit).upper()))
    return node


def count_nulls(node: exp.Expression) -> exp.Expression:
    """NUM_NULLS(a, b): how many of them are NULL; NUM_NONNULLS counts the others."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name not in _COUNTED or not node.expressions:
        return node
    missing, present = (exp.Literal.number(each) for each in _COUNTED[name])
    tests = [
        exp.Case(
            ifs=[exp.If(this=exp.Is(this=part, expression=exp.Null()), true=missing.copy())],
            default=present.copy(),
        )
        for part in node.expressions
    ]
    return exp.Paren(this=reduce(lambda a, b: exp.Add(this=a, expression=b), tests))


def rewrite_format(node: exp.Expression) -> exp.Expression:
    """Postgres's FORMAT('%s-%s', a, b) is CONCAT(a, '-', b)."""
    if not isinstance(node, exp.Format) or not isinstance(node.this, exp.Literal):
        return node
    texts = node.this.name.split("%s")
    if len(texts) != len(node.expressions) + 1 or any("%" in text for text in texts):
        return node
    parts = [exp.Literal.string(texts[0])]
    for value, text in zip(node.expressions, texts[1:], strict=True):
        parts += [value, exp.Literal.string(text)]
    shown = [part for part in parts if not part.is_string or part.name]
    made = exp.Concat(expressions=shown, safe=True, coalesce=True)
    made.meta["postgres"] = True  # truth values are t and f
    return made


def rewrite_translate(node: exp.Expression) -> exp.Expression:
    """TRANSLATE(x, 'ab', 'x') is REPLACE(REPLACE(x, 'a', 'x'), 'b', ''), where no letter is written
    that is replaced afterwards.
    """
    if not isinstance(node, exp.Translate):
        return node
    old, new = node.args.get("from_"), node.args.get("to")
    if not isinstance(old, exp.Literal) or not isinstance(new, exp.Literal):
        return node
    letters = old.name
    pairs = [(each, new.name[place : place + 1]) for place, each in enumerate(letters)]
    if len(set(letters)) < len(letters) or not 0 < len(letters) <= 32:
        return node
    if any(each and each in letters[place + 1 :] for place, (_, each) in enumerate(pairs)):
        return node
    found = node.this
    for each, other in pairs:
        literals = (exp.Literal.string(each), exp.Literal.string(other))
        found = exp.Replace(this=found, expression=literals[0], replacement=literals[1])
    return found


def rewrite_timezone(node: exp.Expression) -> exp.Expression:
    """TIMEZONE('UTC', seen) is seen AT TIME ZONE 'UTC'."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name != "timezone" or len(node.expressions) != 2:
        return node
    return exp.AtTimeZone(this=node.expressions[1], zone=node.expressions[0])


RULES = (name_unit, count_nulls, rewrite_format, rewrite_translate, rewrite_timezone)

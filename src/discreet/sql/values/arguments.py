"""Refuse a node with a part that its translator does not read: no part of a question is ignored."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from discreet.sql.text.parse import reject, show
from discreet.sql.values.value import Value

Read = Callable[[exp.Expression], Value]  # translates an argument of a function


def check_arguments(node: exp.Expression) -> None:
    """Refuse any part of a node that its translator does not read."""
    readable = _COMMON_ARGUMENTS | _ARGUMENTS.get(type(node), frozenset())
    for name, part in node.args.items():
        if name not in readable and part not in (None, False, []):
            raise reject(
                node,
                f"{show(node)} has a part that is not understood ({name.replace('_', ' ')}).",
                "Leave it out.",
            )


_COMMON_ARGUMENTS = frozenset(("this", "expression", "expressions"))


_ARGUMENTS: dict[type[exp.Expression], frozenset[str]] = {
    exp.Column: frozenset(("table",)),
    exp.Literal: frozenset(("is_string",)),
    exp.Between: frozenset(("low", "high", "symmetric")),
    exp.In: frozenset(("query", "unnest", "field")),
    exp.Case: frozenset(("ifs", "default")),
    exp.Like: frozenset(("negate",)),
    exp.ILike: frozenset(("negate",)),
    exp.If: frozenset(("true", "false")),
    exp.Least: frozenset(("ignore_nulls",)),
    exp.Greatest: frozenset(("ignore_nulls",)),
    exp.Round: frozenset(("decimals",)),
    exp.Trunc: frozenset(("decimals",)),
    exp.DateBin: frozenset(("unit", "origin", "zone")),
    exp.Div: frozenset(("typed", "safe")),
    exp.Cast: frozenset(("to", "_type")),
    exp.TryCast: frozenset(("to", "_type", "safe")),
    exp.Substring: frozenset(("start", "length")),
    exp.Trim: frozenset(("position",)),
    exp.DPipe: frozenset(("safe",)),
    exp.Concat: frozenset(("safe", "coalesce")),
    exp.DateTrunc: frozenset(("unit",)),
    exp.TimestampTrunc: frozenset(("unit",)),
    exp.DateDiff: frozenset(("unit", "date_part_boundary")),
    exp.Week: frozenset(("mode",)),
    exp.Replace: frozenset(("replacement",)),
    exp.SplitPart: frozenset(("delimiter", "part_index")),
    exp.StrPosition: frozenset(("substr",)),
    exp.Pad: frozenset(("fill_pattern", "is_left")),
    exp.ConcatWs: frozenset(("safe", "coalesce")),
    exp.TimeToStr: frozenset(("format",)),
}

"""MODE(x): a public value that we choose by its count."""

from __future__ import annotations

from sqlglot import exp

from discreet.algebra import Expression
from discreet.sql.requests.request import AggregateRequest, Member, PublicChoice, argument
from discreet.sql.text.parse import reject, show
from discreet.sql.values.expressions import Scope
from discreet.sql.values.value import Category, Day, Flag, Number, Opaque, Text

MOST_MODES = 65_536


def _mode(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    value = argument(node, scope)
    if isinstance(value.domain, Text | Opaque):
        raise reject(
            node,
            f"{show(node)} is one of the texts that people have, and those are not public.",
            "Write SELECT x, COUNT(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 1, which shows what many share.",
        )
    has_values = isinstance(value.domain, Category | Flag | Number | Day)
    if not has_values or value.domain.size > MOST_MODES:
        raise reject(
            node,
            f"{show(node)} needs a column with at most {MOST_MODES} public values.",
            "Round it first.",
        )
    return PublicChoice(label=label, value=value, condition=condition, kind="mode")


MEMBER = Member(
    tags=("mode",),
    names=("MODE",),
    readers={exp.Mode: _mode},
    line=(
        "`MODE(x)`",
        "a public value, chosen by its count",
        "m",
    ),
)

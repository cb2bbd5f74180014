"""MEDIAN(x), QUANTILE_CONT(x, q) and the like: a value of the public grid, chosen by its rank."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Expression
from discreet.sql.requests.request import AggregateRequest, Member, PublicChoice, Reader, argument
from discreet.sql.text.parse import reject, show
from discreet.sql.values.categories import all_numeric
from discreet.sql.values.expressions import Scope, translate
from discreet.sql.values.unify import as_number
from discreet.sql.values.value import Category, Day, Moment, Number, Value

MOST_QUANTILES = 32


def reader_of_quantile(quantile: Fraction) -> Reader:
    """Return the reader of an aggregate that is one fixed quantile, as MEDIAN is."""

    def apply(
        node: exp.Expression, scope: Scope, label: str, condition: Expression | None
    ) -> AggregateRequest:
        value = _pickable(argument(node, scope), node)
        return PublicChoice(
            label=label, value=value, condition=condition, kind="quantile", quantiles=(quantile,)
        )

    return apply


def _fractions(
    node: exp.Expression | None, owner: exp.Expression
) -> tuple[tuple[Fraction, ...], bool]:
    """Return the quantiles, and whether the analyst wrote a list."""
    items = node.expressions if isinstance(node, exp.Array) else [node]
    texts = [item.this for item in items if isinstance(item, exp.Literal) and len(item.this) < 20]
    # never compute 1e999999999, although it is short
    plain = [text for text in texts if "e" not in text.lower()]
    try:
        quantiles = tuple(map(Fraction, plain))
    except ValueError:
        quantiles = ()
    inside = all(0 <= quantile <= 1 for quantile in quantiles)
    if not quantiles or len(quantiles) != len(items) or not inside:
        raise reject(
            owner,
            f"{show(owner)} needs numbers between 0 and 1, written out.",
            "Write QUANTILE_CONT(x, 0.5).",
        )
    if list(quantiles) != sorted(set(quantiles)) or len(quantiles) > MOST_QUANTILES:
        raise reject(
            owner,
            f"several quantiles must increase, and be {MOST_QUANTILES} at most.",
            "Write QUANTILE_CONT(x, [0.25, 0.5, 0.75]).",
        )
    return quantiles, isinstance(node, exp.Array)


def _pickable(value: Value, node: exp.Expression) -> Value:
    """Return a value that a quantile can choose; refuse any other."""
    if isinstance(value.domain, Number | Day | Moment):
        return value
    if isinstance(value.domain, Category) and all_numeric(value.domain.values):
        return as_number(value, node)
    raise reject(
        node,
        f"{show(node)} needs numbers or dates with a public range.",
        "Use a number, a date or a timestamp.",
    )


def _quantile(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    fractions = node.args.get("quantile") if isinstance(node, exp.Quantile) else node.expression
    quantiles, listed = _fractions(fractions, node)
    value = _pickable(argument(node, scope), node)
    return PublicChoice(
        label=label,
        value=value,
        condition=condition,
        kind="quantile",
        quantiles=quantiles,
        listed=listed,
    )


def _within_group(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    """Read PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)."""
    order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(order) != 1:
        raise reject(
            node,
            f"{show(node)} is not answered.",
            "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
        )
    quantiles, listed = _fractions(node.this.this, node)
    if order[0].args.get("desc"):
        quantiles = tuple(1 - quantile for quantile in reversed(quantiles))
        if listed:
            raise reject(
                node, "a list of quantiles in descending order is not answered.", "Leave DESC out."
            )
    value = _pickable(translate(order[0].this, scope), node)
    return PublicChoice(
        label=label,
        value=value,
        condition=condition,
        kind="quantile",
        quantiles=quantiles,
        listed=listed,
    )


MEMBER = Member(
    tags=("median", "quantile", "quantiles"),
    names=("MEDIAN", "QUANTILE_CONT"),
    readers={
        exp.Median: reader_of_quantile(Fraction(1, 2)),
        exp.Quantile: _quantile,
        exp.PercentileCont: _quantile,
        exp.PercentileDisc: _quantile,
        exp.WithinGroup: _within_group,
    },
    line=(
        "`MEDIAN`, `QUANTILE_CONT`, `QUANTILE_DISC`, `QUANTILE`, "
        "`PERCENTILE_CONT` / `PERCENTILE_DISC ... WITHIN GROUP (ORDER BY x)`",
        "a value of the column's public grid, chosen by rank",
        "m · max(q, 1 − q) ranks",
    ),
)

"""What makes two measurements the same: a text of our own, which no renaming of classes or fields changes (S10).

Each class that can stand in a block has a tag and a list of fields here, in an order of its own. Every constant is
written with its type, and stages are numbered as they come. Nothing is written of what the question calls things.

Privacy: two measurements with one identity get the same noisy numbers, so the text must tell apart whatever is read:
a class that has no line here is refused, and a test holds the lines against all fields. By which noise it was measured
is no part of it: the ledger keeps that beside it. `VERSION` counts up when a line changes its meaning; what is stored
then costs anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from discreet import algebra
from discreet.errors import Unproved
from discreet.sql import picks, plan
from discreet.sql.after import estimates
from discreet.sql.aggregates import AGGREGATES
from discreet.sql.aggregates.variance import Spread
from discreet.sql.sensitivity import Sensitivity
from discreet.sql.values import value as values

VERSION = 1
STAGE = "stage"  # the field whose names are numbered

_ROWS = ("source", "rows", "touched", "neighbors", "conditions", "keys", "places")
_READ = (*_ROWS, "readings", "measurements", "picks", "one_shot")
TABLE: dict[type, tuple[str, tuple[str, ...]]] = {
    # expressions
    algebra.Column: ("column", ("stage", "name")),
    algebra.Constant: ("constant", ("value",)),
    algebra.Interval: ("interval", ("count", "unit")),
    algebra.Call: ("call", ("name", "arguments")),
    algebra.Cast: ("cast", ("value", "kind")),
    algebra.Case: ("case", ("branches", "otherwise")),
    algebra.Careful: ("careful", ("value",)),
    algebra.Exists: ("exists", ("source", "owner", "where")),
    algebra.Fold: ("fold", ("name", "arguments", "where")),
    algebra.Order: ("order", ("value", "descending", "nulls_first")),
    algebra.Frame: ("frame", ("unit", "start", "end")),
    algebra.Over: ("over", ("function", "owner", "partition", "order", "frame")),
    # sources and queries
    algebra.Scan: ("scan", ("table", "stage")),
    algebra.PublicScan: ("public", ("table", "stage")),
    algebra.Written: ("written", ("columns", "kinds", "rows", "stage")),
    algebra.OwnerJoin: ("owner-join", ("left", "right", "on", "outer")),
    algebra.PublicJoin: ("public-join", ("left", "right", "meets", "pins", "on", "outer")),
    algebra.Stage: ("stage", ("query", "stage")),
    algebra.Select: ("select", ("source", "columns", "where", "distinct")),
    algebra.PerPerson: ("per-person", ("source", "keys", "columns", "where")),
    algebra.UnionAll: ("union", ("parts",)),
    # readings
    algebra.Factor: ("factor", ("value", "lo", "hi", "power", "clamp")),
    algebra.Sum: ("sum", ("factors", "where", "bits")),
    algebra.Persons: ("persons", ("where",)),
    algebra.Distinct: ("distinct", ("values", "ends", "where")),
    # domains
    values.Number: ("number", ("step", "lo", "hi")),
    values.Coded: ("coded", ("values",)),
    values.Flag: ("flag", ()),
    values.Day: ("day", ("lo", "hi", "grain", "stamp")),
    values.Moment: ("moment", ("lo", "hi", "step")),
    values.Text: ("text", ("letters",)),
    # blocks
    plan.Key: ("key", ("domain", "nullable")),
    plan.Joint: ("joint", ("keys", "cells")),
    plan.Unknown: ("unknown", ("domain", "nullable")),
    Sensitivity: ("sensitivity", ("l0", "l1", "l2_squared", "linf")),
    plan.Measurement: ("measurement", ("forms", "sensitivity", "additive")),
    picks.Pick: (
        "pick",
        (
            *("kind", "position", "condition", "domain", "quantiles", "listed", "rows", "groups", "neighbors"),
            "unknown",
        ),
    ),
    plan.Rolled: ("rolled", ("block", "keys", "draws")),
    plan.Block: ("block", (*_READ, "estimates", "derived", "same_as", "rolled")),
    # estimates
    picks.Picked: ("picked", ("pick",)),
    estimates.Linear: ("linear", ("measurement", "factors", "step")),
    **{kind: line for member in AGGREGATES for kind, line in member.estimates.items()},
}
# What a question calls a statistic, and the units in which it is told, change nothing that is measured. The degree of
# a spread is told by the measurement that it reads.
UNTOLD: dict[type, frozenset[str]] = {
    plan.Block: frozenset({"names"}),
    plan.Measurement: frozenset({"name", "units"}),
    picks.Pick: frozenset({"name"}),
    Spread: frozenset({"degree"}),
}
_PLAIN: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: float.hex,
    str: json.dumps,
    Fraction: lambda value: f"{value.numerator}/{value.denominator}",
    date: lambda value: f"@{value.isoformat()}",
    datetime: lambda value: f"@{value.isoformat()}",
}


def question(asked: plan.Plan) -> str:
    """The same for questions that mean the same: what is read, what is noised, what is shown."""
    names = tuple(column.name for column in asked.columns)
    parts = [*(_Writer().text(block) for block in asked.blocks), _Writer().text((asked.after, names))]
    return digest(f"discreet question {VERSION}", *parts)


def named(blocks: Sequence[plan.Block]) -> tuple[plan.Block, ...]:
    """The blocks, each with what its measurements and picks are known by."""
    return tuple(replace(block, names=_names(block)) for block in blocks)


def _names(block: plan.Block) -> tuple[str, ...]:
    """Of each measurement, then of each pick: whose rows, in which groups, and what is read of them."""
    rows = _Writer()
    read = " ".join(rows.text(getattr(block, field)) for field in _ROWS)
    texts = []
    for each in block.measurements:
        used = [index for index in range(len(block.readings)) if any(form[index] for form in each.forms)]
        forms = tuple(tuple(form[index] for index in used) for form in each.forms)
        texts.append(rows.also((tuple(block.readings[index] for index in used), forms, each.sensitivity)))
    texts += [rows.also(replace(pick, listed=False)) for pick in block.picks]
    return tuple(digest(f"discreet statistic {VERSION}", read, text) for text in texts)


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def sharing(blocks: Sequence[plan.Block]) -> tuple[plan.Block, ...]:
    """The blocks, with those that read the same as an earlier one marked; the margins they want may still differ."""
    if len(blocks) == 1:
        return tuple(blocks)
    seen: dict[str, int] = {}
    result = []
    for index, block in enumerate(blocks):
        first = seen.setdefault(_Writer().text(replace(block, derived=())), index)
        result.append(block if first == index else replace(block, same_as=first))
    return tuple(result)


class _Writer:
    """Writes the trees of one block: a stage has one number in all of them."""

    def __init__(self, stages: Mapping[str, int] | None = None) -> None:
        self._stages = dict(stages or {})

    def also(self, value: Any) -> str:
        """A text that comes behind those written so far, whatever else does."""
        return _Writer(self._stages).text(value)

    def text(self, value: Any) -> str:
        """Different for different values: each kind begins with a sign of its own, and texts are quoted."""
        kind = type(value)
        if kind is tuple:
            return f"[{' '.join(map(self.text, value))}]"
        if kind in _PLAIN:
            return _PLAIN[kind](value)
        if kind not in TABLE:
            raise Unproved(f"sql.identity has no line for {kind.__name__}: nothing is asked, and nothing was charged.")
        tag, fields = TABLE[kind]
        parts = (self._stage(value.stage) if field == STAGE else self.text(getattr(value, field)) for field in fields)
        return f"({' '.join((tag, *parts))})"

    def _stage(self, name: str) -> str:
        return f"${self._stages.setdefault(name, len(self._stages))}"

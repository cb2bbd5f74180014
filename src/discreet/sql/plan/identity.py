"""Write what is measured as a text, its identity, that no renaming of classes or fields changes
(S10).

Each class that can stand in a block has a tag and a list of fields here, in an order of its own.
Every constant is written with its type, and stages are numbered as they come. Nothing is written of
what the question calls things.

Privacy: two measurements with one identity get the same noisy numbers, so the text must tell apart
whatever is read: a class that has no line here is refused, and a test holds the lines against all
fields. By which noise it was measured is no part of it: the ledger keeps that beside it. `VERSION`
counts up when a line changes its meaning; what is stored then costs anew.
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
from discreet.mechanisms.running import Grid
from discreet.sql.after import estimates
from discreet.sql.aggregates import AGGREGATES
from discreet.sql.aggregates.variance import Spread
from discreet.sql.plan import picks
from discreet.sql.plan.block import Block, Measured, RolledUp, Shared, Statistic, Totals
from discreet.sql.plan.keys import Joint, Key, Unknown
from discreet.sql.plan.plan import Plan
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.values import value as values

VERSION = 1
STAGE = "stage"  # the field whose names are numbered

# the number that is there for a threshold alone: what is read for it follows from the rest
PEOPLE = "people"
_ROWS = ("source", "rows", "touched", "neighbors", "conditions", "keys", "places")
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
    algebra.ConstantTable: ("written", ("columns", "kinds", "rows", "stage")),
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
    values.Category: ("coded", ("values",)),
    values.Flag: ("flag", ()),
    values.Day: ("day", ("lo", "hi", "grain", "stamp")),
    values.Moment: ("moment", ("lo", "hi", "step")),
    values.Text: ("text", ("letters",)),
    # blocks
    Key: ("key", ("domain", "nullable")),
    Joint: ("joint", ("keys", "cells")),
    Unknown: ("unknown", ("domain", "nullable")),
    Sensitivity: ("sensitivity", ("l0", "l1", "l2_squared", "linf")),
    Statistic: (
        "measurement",
        ("reads", "forms", "sensitivity", "additive", "tested", "estimates", "totals"),
    ),
    # Another factor than that of `mechanisms.running` needs another tag.
    Totals: ("running-totals", ("grid", "l2_squared")),
    Grid: ("grid", ("periods", "inner")),
    picks.Pick: (
        "pick",
        (
            *(
                "kind",
                "position",
                "condition",
                "domain",
                "quantiles",
                "listed",
                "rows",
                "groups",
                "neighbors",
            ),
            "unknown",
        ),
    ),
    Measured: ("measured", ()),
    Shared: ("shared", ("block",)),
    RolledUp: ("rolled", ("block", "keys", "draws")),
    Block: ("block", (*_ROWS, "statistics", "picks", "derived", "kind")),
    # estimates
    estimates.Linear: ("linear", ("factors", "step")),
    **{kind: line for member in AGGREGATES for kind, line in member.estimates.items()},
}
# What a question calls a statistic, and the units in which it is told, change nothing that is
# measured. The degree of a spread is told by the measurement that it reads.
UNTOLD: dict[type, frozenset[str]] = {
    Statistic: frozenset({"name", "units", "id"}),
    picks.Pick: frozenset({"name", "number", "id"}),
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


def question(asked: Plan) -> str:
    """Return one text for all questions that mean the same: what is read, what gets noise, what is
    shown.
    """
    names = tuple(column.name for column in asked.columns)
    parts = [
        *(_Writer().text(block) for block in asked.blocks),
        _Writer().text((asked.after, names)),
    ]
    return digest(f"discreet question {VERSION}", *parts)


def add_ids(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks with an id on each statistic and pick, under which it is stored and
    recalled.

    What is rolled up from another block is known by the statistic that it is made of, and so is
    what is shared.
    """
    result = list(map(_add_ids_to_block, blocks))
    for index, block in enumerate(result):
        if isinstance(block.kind, RolledUp):
            pairs = zip(block.statistics, result[block.kind.block].statistics, strict=True)
            statistics = tuple(
                replace(each, id=_source_text(each, source)) for each, source in pairs
            )
            result[index] = replace(block, statistics=statistics)
    for index, block in enumerate(result):
        if isinstance(block.kind, Shared):
            result[index] = replace(
                result[block.kind.block], derived=block.derived, kind=block.kind
            )
    return tuple(result)


def _source_text(statistic: Statistic, source: Statistic) -> str:
    if statistic.forms != source.forms:
        raise Unproved(
            "A statistic was to be rolled up from another one: nothing is asked, and nothing was charged."
        )
    return source.id


def _add_ids_to_block(block: Block) -> Block:
    """Return the block with ids made from whose rows are read, in which groups, and what of
    them.
    """
    rows = _Writer()
    read = " ".join(rows.text(getattr(block, field)) for field in _ROWS)

    def known(value: Any) -> str:
        return digest(f"discreet statistic {VERSION}", read, rows.also(value))

    return replace(
        block,
        statistics=tuple(
            replace(
                each,
                id=PEOPLE
                if _only_tested(each)
                else known((each.reads, each.forms, each.sensitivity, *_totals(each))),
            )
            for each in block.statistics
        ),
        picks=tuple(replace(pick, id=known(replace(pick, listed=False))) for pick in block.picks),
    )


def _totals(statistic: Statistic) -> tuple[Totals, ...]:
    """Return the sums that get noise in the place of the numbers; nothing where numbers do."""
    return () if statistic.totals is None else (statistic.totals,)


def _only_tested(statistic: Statistic) -> bool:
    return statistic.tested and not statistic.estimates


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def mark_shared(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Mark the blocks that read the same as an earlier one; the margins that they want may still
    differ.
    """
    if len(blocks) == 1:
        return tuple(blocks)
    seen: dict[str, int] = {}
    result = []
    for index, block in enumerate(blocks):
        first = seen.setdefault(_Writer().text(replace(block, derived=())), index)
        result.append(block if first == index else replace(block, kind=Shared(block=first)))
    return tuple(result)


def _no_line(kind: type) -> Unproved:
    return Unproved(
        f"sql.plan.identity has no line for {kind.__name__}: nothing is asked, and nothing was charged."
    )


class _Writer:
    """Writes the trees of one block: a stage has one number in all of them."""

    def __init__(self, stages: Mapping[str, int] | None = None) -> None:
        self._stages = dict(stages or {})

    def also(self, value: Any) -> str:
        """Return the text of a value, with stages numbered on from those written so far."""
        return _Writer(self._stages).text(value)

    def text(self, value: Any) -> str:
        """Return a text that differs for different values: each kind begins with a sign of its own,
        and texts are quoted.
        """
        kind = type(value)
        if kind is tuple:
            return f"[{' '.join(map(self.text, value))}]"
        if kind in _PLAIN:
            return _PLAIN[kind](value)
        if kind is Block:
            return self._block(value)
        if kind not in TABLE:
            raise _no_line(kind)
        return self._line(value)

    def _line(self, value: Any, *places: int) -> str:
        """Write a value as its line in the table; `places` come behind its tag."""
        tag, fields = TABLE[type(value)]
        parts = (
            self._stage(value.stage) if field == STAGE else self.text(getattr(value, field))
            for field in fields
        )
        return f"({' '.join((tag, *map(str, places), *parts))})"

    def _block(self, block: Block) -> str:
        """Write a block as `VERSION` 1 does: what is read first, and what is made of it by its
        place among that.
        """
        kind, shown = block.kind, [each for each in block.statistics if not _only_tested(each)]
        own = [] if isinstance(kind, RolledUp) else shown
        readings = tuple(dict.fromkeys(reading for each in own for reading in each.reads))
        parts = [*(self.text(getattr(block, field)) for field in _ROWS), self.text(readings)]
        made = [
            (each.over(readings), each.sensitivity, each.additive, *_totals(each)) for each in own
        ]
        measured = [f"(measurement {' '.join(map(self.text, each))})" for each in made]
        parts.append(f"[{' '.join(measured)}]")
        parts += [self.text(block.picks), self.text(any(each.tested for each in shown))]
        placed = [
            (number, place, estimate)
            for place, each in enumerate(shown)
            for number, estimate in each.estimates
        ]
        texts = {number: self._estimate(place, estimate) for number, place, estimate in placed}
        texts |= {pick.number: f"(picked {place})" for place, pick in enumerate(block.picks)}
        parts.append(f"[{' '.join(texts[number] for number in sorted(texts))}]")
        shared = kind.block if isinstance(kind, Shared) else None
        rolled = kind if isinstance(kind, RolledUp) else None
        return f"(block {' '.join((*parts, self.text(block.derived), self.text(shared), self.text(rolled)))})"

    def _estimate(self, place: int, estimate: Any) -> str:
        if type(estimate) not in TABLE:
            raise _no_line(type(estimate))
        return self._line(estimate, place)

    def _stage(self, name: str) -> str:
        return f"${self._stages.setdefault(name, len(self._stages))}"

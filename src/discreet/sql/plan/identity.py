"""Write what is measured as a text, its identity (S10). Renaming our classes or fields does not change
it.

Each class that can be a part of a block has a tag and a list of fields here, in a fixed order. Every
constant is written with its type, and stages are numbered in the order in which they appear. Names
that the question uses are not written.

Privacy: two measurements with one identity get the same noisy numbers, so different measurements
must have different texts. A class without a line here is refused, and a test compares the lines
with the fields of all classes. The noise is no part of the identity: the ledger stores it beside.
`VERSION` counts up when a line changes its meaning; then stored answers cost again.
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

# the id of a test that only the threshold needs: what it reads follows from the other parts
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
            "kind",
            "position",
            "condition",
            "domain",
            "quantiles",
            "listed",
            "rows",
            "groups",
            "neighbors",
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
# Fields that are not written. Names and units of a statistic change nothing that is measured. The
# degree of a spread follows from the measurement that it reads.
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


def question(plan: Plan) -> str:
    """Return the identity of a question: equal for two questions if they read, measure and show the
    same.
    """
    names = tuple(column.name for column in plan.columns)
    parts = [_Writer().text(block) for block in plan.blocks]
    parts.append(_Writer().text((plan.after, names)))
    return digest(f"discreet question {VERSION}", *parts)


def add_ids(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks with an id on each statistic and pick, under which it is stored and
    recalled.

    A statistic that is rolled up or shared has the id of the statistic that it is made from.
    """
    result = list(map(_add_ids_to_block, blocks))
    for index, block in enumerate(result):
        if isinstance(block.kind, RolledUp):
            source = result[block.kind.block]
            pairs = zip(block.statistics, source.statistics, strict=True)
            statistics = tuple(replace(each, id=_source_id(each, other)) for each, other in pairs)
            result[index] = replace(block, statistics=statistics)
    for index, block in enumerate(result):
        if isinstance(block.kind, Shared):
            source = result[block.kind.block]
            result[index] = replace(source, derived=block.derived, kind=block.kind)
    return tuple(result)


def _source_id(statistic: Statistic, source: Statistic) -> str:
    if statistic.forms != source.forms:
        raise Unproved(
            "A statistic would be rolled up from a different one: nothing is asked, and nothing was charged."
        )
    return source.id


def _add_ids_to_block(block: Block) -> Block:
    """Return the block with ids: each is a digest of the rows, the groups, and what is measured."""
    rows = _Writer()
    read = " ".join(rows.text(getattr(block, field)) for field in _ROWS)

    def identify(value: Any) -> str:
        return digest(f"discreet statistic {VERSION}", read, rows.also(value))

    statistics = []
    for each in block.statistics:
        if _only_tested(each):
            statistics.append(replace(each, id=PEOPLE))
        else:
            parts = (each.reads, each.forms, each.sensitivity, *_totals(each))
            statistics.append(replace(each, id=identify(parts)))
    choices = [replace(pick, id=identify(replace(pick, listed=False))) for pick in block.picks]
    return replace(block, statistics=tuple(statistics), picks=tuple(choices))


def _totals(statistic: Statistic) -> tuple[Totals, ...]:
    """Return the running totals that get noise instead of the numbers; nothing if the numbers do."""
    return () if statistic.totals is None else (statistic.totals,)


def _only_tested(statistic: Statistic) -> bool:
    """Return True if the threshold tests a statistic and no aggregate uses it."""
    return statistic.tested and not statistic.estimates


def digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def mark_shared(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Mark the blocks that read the same as an earlier one; they may still want other margins."""
    if len(blocks) == 1:
        return tuple(blocks)
    places: dict[str, int] = {}  # the first block with each text
    result = []
    for index, block in enumerate(blocks):
        text = _Writer().text(replace(block, derived=()))
        first = places.setdefault(text, index)
        if first != index:
            block = replace(block, kind=Shared(block=first))
        result.append(block)
    return tuple(result)


def _no_line(kind: type) -> Unproved:
    return Unproved(
        f"sql.plan.identity has no line for {kind.__name__}: nothing is asked, and nothing was charged."
    )


class _Writer:
    """Writes the trees of one block. A stage has the same number in all of them."""

    def __init__(self, stages: Mapping[str, int] | None = None) -> None:
        self._stages = dict(stages or {})

    def also(self, value: Any) -> str:
        """Return the text of a value; new stages get the numbers after those written so far."""
        return _Writer(self._stages).text(value)

    def text(self, value: Any) -> str:
        """Return a text that differs for different values: each kind has a first letter of its own,
        and texts are quoted.
        """
        kind = type(value)
        if kind is tuple:
            parts = map(self.text, value)
            return f"[{' '.join(parts)}]"
        if kind in _PLAIN:
            return _PLAIN[kind](value)
        if kind is Block:
            return self._block(value)
        if kind not in TABLE:
            raise _no_line(kind)
        return self._line(value)

    def _line(self, value: Any, *places: int) -> str:
        """Write a value as its line in the table says; `places` come after its tag."""
        tag, fields = TABLE[type(value)]
        parts = [tag, *map(str, places)]
        for field in fields:
            part = getattr(value, field)
            parts.append(self._stage(part) if field == STAGE else self.text(part))
        return f"({' '.join(parts)})"

    def _block(self, block: Block) -> str:
        """Write a block as `VERSION` 1 does: first what is read, then what is computed from it."""
        kind = block.kind
        statistics = [each for each in block.statistics if not _only_tested(each)]
        own = [] if isinstance(kind, RolledUp) else statistics
        readings = tuple(dict.fromkeys(reading for each in own for reading in each.reads))
        # The order of these lines numbers the stages: it is a part of the version.
        parts = [self.text(getattr(block, field)) for field in _ROWS]
        parts.append(self.text(readings))
        measurements = [self._measurement(each, readings) for each in own]
        parts.append(f"[{' '.join(measurements)}]")
        parts.append(self.text(block.picks))
        parts.append(self.text(any(each.tested for each in statistics)))
        parts.append(self._aggregates(statistics, block.picks))
        parts.append(self.text(block.derived))
        parts.append(self.text(kind.block if isinstance(kind, Shared) else None))
        parts.append(self.text(kind if isinstance(kind, RolledUp) else None))
        return f"(block {' '.join(parts)})"

    def _measurement(self, statistic: Statistic, readings: Sequence[algebra.Reading]) -> str:
        """Write what a statistic measures, with its forms over all readings of the block."""
        forms = statistic.over(readings)
        parts = (forms, statistic.sensitivity, statistic.additive, *_totals(statistic))
        return f"(measurement {' '.join(map(self.text, parts))})"

    def _aggregates(self, statistics: Sequence[Statistic], choices: Sequence[picks.Pick]) -> str:
        """Write the aggregates in the order of their numbers, each with the place of its source."""
        texts: dict[int, str] = {}
        for place, statistic in enumerate(statistics):
            for number, estimate in statistic.estimates:
                texts[number] = self._estimate(place, estimate)
        for place, pick in enumerate(choices):
            texts[pick.number] = f"(picked {place})"
        return f"[{' '.join(texts[number] for number in sorted(texts))}]"

    def _estimate(self, place: int, estimate: Any) -> str:
        if type(estimate) not in TABLE:
            raise _no_line(type(estimate))
        return self._line(estimate, place)

    def _stage(self, name: str) -> str:
        return f"${self._stages.setdefault(name, len(self._stages))}"

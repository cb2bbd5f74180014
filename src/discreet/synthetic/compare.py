"""A description against the table it describes, as one paid question (S16).

values         of numbers and dates of many values: means, cumulative shares, the share of values
               that many have
distances      of every column, every pair and every question of a workload: one vector of l1
               distances
correlations   of numbers, from noisy sums of products
a classifier   made from the description, tried on true rows: its AUC, from noisy counts by label
               and points
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from discreet.budget import with_margin
from discreet.errors import UsageError
from discreet.mechanisms.shapes import Additive
from discreet.mechanisms.tails.simulate import half_widths
from discreet.policy.domain import Categories
from discreet.policy.policy import Policy
from discreet.synthetic.classify import (
    area,
    area_margin,
    count_by_label,
    learn_score,
    rows_of,
    target_of,
)
from discreet.synthetic.columns.axes import Grid, axes_of
from discreet.synthetic.columns.axis import Axis, Unlisted
from discreet.synthetic.columns.values import Figure, columns_to_compare, noisy_figures
from discreet.synthetic.describe import (
    Commission,
    Purse,
    Work,
    currency,
    private_table,
    require_in_range,
)
from discreet.synthetic.description import Description
from discreet.synthetic.marginals import (
    SCALE,
    Candidate,
    Columns,
    Floats,
    Integers,
    Marginals,
    Partition,
    products,
)
from discreet.synthetic.source import TableSource, source_of
from discreet.synthetic.workload import EVERY_PAIR, workload

_SHARES = {"distances": 0.5, "correlations": 0.25, "classifier": 0.25, "values": 0.25}
_LOST = 0.49  # margin of a correlation that tells nothing
_ANY = 0.5  # area of a classifier of which nothing is known
_TIMES = 600  # that noise is drawn again
_MOST_CELLS = 2_000_000  # of the columns of one question


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """The total variation distance of some columns, 0 to 1, and the half-width of its 95 %
    interval.
    """

    columns: tuple[str, ...]
    distance: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Pearson's correlation of two columns; `margin` is that of the true one."""

    columns: tuple[str, ...]
    true: float
    synthetic: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier:
    """The area under the curve of a classifier made from synthetic rows: on these, and on true
    ones.
    """

    target: str
    true: float
    synthetic: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A description against the truth, as far as noise lets it be seen."""

    table: str
    distances: tuple[Distance, ...]
    asked: tuple[Distance, ...]  # of the workload's questions
    values: tuple[Figure, ...]
    correlations: tuple[Correlation, ...]
    classifier: Classifier | None
    certificate: dict[str, Any]

    @property
    def mean(self) -> float:
        """Over all pairs (over all columns where there is but one)."""
        pairs = [each.distance for each in self.distances if len(each.columns) == 2]
        shown = pairs or [each.distance for each in self.distances]
        return sum(shown) / len(shown)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def to_bytes(self) -> bytes:
        return json.dumps(self.as_json(), sort_keys=True, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Comparison:
        parts = json.loads(content)
        for name, kind in (
            ("distances", Distance),
            ("asked", Distance),
            ("correlations", Correlation),
        ):
            parts[name] = tuple(
                kind(**{**each, "columns": tuple(each["columns"])}) for each in parts[name]
            )
        parts["values"] = tuple(Figure(**each) for each in parts["values"])
        parts["classifier"] = (
            None if parts["classifier"] is None else Classifier(**parts["classifier"])
        )
        return cls(**parts)

    def __str__(self) -> str:
        worst = sorted((each for each in self.distances), key=lambda each: -each.distance)[:15]
        lines = [
            f"All pairs: {self.mean:.3f} on average (total variation distance). The farthest:",
            *map(_line, worst),
        ]
        if self.values:
            lines += [
                "",
                f"{'values':50} {'true':>22} {'synthetic':>12}",
                *map(_value_line, self.values),
            ]
        if self.asked:
            lines += [
                "",
                "What questions ask for:",
                *map(_line, sorted(self.asked, key=lambda each: -each.distance)),
            ]
        if self.correlations:
            shown = sorted(self.correlations, key=lambda each: -abs(each.true))[:15]
            lines += ["", f"{'correlations':50} {'true':>18} {'synthetic':>10}"]
            lines += [
                f"{' x '.join(each.columns)[:50]:50} {with_margin(each.true, each.margin):>18} {each.synthetic:10.2f}"
                for each in shown
            ]
        if self.classifier is not None:
            found = self.classifier
            lines += [
                "",
                f"A classifier of {found.target}, made from synthetic rows: AUC "
                f"{with_margin(found.true, found.margin)} on true rows, {found.synthetic:.3f} on synthetic ones.",
            ]
        return "\n".join(lines)


def _line(each: Distance) -> str:
    return f"{' x '.join(each.columns)[:50]:50} {with_margin(each.distance, each.margin)}"


def _value_line(each: Figure) -> str:
    name = f"{each.column}: {each.figure}"
    return f"{name[:50]:50} {with_margin(each.true, each.margin):>22} {each.synthetic:12.6g}"


def comparison(
    policy: Policy,
    description: Description,
    purse: Purse,
    *,
    questions: Sequence[str] | None,
    target: str | None,
    joined: tuple[Sequence[Grid], TableSource] | None = None,
) -> Commission:
    """Check and price a comparison. Reads no data. `joined` says which columns and rows, where not
    one table's.
    """
    if not isinstance(description, Description):
        raise UsageError(
            f"Pass a description, from describe or Description.load, not {type(description).__name__}."
        )
    table = private_table(policy, description.table)
    names = tuple(axis.name for axis in description.axes)
    grids, source = (
        (axes_of(table, columns=names), source_of(policy, table)) if joined is None else joined
    )
    for axis, mine in zip(grids, description.axes, strict=True):
        if not _same(axis, mine):
            raise UsageError(
                f"The description has other columns than {description.table} has now; describe the table again."
            )
        if isinstance(axis, Unlisted) and isinstance(mine.column.domain, Categories):
            source = source.listing(mine.name, [str(value) for value in mine.column.domain.values])
    if target is not None:
        target_of(description, target)
    asked = (
        EVERY_PAIR
        if questions is None
        else workload(questions, table=description.table, columns=names)
    )
    for columns, _ in asked.sets:
        _partition(description, columns)
    count = len(names) * (len(names) + 1) // 2 + len(asked.sets)
    inside, paid, cost = currency(purse, questions=count, texts=False)
    require_in_range(inside, paid, source.moved, unit=source.unit)
    return Commission(
        table=description.table,
        synthesizer=description.synthesizer,
        axes=description.axes,
        source=source,
        inside=inside,
        paid=paid,
        cost=cost,
        workload=asked,
        about=f"compare {hashlib.sha256(description.to_bytes()).hexdigest()} {target}",
    )


def _same(axis: Grid, mine: Axis) -> bool:
    """Return True if the policy's column is the described one, however it is written and cut; a text
    was described by a list of its own.
    """
    theirs, own = axis.column, mine.column
    alike = isinstance(axis, Unlisted) or theirs.domain == own.domain
    return alike and (theirs.name, theirs.nullable) == (own.name, own.nullable)


def comparison_work(description: Description, *, target: str | None) -> Work:
    """Make the comparison that was asked for, within what was paid."""

    def work(data: Marginals, _: Commission, certificate: dict[str, Any]) -> bytes:
        numbers = lines(description)
        wanted = {
            "distances": True,
            "correlations": len(numbers) > 1,
            "classifier": target is not None,
        }
        wanted["values"] = bool(columns_to_compare(description))
        parts = [part for part in _SHARES if wanted[part]]
        whole = math.fsum(_SHARES[part] for part in parts) * (1 + 1e-8)
        share = {part: _SHARES[part] / whole for part in parts}
        near, asked = _distances(description, data, share["distances"])
        data.tell("correlations", 0.0)
        correlations = (
            _correlations(description, data, numbers, share["correlations"])
            if len(numbers) > 1
            else ()
        )
        data.tell("correlations", 1.0)
        classifier = (
            None if target is None else _classifier(description, data, target, share["classifier"])
        )
        values = noisy_figures(description, data, share=share["values"]) if wanted["values"] else ()
        return Comparison(
            table=description.table,
            values=values,
            distances=near,
            asked=asked,
            correlations=correlations,
            classifier=classifier,
            certificate={**certificate, "mechanisms": data.mechanisms},
        ).to_bytes()

    return work


def _distances(
    description: Description, data: Marginals, share: float
) -> tuple[tuple[Distance, ...], tuple[Distance, ...]]:
    width = range(len(description.axes))
    plain: list[Columns] = [*((column,) for column in width), *combinations(width, 2)]
    asked = [columns for columns, _ in data.workload.sets]
    noisy, error = data.distances(
        [_candidate(description, each) for each in (*plain, *asked)], share=share
    )
    total = 2 * max(1.0, description.model.total)
    margin = error.margin / total
    found = [
        Distance(
            columns=tuple(description.axes[column].name for column in each),
            distance=float(min(max(value / total, 0.0), 1.0)),
            margin=margin,
        )
        for each, value in zip((*plain, *asked), noisy, strict=True)
    ]
    return tuple(found[: len(plain)]), tuple(found[len(plain) :])


def _candidate(description: Description, columns: Columns) -> Candidate:
    partition = _partition(description, columns)
    if all(len(cells) == int(cells.max()) + 1 for cells in partition):
        return Candidate(columns=columns, partition=partition, model=description.marginal(columns))
    model = description.model.marginal(columns) * description.model.total
    return Candidate(columns=columns, partition=partition, model=model)


def _partition(description: Description, columns: Columns) -> Partition:
    """Return the cells of some columns; the model's own groups of them where these would be too
    many.
    """
    if math.prod(description.axes[column].size for column in columns) <= _MOST_CELLS:
        return tuple(np.arange(description.axes[column].size) for column in columns)
    groups = tuple(description.groups[column] for column in columns)
    if math.prod(int(each.max()) + 1 for each in groups) > _MOST_CELLS:
        names = ", ".join(description.axes[column].name for column in columns)
        raise UsageError(
            f"A question of the workload needs {names} together, which is too much to compare at once."
        )
    return groups


def lines(description: Description) -> dict[int, Integers]:
    """Return where each cell of a column lies on a line from -SCALE to SCALE, for columns that have
    correlations.

    Those are numbers, dates, times, and what has two values.
    """
    found = {}
    for column, axis in enumerate(description.axes):
        if axis.bins > 1 and (axis.ordered or axis.bins == 2):
            counts, places = (
                description.marginal((column,))[: axis.bins] + 1e-9,
                np.arange(axis.bins),
            )
            mean = float(counts @ places / counts.sum())
            spread = max(0.5, math.sqrt(float(counts @ (places - mean) ** 2 / counts.sum())))
            line = np.rint(np.clip((places - mean) / (2 * spread), -1, 1) * SCALE).astype(np.int64)
            found[column] = np.append(line, 0)[: axis.size]
    return found


def _correlations(
    description: Description, data: Marginals, numbers: dict[int, Integers], share: float
) -> tuple[Correlation, ...]:
    sums, noise = data.moments(numbers, share=share)
    names = [description.axes[column].name for column in numbers]
    margins = correlation_margins(sums, noise, len(names))
    modelled = moments_of_model(description, numbers)
    true, synthetic = (
        np.clip(correlations(each, len(names))[0], -1.0, 1.0) for each in (sums, modelled)
    )
    return tuple(
        Correlation(
            columns=pair,
            true=float(true[place]),
            synthetic=float(synthetic[place]),
            margin=float(margin),
        )
        for place, (pair, margin) in enumerate(zip(combinations(names, 2), margins, strict=True))
        if margin < _LOST
    )


def moments_of_model(description: Description, numbers: dict[int, Integers]) -> Floats:
    """Return the sums that `Marginals.moments` would give if the model were the table."""
    columns, placed = list(numbers), list(numbers.values())
    found = []
    for a, b in products(len(columns)):
        if b == len(columns):
            row = (
                description.marginal((columns[a],)) @ placed[a] * SCALE
                if a < b
                else description.model.total * SCALE**2
            )
        elif a == b:
            row = description.marginal((columns[a],)) @ placed[a] ** 2
        else:
            row = placed[a] @ description.marginal((columns[a], columns[b])) @ placed[b]
        found.append(float(row))
    return np.array(found)


def correlations(sums: Floats, width: int) -> tuple[Floats, Floats]:
    """Return every pair's correlation from sums of products, and the smaller of its sums of
    squares.

    A column that does not vary has no correlation: 0. Noise may take one beyond 1.
    """
    at = dict(zip(products(width), sums, strict=True))
    rows = np.maximum(at[width, width], 1.0)
    mean = [at[a, width] / rows for a in range(width)]
    square = [at[a, a] / rows - mean[a] ** 2 for a in range(width)]
    found, least = [], []
    for a, b in combinations(range(width), 2):
        smaller = np.minimum(square[a], square[b])
        root = np.sqrt(np.where(smaller > 0, square[a] * square[b], np.inf))
        found.append((at[a, b] / rows - mean[a] * mean[b]) / root)
        least.append(smaller * rows)
    return np.array(found), np.array(least)


def correlation_margins(sums: Floats, noise: Additive, width: int) -> Floats:
    """Return half-widths at 95 %, from noisy sums; infinite where noise may hide that a column
    varies at all.
    """
    _, squares = correlations(sums, width)

    def moved(some: Floats) -> Floats:
        values, least = correlations(some, width)
        return np.asarray(np.where(least > squares[:, None] / 2, values, np.nan))

    hidden = squares <= 4 * noise.deviation
    found = half_widths(moved, sums, noise, _TIMES)
    return np.where(hidden | ~np.isfinite(found), np.inf, found)


def _classifier(description: Description, data: Marginals, target: str, share: float) -> Classifier:
    label, positive = target_of(description, target)
    cells = rows_of(description)
    score = learn_score(cells, description.groups, label=label, positive=positive)
    counts, noise = data.scored(score, share=share)
    true, synthetic = (
        float(np.clip(np.nan_to_num(area(each), nan=0.5), 0, 1))
        for each in (counts, count_by_label(score, cells))
    )
    margin = area_margin(counts, noise)
    return Classifier(
        target=target, true=true if margin < _ANY else _ANY, synthetic=synthetic, margin=margin
    )

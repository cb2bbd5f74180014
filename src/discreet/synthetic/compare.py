"""Compare a description with the table that it describes, as one paid question (S16).

values         means, cumulative shares, and shares of common values, for numbers and dates with
               many values
distances      one vector of l1 distances: of every column, every pair and every question of a
               workload
correlations   of numbers, from noisy sums of products
a classifier   trained on synthetic rows and tried on true ones: its AUC, from noisy counts by label
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
from discreet.synthetic.report.digits import as_exact_as
from discreet.synthetic.source import TableSource, source_of
from discreet.synthetic.workload import EVERY_PAIR, workload

_SHARES = {"distances": 0.5, "correlations": 0.25, "classifier": 0.25, "values": 0.25}
_LOST = 0.49  # a correlation with this margin or more says nothing
_ANY = 0.5  # the area to report if noise hides it
_TIMES = 600  # how many times to redraw noise
_MOST_CELLS = 2_000_000  # the most cells of the columns of one question


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """The total variation distance of some columns, 0 to 1, and its 95 % half-width."""

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
    """The area under the curve of a classifier from synthetic rows: on these, and on true rows."""

    target: str
    true: float
    synthetic: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A description compared with its table; the figures of the table are noisy."""

    table: str
    distances: tuple[Distance, ...]
    asked: tuple[Distance, ...]  # for the workload's questions
    values: tuple[Figure, ...]
    correlations: tuple[Correlation, ...]
    classifier: Classifier | None
    certificate: dict[str, Any]

    @property
    def mean(self) -> float:
        """Return the mean distance of all pairs, or if there is one column, its distance."""
        pairs = [own.distance for own in self.distances if len(own.columns) == 2]
        distances = pairs or [own.distance for own in self.distances]
        return sum(distances) / len(distances)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def to_bytes(self) -> bytes:
        return json.dumps(self.as_json(), sort_keys=True, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Comparison:
        parts = json.loads(content)
        for name in ("distances", "asked", "correlations"):
            kind = Correlation if name == "correlations" else Distance
            rows = [{**row, "columns": tuple(row["columns"])} for row in parts[name]]
            parts[name] = tuple(kind(**row) for row in rows)
        parts["values"] = tuple(Figure(**row) for row in parts["values"])
        if parts["classifier"] is not None:
            parts["classifier"] = Classifier(**parts["classifier"])
        return cls(**parts)

    def __str__(self) -> str:
        farthest = sorted(self.distances, key=lambda own: -own.distance)[:15]
        lines = [
            f"All pairs: {self.mean:.3f} on average (total variation distance). The farthest:",
            *map(_distance_line, farthest),
        ]
        if self.values:
            lines += ["", f"{'values':50} {'true':>22} {'synthetic':>12}"]
            lines += map(_value_line, self.values)
        if self.asked:
            lines += ["", "What questions ask for:"]
            lines += map(_distance_line, sorted(self.asked, key=lambda own: -own.distance))
        if self.correlations:
            strongest = sorted(self.correlations, key=lambda own: -abs(own.true))[:15]
            lines += ["", f"{'correlations':50} {'true':>18} {'synthetic':>10}"]
            lines += map(_correlation_line, strongest)
        if self.classifier is not None:
            own = self.classifier
            lines += [
                "",
                f"A classifier of {own.target}, made from synthetic rows: AUC "
                f"{with_margin(own.true, own.margin)} on true rows, {own.synthetic:.3f} on synthetic ones.",
            ]
        return "\n".join(lines)


def _distance_line(own: Distance) -> str:
    return f"{' x '.join(own.columns)[:50]:50} {with_margin(own.distance, own.margin)}"


def _correlation_line(own: Correlation) -> str:
    true = with_margin(own.true, own.margin)
    return f"{' x '.join(own.columns)[:50]:50} {true:>18} {own.synthetic:10.2f}"


def _value_line(own: Figure) -> str:
    name = f"{own.column}: {own.figure}"
    synthetic = as_exact_as(own.margin, own.synthetic)
    return f"{name[:50]:50} {with_margin(own.true, own.margin):>22} {synthetic:>12}"


def comparison(
    policy: Policy,
    description: Description,
    purse: Purse,
    *,
    questions: Sequence[str] | None,
    target: str | None,
    joined: tuple[Sequence[Grid], TableSource] | None = None,
) -> Commission:
    """Check and price a comparison, without reading data.

    `joined` has the columns and rows, if they are not those of one table.
    """
    if not isinstance(description, Description):
        raise UsageError(
            f"Pass a description, from describe or Description.load, not {type(description).__name__}."
        )
    table = private_table(policy, description.table)
    names = tuple(axis.name for axis in description.axes)
    if joined is None:
        joined = (axes_of(table, columns=names), source_of(policy, table))
    grids, source = joined
    for axis, mine in zip(grids, description.axes, strict=True):
        if not _same(axis, mine):
            raise UsageError(
                f"The description has other columns than {description.table} has now; describe the table again."
            )
        if isinstance(axis, Unlisted) and isinstance(mine.column.domain, Categories):
            source = source.listing(mine.name, [str(value) for value in mine.column.domain.values])
    if target is not None:
        target_of(description, target)
    needs = EVERY_PAIR
    if questions is not None:
        needs = workload(questions, table=description.table, columns=names)
    for columns, _ in needs.sets:
        _partition(description, columns)
    count = len(names) * (len(names) + 1) // 2 + len(needs.sets)
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
        workload=needs,
        about=f"compare {hashlib.sha256(description.to_bytes()).hexdigest()} {target}",
    )


def _same(axis: Grid, mine: Axis) -> bool:
    """Return True if the policy's column is the column of the description.

    Its cuts may differ. The description of a text has its own list of values.
    """
    theirs = axis.column
    own = mine.column
    alike = isinstance(axis, Unlisted) or theirs.domain == own.domain
    return alike and (theirs.name, theirs.nullable) == (own.name, own.nullable)


def comparison_work(description: Description, *, target: str | None) -> Work:
    """Return the work of a comparison, which spends what was paid."""

    def work(data: Marginals, _: Commission, certificate: dict[str, Any]) -> bytes:
        numbers = lines(description)
        has = {
            "distances": True,
            "correlations": len(numbers) > 1,
            "classifier": target is not None,
            "values": bool(columns_to_compare(description)),
        }
        parts = [part for part in _SHARES if has[part]]
        whole = math.fsum(_SHARES[part] for part in parts) * (1 + 1e-8)
        share = {part: _SHARES[part] / whole for part in parts}
        near, asked = _distances(description, data, share["distances"])
        data.tell("correlations", 0.0)
        correlations: tuple[Correlation, ...] = ()
        if has["correlations"]:
            correlations = _correlations(description, data, numbers, share["correlations"])
        data.tell("correlations", 1.0)
        classifier = None
        if target is not None:
            classifier = _classifier(description, data, target, share["classifier"])
        values: tuple[Figure, ...] = ()
        if has["values"]:
            values = noisy_figures(description, data, share=share["values"])
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
    """Return the distances of all columns and pairs, and those of the workload's questions."""
    width = range(len(description.axes))
    plain: list[Columns] = [*((column,) for column in width), *combinations(width, 2)]
    sets = [*plain, *(columns for columns, _ in data.workload.sets)]
    noisy, error = data.distances(
        [_candidate(description, columns) for columns in sets], share=share
    )
    total = 2 * max(1.0, description.model.total)
    margin = error.margin / total
    distances = []
    for columns, value in zip(sets, noisy, strict=True):
        names = tuple(description.axes[column].name for column in columns)
        distance = float(min(max(value / total, 0.0), 1.0))
        distances.append(Distance(columns=names, distance=distance, margin=margin))
    return tuple(distances[: len(plain)]), tuple(distances[len(plain) :])


def _candidate(description: Description, columns: Columns) -> Candidate:
    """Return the counts of some columns that the description expects."""
    partition = _partition(description, columns)
    if all(len(cells) == int(cells.max()) + 1 for cells in partition):
        return Candidate(columns=columns, partition=partition, model=description.marginal(columns))
    model = description.model.marginal(columns) * description.model.total
    return Candidate(columns=columns, partition=partition, model=model)


def _partition(description: Description, columns: Columns) -> Partition:
    """Return the cells of some columns, or if these are too many, the model's groups of cells."""
    if math.prod(description.axes[column].size for column in columns) <= _MOST_CELLS:
        return tuple(np.arange(description.axes[column].size) for column in columns)
    groups = tuple(description.groups[column] for column in columns)
    if math.prod(int(own.max()) + 1 for own in groups) > _MOST_CELLS:
        names = ", ".join(description.axes[column].name for column in columns)
        raise UsageError(
            f"A question of the workload needs {names} together, which is too much to compare at once."
        )
    return groups


def lines(description: Description) -> dict[int, Integers]:
    """Return the place of each cell on a line from -SCALE to SCALE, for columns with correlations.

    These are numbers, dates, times, and columns of two values.
    """
    places_of = {}
    for column, axis in enumerate(description.axes):
        if axis.bins > 1 and (axis.ordered or axis.bins == 2):
            counts = description.marginal((column,))[: axis.bins] + 1e-9
            places = np.arange(axis.bins)
            mean = float(counts @ places / counts.sum())
            spread = max(0.5, math.sqrt(float(counts @ (places - mean) ** 2 / counts.sum())))
            line = np.rint(np.clip((places - mean) / (2 * spread), -1, 1) * SCALE).astype(np.int64)
            places_of[column] = np.append(line, 0)[: axis.size]
    return places_of


def _correlations(
    description: Description, data: Marginals, numbers: dict[int, Integers], share: float
) -> tuple[Correlation, ...]:
    sums, noise = data.moments(numbers, share=share)
    names = [description.axes[column].name for column in numbers]
    margins = correlation_margins(sums, noise, len(names))
    true, _ = correlations(sums, len(names))
    true = np.clip(true, -1.0, 1.0)
    synthetic, _ = correlations(moments_of_model(description, numbers), len(names))
    synthetic = np.clip(synthetic, -1.0, 1.0)
    pairs = []
    for place, pair in enumerate(combinations(names, 2)):
        margin = float(margins[place])
        if margin < _LOST:
            own = float(true[place])
            other = float(synthetic[place])
            pairs.append(Correlation(columns=pair, true=own, synthetic=other, margin=margin))
    return tuple(pairs)


def moments_of_model(description: Description, numbers: dict[int, Integers]) -> Floats:
    """Return the sums that `Marginals.moments` would give if the model were the table."""
    columns = list(numbers)
    places = list(numbers.values())
    sums = []
    for a, b in products(len(columns)):
        if a == b == len(columns):
            total: Any = description.model.total * SCALE**2
        elif b == len(columns):
            total = description.marginal((columns[a],)) @ places[a] * SCALE
        elif a == b:
            total = description.marginal((columns[a],)) @ places[a] ** 2
        else:
            total = places[a] @ description.marginal((columns[a], columns[b])) @ places[b]
        sums.append(float(total))
    return np.array(sums)


def correlations(sums: Floats, width: int) -> tuple[Floats, Floats]:
    """Return the correlation of every pair from sums of products, and the smaller of its two sums
    of squares.

    It is 0 if a column does not vary. Noise may take it beyond 1.
    """
    at = dict(zip(products(width), sums, strict=True))
    rows = np.maximum(at[width, width], 1.0)
    mean = [at[a, width] / rows for a in range(width)]
    square = [at[a, a] / rows - mean[a] ** 2 for a in range(width)]
    values = []
    least = []
    for a, b in combinations(range(width), 2):
        smaller = np.minimum(square[a], square[b])
        root = np.sqrt(np.where(smaller > 0, square[a] * square[b], np.inf))
        values.append((at[a, b] / rows - mean[a] * mean[b]) / root)
        least.append(smaller * rows)
    return np.array(values), np.array(least)


def correlation_margins(sums: Floats, noise: Additive, width: int) -> Floats:
    """Return 95 % half-widths from noisy sums; infinite if noise may hide that a column varies."""
    _, squares = correlations(sums, width)

    def replicas(some: Floats) -> Floats:
        values, least = correlations(some, width)
        return np.asarray(np.where(least > squares[:, None] / 2, values, np.nan))

    hides = squares <= 4 * noise.deviation
    widths = half_widths(replicas, sums, noise, _TIMES)
    return np.where(hides | ~np.isfinite(widths), np.inf, widths)


def _classifier(description: Description, data: Marginals, target: str, share: float) -> Classifier:
    label, positive = target_of(description, target)
    cells = rows_of(description)
    score = learn_score(cells, description.groups, label=label, positive=positive)
    counts, noise = data.scored(score, share=share)
    margin = area_margin(counts, noise)
    return Classifier(
        target=target,
        true=_possible_area(counts) if margin < _ANY else _ANY,
        synthetic=_possible_area(count_by_label(score, cells)),
        margin=margin,
    )


def _possible_area(counts: Integers) -> float:
    return float(np.clip(np.nan_to_num(area(counts), nan=0.5), 0, 1))

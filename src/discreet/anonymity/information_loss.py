"""The information that coarsening loses, in the measures by which people compare tools.

Every measure but the last two is a cost per entry, averaged over rows and columns: 0 if the entry
is exact, 1 if it is `*` or its row was suppressed (for entropy, on average over the column).

    ncp             normalized certainty penalty [Xu, Wang, Pei, Wang, Shi, Fu 2006]: the share of
                    the column's domain that the published value stands for. A tree's group stands
                    for its values; an interval of whole numbers or dates for those within the
                    column's smallest and largest; of other numbers for its length
    lm              loss metric [Iyengar 2002], which ARX calls loss: as ncp, with one taken off the
                    number of values in the group and in the domain, so that it starts from 0: (m -
                    1) / (n - 1) instead of m / n
    precision       the level over the hierarchy's height [Sweeney 2002]
    entropy         the bits that are lost about the value, over those that `*` loses: log2 of how
                    many rows are in the published group over how many have the exact value
                    (non-uniform entropy [Gionis, Tassa 2009])
    discernibility  the sum over rows of the size of their class (a suppressed row counts all
                    rows), over rows squared
    average_class   the average size of a class
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.anonymity.hierarchies import Hierarchy
from discreet.anonymity.source import Flags, Floats, Groups, Integers
from discreet.errors import UsageError

Measure = Literal["ncp", "lm", "precision", "entropy", "discernibility"]
MEASURES: tuple[Measure, ...] = ("ncp", "lm", "precision", "entropy", "discernibility")
ENTRIES: tuple[Measure, ...] = ("ncp", "lm", "precision", "entropy")

Costs = tuple[tuple[Floats, ...], ...]
"""[column][level][value]: what an entry of this value costs at this level, the column's weight
included.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The losses, on average over all rows; `columns` is the ncp of each column."""

    ncp: float
    lm: float
    precision: float
    entropy: float
    discernibility: float
    average_class: float
    columns: Mapping[str, float]

    def as_json(self) -> dict[str, object]:
        return {
            "ncp": self.ncp,
            "lm": self.lm,
            "precision": self.precision,
            "entropy": self.entropy,
            "discernibility": self.discernibility,
            "average_class": self.average_class,
            "columns": dict(self.columns),
        }


def costs(
    measure: Measure,
    hierarchies: Sequence[Hierarchy],
    groups: Groups,
    weights: Mapping[str, float] | None = None,
) -> Costs:
    """Return the cost of every entry at every level. Costs never fall as the level rises; weights
    add up to 1.
    """
    raw = np.array([float((weights or {}).get(hierarchy.column, 1.0)) for hierarchy in hierarchies])
    if not np.isfinite(raw).all() or (raw < 0).any() or raw.sum() <= 0:
        raise UsageError("Weights must be zero or more, and not all of them zero.")
    share = raw / raw.sum()
    found = []
    for index, hierarchy in enumerate(hierarchies):
        counts = np.bincount(groups.codes[index], groups.counts, len(hierarchy.nodes[0])).astype(
            np.float64
        )
        found.append(tuple(share[index] * level for level in _entries(measure, hierarchy, counts)))
    return tuple(found)


def _entries(measure: Measure, hierarchy: Hierarchy, counts: Floats) -> list[Floats]:
    match measure:
        case "precision":
            values = len(hierarchy.nodes[0])
            return [
                np.full(values, level / max(1, hierarchy.height))
                for level in range(hierarchy.height + 1)
            ]
        case "entropy":
            return _bits(hierarchy, counts)
    spans = [spans[nodes] for spans, nodes in zip(hierarchy.spans, hierarchy.nodes, strict=True)]
    return [less_one(each, hierarchy.domain) for each in spans] if measure == "lm" else spans


def less_one(spans: Floats, domain: float) -> Floats:
    """Return the shares (m - 1) / (n - 1), from the shares m / n of a domain of n values."""
    if domain <= 1:  # one value, or none where a column is all NULL
        return spans
    one = 1 / domain
    return np.where(spans > 0, (spans - one) / (1 - one), 0.0)


def _bits(hierarchy: Hierarchy, counts: Floats) -> list[Floats]:
    present = np.maximum(counts, 1)
    lost = [
        np.log2(np.maximum(np.bincount(nodes, counts), 1)[nodes] / present)
        for nodes in hierarchy.nodes
    ]
    total = float((lost[-1] * counts).sum() / max(1.0, counts.sum()))
    return [np.maximum(each, 0) / total if total > 0 else np.zeros_like(each) for each in lost]


def measure_losses(
    hierarchies: Sequence[Hierarchy],
    groups: Groups,
    levels: Sequence[Integers],
    classes: Integers,
    spans: Mapping[str, Floats],
) -> Losses:
    """Measure the losses of a recoding: levels[column][group], classes[group] (-1 if suppressed).

    `spans`, for columns with tightened intervals: the shares that the published intervals cover
    instead.
    """
    kept = classes >= 0
    sizes = np.bincount(classes[kept], groups.counts[kept])
    sizes = sizes[sizes > 0]
    rows = float(groups.counts.sum())
    dropped = float(groups.counts[~kept].sum())
    by_column: dict[str, dict[str, float]] = {
        measure: _averages(costs(measure, hierarchies, groups), groups, levels, kept, hierarchies)
        for measure in ENTRIES
    }
    domains = {hierarchy.column: hierarchy.domain for hierarchy in hierarchies}
    for name, span in spans.items():
        published = np.where(kept, span, 1.0)
        for measure, shares in (("ncp", published), ("lm", less_one(published, domains[name]))):
            by_column[measure][name] = (
                float((shares * groups.counts).sum()) / rows / len(hierarchies)
            )
    return Losses(
        ncp=sum(by_column["ncp"].values()),
        lm=sum(by_column["lm"].values()),
        precision=sum(by_column["precision"].values()),
        entropy=sum(by_column["entropy"].values()),
        discernibility=(float((sizes**2).sum()) + dropped * rows) / rows**2,
        average_class=float(sizes.mean()) if len(sizes) else 0.0,
        columns={name: share * len(hierarchies) for name, share in by_column["ncp"].items()},
    )


def _averages(
    entries: Costs,
    groups: Groups,
    levels: Sequence[Integers],
    kept: Flags,
    hierarchies: Sequence[Hierarchy],
) -> dict[str, float]:
    """Return what each column adds to the average over rows and columns."""
    found = {}
    for index, hierarchy in enumerate(hierarchies):
        level = np.where(kept, levels[index], hierarchy.height)
        cost = np.stack(entries[index])[level, groups.codes[index]]
        found[hierarchy.column] = float((cost * groups.counts).sum() / groups.counts.sum())
    return found

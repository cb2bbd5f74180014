"""The demand on a table, and a check whether any recoding can meet it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.anonymity.guarantee import Closeness, Diversity, DiversityKind, Ground, Guarantee
from discreet.anonymity.hierarchies import Spec, build
from discreet.anonymity.information_loss import MEASURES, Measure
from discreet.anonymity.measure import ground_of
from discreet.anonymity.source import Groups, SourceTable
from discreet.errors import UsageError

RecodingKind = Literal["local", "global"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The demand as the caller states it, before the table is read."""

    quasi: Sequence[str]
    k: int
    l: float | None = None  # noqa: E741
    t: float | None = None
    sensitive: str | None = None
    diversity: DiversityKind = "distinct"
    c: float | None = None
    closeness: Ground | None = None
    suppress: float = 0.0
    recoding: RecodingKind = "local"
    loss: Measure = "ncp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "quasi", tuple(self.quasi))
        _whole(self.k, "k")
        if not self.quasi:
            raise UsageError(
                "Name at least one quasi-identifier: a column that others may know about people."
            )
        if self.sensitive in self.quasi:
            raise UsageError(
                f"{self.sensitive} is a quasi-identifier already: it cannot be sensitive too."
            )
        for value, name in ((self.l, "l"), (self.t, "t")):
            if value is not None and self.sensitive is None:
                raise UsageError(f"{name} is about a sensitive column. Name it with sensitive.")
        if self.l is not None and not (np.isfinite(self.l) and self.l >= 1):
            raise UsageError(f"l must be 1 or more, not {self.l:g}.")
        if (
            self.l is not None
            and self.diversity == "recursive"
            and not (self.c and self.c > 0 and self.l >= 2)
        ):
            raise UsageError("Recursive diversity needs c above 0 and l of 2 or more.")
        if self.t is not None and not 0 <= self.t <= 1:
            raise UsageError(f"t must lie between 0 and 1, not {self.t:g}.")
        if not 0 <= self.suppress <= 1:
            raise UsageError(f"suppress is a share between 0 and 1, not {self.suppress:g}.")
        if self.loss not in MEASURES:
            raise UsageError(f"loss must be one of {', '.join(MEASURES)}, not {self.loss}.")
        if self.recoding == "local" and self.loss == "discernibility":
            raise UsageError(
                "discernibility counts class sizes, which local recoding does not weigh. Use recoding global."
            )

    @property
    def watched(self) -> tuple[str, ...]:
        """The columns whose combinations decide: quasi-identifiers, and the sensitive one if
        promised about.
        """
        promised = self.l is not None or self.t is not None
        if promised and self.sensitive is not None:
            return (*self.quasi, self.sensitive)
        return tuple(self.quasi)


def _whole(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be a whole number, 1 or more, not {value}.")


def check_columns(
    source: SourceTable, demand: Demand, drop: Sequence[str], weights: Mapping[str, float] | None
) -> None:
    """Refuse a name that is no column of the table, and a column with two roles."""
    source.require(demand.quasi, what="quasi")
    source.require([demand.sensitive] if demand.sensitive else [], what="sensitive")
    source.require(list(drop), what="drop")
    for name in drop:
        if name in (*demand.quasi, demand.sensitive):
            raise UsageError(f"{name} cannot be dropped: it is a quasi-identifier or sensitive.")
    for name in weights or ():
        if name not in demand.quasi:
            raise UsageError(f"There is a weight for {name}, which is not a quasi-identifier.")
    if not source.rows:
        raise UsageError("The table is empty: there is nobody to hide.")
    if demand.k > source.rows:
        raise UsageError(f"k = {demand.k} is larger than the table. Ask for a smaller k.")


def guarantee_of(
    demand: Demand, groups: Groups, hierarchies: Mapping[str, Spec] | None
) -> Guarantee:
    """Return the promise as a value that judges classes; raise if the whole table, as one class,
    breaks it.
    """
    if demand.watched == demand.quasi:
        return Guarantee(k=demand.k)
    name = demand.watched[-1]
    index = groups.position(name)
    values = groups.values[index]
    codes = groups.codes[index]
    whole = np.bincount(codes, groups.counts, len(values)).astype(np.float64)
    diversity = (
        None if demand.l is None else Diversity(kind=demand.diversity, l=demand.l, c=demand.c)
    )
    closeness = None
    if demand.t is not None:
        ground = demand.closeness or ground_of(values)
        spec = (hierarchies or {}).get(name)
        if ground == "hierarchical" and spec is None:
            raise UsageError(
                f"Hierarchical closeness needs a hierarchy of {name} in the hierarchies."
            )
        tree = build(spec, name, values) if spec is not None and ground == "hierarchical" else None
        closeness = Closeness(t=demand.t, ground=ground, whole=whole, tree=tree)
    if diversity is not None and not diversity.holds(whole[None, :])[0]:
        raise UsageError(
            f"{diversity} is more than the whole table has in {name}, so no part of it can have it. Ask for less."
        )
    return Guarantee(k=demand.k, diversity=diversity, closeness=closeness)

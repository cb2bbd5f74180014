"""How far a description is from the table it describes: noisy distances of all columns and pairs, as one paid question.

One vector of l1 distances, each of which one person moves by m (2m under change_one): S16. It costs little, because a
distance is one number while it is of the size of the table.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from discreet.accounting import Accountant
from discreet.budget import Charge
from discreet.errors import UsageError
from discreet.policy import Policy
from discreet.synthetic.axis import axes_of
from discreet.synthetic.describe import Commission, Work, currency, private_table
from discreet.synthetic.description import Description
from discreet.synthetic.marginals import Candidate, Marginals

_NORMAL_95 = 1.96  # the noise is close to normal at this many standard deviations, and narrower when it is Laplace


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """The total variation distance of some columns, 0 to 1, and the half-width of its 95 % interval."""

    columns: tuple[str, ...]
    distance: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A description against the truth, as far as noise lets it be seen."""

    distances: tuple[Distance, ...]
    certificate: dict[str, Any]

    @property
    def mean(self) -> float:
        """Over all pairs (over all columns where there is but one)."""
        pairs = [each.distance for each in self.distances if len(each.columns) == 2]
        shown = pairs or [each.distance for each in self.distances]
        return sum(shown) / len(shown)

    @classmethod
    def from_bytes(cls, content: bytes) -> Comparison:
        parts = json.loads(content)
        found = [
            Distance(columns=tuple(columns), distance=distance, margin=margin)
            for columns, distance, margin in parts["distances"]
        ]
        return cls(distances=tuple(found), certificate=parts["certificate"])

    def __str__(self) -> str:
        worst = sorted(self.distances, key=lambda each: -each.distance)[:20]
        lines = [f"{' x '.join(each.columns):50} {each.distance:.3f} ± {each.margin:.3f}" for each in worst]
        return "\n".join([f"All pairs: {self.mean:.3f} on average (total variation distance). The farthest:", *lines])


def comparison(
    policy: Policy, description: Description, accountant: Accountant, *, amount: Fraction, limit: Charge
) -> Commission:
    """A comparison checked and priced. Reads no data."""
    table = private_table(policy, description.table)
    names = tuple(axis.name for axis in description.axes)
    axes, values = axes_of(table, columns=names, bins=max(axis.bins for axis in description.axes))
    if [axis.column for axis in axes] != [axis.column for axis in description.axes]:
        raise UsageError(f"The description is of other columns than {description.table} has now; describe it again.")
    count = len(names) * (len(names) + 1) // 2
    inside, inner, cost = currency(accountant, amount, limit, questions=count)
    return Commission(
        table=description.table,
        synthesizer=description.synthesizer,
        axes=description.axes,
        values=values,
        max_rows=table.max_rows,
        neighbors=policy.neighbors,
        inside=inside,
        amount=inner,
        cost=cost,
        about=f"compare {hashlib.sha256(description.to_bytes()).hexdigest()}",
    )


def distances(description: Description) -> Work:
    """All columns and pairs against a description."""

    def work(data: Marginals, _: Commission, certificate: dict[str, Any]) -> bytes:
        width = range(len(description.axes))
        sets = [*((column,) for column in width), *combinations(width, 2)]
        candidates = [
            Candidate(columns=each, partition=data.whole(each), model=description.marginal(each)) for each in sets
        ]
        noisy, std = data.distances(candidates, share=1 - 1e-9)
        total = 2 * max(1.0, description.model.total)
        found = [
            [
                [description.axes[c].name for c in each],
                float(min(max(value / total, 0.0), 1.0)),
                _NORMAL_95 * std / total,
            ]
            for each, value in zip(sets, noisy, strict=True)
        ]
        return json.dumps({"distances": found, "certificate": certificate}, sort_keys=True).encode()

    return work

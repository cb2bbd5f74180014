"""The claims of a plan, held against what one person can move by what will run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.algebra import (
    Aggregate,
    Column,
    Distinct,
    Expression,
    OwnerJoin,
    Persons,
    PublicJoin,
    Reading,
    Scan,
    Select,
    Source,
    Stage,
    Sum,
)
from discreet.budget import Neighbors
from discreet.errors import Unproved
from discreet.policy.domain import MOST_PEOPLE, Decimals, Integers
from discreet.policy.policy import Policy
from discreet.sql.check.counts import Counts
from discreet.sql.check.norms import Bound, Forms, extremes, of_rows, only_adds, used
from discreet.sql.check.trees import private_table, stages
from discreet.sql.check.whose import require_own

Sizes = Sequence[int | None]  # how many values each key can have; None where they are not public


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Derives bounds from one policy."""

    policy: Policy
    counts: Counts = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", Counts(policy=self.policy))

    # --- how far ----------------------------------------------------------------------------------

    def bound(
        self, aggregate: Aggregate, forms: Forms, *, neighbors: Neighbors, sizes: Sizes
    ) -> Bound:
        """The sensitivities of numbers that are these combinations of an aggregate's readings.

        `sizes` are how many values each key can have, None where they are not public: no more
        groups are noised.
        """
        require_own(aggregate, self.policy)
        readings, factors = used(aggregate, forms)
        cells = math.prod(math.inf if size is None else size for size in sizes)
        match readings:
            case [Persons()] if factors == [[1]]:
                return self.of_persons(aggregate, neighbors, sizes)
            case [Distinct() as reading] if factors == [[1]]:
                return self.of_distinct(aggregate, reading, neighbors, cells)
        for each in readings:
            self.require_held(aggregate, each)
        rows = self.counts.rows(aggregate.source, aggregate.where)
        return of_rows(list(extremes(readings, factors)), rows, neighbors, one_cell=cells == 1)

    def of_persons(self, aggregate: Aggregate, neighbors: Neighbors, sizes: Sizes) -> Bound:
        """People per group: one person adds 1 to each group that they are in, and one replaced
        moves twice as many.
        """
        unknown = [key for key, size in zip(aggregate.keys, sizes, strict=True) if size is None]
        public = math.prod(size for size in sizes if size is not None)
        touched = min(
            self.counts.touched(aggregate.keys, aggregate.source, aggregate.where),
            self.counts.touched(unknown, aggregate.source, aggregate.where) * public,
        )
        moved = touched * (2 if neighbors == "change_one" else 1)
        moved = moved if unknown else min(moved, public)
        return Bound(l1=moved, l2_squared=moved, linf=1)

    def of_distinct(
        self, aggregate: Aggregate, reading: Distinct, neighbors: Neighbors, cells: float
    ) -> Bound:
        """Distinct values per group: each row of a person adds at most one, and a group has at most
        all values.
        """
        rows = self.counts.rows(aggregate.source, aggregate.where)
        values = math.inf if reading.ends is None else reading.ends[1] - reading.ends[0] + 1
        most = int(min(rows, values))
        if not most:  # nobody has a row
            return Bound(l1=0, l2_squared=0, linf=0)
        people = 1 if neighbors == "add_remove" or cells == 1 else 2
        # groups that one person's rows fill, and what is left for one more
        full, rest = divmod(rows, most)
        l1, l2_squared = people * rows, people * (full * most**2 + rest**2)
        return Bound(
            l1=int(min(l1, most * cells)),
            l2_squared=int(min(l2_squared, most**2 * cells)),
            linf=most,
        )

    def holds(self, value: Expression, lo: int, hi: int, *, source: Source) -> bool:
        """Return True if a snapshot holds a value to a range: a stored column whose range lies
        within it.
        """
        known = self.stored_range(value, source)
        return known is not None and lo <= known[0] and known[1] <= hi

    def require_held(self, aggregate: Aggregate, reading: Reading) -> None:
        """Refuse a sum whose values nothing holds to their ranges, or which 2^36 people could make
        overflow.
        """
        if not isinstance(reading, Sum):
            raise Unproved("people or distinct values are noised together with other numbers")
        for factor in reading.factors:
            held = factor.clamp or self.holds(
                factor.value, factor.lo, factor.hi, source=aggregate.source
            )
            if factor.power and not held:
                raise Unproved("a sum's values are held to their range by nothing")
        most = math.prod(max(abs(each.lo), abs(each.hi)) ** each.power for each in reading.factors)
        if MOST_PEOPLE * self.counts.rows(aggregate.source, aggregate.where) * most >= 2 ** (
            reading.bits - 1
        ):
            raise Unproved(f"a sum of 2^36 people can pass {reading.bits} bits")

    # --- claims -----------------------------------------------------------------------------------

    def require(
        self,
        claim: Bound,
        aggregate: Aggregate,
        forms: Forms,
        *,
        neighbors: Neighbors,
        sizes: Sizes,
    ) -> None:
        """Refuse a statistic that claims to move less than it can."""
        found = self.bound(aggregate, forms, neighbors=neighbors, sizes=sizes)
        if claim.l1 < found.l1 or claim.l2_squared < found.l2_squared or claim.linf < found.linf:
            raise Unproved(f"a statistic claims {claim} and can move by {found}")

    def require_totals(
        self,
        claim: int,
        sums: npt.NDArray[np.int64],
        aggregate: Aggregate,
        forms: Forms,
        *,
        neighbors: Neighbors,
        sizes: Sizes,
    ) -> None:
        """Refuse running totals that claim to move less than they can.

        Each number goes into the sums by one column of factors. So what one person adds moves them
        by at most its l1 times the longest column. Two people move them by twice that; by √2 times
        that where neither a factor nor what a person adds is negative, as both then move them to
        the same side.
        """
        if (np.abs(sums) >= 1 << 20).any():
            raise Unproved("factors of running totals are too large to be added up")
        longest = int((sums * sums).sum(axis=0).max())
        one = self.bound(aggregate, forms, neighbors="add_remove", sizes=sizes).l1
        people = 1
        if neighbors == "change_one":
            people = 2 if (sums >= 0).all() and only_adds(aggregate, forms) else 4
        if claim < people * longest * one**2:
            raise Unproved(f"running totals claim {claim} and can move by more")

    def require_touched(self, claim: int, people: Aggregate) -> None:
        """Refuse a threshold on people per key that counts on fewer keys than one person can
        have.
        """
        require_own(people, self.policy)
        if people.readings not in ((Persons(),), (Sum(),)):
            raise Unproved("a threshold tests something else than people")
        if people.readings == (Sum(),) and self.counts.rows(people.source, people.where) > 1:
            raise Unproved("a threshold tests rows, of which one person has several")
        found = self.counts.touched(people.keys, people.source, people.where)
        if claim < found:
            raise Unproved(f"a threshold counts on {claim} keys a person, who can have {found}")

    def require_rows(self, claim: int, groups: int, counted: Aggregate, *, sizes: Sizes) -> None:
        """Refuse a choice by rank or by count that counts on fewer rows than one person can have,
        or on one group where there are several: who is replaced may leave one and enter another.
        """
        require_own(counted, self.policy)
        if counted.readings != (Sum(),) or claim < self.counts.rows(counted.source, counted.where):
            raise Unproved("a choice counts on fewer rows a person than there can be")
        if groups == 1 and any(size != 1 for size in sizes):
            raise Unproved("a choice counts on one group, and there are several")

    def require_neighbors(self, *claims: Neighbors) -> None:
        """Refuse a plan that is made for other neighbors than the policy's."""
        if any(claim != self.policy.neighbors for claim in claims):
            raise Unproved("the plan is made for other neighbors than the policy's")

    # --- ranges -----------------------------------------------------------------------------------

    def stored_range(self, value: Expression, source: Source) -> tuple[int, int] | None:
        """The ends of a stored column, which the snapshot enforces; None for whatever is
        computed.
        """
        if not isinstance(value, Column):
            return None
        match source:
            case Scan(stage=stage, table=table) if stage == value.stage:
                column = private_table(table, self.policy).columns.get(value.name)
                domain = None if column is None else column.domain
                return (
                    (domain.first, domain.last) if isinstance(domain, Integers | Decimals) else None
                )
            case OwnerJoin(left=left, right=right):
                return self.stored_range(value, left if value.stage in stages(left) else right)
            case PublicJoin(left=left):
                return self.stored_range(value, left) if value.stage in stages(left) else None
            case Stage(stage=stage, query=Select(source=inner, columns=columns)) if (
                stage == value.stage
            ):
                return (
                    self.stored_range(dict(columns)[value.name], inner)
                    if value.name in dict(columns)
                    else None
                )
        return None

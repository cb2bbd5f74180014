"""Hold the claims of a plan against what one person can move by what will run."""

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
    stages,
)
from discreet.budget import Neighbors
from discreet.errors import Unproved
from discreet.policy.domain import MOST_PEOPLE, Decimals, Integers
from discreet.policy.policy import Policy
from discreet.sql.check.counts import PersonCounts
from discreet.sql.check.norms import (
    Forms,
    Norms,
    extremes,
    of_rows,
    only_adds,
    select_readings,
)
from discreet.sql.check.whose import private_table, require_own

Sizes = Sequence[int | None]  # how many values each key can have; None where they are not public


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Derives bounds from one policy."""

    policy: Policy
    counts: PersonCounts = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", PersonCounts(policy=self.policy))

    # --- how far ----------------------------------------------------------------------------------

    def derive(
        self, aggregate: Aggregate, forms: Forms, *, neighbors: Neighbors, sizes: Sizes
    ) -> Norms:
        """Return the sensitivities of numbers that are these combinations of an aggregate's
        readings.

        `sizes` are how many values each key can have, None where they are not public: no more
        groups are noised.
        """
        require_own(aggregate, self.policy)
        readings, factors = select_readings(aggregate, forms)
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

    def of_persons(self, aggregate: Aggregate, neighbors: Neighbors, sizes: Sizes) -> Norms:
        """Bound people per group: one person adds 1 to each group that they are in, and one
        replaced moves twice as many.
        """
        unknown = [key for key, size in zip(aggregate.keys, sizes, strict=True) if size is None]
        public = math.prod(size for size in sizes if size is not None)
        source, where = aggregate.source, aggregate.where
        groups = min(
            self.counts.groups(aggregate.keys, source, where),
            self.counts.groups(unknown, source, where) * public,
        )
        moved = 2 * groups if neighbors == "change_one" else groups
        if not unknown:
            moved = min(moved, public)
        return Norms(l1=moved, l2_squared=moved, linf=1)

    def of_distinct(
        self, aggregate: Aggregate, reading: Distinct, neighbors: Neighbors, cells: float
    ) -> Norms:
        """Bound distinct values per group: each row of a person adds at most one, and a group has
        at most all values.
        """
        rows = self.counts.rows(aggregate.source, aggregate.where)
        values = math.inf if reading.ends is None else reading.ends[1] - reading.ends[0] + 1
        most = int(min(rows, values))
        if not most:  # nobody has a row
            return Norms(l1=0, l2_squared=0, linf=0)
        people = 1 if neighbors == "add_remove" or cells == 1 else 2
        # groups that one person's rows fill, and what is left for one more
        full, rest = divmod(rows, most)
        l1, l2_squared = people * rows, people * (full * most**2 + rest**2)
        return Norms(
            l1=int(min(l1, most * cells)),
            l2_squared=int(min(l2_squared, most**2 * cells)),
            linf=most,
        )

    def require_held(self, aggregate: Aggregate, reading: Reading) -> None:
        """Refuse a sum whose values nothing holds to their ranges, or which 2^36 people could make
        overflow.
        """
        if not isinstance(reading, Sum):
            raise Unproved("people or distinct values are noised together with other numbers")
        source, where = aggregate.source, aggregate.where
        largest = 1
        for factor in reading.factors:
            held = factor.clamp or self.holds(factor.value, factor.lo, factor.hi, source=source)
            if factor.power and not held:
                raise Unproved("a sum's values are held to their range by nothing")
            largest *= max(abs(factor.lo), abs(factor.hi)) ** factor.power
        rows = self.counts.rows(source, where)
        if MOST_PEOPLE * rows * largest >= 2 ** (reading.bits - 1):
            raise Unproved(f"a sum of 2^36 people can pass {reading.bits} bits")

    # --- ranges -----------------------------------------------------------------------------------

    def holds(self, value: Expression, lo: int, hi: int, *, source: Source) -> bool:
        """Return True if a snapshot holds a value to a range: a stored column whose range lies
        within it.
        """
        ends = self.ends_of(value, source)
        return ends is not None and lo <= ends[0] and ends[1] <= hi

    def ends_of(self, value: Expression, source: Source) -> tuple[int, int] | None:
        """Return the ends of a stored column, which the snapshot enforces; None for whatever is
        computed.
        """
        if not isinstance(value, Column):
            return None
        match source:
            case Scan(stage=stage, table=table) if stage == value.stage:
                column = private_table(table, self.policy).columns.get(value.name)
                if column is not None and isinstance(column.domain, Integers | Decimals):
                    return column.domain.first, column.domain.last
            case OwnerJoin(left=left) | PublicJoin(left=left) if value.stage in stages(left):
                return self.ends_of(value, left)
            case OwnerJoin(right=right):
                return self.ends_of(value, right)
            case Stage(stage=stage, query=Select() as query) if stage == value.stage:
                inner = dict(query.columns).get(value.name)
                return None if inner is None else self.ends_of(inner, query.source)
        return None

    # --- claims -----------------------------------------------------------------------------------

    def require(
        self,
        claim: Norms,
        aggregate: Aggregate,
        forms: Forms,
        *,
        neighbors: Neighbors,
        sizes: Sizes,
    ) -> None:
        """Refuse a statistic that claims to move less than it can."""
        true = self.derive(aggregate, forms, neighbors=neighbors, sizes=sizes)
        if claim.l1 < true.l1 or claim.l2_squared < true.l2_squared or claim.linf < true.linf:
            raise Unproved(f"a statistic claims {claim} and can move by {true}")

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
        one = self.derive(aggregate, forms, neighbors="add_remove", sizes=sizes).l1
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
        rows = self.counts.rows(people.source, people.where)
        if people.readings == (Sum(),) and rows > 1:
            raise Unproved("a threshold tests rows, of which one person has several")
        most = self.counts.groups(people.keys, people.source, people.where)
        if claim < most:
            raise Unproved(f"a threshold counts on {claim} keys a person, who can have {most}")

    def require_rows(self, claim: int, groups: int, counted: Aggregate, *, sizes: Sizes) -> None:
        """Refuse a choice by rank or by count that counts on fewer rows than one person can have,
        or on one group where there are several: who is replaced may leave one and enter another.
        """
        require_own(counted, self.policy)
        rows = self.counts.rows(counted.source, counted.where)
        if counted.readings != (Sum(),) or claim < rows:
            raise Unproved("a choice counts on fewer rows a person than there can be")
        if groups == 1 and any(size != 1 for size in sizes):
            raise Unproved("a choice counts on one group, and there are several")

    def require_neighbors(self, *claims: Neighbors) -> None:
        """Refuse a plan that is made for other neighbors than the policy's."""
        if any(claim != self.policy.neighbors for claim in claims):
            raise Unproved("the plan is made for other neighbors than the policy's")

"""Compare the sensitivities that a plan claims with those derived from what will run."""

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

Sizes = Sequence[int | None]  # the number of values of each key; None if they are not public


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Derives sensitivities from trees and one policy, and refuses claims below them."""

    policy: Policy
    counts: PersonCounts = field(init=False, compare=False, repr=False)
    own: list[Aggregate] = field(default_factory=list, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", PersonCounts(policy=self.policy))

    # --- how far ----------------------------------------------------------------------------------

    def derive(
        self, aggregate: Aggregate, forms: Forms, *, neighbors: Neighbors, sizes: Sizes
    ) -> Norms:
        """Return the sensitivities of the numbers that `forms` combine from an aggregate's readings.

        `sizes` has the number of values of each key. Their product is the number of groups that get
        noise; it is infinite if some keys are not public.
        """
        if not any(each is aggregate for each in self.own):  # looked at once for all statistics
            require_own(aggregate, self.policy)
            self.own.append(aggregate)
        readings, factors = select_readings(aggregate, forms)
        bounds = [math.inf if size is None else size for size in sizes]
        cells = math.prod(bounds)
        match readings:
            case [Persons()] if factors == [[1]]:
                return self.of_persons(aggregate, neighbors, sizes)
            case [Distinct() as distinct] if factors == [[1]]:
                return self.of_distinct(aggregate, distinct, neighbors, cells)
        for reading in readings:
            self.require_range(aggregate, reading)
        rows = self.counts.rows(aggregate.source, aggregate.where)
        vectors = list(extremes(readings, factors))
        return of_rows(vectors, rows, neighbors, one_cell=cells == 1)

    def of_persons(self, aggregate: Aggregate, neighbors: Neighbors, sizes: Sizes) -> Norms:
        """Return the sensitivities of people per group.

        One person adds 1 to each group that they are in. A person who is replaced leaves all groups
        and enters as many others.
        """
        unknown = [key for key, size in zip(aggregate.keys, sizes, strict=True) if size is None]
        public = math.prod(size for size in sizes if size is not None)
        source = aggregate.source
        where = aggregate.where
        by_all_keys = self.counts.groups(aggregate.keys, source, where)
        by_unknown_keys = self.counts.groups(unknown, source, where)
        groups = min(by_all_keys, by_unknown_keys * public)
        changes = 2 * groups if neighbors == "change_one" else groups
        if not unknown:
            changes = min(changes, public)
        return Norms(l1=changes, l2_squared=changes, linf=1)

    def of_distinct(
        self, aggregate: Aggregate, reading: Distinct, neighbors: Neighbors, cells: float
    ) -> Norms:
        """Return the sensitivities of distinct values per group.

        Each row of a person adds at most one value to its group, and no group has more values than
        the range has.
        """
        rows = self.counts.rows(aggregate.source, aggregate.where)
        values = math.inf
        if reading.ends is not None:
            lo, hi = reading.ends
            values = hi - lo + 1
        most = int(min(rows, values))
        if not most:  # nobody has a row
            return Norms(l1=0, l2_squared=0, linf=0)
        people = 1 if neighbors == "add_remove" or cells == 1 else 2
        # One person fills `full` groups with `most` values each; the other rows go to one more group.
        full, rest = divmod(rows, most)
        l1 = people * rows
        l2_squared = people * (full * most**2 + rest**2)
        return Norms(
            l1=int(min(l1, most * cells)),
            l2_squared=int(min(l2_squared, most**2 * cells)),
            linf=most,
        )

    def require_range(self, aggregate: Aggregate, reading: Reading) -> None:
        """Refuse a sum if nothing keeps its values in their ranges, or if 2^36 people could make it
        overflow.
        """
        if not isinstance(reading, Sum):
            raise Unproved("people or distinct values get noise together with other numbers")
        source = aggregate.source
        largest = 1
        for factor in reading.factors:
            in_range = factor.clamp or self.holds(factor.value, factor.lo, factor.hi, source=source)
            if factor.power and not in_range:
                raise Unproved("nothing keeps the values of a sum in their range")
            largest *= max(abs(factor.lo), abs(factor.hi)) ** factor.power
        rows = self.counts.rows(source, aggregate.where)
        if MOST_PEOPLE * rows * largest >= 2 ** (reading.bits - 1):
            raise Unproved(f"a sum of 2^36 people can pass {reading.bits} bits")

    # --- ranges -----------------------------------------------------------------------------------

    def holds(self, value: Expression, lo: int, hi: int, *, source: Source) -> bool:
        """Return True if a value is a stored column that the snapshot keeps between lo and hi."""
        ends = self.ends_of(value, source)
        return ends is not None and lo <= ends[0] and ends[1] <= hi

    def ends_of(self, value: Expression, source: Source) -> tuple[int, int] | None:
        """Return the range of a stored column, which the snapshot enforces; None for a computed
        value.
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
        """Refuse a statistic if one person can move it further than it claims."""
        true = self.derive(aggregate, forms, neighbors=neighbors, sizes=sizes)
        too_low = claim.l1 < true.l1 or claim.l2_squared < true.l2_squared or claim.linf < true.linf
        if too_low:
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
        """Refuse running totals if one person can move them further than they claim.

        `sums` is the matrix that multiplies the numbers: one column of factors for each number. So
        what one person adds, of norm l1, moves the totals by at most l1 times the l2 norm of the
        longest column. Two people move them by at most twice that. If no factor is negative and
        nobody adds a negative number, both move them to the same side, so it is at most √2 times
        that. `claim` is compared with the square.
        """
        if (np.abs(sums) >= 1 << 20).any():
            raise Unproved("factors of running totals are too large to add up")
        longest = int((sums * sums).sum(axis=0).max())
        one = self.derive(aggregate, forms, neighbors="add_remove", sizes=sizes).l1
        people = 1
        if neighbors == "change_one":
            people = 2 if (sums >= 0).all() and only_adds(aggregate, forms) else 4
        if claim < people * longest * one**2:
            raise Unproved(f"running totals claim {claim} and can move by more")

    def require_touched(self, claim: int, people: Aggregate) -> None:
        """Refuse a threshold on people per key if one person can have more keys than it claims."""
        require_own(people, self.policy)
        if people.readings not in ((Persons(),), (Sum(),)):
            raise Unproved("a threshold tests something other than people")
        rows = self.counts.rows(people.source, people.where)
        if people.readings == (Sum(),) and rows > 1:
            raise Unproved("a threshold tests rows, and one person can have several")
        most = self.counts.groups(people.keys, people.source, people.where)
        if claim < most:
            raise Unproved(f"a threshold claims {claim} keys per person, and one can have {most}")

    def require_rows(self, claim: int, groups: int, counted: Aggregate, *, sizes: Sizes) -> None:
        """Refuse a choice by rank or by count if one person can have more rows than it claims, or if
        it claims one group and there are several: who is replaced may leave one and enter another.
        """
        require_own(counted, self.policy)
        rows = self.counts.rows(counted.source, counted.where)
        if counted.readings != (Sum(),) or claim < rows:
            raise Unproved("a choice claims fewer rows per person than there can be")
        if groups == 1 and any(size != 1 for size in sizes):
            raise Unproved("a choice claims one group, and there are several")

    def require_neighbors(self, *claims: Neighbors) -> None:
        """Refuse a plan that was made for other neighbors than the policy's."""
        if any(claim != self.policy.neighbors for claim in claims):
            raise Unproved("the plan was made for other neighbors than the policy's")

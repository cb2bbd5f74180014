"""Run a publication of a policy: quote it, pay for it and make it once, and show it any number of
times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from discreet.accounting import Accountant
from discreet.algebra import Aggregate
from discreet.budget import Budget
from discreet.census.errors import ErrorForecast, expect, make_whole, simulate
from discreet.census.measure import Noisy, measure
from discreet.census.plan import PublicationPlan
from discreet.census.publication import Publication
from discreet.census.workers import Workers
from discreet.errors import UsageError
from discreet.mechanisms import to_row
from discreet.threads import one_thread
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

Make = Callable[[Allowance, int], Publication]
MOST_JOBS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationQuote:
    """The cost and the expected errors of a publication, found without reading data."""

    name: str
    cost: Budget
    left: Budget
    levels: tuple[tuple[str, int], ...]
    invariants: str
    errors: tuple[ErrorForecast, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "publication": self.name,
            "cost": self.cost.as_json(),
            "left": self.left.as_json(),
            "levels": [{"level": level, "places": places} for level, places in self.levels],
            "invariants": self.invariants,
            "errors": [each.as_json() for each in self.errors],
        }

    def __str__(self) -> str:
        rows = [
            ("level", "table", "places", "cells", "share", "measured ±", "estimate ±", "of 1,000")
        ]
        for each in self.errors:
            margin = "-" if each.margin is None else f"{each.margin:,}"
            relative = f"{100 * each.relative()['1000']:.2f} %" if each.cells == 1 else ""
            share = f"{100 * each.share:.1f} %"
            wide = f"{1.96 * each.deviation:,.1f}"
            rows.append(
                (
                    each.level,
                    each.table,
                    f"{each.places:,}",
                    f"{each.cells:,}",
                    share,
                    margin,
                    wide,
                    relative,
                )
            )
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = [
            "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
            for row in rows
        ]
        return "\n".join([*lines, f"cost {self.cost}   left {self.left}", self.invariants])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicationRun:
    """A publication of one policy on one snapshot.

    `pay` charges for it and stores the result; `recall` returns a stored result.
    """

    plan: PublicationPlan
    accountant: Accountant
    told: dict[str, Any]
    left: Callable[[], Budget]
    fetch: Callable[[Aggregate], Exact]
    pay: Callable[[Make], Publication]
    recall: Callable[[], Publication | None]

    def quote(self) -> PublicationQuote:
        """Return what it would cost, and its expected errors. Free; reads no data."""
        places = self.plan.places
        return PublicationQuote(
            name=self.plan.terms.name,
            cost=self.accountant.budget(self.plan.cost),
            left=self.left(),
            levels=tuple(zip(places.levels, places.sizes, strict=True)),
            invariants=self.plan.promise,
            errors=tuple(expect(self.plan)),
        )

    def run(self, *, jobs: int = 1) -> Publication:
        """Pay for the publication, make it and store it. Running it again is free and returns the
        same bytes.

        `jobs` processes share the work that comes after the noise. The result does not depend on
        their number.
        """
        if not 1 <= jobs <= MOST_JOBS:
            raise UsageError(
                f"jobs is how many processes share the work: from 1 to {MOST_JOBS}, not {jobs}."
            )
        return self.pay(partial(self._make, jobs=jobs))

    def show(self) -> Publication:
        """Return what was published. Free; reads no data."""
        found = self.recall()
        if found is None:
            name = self.plan.terms.name
            raise UsageError(
                f"{name} was not published yet on this snapshot: discreet publish run POLICY {name}."
            )
        return found

    def _make(self, allowance: Allowance, charge: int, *, jobs: int) -> Publication:
        with one_thread(), Workers(jobs) as workers:
            noisy = measure(self.plan, allowance, self.fetch)
            return self._finish(noisy, charge, workers)

    def _finish(self, noisy: Noisy, charge: int, workers: Workers) -> Publication:
        """Compute everything from the noisy tables. No exact value can be reached from here
        (S19).
        """
        plan = self.plan
        people = make_whole(plan, noisy, workers)
        margins = simulate(plan, people, workers)
        certificate = {
            **self.told,
            "publication": plan.terms.name,
            "charge": charge,
            "max_rows": plan.max_rows,
            "invariants": plan.promise,
            "levels": list(plan.places.levels),
            "tables": list(plan.names),
            "mechanisms": [
                [None if noise is None else to_row(noise) for noise in row] for row in plan.noises
            ],
        }
        return Publication(
            plan=plan, noisy=noisy, people=people[-1], margins=margins, certificate=certificate
        )

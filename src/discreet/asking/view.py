"""A view: one opened snapshot, on which questions are planned, offered, measured and finished.

Nothing here charges. A function that reads private rows takes the `Allowance` that the door made
for a charge.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import partial
from typing import Any, Generic, TypeVar

import pyarrow as pa
from sqlglot import exp

from discreet.accounting import Accountant
from discreet.algebra import Numbers
from discreet.asking.measure import gather_numbers, release_parts
from discreet.asking.offer import EarlierCharge, Offer, amount_for_margin, offer
from discreet.asking.savings import savings
from discreet.budget import Charge, amount
from discreet.engines.duckdb.workbench import Workbench, WorkbenchSpelling
from discreet.engines.engine import Engine
from discreet.engines.limits.until import NO_DEADLINE, Until
from discreet.engines.stores import store_of
from discreet.engines.words import Unspelled
from discreet.errors import DiscreetError, EngineFailure, Rejected, UsageError
from discreet.ledger import Standing
from discreet.mechanisms import from_row, to_row
from discreet.mechanisms.tails.simulate import Noise
from discreet.policy.policy import Policy
from discreet.sql.after.error_bars import take_places
from discreet.sql.after.finish import (
    Noisy,
    half_widths,
    noisy_table,
    rehearsals,
    run_after,
    split,
    without_margin,
)
from discreet.sql.after.naming import table_name
from discreet.sql.after.widths.joint import joint_margins
from discreet.sql.alternatives import Alternative, alternatives
from discreet.sql.analyze import plan
from discreet.sql.plan.block import Shared
from discreet.sql.plan.plan import Plan, empty_plan
from discreet.sql.plan.prove import prove
from discreet.sql.text.dialect import Dialect, find_dialect
from discreet.sql.text.parse import refuse_depth
from discreet.vault.allowance import Allowance
from discreet.vault.answer import Sheet
from discreet.vault.exact import Exact
from discreet.vault.released import Released, from_bytes, to_bytes

_BOTH = "Give epsilon, what the answer may cost, or margin, how wrong it may be; not both."
_NEITHER = (
    "Say what the answer may cost: epsilon=0.1 in Python, --epsilon 0.1 behind a command, "
    r"\epsilon 0.1 in the shell. Or say how wrong it may be: margin, in the same way."
)
MOST_BYTES = 1 << 18  # of an answer that is kept
# plans that are kept, then all are forgotten; of questions no longer than this
MOST_PLANS, MOST_LETTERS = (256, 10_000)
Kept = TypeVar("Kept")


class Memory(Generic[Kept]):
    """Keeps values that were computed from plans, and forgets all of them when there are many."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[Plan, Kept]] = {}

    def find(self, plan: Plan, *key: object) -> Kept | None:
        """Return the value that was kept for this plan object."""
        kept = self._kept.get((id(plan), *key))
        return kept[1] if kept is not None and kept[0] is plan else None

    def keep(self, value: Kept, plan: Plan, *key: object) -> None:
        """Keep a value beside its plan, so that no other plan gets the same id meanwhile."""
        if len(self._kept) >= MOST_PLANS:
            self._kept.clear()
        self._kept[id(plan), *key] = plan, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The columns of an answer with their types, which of them may have margins, and whether it
    costs nothing.
    """

    schema: pa.Schema
    measured: tuple[bool, ...]
    free: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """An answer, the numbers that were released for it now, and the last of the charges behind
    it.
    """

    sheet: Sheet
    released: Mapping[str, Released]
    charge: int | None

    def to_bytes(self) -> bytes:
        """Return the bytes to store: not the answer, but the noisy numbers, which other questions
        may use too.
        """
        return to_bytes(self.released)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """One numbered snapshot, opened, with its public tables.

    Privacy: S8. A question uses one view from its beginning to its end, even if other threads take
    new snapshots meanwhile. If a charge were made for one snapshot and carried out on another, both
    would get the same noise. Then comparing the two answers would tell whether anybody's row
    changed.
    """

    policy: Policy
    accountant: Accountant
    limit: Charge
    number: int
    engine: Engine
    public: Mapping[str, pa.Table]
    workbench: Workbench
    plans: dict[tuple[str, Dialect, date], Plan] = field(default_factory=dict, repr=False)
    answers: Memory[Outcome] = field(default_factory=Memory, repr=False)
    ways: Memory[tuple[tuple[Alternative, Plan], ...]] = field(default_factory=Memory, repr=False)
    shapes: Memory[Shape] = field(default_factory=Memory, repr=False)
    process: int = field(default_factory=os.getpid)

    @classmethod
    def open(
        cls,
        policy: Policy,
        number: int,
        *,
        accountant: Accountant,
        limit: Charge,
        workbench: Workbench,
    ) -> View:
        engine = store_of(policy).open(number)
        public = {
            name: engine.public_table(name) for name, table in policy.tables.items() if table.public
        }
        return cls(
            policy=policy,
            accountant=accountant,
            limit=limit,
            number=number,
            engine=engine,
            public=public,
            workbench=workbench,
        )

    # --- before the charge ------------------------------------------------------------------------

    def offer(
        self,
        sql: str,
        *,
        epsilon: object,
        margin: object,
        assuming: int | None,
        dialect: str = "duckdb",
    ) -> Offer:
        """Return the plan, and the noise that epsilon, or the cheapest one for a margin, buys.
        Reads no data.
        """
        self.require_process()
        if not isinstance(sql, str):
            raise UsageError(f"A question is a text, not {type(sql).__name__}.")
        if assuming is not None and (type(assuming) is not int or not 1 <= assuming <= 10**18):
            raise UsageError("assuming is a number of rows: a whole number from 1 to 10^18.")
        most = self.accountant.allot(epsilon=self.policy.limits.epsilon)
        spend = self.amount(epsilon) if epsilon is not None else None
        if epsilon is not None and margin is not None:
            raise UsageError(_BOTH)
        found = self.plan(sql, find_dialect(dialect))
        if epsilon is None and margin is None:
            if found.blocks:
                raise UsageError(_NEITHER)
            spend = Fraction(0)  # of what is public
        if spend is None:
            wanted = amount(margin, name="margin")
            spend = amount_for_margin(
                found,
                self.accountant,
                margin=wanted,
                assuming=assuming,
                most=most,
                limit=self.limit,
            )
        return offer(found, self.accountant, amount=spend, limit=self.limit)

    def plan(self, sql: str, dialect: Dialect = "duckdb") -> Plan:
        """Plan a question, prove the plan, and try it on tables without rows. Plans are kept."""
        today = datetime.now(UTC).date()
        found = self.plans.get((sql, dialect, today))
        if found is None:
            with refuse_depth():
                found = self._plan(sql, dialect, today)
            if len(self.plans) >= MOST_PLANS:
                self.plans.clear()
            if len(sql) <= MOST_LETTERS:
                self.plans[sql, dialect, today] = found
        return found

    def _plan(self, question: str | exp.Query, dialect: Dialect, today: date) -> Plan:
        found = plan(
            question,
            self.policy,
            self.public,
            self.of_public,
            dialect=dialect,
            today=today,
            spell=WorkbenchSpelling().numbers,
        )
        prove(found, self.policy)
        self._rehearse(found)
        return self._probe(found) if found.probe and found.blocks else found

    def shape(self, sql: str, *, dialect: str = "duckdb") -> Shape:
        """Return the columns and types of an answer: from a rehearsal, or, if all its tables are
        public, from the answer itself.
        """
        self.require_process()
        found = self.plan(sql, find_dialect(dialect))
        shape = self.shapes.find(found)
        if shape is None:
            shape = self._shape(found)
            self.shapes.keep(shape, found)
        return shape

    def _shape(self, found: Plan) -> Shape:
        if found.blocks:
            statement, made_up = next(rehearsals(found))
            table = self._made_up_answer(found, statement, made_up)
        else:
            free = Offer(plan=found, blocks=(), cost=Charge(amount=Fraction(0)))
            table = self.finish(free, []).table
        return Shape(
            schema=table.schema,
            measured=tuple(column.measured for column in found.columns),
            free=not found.blocks,
        )

    def amount(self, epsilon: object) -> Fraction:
        most = self.policy.limits.epsilon
        by = "the policy's limits.epsilon"
        return self.accountant.allot(epsilon=amount(epsilon, name="epsilon", most=most, by=by))

    def require_process(self) -> None:
        """Refuse every question in a process that was forked after opening."""
        if self.process != os.getpid():
            raise UsageError(
                "The policy was opened before a fork. Open it again in the new process."
            )

    def _rehearse(self, found: Plan) -> None:
        """Run everything on tables without rows and on made-up numbers, so that a question that
        cannot be computed is refused before it is paid.
        """
        try:
            for block in found.blocks:
                if not isinstance(block.kind, Shared):
                    for query in block.queries:
                        self.engine.check(query)
        except Unspelled as error:
            raise Rejected(
                f"{error.what} cannot be computed by the engine of this policy.",
                hint="Write it in another way.",
            ) from None
        except EngineFailure:
            raise Rejected(
                "a part of this question cannot be computed by the engine.",
                hint="Write it in another way.",
            ) from None
        if found.listed is not None:
            return
        try:
            for sql, made_up in rehearsals(found):
                self._after(sql, self._public_of(found) | made_up)
        except EngineFailure:
            raise Rejected(
                "what is computed from the aggregates does not fit together.",
                hint="Check types, and that a subquery used as a value has one row and one column.",
            ) from None

    def _probe(self, found: Plan) -> Plan:
        """Return the names and types of the statement's columns, computed on made-up numbers
        without reading anything.
        """
        sql, made_up = next(rehearsals(found))
        table = self._made_up_answer(found, sql, made_up)
        return empty_plan(list(zip(table.column_names, table.schema.types, strict=True)))

    def _made_up_answer(self, found: Plan, sql: str, made_up: dict[str, pa.Table]) -> pa.Table:
        """Return an answer that is computed from made-up noisy tables. Only its names and types are
        real.
        """
        if found.listed is None:
            result = self._after(sql, self._public_of(found) | made_up)
        else:
            result = made_up[table_name(0)].select(found.listed)
        table, _ = take_places(*split(result, found.columns), found.columns)
        return table

    def _public_of(self, found: Plan) -> dict[str, pa.Table]:
        """Return the public tables that a plan reads after noise."""
        return {name: self.public[name] for name in found.public}

    def of_public(self, sql: str) -> pa.Table:
        """Answer a question about public tables alone."""
        return self._after(sql, dict(self.public))

    def savings(
        self,
        sql: str,
        offered: Offer,
        find: Callable[[Mapping[str, Fraction]], Standing],
        *,
        assuming: int | None,
        dialect: str,
    ) -> tuple[str, ...]:
        """Return what the asker could write otherwise, and what it would save. Reads no data.

        `find` says what of an alternative was measured before.
        """
        others = []
        if offered.parts and not offered.stored:
            for way, found in self._ways(sql, offered.plan, find_dialect(dialect)):
                with suppress(UsageError):
                    other = offer(found, self.accountant, amount=offered.amount, limit=self.limit)
                    others.append((way, self.knowing(other, find(other.least_costs))))
        return savings(offered, others, assuming=assuming)

    def _ways(
        self, sql: str, found: Plan, dialect: Dialect
    ) -> tuple[tuple[Alternative, Plan], ...]:
        """Return the alternatives to a statement that can be answered, with their plans, which are
        kept.
        """
        kept = self.ways.find(found)
        if kept is not None:
            return kept
        ways = []
        today = datetime.now(UTC).date()
        with refuse_depth():
            for way, tree in alternatives(sql, found, self.policy, dialect=dialect):
                with suppress(DiscreetError):
                    ways.append((way, self._plan(tree, dialect, today)))
        if len(sql) <= MOST_LETTERS:
            self.ways.keep(tuple(ways), found)
        return tuple(ways)

    # --- after it ---------------------------------------------------------------------------------

    def knowing(self, offered: Offer, standing: Standing) -> Offer:
        """Return the offer with the parts that were measured before: they are free, with the noise
        that is on them (S10).
        """
        stored = {
            part: EarlierCharge(
                charge=each.answer.id, mechanisms=tuple(map(from_row, each.mechanisms))
            )
            for part, each in standing.parts.items()
        }
        return offered.recalling(stored, self.accountant) if stored else offered

    def carry_out(
        self, offered: Offer, standing: Standing, until: Until, allowance: Allowance, charge: int
    ) -> Outcome:
        """Measure the paid parts and compute the answer: everything between the charge and storing
        the answer.
        """
        fetch = partial(self.fetch, until=until)
        read = partial(self.fetch_parts, until=until)
        found = release_parts(offered, allowance, fetch, read, in_passes=self.engine.in_passes)
        return self.complete(offered, standing, charge, found)

    def recall(self, offered: Offer, standing: Standing) -> Outcome:
        """Return an answer whose parts were all measured before. Small answers are kept, because
        clients repeat questions.
        """
        made = self.answers.find(offered.plan, *offered.stored.items())
        if made is None:
            made = self.complete(offered, standing)
            if made.sheet.table.nbytes <= MOST_BYTES:
                self.answers.keep(made, offered.plan, *offered.stored.items())
        return replace(
            made, sheet=replace(made.sheet, certificate=deepcopy(made.sheet.certificate))
        )

    def complete(
        self,
        offered: Offer,
        standing: Standing,
        charge: int | None = None,
        found: Mapping[str, Released] | None = None,
    ) -> Outcome:
        """Return the answer made from stored numbers and from those that a charge released, if
        there was one.
        """
        paid = offered if charge is None else offered.store_under(charge)
        sheet = self.finish(paid, gather_numbers(paid, {**_numbers(standing), **(found or {})}))
        return Outcome(
            released=found or {}, sheet=sheet, charge=max(paid.stored.values(), default=None)
        )

    def fetch(self, query: Numbers, *, until: Until = NO_DEADLINE) -> Exact:
        return self.engine.fetch(query, until.at_most(float(self.policy.limits.seconds)))

    def fetch_parts(self, queries: Sequence[Numbers], rows: int, *, until: Until) -> Exact:
        seconds = float(self.policy.limits.seconds)
        return Exact.chain(
            self.engine.fetch_parts(query, until.at_most(seconds), rows) for query in queries
        )

    def finish(self, offered: Offer, noisy: list[Noisy]) -> Sheet:
        """Run the SQL above the noise on noisy and public tables; return the answer with its
        margins and certificate.
        """
        plan = offered.plan
        noise = [each.noise for each in offered.blocks]
        result = self._run_above_noise(plan, noisy, noise)
        table, margins = split(result, plan.columns)
        public = self._public_of(plan)
        joint = joint_margins(plan, noisy, noise, table, public, self._after)
        for place, found in joint.items():
            margins = margins.set_column(place, margins.column_names[place], found)
        certificate = self._certificate(offered)
        unknown = without_margin(table, margins, plan.columns)
        if unknown:
            certificate["without_margin"] = unknown
        table, margins = take_places(table, margins, plan.columns)
        return Sheet(table=table, margins=margins, selected=plan.selected, certificate=certificate)

    def _run_above_noise(
        self, plan: Plan, noisy: list[Noisy], noise: list[dict[str, Noise]]
    ) -> pa.Table:
        """Make the noisy table of every block, and run the rest of the statement on them."""
        tables = self._public_of(plan) | half_widths(plan, noise)
        for index, block in enumerate(plan.blocks):
            if block.aggregates:  # otherwise it is there for others to be added up from
                name = table_name(index)
                tables[name] = noisy_table(
                    block, noisy[index], noise[index], self._after, name=name
                )
        if plan.listed is not None:
            return tables[table_name(0)].select(plan.listed)
        return run_after(plan.after, tables, self._after)

    def _after(self, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
        return self.workbench.run(sql, tables, seconds=float(self.policy.limits.seconds))

    def _certificate(self, offered: Offer) -> dict[str, Any]:
        """Return the facts by which one answer can be audited: who asked what on which snapshot,
        the noise, its cost, and who paid it.
        """
        today = offered.plan.today
        losses = (mechanism.loss() for mechanism in offered.mechanisms)
        return {
            **self.certificate_head(self.accountant.price(losses)),
            **({} if today is None else {"today": today.isoformat()}),
            "max_rows": dict(offered.plan.max_rows),
            **({"shared_by": list(offered.shared_by())} if offered.shared_by() else {}),
            **({"each_row": True} if self.policy.each_row else {}),
            "statistics": offered.statistics(),
            "ranks": offered.ranks(),
            "beside_ranks": offered.beside_ranks(),
            "mechanisms": [to_row(mechanism) for mechanism in offered.mechanisms],
        }

    def certificate_head(self, cost: Charge) -> dict[str, Any]:
        """Return the fields that every certificate begins with."""
        return {
            "unit": self.policy.unit,
            "neighbors": self.policy.neighbors,
            "snapshot": self.number,
            "policy": self.policy.digest,
            "cost": self.accountant.budget(cost).as_json(),
        }


def _numbers(standing: Standing) -> dict[str, Released]:
    """Return the stored noisy numbers of the parts that a standing has found."""
    contents = {each.answer.id: from_bytes(each.answer.answer) for each in standing.parts.values()}
    return {part: contents[each.answer.id][part] for part, each in standing.parts.items()}

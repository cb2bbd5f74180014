"""The flow: a question in, a noisy answer out. Short, as it is the path that everybody should read.

plan (pure)  ->  offer (noise, cost)  ->  reserve (durable)  ->  fetch (exact)  ->  noise  ->  post
->  answer

`view` has what a question sees of one snapshot, `door` has the charge and all that goes with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.asking.bounds import BEYOND, Bounds, suggested
from discreet.asking.explain import explanation
from discreet.asking.offer import Offer
from discreet.asking.quotes import Quote, quoted
from discreet.asking.view import Finished, Shape, View
from discreet.binding import (
    accountant_of,
    accounts_of,
    build_snapshot,
    find_declared,
    ledger_of,
    terms_of,
)
from discreet.budget import Account, Budget
from discreet.door import Door, Passed, Request, allowed
from discreet.engines.duckdb.reference import Reference
from discreet.engines.duckdb.workbench import Workbench
from discreet.engines.engine import Progress
from discreet.engines.limits.until import Until
from discreet.engines.quoting import name as named
from discreet.engines.snapshot import Snapshot
from discreet.errors import UsageError
from discreet.extras import require
from discreet.ledger import Ledger, PaidPart
from discreet.ledger.receipts import Entry
from discreet.policy.policy import CURATOR, Policy
from discreet.sql.plan.identity import digest
from discreet.vault.allowance import Allowance
from discreet.vault.answer import Answer
from discreet.vault.released import from_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.census.running import PublicationRun
    from discreet.continual.running import Release
    from discreet.policy.dictionary import Listing
    from discreet.synthetic.columns.axis import Intervals
    from discreet.synthetic.compare import Comparison
    from discreet.synthetic.describe import CarryOut, Commission, Purse
    from discreet.synthetic.description import Description
    from discreet.synthetic.linked import Lot
    from discreet.synthetic.linked_description import LinkedDescription


class Curator:
    """Answers questions about one policy's data. Open one with `discreet.open(policy)`."""

    def __init__(
        self,
        policy: Policy,
        *,
        tables: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.policy = policy
        self._tables = tables
        self._accountant = accountant_of(policy)
        self._ledger = Ledger.open(
            ledger_of(policy), terms_of(policy), words=self._accountant.budget
        )
        self._workbench = Workbench()
        if self._ledger.snapshot == 0:
            self.snapshot(progress=progress)
        else:
            self._open(self._ledger.snapshot)

    # --- the path of a question -------------------------------------------------------------------

    def ask(
        self,
        sql: str,
        *,
        analyst: str,
        epsilon: object = None,
        margin: object = None,
        assuming: int | None = None,
        dialect: str = "duckdb",
    ) -> Answer:
        """Answer a question; what was measured before is free, with the same numbers (S10)."""
        with self._enter() as (view, door):
            offered = view.offer(
                sql, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
            )
            standing = door.standing(analyst, offered.wanted)
            offered = view.knowing(offered, standing)
            if not offered.due:
                return self._answer(sql, door.free(standing, view.recalled(offered, standing)))
            passed = door.pay(
                self._request(sql, offered, analyst),
                standing,
                partial(view.carry_out, offered, standing, door.until),
                pack=Finished.to_bytes,
                unpack=lambda content, charge: view.finished(
                    offered, standing, charge, from_bytes(content)
                ),
            )
            return self._answer(sql, passed)

    @contextmanager
    def _enter(self) -> Iterator[tuple[View, Door]]:
        """One snapshot and a way through the door; who entered leaves at a multiple of the
        deadline, if there is one.

        Privacy: S13. Paid for or free, answered or refused: how many free quotes are answered while
        somebody's question runs would tell how long it ran.
        """
        view, door = self._at_the_door(deadline=self.policy.limits.deadline)
        try:
            yield view, door
        except Exception:
            door.until.hold()
            raise
        door.until.hold()

    def _at_the_door(self, *, deadline: Fraction | None) -> tuple[View, Door]:
        view, until = self._view, Until(began=time.monotonic(), deadline=deadline)
        return view, Door(
            policy=self.policy, ledger=self._ledger, snapshot=view.number, until=until
        )

    def _request(self, sql: str, offered: Offer, analyst: str) -> Request:
        return Request(
            analyst=analyst,
            question=digest("discreet parts", *(part.id for part in offered.due)),
            text=sql,
            cost=offered.cost,
            mechanisms=[mechanism for part in offered.due for mechanism in offered.of(part)],
            parts=[
                PaidPart(id=part.id, mechanisms=len(offered.of(part)), cost=offered.prices[part.id])
                for part in offered.due
            ],
            inside=self._accountant,
            paid=offered.cost,
            memory=self.policy.limits.python_memory,
        )

    def _answer(self, sql: str, passed: Passed[Finished]) -> Answer:
        sheet, standing = passed.made.sheet, passed.standing
        return Answer(
            table=sheet.table,
            margins=sheet.margins,
            selected=(sheet.selected,) * sheet.table.num_rows,
            cost=self._accountant.budget(passed.cost),
            left=self._accountant.left(standing.left),
            certificate={"question": sql, **sheet.certificate, "ledger": standing.head},
            id="public" if passed.made.charge is None else str(passed.made.charge),
        )

    # --- before paying ----------------------------------------------------------------------------

    def quote(
        self,
        sql: str,
        *,
        analyst: str,
        epsilon: object = None,
        margin: object = None,
        assuming: int | None = None,
        dialect: str = "duckdb",
    ) -> Quote:
        """Say what a question would cost and how wrong its answer would be. Free; reads no data."""
        with self._enter() as (view, door):
            offered = view.offer(
                sql, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
            )
            standing = door.standing(analyst, offered.wanted)
            known = view.knowing(offered, standing)
            return quoted(
                known,
                self._accountant,
                left=standing.left,
                assuming=assuming,
                savings=view.savings(
                    sql, known, partial(door.standing, analyst), assuming=assuming, dialect=dialect
                ),
            )

    def explain(
        self,
        sql: str,
        *,
        analyst: str,
        epsilon: object = None,
        margin: object = None,
        assuming: int | None = None,
        dialect: str = "duckdb",
    ) -> str:
        """Say what would happen, in numbered sentences with their costs. Free; reads no data."""
        with self._enter() as (view, door):
            offered = view.offer(
                sql, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
            )
            standing = door.standing(analyst, offered.wanted)
            known = view.knowing(offered, standing)
            return explanation(
                known,
                self.policy,
                self._accountant,
                analyst=analyst,
                left=standing.left,
                spell=view.engine.sql,
                savings=view.savings(
                    sql, known, partial(door.standing, analyst), assuming=assuming, dialect=dialect
                ),
            )

    def shape(self, sql: str, *, analyst: str, dialect: str = "duckdb") -> Shape:
        """Return the columns and types of an answer. Free; touches no private data."""
        with self._enter() as (view, door):
            door.standing(analyst)
            return view.shape(sql, dialect=dialect)

    def left(self, *, analyst: str) -> Budget:
        """Return what is left to an analyst."""
        with self._enter() as (_, door):
            return self._accountant.left(door.standing(analyst).left)

    def bounds(self, table: str, column: str, *, epsilon: object) -> Bounds:
        """A range beyond which few of a column's values lie, found by paid quantiles and widened to
        round numbers.
        """
        if not isinstance(table, str) or not isinstance(column, str):
            raise UsageError("A table and a column are named by texts.")
        levels = [float(BEYOND), float(1 - BEYOND)]
        sql = f"SELECT QUANTILE_CONT({named(column)}, {levels}) AS bounds FROM {named(table)}"
        answer = self.ask(sql, analyst=CURATOR, epsilon=epsilon)
        low, high = answer.table.column(0)[0].as_py()
        return suggested(low, high, ranks=answer.certificate["ranks"]["bounds"], cost=answer.cost)

    def describe_together(
        self,
        tables: Sequence[str],
        *,
        epsilon: object,
        analyst: str = CURATOR,
        synthesizer: str | None = None,
        intervals: Intervals | None = None,
        progress: Progress | None = None,
    ) -> LinkedDescription:
        """A model of several tables of the same people, of which the first has one row each."""
        require("scipy", what="A description")
        from discreet.synthetic.columns.axis import USUAL
        from discreet.synthetic.linked import lot
        from discreet.synthetic.linked_description import LinkedDescription

        usual = USUAL if intervals is None else intervals
        work = lot(
            self.policy, tables, self._purse(epsilon), synthesizer=synthesizer, intervals=usual
        )
        return LinkedDescription.from_bytes(
            self._lump(work, work.carry_out(progress), analyst=analyst)
        )

    def describe(
        self,
        table: str,
        *,
        epsilon: object,
        analyst: str = CURATOR,
        synthesizer: str | None = None,
        columns: Sequence[str] | None = None,
        intervals: Intervals | None = None,
        workload: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Description:
        """A model of a private table, to generate synthetic rows from. One charge; the same again
        is free.

        `intervals` says how columns of many values are cut. `workload` are questions that it should
        be good at, such as those `asked` so far; otherwise every pair counts.
        """
        require("scipy", what="A description")
        from discreet.synthetic.columns.axis import USUAL
        from discreet.synthetic.describe import commission, description
        from discreet.synthetic.description import Description

        work = commission(
            self.policy,
            table,
            self._purse(epsilon),
            synthesizer=synthesizer,
            columns=columns,
            intervals=USUAL if intervals is None else intervals,
            questions=workload,
        )
        return Description.from_bytes(
            self._lump(work, work.carry_out(description, progress), analyst=analyst)
        )

    def generate(self, description: bytes, *, rows: int) -> pa.Table:
        """Return synthetic rows of a description's bytes; free, and different every time."""
        from discreet.synthetic.description import Description

        return Description.from_bytes(description).generate(rows=rows)

    def compare(
        self,
        description: Description,
        *,
        epsilon: object,
        analyst: str = CURATOR,
        workload: Sequence[str] | None = None,
        target: str | None = None,
        progress: Progress | None = None,
    ) -> Comparison:
        """Return how far a description is from the true table: a paid question (S16).

        `workload` adds what questions ask for, `target` (`income=high`) a classifier made from it
        and tried on truth.
        """
        require("scipy", what="A comparison")
        from discreet.synthetic.compare import Comparison, compared, comparison

        work = comparison(
            self.policy,
            description,
            self._purse(epsilon),
            questions=workload,
            target=target,
        )
        carry_out = work.carry_out(compared(description, target=target), progress)
        return Comparison.from_bytes(self._lump(work, carry_out, analyst=analyst))

    def compare_together(
        self, linked: LinkedDescription, *, epsilon: object, analyst: str = CURATOR
    ) -> tuple[Comparison, ...]:
        """Return how far each part of a description of several tables is from the truth: a charge
        of ε / parts for each.
        """
        from discreet.synthetic.compare import Comparison
        from discreet.synthetic.linked import comparisons

        parts = comparisons(self.policy, linked, self._purse(epsilon))
        return tuple(
            Comparison.from_bytes(self._lump(work, carry, analyst=analyst)) for work, carry in parts
        )

    def _purse(self, epsilon: object) -> Purse:
        from discreet.synthetic.describe import Purse

        return Purse(
            accountant=self._accountant, amount=self._view.amount(epsilon), limit=self._view.limit
        )

    def _lump(self, work: Commission | Lot, carry_out: CarryOut, *, analyst: str) -> bytes:
        """Charge first, then let an algorithm choose as it goes within what was charged; its
        answer's bytes.
        """
        # the curator's own work leaves when it is done
        view, door = self._at_the_door(deadline=None)
        view.require_process()
        request = Request(
            analyst=analyst,
            question=work.question,
            text=work.text,
            cost=work.cost,
            mechanisms=None,
            inside=work.inside,
            paid=work.paid,
            meta=work.meta,
        )
        told = {**view.told(work.cost), "max_rows": work.max_rows, **work.meta}
        fetch = partial(view.fetch, until=door.until)

        def act(allowance: Allowance, charge: int) -> bytes:
            return carry_out(allowance, fetch, {**told, "charge": charge})

        return door.through(request, act, pack=bytes, unpack=bytes).made

    def release(self, name: str) -> Release:
        """A scheduled release: start it once, run it every period, show what it published (S15)."""
        require("scipy", what="A release")
        from discreet.continual.question import question
        from discreet.continual.running import Release

        view, door = self._at_the_door(deadline=None)
        view.require_process()
        door.standing(CURATOR)
        schedule = find_declared("release", name, self.policy.releases)
        return Release(
            policy=self.policy,
            schedule=schedule,
            asked=question(schedule, self.policy, view.public, view.of_public),
            accountant=self._accountant,
            ledger=self._ledger,
            pay=door.begin_stream,
            allow=allowed,
            source=self.policy.source if self._tables is None else self._tables,
        )

    def publication(self, name: str) -> PublicationRun:
        """A publication of the policy: tables of a hierarchy that add up, for one charge (S18)."""
        from discreet.census.plan import plan
        from discreet.census.publication import Publication
        from discreet.census.running import PublicationRun

        view, door = self._at_the_door(deadline=None)
        view.require_process()
        door.standing(CURATOR)
        terms = find_declared("publication", name, self.policy.publications)
        planned = plan(self.policy, terms, view.public, self._accountant)
        request = Request(
            analyst=CURATOR,
            question=planned.question,
            text=f"publish {name}: {', '.join(planned.names)} of {terms.table} by {terms.hierarchy.name}",
            cost=planned.cost,
            mechanisms=planned.mechanisms,
            inside=self._accountant,
            paid=planned.cost,
        )
        unpack = partial(Publication.from_bytes, plan=planned)
        return PublicationRun(
            plan=planned,
            accountant=self._accountant,
            told=view.told(planned.cost),
            left=lambda: self._accountant.left(door.standing(CURATOR).left),
            fetch=partial(view.fetch, until=door.until),
            pay=lambda work: (
                door.through(request, work, pack=Publication.to_bytes, unpack=unpack).made
            ),
            recall=lambda: door.recall(request, unpack),
        )

    # --- what was done ----------------------------------------------------------------------------

    def ledger(self, *, analyst: str | None = None) -> tuple[Entry, ...]:
        """Return what was spent, when, on what; by one analyst or by all."""
        with self._enter():
            return self._ledger.entries(analyst)

    def spending(self) -> Mapping[str | None, Account]:
        """Return what each analyst, the curator and (as None) everybody may spend, has spent and
        has left.
        """
        with self._enter():
            return accounts_of(self._ledger, self._accountant)

    def certificate(self, id: str) -> dict[str, Any]:
        """Return all that is needed to audit one released answer."""
        with self._enter():
            return self._ledger.certificate(id)

    def asked(self) -> tuple[str, ...]:
        """The questions that were answered so far, by whomever: a workload for `describe`."""
        with self._enter():
            return tuple(each.text for each in self._ledger.entries(None) if each.is_question)

    def tables(self) -> tuple[Listing, ...]:
        """Return what the policy tells everybody of the tables: columns, types, values. Free."""
        from discreet.policy.dictionary import dictionary

        return dictionary(self.policy, self.public_columns())

    # --- for doors --------------------------------------------------------------------------------

    def public_columns(self) -> dict[str, pa.Schema]:
        """The columns of the public tables; those of private ones are in the policy."""
        return {name: table.schema for name, table in self._view.public.items()}

    def reference(self, tables: Mapping[str, pa.Table], script: Sequence[str]) -> Reference:
        """A locked database of public tables, for a door's catalog."""
        return Reference(tables, script)

    def snapshot(self, *, progress: Progress | None = None) -> Snapshot:
        """Read the source anew, as the next numbered snapshot; every question is charged anew after
        it (S9).
        """
        made = build_snapshot(self.policy, self._ledger, self._tables, progress)
        self._open(made.number)
        return made

    def _open(self, number: int) -> None:
        """From here on questions see this snapshot; those that are under way go on with theirs."""
        self._view = View.open(
            self.policy,
            number,
            accountant=self._accountant,
            limit=terms_of(self.policy).limit,
            workbench=self._workbench,
        )

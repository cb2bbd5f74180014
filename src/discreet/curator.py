"""The curator: a question in, a noisy answer out. `ask` is the path that everybody should read.

    plan (pure) -> offer (noise, cost) -> reserve (durable) -> fetch (exact) -> noise -> post ->
    answer

`asking.visit` is one question on one snapshot. It holds a view (`asking.view`: the snapshot, opened
for questions) and a door (`door`: the charge). `asking.work` has the curator's own paid work.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.asking.bounds import BEYOND, Bounds, round_outward
from discreet.asking.explain import explanation
from discreet.asking.quotes import Quote, quote_of
from discreet.asking.view import Shape, View
from discreet.asking.visit import Visit
from discreet.asking.work import open_publication, open_release, pay_lump, purse_of
from discreet.binding import accountant_of, accounts_of, build_snapshot, ledger_of, terms_of
from discreet.budget import Account, Budget
from discreet.door import Door
from discreet.engines.duckdb.reference import Reference
from discreet.engines.duckdb.workbench import Workbench
from discreet.engines.engine import Progress
from discreet.engines.limits.until import Until
from discreet.engines.quoting import name as quoted
from discreet.engines.snapshot import Snapshot
from discreet.errors import UsageError
from discreet.extras import require
from discreet.ledger import Ledger
from discreet.ledger.receipts import Entry
from discreet.policy.policy import CURATOR, Policy
from discreet.vault.answer import Answer

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.census.running import PublicationRun
    from discreet.continual.running import Release
    from discreet.policy.dictionary import Listing
    from discreet.synthetic.columns.axis import Intervals
    from discreet.synthetic.compare import Comparison
    from discreet.synthetic.description import Description
    from discreet.synthetic.linked.description import LinkedDescription


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
        """Answer a question in SQL, and charge it to an analyst.

        Give `epsilon`, what the answer may cost, or `margin`, how wrong it may be at 95 %.
        `assuming` guesses the number of rows, on which the margins of means depend. Parts that were
        measured before are free and keep their numbers (S10). Raises Rejected or BudgetExceeded,
        which cost nothing.
        """
        with self._enter() as visit:
            offered, standing = visit.offer(
                sql, analyst, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
            )
            if not offered.due:
                return visit.answer(sql, visit.recall(offered, standing))
            return visit.answer(sql, visit.pay(sql, analyst, offered, standing))

    @contextmanager
    def _enter(self) -> Iterator[Visit]:
        """Begin a visit, and end it at a multiple of the policy's deadline, if it sets one.

        Privacy: S13. This holds for every visit, paid or free, answered or refused: otherwise the
        number of free quotes answered while a question runs would tell how long it ran.
        """
        visit = self._visit(deadline=self.policy.limits.deadline)
        try:
            yield visit
        except Exception:
            visit.door.until.hold()
            raise
        visit.door.until.hold()

    def _visit(self, *, deadline: Fraction | None = None) -> Visit:
        """Return a visit to the newest snapshot. The curator's own work has no deadline."""
        view = self._view
        until = Until(began=time.monotonic(), deadline=deadline)
        door = Door(policy=self.policy, ledger=self._ledger, snapshot=view.number, until=until)
        return Visit(view=view, door=door)

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
        """Return the cost of a question and the margins of its answer; takes what `ask` takes.

        Free; reads no data.
        """
        with self._enter() as visit:
            offered, standing = visit.offer(
                sql, analyst, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
            )
            savings = visit.savings(sql, analyst, offered, assuming=assuming, dialect=dialect)
            return quote_of(
                offered,
                self._accountant,
                left=standing.left,
                assuming=assuming,
                savings=savings,
                unlisted=visit.unlisted(sql, dialect=dialect),
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
        """Explain what a question would do, in numbered sentences with costs. Free; reads no
        data.
        """
        with self._enter() as visit:
            offered, standing = visit.offer(
                sql, analyst, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
            )
            savings = visit.savings(sql, analyst, offered, assuming=assuming, dialect=dialect)
            return explanation(
                offered,
                self.policy,
                self._accountant,
                analyst=analyst,
                left=standing.left,
                spell=visit.view.engine.sql,
                savings=savings,
                unlisted=visit.unlisted(sql, dialect=dialect),
            )

    def shape(self, sql: str, *, analyst: str, dialect: str = "duckdb") -> Shape:
        """Return the columns and types of an answer. Free; touches no private data."""
        with self._enter() as visit:
            visit.door.standing(analyst)
            return visit.view.shape(sql, dialect=dialect)

    def left(self, *, analyst: str) -> Budget:
        """Return the budget that an analyst has left."""
        with self._enter() as visit:
            return self._accountant.left(visit.door.standing(analyst).left)

    def bounds(self, table: str, column: str, *, epsilon: object) -> Bounds:
        """Suggest a range outside which few of a column's values lie.

        Its ends are two paid quantiles, rounded outward.
        """
        if not isinstance(table, str) or not isinstance(column, str):
            raise UsageError("A table and a column are named by texts.")
        levels = [float(BEYOND), float(1 - BEYOND)]
        sql = f"SELECT QUANTILE_CONT({quoted(column)}, {levels}) AS bounds FROM {quoted(table)}"
        answer = self.ask(sql, analyst=CURATOR, epsilon=epsilon)
        low, high = answer.table.column(0)[0].as_py()
        ranks = answer.certificate["ranks"]["bounds"]
        return round_outward(low, high, ranks=ranks, cost=answer.cost)

    def describe_together(
        self,
        tables: Sequence[str],
        *,
        epsilon: object,
        analyst: str = CURATOR,
        synthesizer: str | None = None,
        intervals: Intervals | None = None,
        workload: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> LinkedDescription:
        """Return a model of several tables about the same people.

        In the first table every person has one row. `workload` are questions, also about several of
        the tables, that it should be good at.
        """
        require("scipy", what="A description")
        from discreet.synthetic.columns.axis import USUAL
        from discreet.synthetic.linked.description import LinkedDescription
        from discreet.synthetic.linked.lot import lot

        work = lot(
            self.policy,
            tables,
            purse_of(self._view, epsilon),
            synthesizer=synthesizer,
            intervals=USUAL if intervals is None else intervals,
            questions=workload,
        )
        content = pay_lump(self._visit(), work, work.carry_out(progress), analyst=analyst)
        return LinkedDescription.from_bytes(content)

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
        """Return a model of a private table, to generate synthetic rows from. One charge; the same
        again is free.

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
            purse_of(self._view, epsilon),
            synthesizer=synthesizer,
            columns=columns,
            intervals=USUAL if intervals is None else intervals,
            questions=workload,
        )
        carry_out = work.carry_out(description, progress)
        return Description.from_bytes(pay_lump(self._visit(), work, carry_out, analyst=analyst))

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
        """Measure how far a description is from the true table: a paid question (S16).

        `workload` adds the errors on these questions. `target`, such as `income=high`, adds the
        score of a classifier that is trained on the description and tested on the true table.
        """
        require("scipy", what="A comparison")
        from discreet.synthetic.compare import Comparison, comparison, comparison_work

        work = comparison(
            self.policy,
            description,
            purse_of(self._view, epsilon),
            questions=workload,
            target=target,
        )
        carry_out = work.carry_out(comparison_work(description, target=target), progress)
        return Comparison.from_bytes(pay_lump(self._visit(), work, carry_out, analyst=analyst))

    def compare_together(
        self, linked: LinkedDescription, *, epsilon: object, analyst: str = CURATOR
    ) -> tuple[Comparison, ...]:
        """Measure how far each part of a linked description is from the true tables.

        Each part is a charge of its own, of ε divided by the number of parts.
        """
        from discreet.synthetic.compare import Comparison
        from discreet.synthetic.linked.lot import comparisons

        purse = purse_of(self._view, epsilon)
        measured = []
        for work, carry_out in comparisons(self.policy, linked, purse):
            content = pay_lump(self._visit(), work, carry_out, analyst=analyst)
            measured.append(Comparison.from_bytes(content))
        return tuple(measured)

    def release(self, name: str) -> Release:
        """Return a scheduled release of the policy, to start once and to run every period (S15)."""
        require("scipy", what="A release")
        source = self.policy.source if self._tables is None else self._tables
        return open_release(self._visit(), name, source=source)

    def publication(self, name: str) -> PublicationRun:
        """Return a publication of the policy: consistent tables of a hierarchy for one charge
        (S18).
        """
        return open_publication(self._visit(), name)

    # --- after paying -----------------------------------------------------------------------------

    def ledger(self, *, analyst: str | None = None) -> tuple[Entry, ...]:
        """Return the charges of one analyst, or of all, oldest first: what was spent, when, on
        what.
        """
        with self._enter():
            return self._ledger.entries(analyst)

    def spending(self) -> Mapping[str | None, Account]:
        """Return the limit, the spending and the rest of each analyst, of the curator, and (under
        None) of all together.
        """
        with self._enter():
            return accounts_of(self._ledger, self._accountant)

    def certificate(self, id: str) -> dict[str, Any]:
        """Return the facts by which an auditor checks one released answer."""
        with self._enter():
            return self._ledger.certificate(id)

    def asked(self) -> tuple[str, ...]:
        """Return all questions that were answered so far: a workload for `describe`."""
        with self._enter():
            entries = self._ledger.entries(None)
            return tuple(entry.text for entry in entries if entry.is_question)

    def tables(self) -> tuple[Listing, ...]:
        """Return what the policy makes public about tables: columns, types, values. Free."""
        from discreet.policy.dictionary import dictionary

        return dictionary(self.policy, self.public_columns())

    # --- for doors --------------------------------------------------------------------------------

    def public_columns(self) -> dict[str, pa.Schema]:
        """Return the columns of the public tables; those of private ones are in the policy."""
        return {name: table.schema for name, table in self._view.public.items()}

    def reference(self, tables: Mapping[str, pa.Table], script: Sequence[str]) -> Reference:
        """Open a locked database of public tables, for a door's catalog."""
        return Reference(tables, script)

    def snapshot(self, *, progress: Progress | None = None) -> Snapshot:
        """Read the source again and store it as the next numbered snapshot.

        From then on every question is charged anew (S9).
        """
        snapshot = build_snapshot(self.policy, self._ledger, self._tables, progress)
        self._open(snapshot.number)
        return snapshot

    def _open(self, number: int) -> None:
        """Open a snapshot for new questions. Questions that already run keep the snapshot they
        began on.
        """
        self._view = View.open(
            self.policy,
            number,
            accountant=self._accountant,
            limit=terms_of(self.policy).limit,
            workbench=self._workbench,
        )

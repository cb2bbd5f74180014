"""The flow: a question in, a noisy answer out. Short, because it is the path that everybody should read.

plan (pure)  ->  offer (noise, cost)  ->  reserve (durable)  ->  fetch (exact)  ->  noise  ->  post  ->  answer
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import partial, wraps
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from discreet import accounting
from discreet.algebra import Numbers
from discreet.bounds import BEYOND, Bounds, suggested
from discreet.budget import Charge, amount
from discreet.document import nearest
from discreet.engines.duckdb import DuckDB
from discreet.engines.prepare import prepare
from discreet.engines.source import name as named
from discreet.engines.store import Snapshot, Store
from discreet.engines.until import Until
from discreet.engines.workbench import Workbench
from discreet.errors import EngineFailure, LedgerUnavailable, Rejected, UsageError
from discreet.explain import explanation
from discreet.ledger import Ledger, Reservation, Terms
from discreet.ledger.book import Entry, StoredAnswer
from discreet.measure import measure
from discreet.mechanisms import to_row
from discreet.offer import Offer, Quote, amount_for_margin, offer, quoted
from discreet.policy import CURATOR, Policy, Through
from discreet.release import Allowance, Answer, Exact, Sheet, rows_used
from discreet.sql import identity
from discreet.sql.analyze import plan
from discreet.sql.finish import Noisy, answered, half_widths, noisy_table, rehearsals, split, without_margin
from discreet.sql.plan import Plan, prove, table_name

if TYPE_CHECKING:
    from discreet.continual.running import Release
    from discreet.synthetic.compare import Comparison
    from discreet.synthetic.describe import Commission, Work
    from discreet.synthetic.description import Description

P = ParamSpec("P")
R = TypeVar("R")
Progress = Callable[[str, float], None]
_FREE = Charge(amount=Fraction(0))


def _on_one_snapshot(method: Callable[Concatenate[Curator, P], R]) -> Callable[Concatenate[Curator, P], R]:
    """A method that sees one snapshot from its beginning to its end, whatever other threads take meanwhile."""

    # Privacy: S8. Were a charge made for one snapshot and carried out on another, the same noise would be on both, and
    # whether the two answers are equal would tell whether anybody's row changed.
    @wraps(method)
    def call(self: Curator, /, *args: P.args, **named: P.kwargs) -> R:
        began = time.monotonic()
        with self._switching:
            held = copy(self)
        held._until = Until(began=began, deadline=self.policy.limits.deadline)
        return method(held, *args, **named)

    return call


def _on_time(method: Callable[Concatenate[Curator, P], R]) -> Callable[Concatenate[Curator, P], R]:
    """A method whose answer or refusal leaves at a multiple of the deadline, if there is one; paid for or free."""

    # Privacy: S13. How many free quotes are answered while somebody's question runs would tell how long it ran.
    @wraps(method)
    def call(self: Curator, /, *args: P.args, **named: P.kwargs) -> R:
        try:
            found = method(self, *args, **named)
        except Exception:
            self._until.hold()
            raise
        self._until.hold()
        return found

    return call


class Curator:
    """Answers questions about one policy's data. Open one with `discreet.open(policy)`."""

    def __init__(
        self, policy: Policy, *, tables: Mapping[str, Any] | None = None, progress: Progress | None = None
    ) -> None:
        self.policy = policy
        self._tables, self._process, self._switching = tables, os.getpid(), Lock()
        self._accountant = accountant_of(policy)
        self._ledger = Ledger.open(str(policy.ledger), terms_of(policy), words=self._accountant.budget)
        self._limit = terms_of(policy).limit
        self._workbench = Workbench()
        self._until = Until(began=time.monotonic(), deadline=None)  # of no question; each has its own
        if self._ledger.snapshot == 0:
            self.snapshot(progress=progress)
        else:
            self._read(self._ledger.snapshot)

    # --- the path of a question -------------------------------------------------------------------------------------

    @_on_one_snapshot
    @_on_time
    def ask(
        self, sql: str, *, analyst: str, epsilon: object = None, margin: object = None, assuming: int | None = None
    ) -> Answer:
        """Answer a question. Asking the same again is free and gives the same bytes (S10)."""
        offered = self._offer(sql, epsilon=epsilon, margin=margin, assuming=assuming)
        left = self._ledger.left(analyst)  # also refuses whoever is not an analyst
        if not offered.plan.blocks:
            return self._answer(sql, self._finish(offered, []), cost=_FREE, left=left, id="public")
        stored = self._recall(offered)
        if stored is not None:
            return self._answer(sql, Sheet.from_bytes(stored.answer), cost=_FREE, left=left, id=str(stored.id))
        reservation = self._ledger.reserve(
            analyst=analyst,
            question=identity.question(offered.plan),
            policy=self.policy.digest,
            snapshot=self._number,
            mechanisms=[to_row(mechanism) for mechanism in offered.mechanisms],
            cost=offered.cost,
            text=sql,
            overruns=self.policy.limits.overruns,
        )
        if isinstance(reservation, StoredAnswer):  # somebody else asked the same a moment ago
            sheet = Sheet.from_bytes(reservation.answer)
            return self._answer(sql, sheet, cost=_FREE, left=left, id=str(reservation.id))
        sheet = self._until.leave(
            partial(self._carry_out, offered, reservation),
            count=partial(self._ledger.overran, reservation, analyst=analyst),
        )
        return self._answer(sql, sheet, cost=offered.cost, left=self._ledger.left(analyst), id=str(reservation.id))

    def _carry_out(self, offered: Offer, reservation: Reservation) -> Sheet:
        """From the charge to the stored answer; whatever fails here leaves as one sentence (S22)."""
        limits = self.policy.limits
        allowance = Allowance(
            key=reservation.key, accountant=self._accountant, paid=offered.cost, memory=limits.python_memory
        )
        noisy = measure(offered, allowance, self._fetch, self._fetch_parts)
        sheet = self._finish(offered, noisy)
        self._until.check()
        self._ledger.post(reservation, sheet.to_bytes())
        return sheet

    def _fetch(self, query: Numbers) -> Exact:
        return Exact(self._engine.fetch(query, self._until.at_most(float(self.policy.limits.seconds))))

    def _fetch_parts(self, queries: Sequence[Numbers], rows: int) -> Exact:
        seconds = float(self.policy.limits.seconds)
        parts = (self._engine.fetch_parts(query, self._until.at_most(seconds), rows) for query in queries)
        return Exact(chain.from_iterable(parts))

    def _finish(self, offered: Offer, noisy: list[Noisy]) -> Sheet:
        """The rest of the statement, on noisy and public tables."""
        tables = {name: self._public[name] for name in offered.plan.public}
        tables |= half_widths(offered.plan, [each.noise for each in offered.blocks])
        for index, each in enumerate(offered.blocks):
            if each.block.estimates:  # otherwise it is there for others to be added up from
                name = table_name(index)
                tables[name] = noisy_table(each.block, noisy[index], each.noise, self._after, name=name)
        listed = offered.plan.listed
        result = (
            answered(offered.plan.after, tables, self._after)
            if listed is None
            else tables[table_name(0)].select(listed)
        )
        table, margins = split(result, offered.plan.columns)
        certificate = self._certificate(offered)
        unknown = without_margin(table, margins, offered.plan.columns)
        if unknown:
            certificate["without_margin"] = unknown
        return Sheet(table=table, margins=margins, selected=offered.plan.selected, certificate=certificate)

    def _after(self, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
        return self._workbench.run(sql, tables, seconds=float(self.policy.limits.seconds))

    def _of_public(self, sql: str) -> pa.Table:
        return self._after(sql, self._public)

    def _offer(self, sql: str, *, epsilon: object, margin: object, assuming: int | None) -> Offer:
        """The plan, and the noise that the given epsilon, or the cheapest one for a margin, buys. Reads no data."""
        self._require_current()
        if not isinstance(sql, str):
            raise UsageError(f"A question is a text, not {type(sql).__name__}.")
        if assuming is not None and (type(assuming) is not int or not 1 <= assuming <= 10**18):
            raise UsageError("assuming is a number of rows: a whole number from 1 to 10^18.")
        most = self._accountant.allot(epsilon=self.policy.limits.epsilon)
        spend = self._amount(epsilon) if epsilon is not None else None
        if (epsilon is None) == (margin is None):
            raise UsageError("Give either epsilon, what the answer may cost, or margin, how wrong it may be.")
        found = plan(sql, self.policy, self._public, self._of_public)
        prove(found, self.policy)
        self._rehearse(found)
        if spend is None:
            wanted = amount(margin, name="margin")
            spend = amount_for_margin(
                found, self._accountant, margin=wanted, assuming=assuming, most=most, limit=self._limit
            )
        return offer(found, self._accountant, amount=spend, limit=self._limit)

    def _require_current(self) -> None:
        """Refuse, whatever the question, after a fork or when somebody else has taken a snapshot."""
        if self._process != os.getpid():
            raise UsageError("The policy was opened before a fork. Open it again in the new process.")
        current = self._ledger.snapshot
        if current != self._number:
            raise LedgerUnavailable(
                f"Snapshot {self._number} is not the current one, {current}: open the policy again."
            )

    def _rehearse(self, found: Plan) -> None:
        """Try what will run, on tables without rows and made-up numbers: what cannot be computed is refused unpaid."""
        try:
            for query in (query for block in found.blocks if block.same_as is None for query in block.queries):
                self._engine.check(query)
        except EngineFailure:
            raise Rejected(
                "a part of this question cannot be computed by the engine.", hint="Write it in another way."
            ) from None
        if found.listed is not None:
            return
        try:
            public = {name: self._public[name] for name in found.public}
            for sql, made_up in rehearsals(found):
                self._after(sql, public | made_up)
        except EngineFailure:
            raise Rejected(
                "what is computed from the aggregates does not fit together.",
                hint="Check types, and that a subquery used as a value has one row and one column.",
            ) from None

    def _amount(self, epsilon: object) -> Fraction:
        return self._accountant.allot(epsilon=amount(epsilon, name="epsilon", most=self.policy.limits.epsilon))

    def _recall(self, offered: Offer) -> StoredAnswer | None:
        """A stored answer at least as precise as what is asked for now."""
        found = self._ledger.recall(
            question=identity.question(offered.plan),
            policy=self.policy.digest,
            snapshot=self._number,
            at_least=offered.cost.amount,
        )
        return max(found, key=lambda stored: stored.cost.amount, default=None)

    def _answer(self, sql: str, sheet: Sheet, *, cost: Charge, left: Charge, id: str) -> Answer:
        return Answer(
            table=sheet.table,
            margins=sheet.margins,
            selected=(sheet.selected,) * sheet.table.num_rows,
            cost=self._accountant.budget(cost),
            left=self._accountant.left(left),
            certificate={"question": sql, **sheet.certificate, "ledger": self._ledger.head()},
            id=id,
        )

    def _certificate(self, offered: Offer) -> dict[str, Any]:
        """Enough to audit the release: for whose sake, on what, with which noise, at what cost."""
        return {
            "unit": self.policy.unit,
            "neighbors": self.policy.neighbors,
            "snapshot": self._number,
            "policy": self.policy.digest,
            "max_rows": dict(offered.plan.max_rows),
            "statistics": offered.statistics(),
            "ranks": offered.ranks(),
            "beside_ranks": offered.beside_ranks(),
            "mechanisms": [to_row(mechanism) for mechanism in offered.mechanisms],
            "cost": self._accountant.budget(offered.cost).as_json(),
        }

    # --- before paying ----------------------------------------------------------------------------------------------

    @_on_one_snapshot
    @_on_time
    def quote(
        self, sql: str, *, analyst: str, epsilon: object = None, margin: object = None, assuming: int | None = None
    ) -> Quote:
        """What a question would cost and how wrong the answer would be. Free; touches no data."""
        left = self._ledger.left(analyst)
        offered = self._offer(sql, epsilon=epsilon, margin=margin, assuming=assuming)
        return quoted(offered, self._accountant, left=left, assuming=assuming)

    @_on_one_snapshot
    @_on_time
    def explain(
        self, sql: str, *, analyst: str, epsilon: object = None, margin: object = None, assuming: int | None = None
    ) -> str:
        """What would happen, in numbered sentences, each with its cost. Free; touches no data."""
        left = self._ledger.left(analyst)
        offered = self._offer(sql, epsilon=epsilon, margin=margin, assuming=assuming)
        return explanation(offered, self.policy, self._accountant, analyst=analyst, left=left, spell=self._engine.sql)

    def bounds(self, table: str, column: str, *, epsilon: object) -> Bounds:
        """A range beyond which few of a column's values lie, found by paid quantiles and widened to round numbers."""
        if not isinstance(table, str) or not isinstance(column, str):
            raise UsageError("A table and a column are named by texts.")
        sql = (
            f"SELECT QUANTILE_CONT({named(column)}, {[float(BEYOND), float(1 - BEYOND)]}) AS bounds FROM {named(table)}"
        )
        answer = self.ask(sql, analyst=CURATOR, epsilon=epsilon)
        low, high = answer.table.column(0)[0].as_py()
        return suggested(low, high, ranks=answer.certificate["ranks"]["bounds"], cost=answer.cost)

    def describe(
        self,
        table: str,
        *,
        epsilon: object,
        analyst: str = CURATOR,
        synthesizer: str | None = None,
        columns: Sequence[str] | None = None,
        bins: int | None = None,
        quantiles: Sequence[str] = (),
        workload: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Description:
        """A model of a private table, to generate synthetic rows from. One charge; the same again is free.

        `quantiles` names columns whose intervals end at their quantiles, which are paid for. `workload` are questions
        that it should be good at, such as those `asked` so far; otherwise every pair counts.
        """
        from discreet.synthetic.describe import commission, description
        from discreet.synthetic.description import Description

        work = commission(
            self.policy,
            table,
            self._accountant,
            amount=self._amount(epsilon),
            limit=self._limit,
            synthesizer=synthesizer,
            columns=columns,
            bins=bins,
            questions=workload,
            quantiles=quantiles,
        )
        return Description.from_bytes(self._lump(work, description, analyst=analyst, progress=progress))

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
        """How far a description is from the true table: a paid question (S16).

        `workload` adds what questions ask for, `target` (`income=high`) a classifier made from it and tried on truth.
        """
        from discreet.synthetic.compare import Comparison, compared, comparison

        work = comparison(
            self.policy,
            description,
            self._accountant,
            amount=self._amount(epsilon),
            limit=self._limit,
            questions=workload,
            target=target,
        )
        carry_out = compared(description, target=target)
        return Comparison.from_bytes(self._lump(work, carry_out, analyst=analyst, progress=progress))

    @_on_one_snapshot
    def _lump(self, work: Commission, carry_out: Work, *, analyst: str, progress: Progress | None) -> bytes:
        """Charge first, then let an algorithm choose as it goes within what was charged; its answer's bytes."""
        self._require_current()
        stored = self._ledger.recall(question=work.question, policy=self.policy.digest, snapshot=self._number)
        reservation = next((each for each in stored if each.cost == work.cost), None) or self._ledger.reserve(
            analyst=analyst,
            question=work.question,
            policy=self.policy.digest,
            snapshot=self._number,
            mechanisms=None,
            cost=work.cost,
            text=work.text,
            overruns=self.policy.limits.overruns,
        )
        if isinstance(reservation, StoredAnswer):
            return reservation.answer
        certificate = {
            "unit": self.policy.unit,
            "neighbors": self.policy.neighbors,
            "max_rows": work.source.max_rows,
            "snapshot": self._number,
            "policy": self.policy.digest,
            "charge": reservation.id,
            "cost": self._accountant.budget(work.cost).as_json(),
            **work.meta,
        }
        self._until = replace(self._until, deadline=None)  # the curator's own work leaves when it is done

        def carried_out() -> bytes:
            allowance = Allowance(key=reservation.key, accountant=work.inside, paid=work.paid)
            answer = carry_out(work.marginals(allowance, self._fetch, progress), work, certificate)
            self._ledger.post(reservation, answer, meta=work.meta, mechanisms=rows_used(allowance.used))
            return answer

        return self._until.leave(carried_out, count=partial(self._ledger.overran, reservation, analyst=analyst))

    @_on_one_snapshot
    def release(self, name: str) -> Release:
        """A scheduled release of the policy: start it once, run it every period, show what it published (S15)."""
        from discreet.continual.question import question
        from discreet.continual.running import Release

        self._require_current()
        if not isinstance(name, str):
            raise UsageError(f"A release is named by a text, not {type(name).__name__}.")
        schedule = self.policy.releases.get(name)
        if schedule is None:
            raise UsageError(f"The policy has no release {name}. {nearest(name, self.policy.releases)}")
        return Release(
            policy=self.policy,
            schedule=schedule,
            asked=question(schedule, self.policy, self._public, self._of_public),
            accountant=self._accountant,
            ledger=self._ledger,
            pay=partial(self._ledger.reserve, snapshot=self._number),
            source=self.policy.source if self._tables is None else self._tables,
        )

    # --- what was done ----------------------------------------------------------------------------------------------

    @_on_one_snapshot
    @_on_time
    def ledger(self, *, analyst: str | None = None) -> tuple[Entry, ...]:
        """What was spent, when, on what; by one analyst or by all."""
        return self._ledger.entries(analyst)

    @_on_one_snapshot
    @_on_time
    def asked(self) -> tuple[str, ...]:
        """The questions that were answered so far, by whomever: a workload for `describe`."""
        return tuple(
            entry.text
            for entry in self._ledger.entries(None)
            if entry.text.lstrip().upper().startswith(("SELECT", "WITH", "("))
        )

    def snapshot(self, *, progress: Progress | None = None) -> Snapshot:
        """Read the source anew, as the next numbered snapshot; every question is charged anew after it (S9)."""
        made = _take_snapshot(self.policy, self._ledger, self._tables, progress)
        self._read(made.number)
        return made

    def _read(self, number: int) -> None:
        engine = DuckDB.open(self.policy, number)
        public = [name for name, table in self.policy.tables.items() if table.public]
        tables = {name: engine.public_table(name) for name in public}
        with self._switching:
            self._number, self._engine, self._public = number, engine, tables


def accountant_of(policy: Policy) -> accounting.SumAccountant | accounting.ZcdpAccountant:
    terms = policy.budget
    return accounting.accountant(terms.accountant, delta=terms.delta, keys=terms.keys)


def terms_of(policy: Policy) -> Terms:
    """What a ledger of this policy is bound to (S2), and its limits."""
    accountant = accountant_of(policy)
    described: dict[str, str] = {"name": accountant.name}
    if isinstance(accountant, accounting.ZcdpAccountant):
        described["delta_convert"] = str(accountant.delta_convert)
    return Terms(
        unit=policy.unit,
        neighbors=policy.neighbors,
        owners={name: _owner(table.owner) for name, table in policy.tables.items() if table.owner is not None},
        accountant=described,
        limit=accountant.limit(epsilon=policy.budget.epsilon, delta=policy.budget.delta),
        analysts={
            name: accountant.limit(epsilon=share.epsilon, delta=share.delta) for name, share in policy.analysts.items()
        },
    )


def _owner(owner: str | Through) -> str:
    return owner if isinstance(owner, str) else f"through {owner.table} on {owner.on}"


def _take_snapshot(
    policy: Policy, ledger: Ledger, tables: Mapping[str, Any] | None, progress: Progress | None
) -> Snapshot:
    """Prepare the next snapshot, then make its number the ledger's."""
    number = max([ledger.snapshot, *Store(Path(policy.store)).numbers()]) + 1
    made = prepare(policy, policy.source if tables is None else tables, policy.store, number, progress)
    ledger.new_snapshot(number)
    return made


def take_snapshot(policy: Policy, *, progress: Progress | None = None) -> Snapshot:
    """A new snapshot without opening the last one, which may have been made for an older policy."""
    with Ledger.open(str(policy.ledger), terms_of(policy)) as ledger:
        return _take_snapshot(policy, ledger, None, progress)


def create_ledger(policy: Policy) -> None:
    """Make the policy's ledger and its key; refuses to overwrite one."""
    Ledger.create(str(policy.ledger), terms_of(policy)).close()

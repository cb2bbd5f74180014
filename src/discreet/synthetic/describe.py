"""Plan `curator.describe` before it pays, and do its work afterwards; the curator does the paying.

Which currency an algorithm spends: ρ in a `zcdp` budget. In a `sum` budget with a δ, either ε
(Laplace noise, permute-and-flip) or one (ε, δ) row within which it spends ρ (S6), whichever has
less noise for as many questions as a table of that width needs; without a δ only the first is open.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet import accounting
from discreet.accounting import Accountant, SumAccountant, ZcdpAccountant
from discreet.accounting.zcdp import rho_of
from discreet.algebra import Aggregate
from discreet.budget import Charge
from discreet.errors import UsageError
from discreet.mechanisms import currency as currencies
from discreet.mechanisms.shapes import Movement
from discreet.policy.policy import Policy, Table
from discreet.synthetic.columns.axes import Grid, axes_of
from discreet.synthetic.columns.axis import USUAL, Intervals, Unlisted
from discreet.synthetic.columns.grids import find_grids
from discreet.synthetic.description import Description
from discreet.synthetic.marginals import Marginals, Progress
from discreet.synthetic.source import TableSource, source_of
from discreet.synthetic.synthesizers.family import (
    DEFAULT,
    FOR_WORKLOADS,
    SYNTHESIZERS,
    Synthesizer,
)
from discreet.synthetic.synthesizers.independent import Histogram
from discreet.synthetic.workload import EVERY_PAIR, Workload, list_texts, workload
from discreet.threads import one_thread
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

Fetch = Callable[[Aggregate], Exact]
CarryOut = Callable[[Allowance, Fetch, dict[str, Any]], bytes]

# rows by which noise may move a count that gets all that is paid: beyond, files hold no such numbers
MOST_NOISE = Fraction(10**9)
LEAST_NOISE = Fraction(1, 10**8)
TOO_MUCH = 0.15  # mean expected error of single columns above which correlations drown


@dataclass(frozen=True, slots=True, kw_only=True)
class Commission:
    """An order for a description: everything that the result depends on but the data and noise."""

    table: str
    synthesizer: str
    axes: tuple[Grid, ...]
    source: TableSource
    inside: Accountant  # whose currency the algorithm spends
    paid: Charge  # in that currency; its δ finds the values of text columns
    cost: Charge  # in the ledger's
    workload: Workload = EVERY_PAIR
    about: str = ""  # what else the work depends on

    @property
    def question(self) -> str:
        """Return a text that is equal for two orders of the same description, however classes and
        fields are called.

        What a column may contain is the policy's, which the ledger writes beside it.
        """
        parts = {
            "describe": 4,  # counts up when a part changes its meaning
            "table": self.table,
            "synthesizer": self.synthesizer,
            "axes": [axis.told for axis in self.axes],
            "inside": self.inside.terms,
            "paid": [str(self.paid.amount), str(self.paid.delta)],
            "workload": self.workload.sets,
            "about": self.about,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def max_rows(self) -> int:
        return self.source.max_rows

    @property
    def text(self) -> str:
        verb = "compare" if self.about else "describe"
        return f"{verb} {self.table} by {self.synthesizer}: {', '.join(axis.name for axis in self.axes)}"

    def carry_out(self, work: Work, progress: Progress | None) -> CarryOut:
        """Do the work on the table's counts, within what was paid."""
        return lambda allowance, fetch, told: work(
            self.marginals(allowance, fetch, progress), self, told
        )

    def marginals(self, allowance: Allowance, fetch: Fetch, progress: Progress | None) -> Marginals:
        """Return the table's counts, through what was paid; find first the grids that are not
        public.
        """
        before = allowance.left.amount
        axes, source = find_grids(
            self.axes,
            self.source,
            accountant=self.inside.name,
            paid=self.paid,
            allowance=allowance,
            fetch=fetch,
        )
        return Marginals(
            axes=axes,
            source=source,
            accountant=self.inside.name,
            amount=self.paid.amount - (before - allowance.left.amount),
            allowance=allowance,
            fetch=fetch,
            workload=self.workload,
            progress=progress,
        )

    @property
    def meta(self) -> dict[str, str]:
        """Return how an auditor gets from the mechanisms to the charge."""
        return {
            "currency": repr(self.inside),
            "amount": str(self.paid.amount),
            "delta": str(self.paid.delta),
        }


Work = Callable[[Marginals, Commission, dict[str, Any]], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """The amount that may be spent, in an accountant's currency, and the limit of its budget."""

    accountant: Accountant
    amount: Fraction
    limit: Charge


def commission(
    policy: Policy,
    table: str,
    purse: Purse,
    *,
    synthesizer: str | None = None,
    columns: Sequence[str] | None = None,
    intervals: Intervals = USUAL,
    questions: Sequence[str] | None = None,
) -> Commission:
    """Check and price a request. Reads no data."""
    chosen = DEFAULT if synthesizer is None else synthesizer
    if not isinstance(chosen, str) or chosen not in SYNTHESIZERS:
        raise UsageError(
            f"There is no synthesizer {chosen!r}; there are {', '.join(SYNTHESIZERS)}."
        )
    if questions is not None and chosen not in FOR_WORKLOADS:
        *some, last = FOR_WORKLOADS
        raise UsageError(f"{chosen} does not use a workload; {', '.join(some)} and {last} do.")
    found = private_table(policy, table)
    if not isinstance(intervals, Intervals):
        raise UsageError(f"intervals must be Intervals, not {type(intervals).__name__}.")
    wanted = None if columns is None else list_texts(columns, what="columns")
    if chosen == "random":  # which would not look at what was found
        intervals = replace(intervals, split=False)
    axes = axes_of(found, columns=wanted, intervals=intervals)
    texts = [axis.name for axis in axes if isinstance(axis, Unlisted)]
    names = [axis.name for axis in axes]
    inside, paid, cost = currency(
        purse, questions=len(axes) if chosen == "independent" else 3 * len(axes), texts=bool(texts)
    )
    if texts and not paid.delta:
        raise UsageError(
            f"{table}.{texts[0]} is text, whose values are found at the price of some δ, and the budget has none for "
            f"that. Declare budget.delta and budget.keys, or the values, as in {texts[0]}: {{values: [...]}}, or leave "
            "the column out: --columns with the others."
        )
    source = source_of(policy, found)
    require_in_range(inside, paid, source.moved)
    return Commission(
        table=table,
        synthesizer=chosen,
        axes=axes,
        source=source,
        inside=inside,
        paid=paid,
        cost=cost,
        workload=EVERY_PAIR
        if questions is None
        else workload(questions, table=table, columns=names),
    )


def private_table(policy: Policy, table: str) -> Table:
    """Return a table that has something to hide; refuse a public one."""
    if not isinstance(table, str):
        raise UsageError(f"A table is named by a text, not {type(table).__name__}.")
    found = policy.tables.get(table)
    if found is None or found.public:
        private = ", ".join(name for name, each in policy.tables.items() if not each.public)
        why = (
            "is public, and needs no synthetic twin"
            if found is not None
            else "is not in the policy"
        )
        raise UsageError(f"{table} {why}. Private tables are {private}.")
    return found


def currency(purse: Purse, *, questions: int, texts: bool) -> tuple[Accountant, Charge, Charge]:
    """Return the accountant whose currency is spent, how much of it, and what the ledger is
    charged. Texts need a δ of their own.
    """
    accountant, amount = purse.accountant, purse.amount
    delta = accounting.delta_for_keys(amount, of=purse.limit)
    plain = Charge(amount=amount, delta=delta if texts else Fraction(0))
    if accountant.name == "sum" and delta > 0:
        convert = delta / 2 if texts else delta
        rho = rho_of(epsilon=amount, delta=convert)
        laplace, gaussian = (
            math.sqrt(2) * questions / float(amount),
            math.sqrt(questions / (2 * float(rho))),
        )
        if gaussian < laplace:
            keys = delta - convert
            loss = accounting.lump(rho, delta=convert, delta_keys=keys)
            inside = ZcdpAccountant(delta_convert=convert)
            return inside, Charge(amount=rho, delta=keys), SumAccountant().price([loss])
    return accountant, plain, plain


def require_in_range(inside: Accountant, paid: Charge, moved: Movement, *, unit: int = 1) -> None:
    """Refuse an amount whose noise on counts of rows, in parts of a `unit`, is more than any table
    has rows, or none at all: it would be charged, and no description could be made.
    """
    noise = currencies.currency(inside.name).noise(amount=paid.amount, moved=moved)
    spread = noise.spread / unit
    if spread > MOST_NOISE:
        raise UsageError(
            f"This epsilon is too small: noise on a count of rows would be larger than {int(MOST_NOISE):,}. "
            "Spend more."
        )
    if spread < LEAST_NOISE:
        raise UsageError(
            "This epsilon is too large: noise of less than a hundred-millionth of a row hides nobody. "
            "Spend less."
        )


@one_thread()
def description(
    data: Marginals,
    work: Commission,
    certificate: dict[str, Any],
    synthesizer: Synthesizer | None = None,
) -> bytes:
    """The synthesizer run on what was paid; everything after the charge. By default it is the one
    that the commission names.
    """
    found = (synthesizer or SYNTHESIZERS[work.synthesizer])(data)
    errors = [one_way_error(each) for each in found.histograms]
    return Description(
        table=work.table,
        synthesizer=work.synthesizer,
        axes=data.axes,
        groups=tuple(column.groups for column in found.histograms),
        counts=tuple(column.counts for column in found.histograms),
        model=found.model,
        measured=tuple(data.measured),
        related=tuple(data.related),
        warnings=_warnings(work, [axis.name for axis in data.axes], errors),
        cost=certificate["cost"],
        certificate={**certificate, "mechanisms": data.mechanisms},
    ).to_bytes()


def one_way_error(column: Histogram) -> float:
    """Return the error of a histogram's column that its noise is expected to make: total variation,
    0 to 1.
    """
    left = column.std * column.counts / (column.std + column.counts + 1e-9)
    return min(
        1.0, float(left.sum()) * math.sqrt(2 / math.pi) / 2 / max(1.0, float(column.counts.sum()))
    )


def _warnings(work: Commission, names: Sequence[str], errors: Sequence[float]) -> tuple[str, ...]:
    """List what to tell before somebody publishes: noise that drowns columns, and with them every
    correlation.
    """
    mean, worst = (
        math.fsum(errors) / len(errors),
        max(range(len(errors)), key=lambda place: errors[place]),
    )
    if mean <= TOO_MUCH or work.synthesizer == "random":
        return ()
    return (
        f"Too little budget: single columns are expected to err by {mean:.2f} on average (total variation; "
        f"{names[worst]} by {errors[worst]:.2f}), so correlations are lost in noise and independent columns would do "
        "as well. Spend a larger epsilon, describe fewer columns, or declare coarser domains.",
    )

"""Plan and price `curator.describe` before the charge, and do its work after it.

An algorithm spends ρ in a `zcdp` budget. In a `sum` budget without a δ it spends ε (Laplace noise,
permute-and-flip). With a δ it may also spend ρ within one (ε, δ) row (S6): we choose the way with
less noise for the number of questions that a table of this width needs.
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

# The spread, in rows, of noise that gets all that is paid. Files hold no numbers with more noise.
MOST_NOISE = Fraction(10**9)
LEAST_NOISE = Fraction(1, 10**8)
TOO_MUCH = 0.15  # with a larger mean expected error of columns, noise hides every correlation


@dataclass(frozen=True, slots=True, kw_only=True)
class Commission:
    """An order for a description: all that the result depends on, apart from data and noise."""

    table: str
    synthesizer: str
    axes: tuple[Grid, ...]
    source: TableSource
    inside: Accountant  # of the currency that the algorithm spends
    paid: Charge  # in that currency; its δ pays for finding the values of text columns
    cost: Charge  # in the ledger's currency
    workload: Workload = EVERY_PAIR
    about: str = ""  # further facts that the work depends on

    @property
    def question(self) -> str:
        """Return the identity of an order: equal for two orders of the same description.

        It does not depend on names of classes and fields. The domains of columns are in the policy,
        which the ledger writes beside it.
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
        columns = ", ".join(axis.name for axis in self.axes)
        return f"{verb} {self.table} by {self.synthesizer}: {columns}"

    def carry_out(self, work: Work, progress: Progress | None) -> CarryOut:
        """Return the function that does the work and spends what was paid."""

        def do(allowance: Allowance, fetch: Fetch, certificate: dict[str, Any]) -> bytes:
            data = self.marginals(allowance, fetch, progress)
            return work(data, self, certificate)

        return do

    def marginals(self, allowance: Allowance, fetch: Fetch, progress: Progress | None) -> Marginals:
        """Return the table's counts, which spend the allowance; first find the grids that are not
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
        """Return the facts by which an auditor computes the charge from the mechanisms."""
        return {
            "currency": repr(self.inside),
            "amount": str(self.paid.amount),
            "delta": str(self.paid.delta),
        }


Work = Callable[[Marginals, Commission, dict[str, Any]], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """The amount to spend, in an accountant's currency, and the limit of its budget."""

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
    """Check and price a request, without reading data."""
    name = synthesizer_of(synthesizer, questions)
    declaration = private_table(policy, table)
    if not isinstance(intervals, Intervals):
        raise UsageError(f"intervals must be Intervals, not {type(intervals).__name__}.")
    only = None if columns is None else list_texts(columns, what="columns")
    if name == "random":  # it would not use the cuts
        intervals = replace(intervals, split=False)
    axes = axes_of(declaration, columns=only, intervals=intervals)
    texts = [axis.name for axis in axes if isinstance(axis, Unlisted)]
    tables = len(axes) if name == "independent" else 3 * len(axes)
    inside, paid, cost = currency(purse, questions=tables, texts=bool(texts))
    if texts and not paid.delta:
        raise UsageError(
            f"{table}.{texts[0]} is text, whose values are found at the price of some δ, and the budget has none for "
            f"that. Declare budget.delta and budget.keys, or the values, as in {texts[0]}: {{values: [...]}}, or leave "
            "the column out: --columns with the others."
        )
    source = source_of(policy, declaration)
    require_in_range(inside, paid, source.moved)
    needs = EVERY_PAIR
    if questions is not None:
        needs = workload(questions, table=table, columns=[axis.name for axis in axes])
    return Commission(
        table=table,
        synthesizer=name,
        axes=axes,
        source=source,
        inside=inside,
        paid=paid,
        cost=cost,
        workload=needs,
    )


def synthesizer_of(name: str | None, questions: Sequence[str] | None) -> str:
    """Return the synthesizer that is asked for; refuse an unknown one, and questions to one that
    does not look at them.
    """
    chosen = DEFAULT if name is None else name
    if not isinstance(chosen, str) or chosen not in SYNTHESIZERS:
        raise UsageError(
            f"There is no synthesizer {chosen!r}; there are {', '.join(SYNTHESIZERS)}."
        )
    if questions is not None and chosen not in FOR_WORKLOADS:
        *some, last = FOR_WORKLOADS
        raise UsageError(f"{chosen} does not use a workload; {', '.join(some)} and {last} do.")
    return chosen


def private_table(policy: Policy, table: str) -> Table:
    """Return a private table of the policy; refuse a public one and an unknown one."""
    if not isinstance(table, str):
        raise UsageError(f"A table is named by a text, not {type(table).__name__}.")
    declaration = policy.tables.get(table)
    if declaration is not None and not declaration.public:
        return declaration
    why = "is not in the policy"
    if declaration is not None:
        why = "is public, and needs no synthetic twin"
    private = ", ".join(name for name, other in policy.tables.items() if not other.public)
    raise UsageError(f"{table} {why}. Private tables are {private}.")


def currency(purse: Purse, *, questions: int, texts: bool) -> tuple[Accountant, Charge, Charge]:
    """Return the accountant whose currency the work spends, the amount in it, and the cost for the
    ledger.

    Texts need a δ of their own.
    """
    accountant = purse.accountant
    amount = purse.amount
    delta = accounting.delta_for_keys(amount, of=purse.limit)
    plain = Charge(amount=amount, delta=delta if texts else Fraction(0))
    if accountant.name == "sum" and delta > 0:
        convert = delta / 2 if texts else delta
        rho = rho_of(epsilon=amount, delta=convert)
        laplace = math.sqrt(2) * questions / float(amount)
        gaussian = math.sqrt(questions / (2 * float(rho)))
        if gaussian < laplace:
            keys = delta - convert
            loss = accounting.lump(rho, delta=convert, delta_keys=keys)
            inside = ZcdpAccountant(delta_convert=convert)
            return inside, Charge(amount=rho, delta=keys), SumAccountant().price([loss])
    return accountant, plain, plain


def require_in_range(inside: Accountant, paid: Charge, moved: Movement, *, unit: int = 1) -> None:
    """Refuse an amount with too much or too little noise on counts of rows, in parts of a `unit`.

    The charge would be made, but no description: the noise would be larger than any table, or hide
    nobody.
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
    """Run the synthesizer after the charge and return the description; by default it is the one
    that the commission names.
    """
    run = synthesizer or SYNTHESIZERS[work.synthesizer]
    synthesis = run(data)
    errors = [one_way_error(histogram) for histogram in synthesis.histograms]
    return Description(
        table=work.table,
        synthesizer=work.synthesizer,
        axes=data.axes,
        groups=tuple(column.groups for column in synthesis.histograms),
        counts=tuple(column.counts for column in synthesis.histograms),
        model=synthesis.model,
        measured=tuple(data.measured),
        related=tuple(data.related),
        warnings=_warnings(work, [axis.name for axis in data.axes], errors),
        cost=certificate["cost"],
        certificate={**certificate, "mechanisms": data.mechanisms},
    ).to_bytes()


def one_way_error(column: Histogram) -> float:
    """Return the expected error of a column by its noise: total variation, 0 to 1."""
    left = column.std * column.counts / (column.std + column.counts + 1e-9)
    rows = max(1.0, float(column.counts.sum()))
    return min(1.0, float(left.sum()) * math.sqrt(2 / math.pi) / 2 / rows)


def _warnings(work: Commission, names: Sequence[str], errors: Sequence[float]) -> tuple[str, ...]:
    """Return a warning if the noise hides columns, and with them every correlation."""
    mean = math.fsum(errors) / len(errors)
    worst = max(range(len(errors)), key=lambda place: errors[place])
    if mean <= TOO_MUCH or work.synthesizer == "random":
        return ()
    return (
        f"Too little budget: single columns are expected to err by {mean:.2f} on average (total variation; "
        f"{names[worst]} by {errors[worst]:.2f}), so correlations are lost in noise and independent columns would do "
        "as well. Spend a larger epsilon, describe fewer columns, or declare coarser domains.",
    )

"""Grids that are not public and have to be found, at a price: texts that enough people share, cuts
of numbers.

Privacy
    Texts (S5): a person has at most m rows, hence at most m of a column's values, and adds 1 to the
    people of each. The price of the threshold, in ε or ρ and in δ, is that of unknown keys in a
    question. Quantiles (S3): chosen by rank on a fine public grid, as in a question.
    Splits: see `split`.
    What follows uses the released list or cuts only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from discreet.algebra import Aggregate, Cast, Sum
from discreet.budget import AccountantName, Charge
from discreet.mechanisms.currency import currency
from discreet.mechanisms.quantile import Quantiles
from discreet.mechanisms.shapes import Keys, PersonRows
from discreet.policy.domain import (
    Categories,
)
from discreet.synthetic.columns.axes import Grid
from discreet.synthetic.columns.axis import (
    MOST_VALUES,
    OTHER,
    Axis,
    Uncut,
    Unlisted,
    Unsplit,
)
from discreet.synthetic.columns.split import split
from discreet.synthetic.source import TableSource
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

SHARE = Fraction(1, 10)  # of what was paid, for a text or for quantiles; for several
MOST_SHARE = Fraction(1, 4)
SPLIT_SHARE = Fraction(1, 50)  # for a column whose intervals are split; for several
MOST_SPLIT_SHARE = Fraction(1, 10)
FINE = 1 << 14  # cells of the grid that quantiles are chosen on
QUANTILES = tuple(Fraction(place, 48) for place in range(1, 48))


def shares_of_grids(axes: Sequence[Grid]) -> list[Fraction]:
    """Return, for every column, the part of what was paid that finds its grid."""
    dear, cheap = (
        sum(isinstance(axis, kind) for axis in axes) for kind in (Unlisted | Uncut, Unsplit)
    )
    prices = {
        Unsplit: min(SPLIT_SHARE, MOST_SPLIT_SHARE / max(1, cheap)),
        Axis: Fraction(0),
    }
    return [prices.get(type(axis), min(SHARE, MOST_SHARE / max(1, dear))) for axis in axes]


def find_grids(
    axes: Sequence[Grid],
    source: TableSource,
    *,
    accountant: AccountantName,
    paid: Charge,
    allowance: Allowance,
    fetch: Callable[[Aggregate], Exact],
) -> tuple[tuple[Axis, ...], TableSource]:
    """Find the grids of columns that have none, for their shares of what was paid; return all
    columns with public grids.
    """
    texts = sum(isinstance(axis, Unlisted) for axis in axes)
    found = []
    for axis, share in zip(axes, shares_of_grids(axes), strict=True):
        amount = paid.amount * share
        match axis:
            case Axis():
                found.append(axis)
            case Unlisted():
                mechanism = currency(accountant).people(
                    amount=amount,
                    max_groups=source.max_rows,
                    neighbors=source.neighbors,
                    delta=paid.delta / texts,
                )
                moved = Keys(most=source.max_rows, neighbors=source.neighbors)
                exact = fetch(source.people(axis.name))
                survivors, people = allowance.threshold(mechanism, exact, moved=moved, keys=1)
                listed = _most(survivors.column(0).to_pylist(), people)
                source = source.listing(axis.name, listed)
                found.append(
                    Axis(
                        column=replace(axis.column, domain=Categories(values=listed)),
                        bins=len(listed),
                    )
                )
            case Uncut():
                fine = axis.fine(FINE)
                chosen = _quantiles(source, fine.bins, accountant, amount)
                placed, (place,) = source.placed([axis.name])
                cell = Cast(fine.cell(place), "BIGINT")
                rows = fetch(Aggregate(placed, (cell,), (Sum(),), (cell < fine.bins,), known=(0,)))
                held = PersonRows(most=source.max_rows, groups=1, neighbors=source.neighbors)
                cells = allowance.choose(chosen, rows, moved=held, sizes=(), cells=fine.bins)[0]
                found.append(_cut(fine, cells.tolist()))
            case Unsplit():
                found.append(
                    split(
                        axis,
                        source,
                        accountant=accountant,
                        amount=amount,
                        allowance=allowance,
                        fetch=fetch,
                    )
                )
    return tuple(found), source


def _most(values: list[str], people: np.ndarray) -> tuple[str, ...]:
    """Return the values that most people share, in their order; values that engine SQL cannot spell
    are left to the others.
    """
    able = [place for place, value in enumerate(values) if value != OTHER and "\0" not in value]
    kept = sorted(sorted(able, key=lambda place: -int(people[place]))[: MOST_VALUES - 1])
    return (*(values[place] for place in kept), OTHER)


def _cut(fine: Axis, cells: list[int]) -> Axis:
    """Return intervals that end at quantiles; a cell that several quantiles fall on has an interval
    of its own.
    """
    times = Counter(cells)
    cuts = {0, fine.bins, *cells, *(cell + 1 for cell, count in times.items() if count > 1)}
    starts = tuple(fine.starts[cell] for cell in sorted(cuts))
    return replace(fine, bins=len(starts) - 1, cuts=starts)


def _quantiles(
    source: TableSource, cells: int, accountant: AccountantName, amount: Fraction
) -> Quantiles:
    paid = currency(accountant)
    return Quantiles(
        epsilon=paid.choice_epsilon(amount=amount, rounds=len(QUANTILES).bit_length()),
        quantiles=QUANTILES,
        cells=cells,
        slices=1,
        max_rows=source.max_rows,
        neighbors=source.neighbors,
        choice=paid.choice_name,
    )

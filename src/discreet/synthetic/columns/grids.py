"""Find grids that are not public, at a price: lists of texts that enough people share, and cuts of
numbers.

Privacy
    Texts (S5): a person has at most m rows, hence at most m of a column's values, and adds 1 to the
    people of each. The threshold costs the same ε or ρ and δ as unknown keys in a question.
    Quantiles (S3): they are chosen by rank on a fine public grid, as in a question.
    Splits: see `split`.
    All later steps use only the released list or cuts.
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

# shares of the amount: for one text or one column's quantiles, and at most for all of them
SHARE = Fraction(1, 10)
MOST_SHARE = Fraction(1, 4)
# for one column whose intervals are split, and at most for all of them
SPLIT_SHARE = Fraction(1, 50)
MOST_SPLIT_SHARE = Fraction(1, 10)
FINE = 1 << 14  # the most cells of the grid for choosing quantiles
QUANTILES = tuple(Fraction(place, 48) for place in range(1, 48))


def shares_of_grids(axes: Sequence[Grid]) -> list[Fraction]:
    """Return, for every column, the share of the amount that finds its grid."""
    dear = sum(isinstance(axis, Unlisted | Uncut) for axis in axes)
    cheap = sum(isinstance(axis, Unsplit) for axis in axes)
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
    """Return all columns with public grids; spend shares of the amount to find missing ones."""
    texts = sum(isinstance(axis, Unlisted) for axis in axes)
    grids = []
    for axis, share in zip(axes, shares_of_grids(axes), strict=True):
        amount = paid.amount * share
        match axis:
            case Axis():
                grids.append(axis)
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
                values = _most_common(survivors.column(0).to_pylist(), people)
                source = source.listing(axis.name, values)
                column = replace(axis.column, domain=Categories(values=values))
                grids.append(Axis(column=column, bins=len(values)))
            case Uncut():
                fine = axis.fine(FINE)
                quantiles = _quantiles(source, fine.bins, accountant, amount)
                stage, (place,) = source.placed([axis.name])
                cell = Cast(fine.cell(place), "BIGINT")
                rows = fetch(Aggregate(stage, (cell,), (Sum(),), (cell < fine.bins,), known=(0,)))
                most = PersonRows(most=source.max_rows, groups=1, neighbors=source.neighbors)
                cells = allowance.choose(quantiles, rows, moved=most, sizes=(), cells=fine.bins)[0]
                grids.append(_cut(fine, cells.tolist()))
            case Unsplit():
                grid = split(
                    axis,
                    source,
                    accountant=accountant,
                    amount=amount,
                    allowance=allowance,
                    fetch=fetch,
                )
                grids.append(grid)
    return tuple(grids), source


def _most_common(values: list[str], people: np.ndarray) -> tuple[str, ...]:
    """Return the values that most people share, in their given order, then OTHER.

    Leave out values that the engine's SQL cannot write.
    """
    able = [place for place, value in enumerate(values) if value != OTHER and "\0" not in value]
    by_people = sorted(able, key=lambda place: -int(people[place]))
    places = sorted(by_people[: MOST_VALUES - 1])
    return (*(values[place] for place in places), OTHER)


def _cut(fine: Axis, cells: list[int]) -> Axis:
    """Return intervals that end at quantiles; a cell with several quantiles is an interval of its
    own.
    """
    times = Counter(cells)
    cuts = {0, fine.bins, *cells, *(cell + 1 for cell, count in times.items() if count > 1)}
    starts = tuple(fine.starts[cell] for cell in sorted(cuts))
    return replace(fine, bins=len(starts) - 1, cuts=starts)


def _quantiles(
    source: TableSource, cells: int, accountant: AccountantName, amount: Fraction
) -> Quantiles:
    """Return the mechanism that chooses the quantiles of a column for an amount."""
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

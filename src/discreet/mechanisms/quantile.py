"""Choose quantiles by rank over a public grid: one, or several, each of which splits the rows for
the next (S3).

The input is the number of rows in each cell of a column's grid, and the output the number of a
cell. The score of cell v is minus the distance from the wanted rank, q n, to the ranks that v
covers, #{< v} to #{<= v}:

    u(v) = -max(0, #{< v} - q n, q n - #{<= v})

A row moves #{< v} - q n and #{<= v} - q n by q or 1 - q. So a person with m rows moves u by at most
m max(q, 1 - q), and a person whose m rows are replaced by m others moves it by at most m.

One person's rows may be in several groups. Under add_remove a quantile of every group
(`choose_each`) costs no more than that of one group, because the loss is linear in the number of
moved rows. Under change_one the old rows may be in one group and the new ones in another. With two
or more groups these are 2m rows that are added or removed (docs/proofs/quantiles.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.zcdp import pure_rho
from discreet.budget import Loss, Neighbors
from discreet.errors import UsageError
from discreet.mechanisms import fields
from discreet.mechanisms.exponential import ExponentialMechanism, PermuteAndFlip
from discreet.mechanisms.nested import QuantileRun, Slices, cut, join, root, tree
from discreet.mechanisms.shapes import Integers, PersonRows
from discreet.noise import Items, Stream
from discreet.noise.choose import Kind
from discreet.noise.choose_each import noisy_max_each

ChoiceName = Literal["permute_and_flip", "exponential"]

MOST_CELLS = 1 << 22
_MECHANISM: dict[ChoiceName, type[PermuteAndFlip] | type[ExponentialMechanism]] = {
    "permute_and_flip": PermuteAndFlip,
    "exponential": ExponentialMechanism,
}
# the noise of each
_KIND: dict[ChoiceName, Kind] = {"permute_and_flip": "exponential", "exponential": "gumbel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """Choose a cell by u(v), for the wanted rank q n + shift: q = 1/2 gives the median; q = 1 and
    shift = -20 the 20th largest.

    A maximum needs such a shift, of about `margin`: with shift 0 every cell above the largest value
    has the score 0, which is the best.

    Privacy
        The loss is that of the choice, with the sensitivity of u given above. The shift is public
        and does not change how far a person moves u.
    Error
        In rank: see `margin`. In value it depends on the data.
    """

    epsilon: Fraction
    q: Fraction
    cells: int
    max_rows: int
    neighbors: Neighbors
    choice: ChoiceName
    shift: int = 0

    per_group: ClassVar[int] = 1
    slices: ClassVar[int] = 1

    def __post_init__(self) -> None:
        fields.rationals(self, "epsilon")
        _check_grid(self.cells, self.max_rows, self.neighbors, self.choice)
        _check_quantile(self.q)
        object.__setattr__(self, "q", Fraction(self.q))
        if isinstance(self.shift, bool) or not isinstance(self.shift, int):
            raise UsageError(f"shift must be a whole number, not {self.shift!r}.")

    @property
    def mechanism(self) -> PermuteAndFlip | ExponentialMechanism:
        """Return the choice, in whole units of rank / q's denominator."""
        moved = Fraction(1) if self.neighbors == "change_one" else max(self.q, 1 - self.q)
        return _MECHANISM[self.choice](
            epsilon=self.epsilon, linf=self.max_rows * moved * self.q.denominator
        )

    @property
    def scale(self) -> Fraction:
        return self.mechanism.scale

    def hides(self, moved: PersonRows) -> bool:
        return hides_rows(self.max_rows, self.neighbors, moved)

    def loss(self) -> Loss:
        return self.mechanism.loss()

    def scores(self, counts: Integers) -> Integers:
        """Return u(v) times q's denominator, for each cell (of each row of counts)."""
        counts = _count(counts, self.cells)
        return _rank_scores(counts, self.q, self.shift * self.q.denominator)

    def choose(self, counts: Integers, stream: Stream) -> int:
        return self.mechanism.choose(self.scores(counts), stream)

    def choose_each(self, counts: Integers, stream: Stream, items: Items) -> NDArray[np.int64]:
        """Choose one cell for each item, from its row of counts."""
        return self.mechanism.choose_each(self.scores(counts), stream, items)

    def margin(self, confidence: Fraction | float) -> int:
        """Return the smallest number of ranks that the chosen cell keeps to with this probability.

        Whatever the data, as long as the wanted rank lies within 0 and n.
        """
        return -(-self.mechanism.margin(confidence, self.cells) // self.q.denominator)

    def ranks(self, confidence: Fraction | float) -> int:
        return self.margin(confidence) + abs(self.shift)

    def beside_ranks(self) -> dict[str, Any]:
        return inside_the_data(self.q, self.shift)

    def log_mass(self, counts: Integers) -> NDArray[np.float64]:
        """Return the log-probability of each cell."""
        return self.mechanism.log_mass(self.scores(counts).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Choose a cell for each of several quantiles: first the middle one, then those below it among
    the rows up to its cell, and those above it among the other rows, and so on [Kaplan, Schnapp,
    Stemmer 2022]. They never cross.

    Each cell is cut into equal `slices`, and a row is spread evenly over the slices of its cell. So
    equal rows can be divided in the right proportion, while plain splitting puts all of them on one
    side. Half of the chosen slice goes to each side.

    Privacy
        The parts of one depth divide the rows: the pieces of a row in all parts add up to the row.
        The loss of a choice is linear in the rows of a person in its part. So a depth costs one
        share, epsilon / depths, however many quantiles are chosen there. Under change_one the old
        rows and the new rows may be in two different parts; the noise of depths with two or more
        parts allows for that. Proof: docs/proofs/quantiles.md.
    Error
        In rank: see `margin`.
    """

    epsilon: Fraction
    quantiles: tuple[Fraction, ...]
    cells: int
    slices: int
    max_rows: int
    neighbors: Neighbors
    choice: ChoiceName

    scale: ClassVar[None] = None

    def __post_init__(self) -> None:
        fields.rationals(self, "epsilon")
        _check_grid(self.cells, self.max_rows, self.neighbors, self.choice)
        fields.whole("slices", self.slices, most=max(1, MOST_CELLS // self.cells))
        if not isinstance(self.quantiles, tuple) or not self.quantiles:
            raise UsageError(f"quantiles must be a tuple of at least one, not {self.quantiles!r}.")
        for q in self.quantiles:
            _check_quantile(q)
        if (
            list(self.quantiles) != sorted(set(self.quantiles))
            or not 0 < self.quantiles[0] <= self.quantiles[-1] < 1
        ):
            raise UsageError(
                "quantiles must increase, each above 0 and below 1; ask for the extremes one by one."
            )

    @property
    def per_group(self) -> int:
        return len(self.quantiles)

    def hides(self, moved: PersonRows) -> bool:
        return hides_rows(self.max_rows, self.neighbors, moved)

    @property
    def depths(self) -> int:
        """Return ceil(log2(quantiles + 1)), the depth of the tree."""
        return len(self.quantiles).bit_length()

    @property
    def grain(self) -> int:
        """Return the number of pieces of a row: one for each slice of its cell, and each piece is
        halved at every depth except the last.
        """
        return self.slices << (self.depths - 1)

    def loss(self) -> Loss:
        share = self.epsilon / self.depths
        if self.choice == "permute_and_flip":
            rho = self.depths * pure_rho(epsilon=share)
        else:
            rho = sum(
                (share**2 / 8 * self._worst(parts) for parts in tree(self.quantiles)), Fraction(0)
            )
        return Loss(epsilon=self.epsilon, rho=rho)

    def _worst(self, parts: tuple[QuantileRun, ...]) -> Fraction:
        """Return the cost of one depth in rho, as a part of (epsilon / depths)^2 / 8."""
        if self.neighbors == "add_remove" or len(parts) == 1:
            return Fraction(1)
        # A person's old rows in one part and the new ones in another: twice half a share, squared.
        # All in one part: its score moves by max_rows, where the noise allows for 2 max(q, 1 - q)
        # times that.
        return max(Fraction(1, 2), 1 / (2 * min(max(part.q, 1 - part.q) for part in parts)) ** 2)

    def mechanism(self, part: QuantileRun) -> PermuteAndFlip | ExponentialMechanism:
        """Return the choice within a part, in whole units of rank / (grain * the denominator of the
        part's q).
        """
        moved = max(part.q, 1 - part.q)
        if self.neighbors == "change_one":
            moved = Fraction(1) if part.alone else 2 * moved
        linf = self.max_rows * moved * self.grain * part.q.denominator
        return _MECHANISM[self.choice](epsilon=self.epsilon / self.depths, linf=linf)

    def _pieces(self, counts: Integers) -> Integers:
        """Return how many pieces of rows each slice has, for each row of counts if there are
        several.
        """
        whole = _roomy(_count(counts, self.cells), self.grain)
        pieces = whole * (1 << self.depths - 1)
        return pieces if self.slices == 1 else np.repeat(pieces, self.slices, axis=-1)

    def choose(self, counts: Integers, stream: Stream) -> tuple[int, ...]:
        """Choose the cell of each quantile."""
        found = self.choose_each(np.asarray(counts)[None], stream, Items.positions(1))[0]
        return tuple(int(cell) for cell in found)

    def choose_each(self, counts: Integers, stream: Stream, items: Items) -> NDArray[np.int64]:
        """Choose for each item, from its row of counts, the cell of each quantile."""
        found = np.empty((len(items), len(self.quantiles)), dtype=np.int64)
        left = [
            (
                root(self.quantiles),
                [Slices(start=0, rows=np.arange(len(items)), pieces=self._pieces(counts))],
            )
        ]
        while left:
            part, blocks = left.pop()
            blocks.sort(key=lambda block: block.width)
            below = list[Slices]()
            above = list[Slices]()
            for block, chosen in zip(
                blocks, self._choose(part, blocks, stream, items), strict=True
            ):
                found[block.rows, part.place] = (block.start + chosen) // self.slices
                for place in np.unique(chosen).tolist() if part.parted else ():
                    here = np.flatnonzero(chosen == place)
                    lower, upper = cut(block.pieces[here], place)
                    below.append(Slices(start=block.start, rows=block.rows[here], pieces=lower))
                    above.append(
                        Slices(start=block.start + place, rows=block.rows[here], pieces=upper)
                    )
            left += [(part.below, below)] if part.below and below else []
            left += [(part.above, above)] if part.above and above else []
        return found

    def _choose(
        self, part: QuantileRun, blocks: list[Slices], stream: Stream, items: Items
    ) -> Sequence[NDArray[np.int64]]:
        """Choose the places of one part for all groups, block by block."""
        ends = np.cumsum([len(block.rows) for block in blocks])
        chosen = noisy_max_each(
            stream.derive("quantile", part.place),
            items.at(np.concatenate([block.rows for block in blocks])),
            np.concatenate([np.full(len(block.rows), block.width) for block in blocks]),
            lambda start, stop: _rank_scores(join(blocks, ends, start, stop), part.q, 0),
            unit=1 / self.mechanism(part).scale,
            kind=_KIND[self.choice],
        )
        return np.split(chosen, ends[:-1])

    def margin(self, confidence: Fraction | float, *, assuming: int) -> tuple[int, ...]:
        """Return for each quantile a margin in ranks: with this probability, no chosen cell is
        farther from its wanted rank.

        It holds if no cell has more rows than `assuming`; `ties` says how much more rows of one
        value add. By a union bound over the choices, so smaller margins may be true.
        """
        sure = fields.confidence(confidence)
        fields.whole("assuming", assuming, least=0)
        each = 1 - (1 - sure) / len(self.quantiles)
        slices = self.cells * self.slices

        def own(part: QuantileRun) -> Fraction:
            return self.mechanism(part).margin(each, slices) / Fraction(
                self.grain * part.q.denominator
            )

        return tuple(
            math.ceil(bound + assuming * share)
            for bound, share in zip(self._add_up(own, Fraction(0)), self.ties, strict=True)
        )

    def ranks(self, confidence: Fraction | float) -> int:
        return max(self.margin(confidence, assuming=0))

    def beside_ranks(self) -> dict[str, Any]:
        """Return `ties`: the part of the rows with one value by which a quantile may be farther
        off.
        """
        return {"ties": float(max(self.ties))}

    @property
    def ties(self) -> tuple[Fraction, ...]:
        """Return for each quantile how many ranks farther it may be off for each row of a value
        that rows share.

        If a cell of c rows is cut, the parts are off by up to c / (2 slices).
        """
        return self._add_up(lambda part: Fraction(0), Fraction(1, 2 * self.slices))

    def _add_up(
        self, own: Callable[[QuantileRun], Fraction], cut: Fraction
    ) -> tuple[Fraction, ...]:
        """Return how far each quantile is off, if its own choice is off by `own`, and each cut by
        `cut` more.
        """
        # by place + 1: how far each cut may be off
        off = {0: Fraction(0), len(self.quantiles) + 1: Fraction(0)}
        bounds = [Fraction(0)] * len(self.quantiles)
        for part in (part for parts in tree(self.quantiles) for part in parts):
            bound = own(part) + (1 - part.q) * off[part.first] + part.q * off[part.last + 1]
            bounds[part.place], off[part.place + 1] = bound, bound + cut
        return tuple(bounds)

    def log_mass(self, counts: Integers) -> dict[tuple[int, ...], float]:
        """Return the log-probability of each outcome; for small grids."""
        pieces = self._pieces(counts)
        masses: dict[tuple[int, ...], list[float]] = {}
        for chosen, log_mass in self._outcomes(root(self.quantiles), 0, pieces):
            masses.setdefault(tuple(place // self.slices for place in chosen), []).append(log_mass)
        return {cells: float(np.logaddexp.reduce(mass)) for cells, mass in masses.items()}

    def _outcomes(
        self, part: QuantileRun | None, start: int, pieces: Integers
    ) -> list[tuple[tuple[int, ...], float]]:
        if part is None:
            return [((), 0.0)]
        outcomes = []
        for place, log_mass in enumerate(
            self.mechanism(part).log_mass(_rank_scores(pieces, part.q, 0).tolist())
        ):
            below, above = cut(pieces, place)
            outcomes += [
                ((*lower, start + place, *upper), float(log_mass) + log_lower + log_upper)
                for lower, log_lower in self._outcomes(part.below, start, below)
                for upper, log_upper in self._outcomes(part.above, start + place, above)
            ]
        return outcomes


def hides_rows(max_rows: int, neighbors: Neighbors, moved: PersonRows) -> bool:
    """Return True if the noise of quantiles for so many rows hides one person's rows
    (`sql.picks.Pick`).

    Privacy: to replace a person takes away m rows and adds m others. Within one group change_one
    counts this as m rows. With several groups the old and the new rows may be in different groups,
    and count as 2m rows that are added or removed.
    """
    both = moved.neighbors == "change_one" and (moved.groups > 1 or neighbors == "add_remove")
    return max_rows >= (2 if both else 1) * moved.most


def inside_the_data(q: Fraction, shift: int) -> dict[str, Any]:
    """Return `extreme` and `inside` for a quantile near an end: a value within its margin of ranks
    is not beyond the extreme, if the group has at least `inside` rows.
    """
    return {"extreme": "maximum" if q else "minimum", "inside": abs(shift)} if shift else {}


def slices_for(cells: int) -> int:
    """Return the number of slices that keeps a choice fast: 256 up to 1,024 cells, 1 from 2^18
    on.
    """
    return max(1, min(256, (1 << 18) // cells))


def _rank_scores(counts: Integers, q: Fraction, shift: int) -> Integers:
    """Return u times q's denominator, with the wanted rank moved by `shift` such units."""
    counts = _roomy(counts, q.denominator, abs(shift))
    behind = counts.cumsum(axis=-1)
    wanted = q.numerator * behind[..., -1:] + shift
    scores: Integers = behind - counts
    # In place: of a fine grid each further array takes as long as the arithmetic. Zero less u is
    # the largest of three.
    scores *= q.denominator
    scores -= wanted
    behind *= -q.denominator
    behind += wanted
    np.maximum(scores, behind, out=scores)
    np.maximum(scores, 0, out=scores)
    np.negative(scores, out=scores)
    return scores


def _roomy(counts: Integers, times: int, plus: int = 0) -> Integers:
    """Return the counts; as Python's integers if their sum times `times` may pass 64 bits."""
    if (
        counts.dtype != object
        and counts.size
        and int(counts.sum(axis=-1).max()) * times + plus >= 1 << 62
    ):
        return counts.astype(object)
    return counts


def _count(counts: Integers, cells: int) -> Integers:
    counts = np.asarray(counts)
    if counts.shape[-1:] != (cells,) or (counts.dtype != object and counts.dtype.kind not in "iu"):
        raise UsageError(
            f"A column on a grid of {cells} cells is passed in as {cells} whole numbers of rows."
        )
    return counts if counts.dtype == object else counts.astype(np.int64, copy=False)


def _check_grid(cells: int, max_rows: int, neighbors: Neighbors, choice: ChoiceName) -> None:
    fields.whole("cells", cells, most=MOST_CELLS)
    fields.whole("max_rows", max_rows)
    fields.neighbors(neighbors)
    fields.one_of("choice", choice, get_args(ChoiceName))


def _check_quantile(q: Fraction) -> None:
    if (
        isinstance(q, bool)
        or not isinstance(q, (int, Fraction))
        or not 0 <= q <= 1
        or q.denominator > 10**6
    ):
        raise UsageError(
            f"A quantile is a fraction from 0 to 1 with a denominator up to a million, not {q!r}."
        )

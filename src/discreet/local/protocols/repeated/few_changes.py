"""One question in many rounds, ε-private over whole histories: for answers that may change, a few
times.

A respondent draws a plan once, before the first round, and sends one bit a round. Almost all of
their bits are fair coins; those that are not speak about one part of the history, which the plan
names:

    a single round    where there are few rounds: every respondent speaks in one of them, and any
                      answer may change
    a binary tree     where there are many: about the first answer, or the changes over all
                      intervals of one length

The changes over intervals of one length are mostly none, so their signs are leaned by coins that
were drawn beforehand [Erlingsson et al. 2019, Amplification by shuffling; Ohrimenko, Wirth, Wu
2022, Randomize the future]. Importing this module needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.budget import amount
from discreet.errors import UsageError
from discreet.local import answers
from discreet.local.protocols import odds
from discreet.local.protocols.support import estimate
from discreet.noise import bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.local.collector.estimate import Estimate, Tally

MOST_ROUNDS = 4000
MOST_CHANGES = 32
_FAIR = bits.WORD // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FewChanges:
    """Send a row of the Hadamard matrix, a part of the history, and in every round one bit.

    s_t is the sign of round t's answer in the row. Part 0 speaks once, about s_1; part 1 + h at the
    end of each interval of 2^h rounds, about the change (s_t - s_{t - 2^h}) / 2, which is 0 or a
    sign. (In single rounds, part r speaks once, about s_{r+1}.) A bit that speaks is the sign,
    flipped or not by the next bit of a pattern b; any other is fair.

    Privacy
        ε over whole histories. Row and part do not look at the answers. The pattern b of K bits is
        drawn with one of two densities, in ratio e^ε at most, relative to uniform bits: the larger
        one if at least `agree` bits keep their sign. A history has K signs at most, for the device
        holds the answer after K = `changes` changes. So for a given row and part, a sequence of T
        bits has 2^-T times the mean, over the bits of b that were not used, of the density at the b
        that makes the signs of this history come out so. That is a mean of numbers between the two
        densities, whatever the history, and two histories differ by e^ε at most. What the device
        does with one change too many is the same as with none, so it tells nothing.
    Error
        n Var = parts * sum over the terms of (weight / gap)^2, times ((D - 1) / D)^2 for D rows:
        see `variance`.
    """

    name: ClassVar[str] = "few_changes"
    plan_draws: ClassVar[tuple[str, ...]] = (
        "part",
        "row",
        "keep",
        "lean",
        "signs that lean",
        "signs that do not",
    )
    report_draws: ClassVar[tuple[str, ...]] = ("a fair coin if there is nothing to say",)
    draws: ClassVar[tuple[str, ...]] = (*plan_draws, *report_draws)
    domain: answers.Choices
    epsilon: Fraction
    rounds: int
    changes: int
    tree: bool = field(init=False)
    keep: int = field(init=False)
    """Of a single sign, in the units of `odds`."""
    agree: int = field(init=False)
    lean: int = field(init=False)

    def __post_init__(self) -> None:
        epsilon = amount(self.epsilon, name="epsilon")
        _require_whole(self.rounds, "rounds", MOST_ROUNDS)
        _require_whole(self.changes, "changes", MOST_CHANGES)
        object.__setattr__(self, "domain", answers.choices(self.domain))
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "keep", odds.threshold(epsilon))
        agree = max(
            range(1, self.changes + 1), key=lambda least: _gap(self.changes, least, epsilon)
        )
        object.__setattr__(self, "agree", agree)
        object.__setattr__(self, "lean", _lean(self.changes, agree, epsilon))
        object.__setattr__(self, "tree", self._tree_is_better())

    def _tree_is_better(self) -> bool:
        """Return True if the tree has less mean variance; a round t needs an interval for each of
        its bits.
        """
        one = (2 * odds.chance(self.keep) - 1) ** -2
        several = 4 / _gap(self.changes, self.agree, self.epsilon) ** 2
        intervals = Fraction(sum(t.bit_count() for t in range(1, self.rounds + 1)), self.rounds)
        return (1 + self.rounds.bit_length()) * (one + intervals * several) < self.rounds * one

    @property
    def rows(self) -> int:
        """The number of rows but the first: 2^k - 1, with 2^k the first power of two that is at
        least d.
        """
        return int((1 << (len(self.domain) - 1).bit_length()) - 1)

    @property
    def parts(self) -> int:
        return 1 + self.rounds.bit_length() if self.tree else self.rounds

    @property
    def size(self) -> int:
        return 2 * self.rows * self.parts

    def plan(self, source: bits.RandomBits = bits.SYSTEM) -> int:
        """Draw what a device draws before the first round, and keeps: part, row, and the pattern of
        each.
        """
        part = bits.below(source, self.parts)
        row = bits.below(source, self.rows)
        kept = bits.coin(source, self.keep)
        leans = bits.coin(source, self.lean)
        many = _patterns(self.changes, self.agree)
        high = bits.below(source, many)
        low = bits.below(source, (1 << self.changes) - many)
        pattern = _pattern(high if leans else low, self.changes, self.agree, leans)
        return self._pack(part, row, pattern if self.tree and part else int(kept))

    def _pack(self, part: int, row: int, pattern: int) -> int:
        return (row * self.parts + part) << self.changes | pattern

    def held(self, places: Sequence[int], place: int) -> int:
        """Return the place that counts next: the one before, if the answer has changed as often as
        it may.
        """
        if not self.tree or not places:
            return place
        changed = sum(one != other for one, other in pairwise(places))
        return places[-1] if changed == self.changes else place

    def report(
        self, plan: int, places: Sequence[int], source: bits.RandomBits = bits.SYSTEM
    ) -> int:
        """Return the report of the last of these rounds, from the places of the answers in all of
        them.
        """
        spoken = plan >> self.changes
        pattern = plan & ((1 << self.changes) - 1)
        row, part = divmod(spoken, self.parts)
        fair = int(bits.coin(source, _FAIR))
        said = self._say(part, [(row + 1 & place).bit_count() % 2 for place in places])
        if said is None:
            return 2 * spoken + fair
        sign, number = said
        return 2 * spoken + (sign ^ (pattern >> number & 1 ^ 1))

    def _say(self, part: int, signs: list[int]) -> tuple[int, int] | None:
        """Return what this part says in the last round, 0 for + and 1 for -, and how many signs it
        said before.
        """
        now = len(signs)
        if not self.tree or not part:
            return (signs[-1], 0) if now == (1 if self.tree else part + 1) else None
        length = 1 << (part - 1)
        # before the first round: as in it
        ends = [signs[max(end - 1, 0)] for end in range(0, now + 1, length)]
        if now % length or ends[-1] == ends[-2]:
            return None
        return ends[-1], sum(one != other for one, other in pairwise(ends[:-1]))

    def respond(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        """Return a first report, and forget its plan; a device keeps the plan and calls
        `report`.
        """
        place = answers.place(self.domain, answer)
        return self.report(self.plan(source), [place], source)

    def encode(self, values: Any) -> NDArray[np.int64]:
        """Draw reports of the first round."""
        import numpy as np

        from discreet.local.collector.many import Draws
        from discreet.local.collector.transform import parities

        place = answers.places(self.domain, values)
        draws = Draws(len(place))
        part = draws.below(self.parts)
        row = draws.below(self.rows)
        kept = draws.coin(self.keep)
        _ = draws.coin(self.lean)
        many = _patterns(self.changes, self.agree)
        draws.below(many), draws.below((1 << self.changes) - many)
        fair = draws.coin(_FAIR)
        sign = parities(row + 1, place) ^ ~kept
        return 2 * (row * self.parts + part) + np.where(part == 0, sign, fair)

    def mass(self, report: int, answer: Any) -> Fraction:
        """Return the chance of a report of the first round."""
        spoken, bit = divmod(report, 2)
        row, part = divmod(spoken, self.parts)
        p = Fraction(1, 2) if part else odds.chance(self.keep)
        true = (row + 1 & answers.place(self.domain, answer)).bit_count() % 2 == bit
        return (p if true else 1 - p) / (self.rows * self.parts)

    def tally(self, reports: Any) -> Tally:
        """Add up the reports of one round."""
        from discreet.local.collector.estimate import histogram

        return histogram(reports, self.size)

    def terms(self, round: int) -> list[tuple[int, int, int, Fraction]]:
        """Return the terms of a round's mean of s: part, the round in which it speaks, weight, and
        gap.
        """
        single = 2 * odds.chance(self.keep) - 1
        if not self.tree:
            return [(round - 1, round, 1, single)]
        found = [(0, 1, 1, single)]
        end = 0
        gap = _gap(self.changes, self.agree, self.epsilon)
        for level in reversed(range(round.bit_length())):
            if round >> level & 1:
                end += 1 << level
                found.append((1 + level, end, 2, gap))
        return found

    def variance(self, *, n: int, round: int) -> Fraction:
        """Bound the variance of an estimated frequency in a round, over the coins and over who
        speaks about what.
        """
        share = Fraction(self.rows, self.rows + 1)
        return (
            share**2
            * self.parts
            * sum((weight / gap) ** 2 for _, _, weight, gap in self.terms(round))
            / n
        )

    def read(self, tally: Tally, *, confidence: float = 0.95) -> Estimate:
        """Estimate the frequencies from the reports of the first round."""
        found = self.read_round(1, {1: tally}, confidence=confidence)
        if found is None:
            raise UsageError("There are no reports to estimate from.")
        return found

    def read_round(
        self, round: int, tallies: Mapping[int, Tally], *, confidence: float = 0.95
    ) -> Estimate | None:
        """Estimate the frequencies in one round, from all tallies so far; None if a part is
        silent.
        """
        from discreet.local.collector.rounds import read_round

        return read_round(self, round, tallies, confidence=confidence)

    def poisoned(self, *, fakes: int, n: int) -> Fraction:
        """Return the most by which `fakes` respondents move a frequency: all in the part of most
        weight.
        """
        furthest = max(weight * (1 / gap + 1) for _, _, weight, gap in self.terms(self.rounds))
        return Fraction(fakes, n) * self.parts * furthest * Fraction(self.rows, self.rows + 1)

    def parameters(self) -> dict[str, int | str]:
        shape = {
            "values": len(self.domain),
            "rows": self.rows,
            "parts": self.parts,
            "tree": int(self.tree),
        }
        coins = {"keep": hex(self.keep), "lean": hex(self.lean)}
        return {
            **shape,
            "rounds": self.rounds,
            "changes": self.changes,
            "agree": self.agree,
            **coins,
        }

    estimate = estimate


def _require_whole(value: object, name: str, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise UsageError(f"{name} must be a whole number from 1 to {most}, not {value!r}.")


def _patterns(k: int, agree: int) -> int:
    """Count the patterns of k bits that keep at least `agree` signs."""
    return sum(comb(k, kept) for kept in range(agree, k + 1))


def _pattern(rank: int, k: int, agree: int, leans: bool) -> int:
    """Return the pattern of this rank among those that keep at least `agree` signs, or among the
    others.
    """
    pattern, kept = 0, 0
    for place in range(k):
        least, most = (agree - kept, k) if leans else (0, agree - 1 - kept)
        flipped = sum(
            comb(k - 1 - place, more) for more in range(max(least, 0), min(most, k - 1 - place) + 1)
        )
        if rank >= flipped:
            rank -= flipped
            pattern |= 1 << place
            kept += 1
    return pattern


def _lean(k: int, agree: int, epsilon: Fraction) -> int:
    """Return the threshold of leaning: odds of e^ε times the numbers of patterns in each class."""
    many = _patterns(k, agree)
    return odds.threshold(epsilon, odds=Fraction(many, (1 << k) - many))


@lru_cache(maxsize=256)
def _gap(k: int, agree: int, epsilon: Fraction) -> Fraction:
    """Return the probability that a sign is kept less that it is flipped, the same for each of the
    k.
    """
    many = _patterns(k, agree)
    p = odds.chance(_lean(k, agree, epsilon))
    excess = sum(comb(k, kept) * Fraction(2 * kept - k, k) for kept in range(agree, k + 1))
    return p * excess / many - (1 - p) * excess / ((1 << k) - many)

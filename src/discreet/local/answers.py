"""Find the place of an answer in the domain of a question. Standard library only.

A domain is a sequence of values (`range` for 0 .. d - 1), or a grid of numbers (`domain.Decimals`,
`domain.Integers`). An answer outside it is refused here, on the respondent's device, before any
coin is tossed or any byte is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.policy.domain import Categories, Decimals, Integers

    Grid = Decimals | Integers

Choices = Sequence[Any]

_NUMBER = re.compile(
    r"-?([0-9]{1,25}/[1-9][0-9]{0,24}|[0-9]{1,25}(\.[0-9]{0,25})?(e[-+]?[0-9]{1,2})?)"
)

MOST_PLACES = 1 << 22
"""The most values of a domain. With more, a table with a cell for each report would not fit into a
server's memory.
"""


def choices(domain: int | Categories | Iterable[Any]) -> Choices:
    """Return the possible answers, in their order. A number d stands for 0 .. d - 1."""
    domain = getattr(domain, "values", domain)  # domain.Categories
    if isinstance(domain, (str, bytes, bool)) or not isinstance(domain, (int, Iterable)):
        raise UsageError(f"A domain is a list of values or their number, not {domain!r}.")
    if isinstance(domain, int):
        domain = range(domain)
    values: Choices = domain if isinstance(domain, range) else tuple(domain)
    if not 2 <= len(values) <= MOST_PLACES:
        raise UsageError(f"A domain has 2 to {MOST_PLACES} values here, not {len(values)}.")
    try:
        twice = not isinstance(values, range) and len(set(values)) < len(values)
    except TypeError:
        raise UsageError("A domain's values are words or numbers, not lists.") from None
    if twice:
        raise UsageError("A value stands twice in the domain.")
    return values


def place(domain: Choices, answer: Any) -> int:
    """Return the place of one answer among the choices."""
    try:
        return domain.index(answer)
    except ValueError:
        raise UsageError(
            f"{answer!r} is not an answer to this question: {_describe(domain)}."
        ) from None


def places(domain: Choices, answers: Any) -> NDArray[np.int64]:
    """Return the places of many answers, all of which must be in the domain."""
    import numpy as np

    if isinstance(domain, range) and domain.step == 1:
        asked = np.asarray(answers)
        if asked.size and (
            asked.dtype.kind not in "iu" or asked.min() < domain.start or asked.max() >= domain.stop
        ):
            raise UsageError(f"An answer is not one of this question's: {_describe(domain)}.")
        return asked.astype(np.int64) - domain.start
    where = {value: i for i, value in enumerate(domain)}
    given = answers.tolist() if isinstance(answers, np.ndarray) else list(answers)
    try:
        return np.fromiter((where[value] for value in given), dtype=np.int64, count=len(given))
    except (KeyError, TypeError):
        raise UsageError(f"An answer is not one of this question's: {_describe(domain)}.") from None


def step(domain: Grid, answer: Any) -> int:
    """Return the number of steps from the grid's lowest number to an answer.

    A float means the decimal that it is written as: 0.1 is 1/10. A float is on the grid if it is
    within a millionth of a step.
    """
    text = str(answer)
    found = Fraction(text) / domain.step if _NUMBER.fullmatch(text) else Fraction(1, 2)
    if isinstance(answer, float) and abs(found - round(found)) <= Fraction(1, 10**6):
        found = Fraction(round(found))
    if found.denominator != 1 or not domain.first <= found <= domain.last:
        raise UsageError(f"{answer!r} is not an answer to this question: {_describe(domain)}.")
    return int(found) - domain.first


def steps(domain: Grid, answers: Any) -> NDArray[np.int64]:
    """Return the number of steps for many answers. Floats within a millionth of a step of the grid
    are on it.
    """
    import numpy as np

    asked = np.asarray(answers, dtype=np.float64)
    scaled = asked / float(domain.step)
    nearest = np.rint(scaled)
    with np.errstate(invalid="ignore"):
        on_grid = (
            (abs(scaled - nearest) <= 1e-6) & (nearest >= domain.first) & (nearest <= domain.last)
        )
    if not on_grid.all():
        raise UsageError(f"An answer is not one of this question's: {_describe(domain)}.")
    return nearest.astype(np.int64) - domain.first


def number(domain: Grid, steps_below: int | Fraction) -> Fraction:
    """Return the number that is so many steps above the grid's lowest number."""
    return (domain.first + steps_below) * domain.step


def _describe(domain: Any) -> str:
    if hasattr(domain, "step") and not isinstance(domain, range):
        from discreet.policy.domain import write_number

        ends = (
            f"{write_number(number(domain, 0))} to {write_number(number(domain, domain.size - 1))}"
        )
        return f"answer a number from {ends} in steps of {write_number(domain.step)}"
    if len(domain) <= 12:
        return "answer one of " + ", ".join(map(str, domain))
    return f"answer one of {len(domain)} values, {domain[0]} to {domain[-1]}"

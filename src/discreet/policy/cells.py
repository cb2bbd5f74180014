"""Read how a policy divides a column of numbers, days or moments into cells.

    income: {integer: [0, 99999], cuts: [5000, 20000], single: [0, 99999]}

An interval begins at each of `cuts`, and each value in `single` is a cell of its own. Both are
public, like every domain: the curator declares them without a look at the data.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction

from discreet.policy.document import List, Node, Reader, Scalar
from discreet.policy.domain import Dates, Decimals, Domain, Integers, Timestamps, write_number

MOST_CELLS = 1000  # of one column
_KINDS = "only integer, decimal, date and timestamp have"

End = Fraction | date | datetime
Parse = Callable[[str], End | None]


def cells(
    reader: Reader, what: str, domain: Domain, fields: dict[str, Node], parse: Parse
) -> tuple[int, ...]:
    """Return the places in the domain at which a column's cells begin, and the domain's end.

    Return none if the policy declares no cells. `parse` reads a value of the column's kind.
    """
    named = [name for name in ("cuts", "single") if name in fields]
    if not named:
        return ()
    if not isinstance(domain, Integers | Decimals | Dates | Timestamps):
        for name in named:
            reader.problem(fields[name], f"{what}: {_KINDS} {name}. Remove it.")
        return ()
    before = len(reader.problems)
    bounds = {0, domain.size}
    for name in named:
        for place in _places(reader, what, name, domain, fields[name], parse):
            bounds |= {place} if name == "cuts" else {place, place + 1}
    if len(reader.problems) > before:
        return ()
    if len(bounds) > MOST_CELLS + 1:
        reader.problem(
            fields[named[0]],
            f"{what} is cut into {len(bounds) - 1} cells, and at most {MOST_CELLS} are allowed.",
        )
        return ()
    return tuple(sorted(bounds))


def _places(
    reader: Reader,
    what: str,
    name: str,
    domain: Integers | Decimals | Dates | Timestamps,
    node: Node,
    parse: Parse,
) -> list[int]:
    """Return the places of the listed values, which must rise; report each problem at its place in
    the file.
    """
    if not isinstance(node, List) or not node.items:
        reader.wrong(node, f"{what}.{name}", "a list of values in rising order")
        return []
    places: list[int] = []
    for item in node.items:
        value = parse(item.text) if isinstance(item, Scalar) else None
        place = None if value is None else _place(domain, value)
        if place is None:
            reader.wrong(
                item, f"{what}.{name}: a value", f"one of the column's own, {_range(domain)}"
            )
        elif name == "cuts" and place == 0:
            reader.problem(item, f"{what}.cuts: {item} begins the range anyway. Remove it.")
        elif places and place <= places[-1]:
            reader.problem(item, f"{what}.{name}: {item} does not come after the value before it.")
        else:
            places.append(place)
    return places


def _place(domain: Integers | Decimals | Dates | Timestamps, value: End) -> int | None:
    """Return a value's place in the domain; None if the domain does not contain it."""
    match domain, value:
        case Integers() | Decimals(), Fraction():
            steps = value / domain.step - domain.first
        case Timestamps(), datetime():
            steps = Fraction((value - domain.lo) // timedelta(microseconds=1))
            steps /= domain.step_microseconds
        case Dates(), date():
            steps = Fraction((value - domain.lo).days)
        case _:
            return None
    inside = steps.denominator == 1 and 0 <= steps < domain.size
    return int(steps) if inside else None


def _range(domain: Integers | Decimals | Dates | Timestamps) -> str:
    if isinstance(domain, Integers | Dates):
        return f"from {domain.lo} to {domain.hi}"
    step = write_number(domain.step)
    return f"from {domain.lo} to {domain.hi} in steps of {step}"

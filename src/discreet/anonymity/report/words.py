"""The sentences of a report, once, for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.anonymity.failures import KNOWN, Example, Failures
from discreet.anonymity.hierarchies import PARTS
from discreet.anonymity.publish import Anonymized
from discreet.anonymity.utility import CountErrors

NOT_ENOUGH = (
    "This is not differential privacy. k-anonymity promises that rows look alike in the columns you listed, and "
    "nothing else: not what a class gives away, not what other releases add, not what somebody already knows."
)


def share(part: float, whole: float) -> str:
    """Print 40 %, and never 0 % or 100 % of what is a few."""
    if not whole or part in (0, whole):
        return "none" if not part else "all"
    percent = 100 * part / whole
    if percent < 1:
        return "under 1 %"
    if percent > 99:
        return "over 99 %"
    return f"{percent:.0f} %"


def count(number: int, one: str, many: str = "") -> str:
    """Print 1 table, 2 tables."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def level(name: str) -> str:
    """Say in words how a level of a hierarchy shows values."""
    if name == "*":
        return "not shown (*)"
    if name in PARTS:
        return f"by {name}"
    kind, _, rest = name.partition(" ")
    if kind == "width":
        return f"in bands of {rest}"
    if kind == "first":
        return f"by the first {count(int(rest), 'character')}"
    if kind == "group":
        return f"in groups of level {rest}" if rest else "in groups"
    return f"cut at {count(int(kind), 'point')}" if rest == "cuts" else name


def levels(shares: str | Mapping[str, float]) -> str:
    """Say which part of the rows shows a column how: 97 % exact, 3 % in bands of 10."""
    if isinstance(shares, str):
        return f"all {level(shares)}"
    told = (f"{100 * part:.0f} % {level(name)}" for name, part in shares.items() if part >= 0.005)
    return ", ".join(told)


def promise(made: Anonymized) -> str:
    """Say in a sentence what holds of the published table."""
    quasi = count(len(made.transformation), "quasi-identifier")
    others = count(made.k - 1, "other")
    classes = count(made.classes, "class", "classes")
    alike = f"Each of the {made.rows:,} published rows shares its {quasi} with at "
    rest = f"least {others}; there {'is' if made.classes == 1 else 'are'} {classes}."
    lost = (
        "Nothing was suppressed."
        if not made.suppressed
        else f"{count(made.suppressed, 'row was', 'rows were')} suppressed."
    )
    return f"{alike}{rest} {lost}"


def describe(example: Example) -> str:
    return ", ".join(f"{name} {value}" for name, value in example.shows.items())


def homogeneity(failed: Failures) -> list[str]:
    """Tell the first failure: a class that agrees gives its secret away, however large it is."""
    if not failed.homogeneous or failed.agreeing is None:
        return [f"No class agrees on {failed.secret}: this failure does not occur here."]
    example = failed.agreeing
    classes = count(failed.homogeneous_classes, "class that agrees", "classes that agree")
    people = f"{failed.homogeneous:,} people ({share(failed.homogeneous, failed.rows)})"
    return [
        f"{people} are in {classes} on {failed.secret}. Whoever finds "
        f"somebody's class knows their {failed.secret}, whatever k is.",
        f"For example all {example.size:,} people with {describe(example)} "
        f"have {failed.secret} = {example.values[0][0]}.",
    ]


def side_information(failed: Failures) -> list[str]:
    """Tell the second failure: k is a promise about somebody who knows nobody in the class."""
    sentences = [
        f"k is {failed.k}; for somebody who knows {KNOWN} of the class, {count(failed.left, 'is', 'are')} left."
        if failed.left
        else f"k is {failed.k}; somebody who knows the other {failed.k - 1} has found the last one."
    ]
    if failed.nearly and failed.thinned is not None:
        example = failed.thinned
        more = "more " if failed.homogeneous else ""
        most = f"{example.values[0][1]:,} of {example.size:,} have {failed.secret} = {example.values[0][0]}"
        sentences += [
            f"For {failed.nearly:,} {more}people ({share(failed.nearly, failed.rows)}) knowing {KNOWN} is enough: "
            f"without them everybody left in the class has the same {failed.secret}.",
            f"For example, with {describe(example)}, {most}: who knows the rest knows all of them.",
        ]
    return sentences


def size(kind: CountErrors) -> str:
    return f"{count(kind.tables, 'table')}, {count(kind.counts, 'count')}"


def instead(made: Anonymized) -> list[str]:
    """Say what a differentially private release of the same counts would give."""
    if made.report is None:
        return []
    sentences = []
    for each in made.report.utility.kinds:
        margins = ", ".join(
            f"± {margin:,} at ε = {epsilon}" for epsilon, margin in each.margins.items()
        )
        sentences.append(
            f"Counts {each.name} ({size(each)}): from this table 19 of 20 are off by "
            f"up to {each.usual:,.0f} and one by {each.worst:,.0f}; with noise, against any attacker, {margins}."
        )
    return sentences

"""Show answers and quotes: in a terminal as text, in a notebook as HTML with error bars."""

from __future__ import annotations

import html
import json
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from discreet.budget import FEWER, Budget, number, with_margin
from discreet.pages import blocks

if TYPE_CHECKING:
    from discreet.vault.answer import Answer


def printable(text: str) -> str:
    """Return somebody else's text; show as marks what a terminal would obey, such as escapes and
    bells.

    Spaces of other widths, and those at which no line breaks, obey nobody: they stay.
    """
    return "".join(each if _obeys_nobody(each) else "\ufffd" for each in text)


def _obeys_nobody(letter: str) -> bool:
    return letter.isprintable() or letter == "\n" or unicodedata.category(letter) == "Zs"


def readable(value: Any) -> str:
    """Return a plain value as text: [83.69, 794.34], {a: 1, b: NULL}."""
    match value:
        case None:
            return "NULL"
        case list():
            return f"[{', '.join(map(readable, value))}]"
        case dict():
            return f"{{{', '.join(f'{name}: {readable(each)}' for name, each in value.items())}}}"
        case _:
            return str(value)


def label(value: Any) -> str:
    """Return somebody else's value on one line, with all that is not plainly visible shown as a
    mark.
    """
    return printable(str(value)).replace("\n", "\ufffd")


def json_text(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return JSON on one line, safe for a terminal: letters as they are, control characters as \\u
    escapes. A number that is not finite is null, as JSON has no word for it. `default` writes what
    JSON does not know.
    """
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False, default=default)
    except ValueError:
        finite = _only_finite(value)
        written = json.dumps(finite, ensure_ascii=False, allow_nan=False, default=default)
    if written.isprintable():
        return written
    return "".join(each if printable(each) == each else json.dumps(each)[1:-1] for each in written)


def _only_finite(value: Any) -> Any:
    """Return a JSON value with None for each number that is not finite."""
    match value:
        case dict():
            return {name: _only_finite(each) for name, each in value.items()}
        case list() | tuple():
            return [_only_finite(each) for each in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def cell(value: Any, margin: float | None) -> str:
    """Write a value with its margin: 1,204 ± 12."""
    if value is None:
        return "–"
    match value:
        case float() if margin is not None:
            return with_margin(value, margin)
        case float():
            # + 0.0: there is no -0
            text = f"{value + 0.0:,.4g}" if abs(value) < 1000 else f"{value:,.2f}"
        case int() | Decimal() if (
            margin is not None or abs(float(value)) >= 10_000
        ):  # a year is 2025, not 2,025
            text = f"{value:,}"
        case list() | tuple() | dict() | bytes():  # an interval is a tuple
            from discreet.vault.answer import plain

            text = readable(plain(value))
        case _:
            text = label(value)
    return text if margin is None else f"{text} ± {short_margin(margin)}"


def cells(
    values: Sequence[Any], margins: Sequence[float | None], *, unknown: bool = False
) -> list[str]:
    """Write a column's values with their margins, one ± under the other; ± ? where a margin is
    `unknown`.
    """
    texts = [cell(value, margin) for value, margin in zip(values, margins, strict=True)]
    halves = [_halves(*each, unknown=unknown) for each in zip(texts, values, margins, strict=True)]
    widest = max((len(margin) for _, _, margin in halves), default=0)
    return [
        f"{value} ± {margin.ljust(widest)}" if mark else value for value, mark, margin in halves
    ]


def _halves(text: str, value: Any, margin: float | None, *, unknown: bool) -> tuple[str, str, str]:
    if margin is not None:
        return text.partition(" ± ")
    return (text, " ± ", "?") if unknown and value is not None else (text, "", "")


def short_margin(margin: float) -> str:
    """Write a margin in three digits, rounded up: a margin that is told must hold."""
    if margin == int(margin):
        return f"{margin:,.0f}"
    places = max(0, 2 - math.floor(math.log10(margin)))
    wide = math.ceil(margin * 10**places - 1e-6) / 10**places
    return f"{wide:.3g}" if places else f"{wide:,.0f}"


def answer_text(answer: Answer) -> str:
    """Write a table in plain text, and what it cost."""
    columns = []
    for name, values, margins in zip(
        answer.table.column_names, answer.table.columns, answer.margins.columns, strict=True
    ):
        listed = values.to_pylist()
        unknown = name in answer.certificate.get("without_margin", {})
        shown = cells(listed, margins.to_pylist(), unknown=unknown)
        texts = [name, *with_ranks(answer, name, shown)]
        numeric = any(isinstance(each, int | float | Decimal) for each in listed)
        width = max(map(len, texts))
        columns.append([text.rjust(width) if numeric else text.ljust(width) for text in texts])
    lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    return "\n".join([*lines, *notes(answer)])


def notes(answer: Answer) -> list[str]:
    """Return what stands under the table."""
    lines = [
        f"{_price(answer)}   left {answer.left}{_more_like_it(answer)}   ± is a 95 % margin of the noise"
    ]
    beside = answer.certificate.get("beside_ranks", {})
    for name, ranks in answer.certificate.get("ranks", {}).items():
        margin = {"ranks": ranks} | beside.get(name, {})
        lines.append(f"{name}: {_ranks(margin)}, with 95 % confidence{_in_range(answer, name)}")
    lines += [
        f"{name}: where ± ? stands, {why}"
        for name, why in answer.certificate.get("without_margin", {}).items()
    ]
    if any(answer.selected):
        lines.append(
            "These rows were chosen by noisy numbers (a threshold, HAVING or LIMIT); "
            "± does not cover that choice."
        )
    people = answer.certificate.get("shared_by", [])
    if people and not answer.table.num_rows:
        lines.append(f"No value passed the test: {shared_by(max(people))}")
    if answer.certificate.get("today"):
        lines.append(f"today is {answer.certificate['today']}, in UTC: a part of the question")
    if answer.certificate.get("each_row"):
        lines.append(each_row(answer.certificate["unit"]))
    return [*lines, *left_out(answer.certificate.get("max_rows", {}))]


def each_row(unit: str) -> str:
    """Say what `owner: row` assumes, wherever an answer or a plan is read."""
    return f"EACH ROW is taken to be one {unit} (owner: row): a {unit} who is in k rows is protected k times less"


def _price(answer: Answer) -> str:
    if answer.cost.epsilon:
        return f"cost {answer.cost}"
    return "free: public" if answer.id == "public" else "free: asked before"


def _more_like_it(answer: Answer) -> str:
    """Say how many more questions of this price fit in what is left: ρ adds up under zcdp, ε does
    not.
    """
    cost, left = answer.cost, answer.left
    paid, there = (
        (cost.epsilon, left.epsilon)
        if cost.rho is None or left.rho is None
        else (cost.rho, left.rho)
    )
    unknown_keys = any(
        "Threshold" in each["mechanism"] for each in answer.certificate.get("mechanisms", ())
    )
    # whose δ is not told apart from that of turning ρ into ε
    if not paid or (unknown_keys and cost.rho is not None):
        return ""
    times = (
        there // paid
        if not cost.delta or cost.rho is not None
        else min(there // paid, left.delta // cost.delta)
    )
    return f" ({times:,} more like this)"


def shared_by(people: int) -> str:
    """Say when a value of an unknown key is shown, and what would show more."""
    return f"a value is shown if about {people:,} people share it. {FEWER} lower that."


def running_totals(instead: Mapping[str, tuple[float, float]]) -> list[str]:
    """Say where noise is on running totals, and what margins would be with noise on each number."""
    told = (
        f"{name} ± {short_margin(now)} instead of ± {short_margin(apart)}"
        for name, (now, apart) in instead.items()
    )
    if instead:
        return [f"Running totals are measured, not each number by itself: {', '.join(told)}."]
    return []


def left_out(max_rows: Mapping[str, int]) -> list[str]:
    """Say that a person's further rows are in no answer: from the policy, so it tells nothing of
    the data.
    """
    if not max_rows:
        return []
    most = ", ".join(
        f"{rows:,} row{'s' * (rows != 1)} of {table}" for table, rows in max_rows.items()
    )
    return [
        f"each person counts with at most {most} (max_rows); ± covers the noise, not the rows left out"
    ]


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _ranks(margin: dict[str, Any]) -> str:
    """Say how far a quantile may be off: within 25 ranks; or of an extreme, on which side."""
    if "extreme" in margin:
        side, beyond = ("below", "above") if margin["extreme"] == "maximum" else ("above", "below")
        return (
            f"not {beyond} the true {margin['extreme']} and at most {margin['ranks']:,} ranks {side} it "
            f"(it aims {margin['inside']:,} ranks inside the data; with fewer rows it may lie anywhere)"
        )
    ties = (
        f", and {number(100 * margin['ties'])} % of the rows that share one value"
        if margin.get("ties")
        else ""
    )
    return f"within {margin['ranks']:,} ranks{ties}"


def with_ranks(answer: Answer, name: str, texts: Sequence[str]) -> list[str]:
    """Write behind each quantile how far it may be off, in ranks; or the range of the column, where
    its group may be so small that it could be any of it.
    """
    ranks = answer.certificate.get("ranks", {}).get(name)
    if ranks is None:
        return list(texts)
    from discreet.vault.answer import ranks_tell

    within = f"± {ranks:,} rank{'s' * (ranks != 1)}"
    beside = answer.certificate.get("beside_ranks", {}).get(name, {})
    anywhere = f"in {label(readable(beside['range']))}" if "range" in beside else within
    marks = [anywhere if told is False else within for told in ranks_tell(answer, name)]
    return [
        text if text == "–" else f"{text} {mark}" for text, mark in zip(texts, marks, strict=True)
    ]


def _in_range(answer: Answer, name: str) -> str:
    """Say why a range stands behind some quantiles, or behind which it should."""
    from discreet.vault.answer import ranks_tell

    margin = answer.certificate.get("beside_ranks", {}).get(name, {})
    if "counted" not in margin:
        return _small_groups(margin, more=" (a COUNT beside it shows which)")
    if False not in ranks_tell(answer, name):
        return ""
    return (
        f"; where {label(readable(margin['range']))} stands, the group may have "
        f"{margin['rows']:,} rows or fewer: the value is not told apart from the ends of the range"
    )


def _small_groups(margin: Mapping[str, Any], *, more: str = "") -> str:
    """Say in which groups a margin in ranks tells nothing."""
    if "rows" not in margin:
        return ""
    return f"; that tells nothing about a group of {margin['rows']:,} rows or fewer{more}"


class QuoteView(Protocol):
    """The shown part of a quote, from a curator or from a server."""

    @property
    def cost(self) -> Budget: ...

    @property
    def left(self) -> Budget: ...

    @property
    def margins(self) -> Mapping[str, Any]: ...

    @property
    def statistics(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def instead(self) -> Mapping[str, tuple[float, float]]: ...

    @property
    def shared_by(self) -> Sequence[int]: ...

    @property
    def savings(self) -> Sequence[str]: ...

    @property
    def unlisted(self) -> Sequence[str]: ...

    @property
    def max_rows(self) -> Mapping[str, int]: ...


def quote_text(quote: QuoteView) -> str:
    """Return a quote in lines: cost, margins, and what is measured by which noise."""
    lines = [f"cost {quote.cost}; left {quote.left}"]
    for name, margin in quote.margins.items():
        if isinstance(margin, dict) and "ranks" in margin:
            lines.append(f"{name}: {_ranks(margin)}{_small_groups(margin)}")
        elif isinstance(margin, dict) and "most" in margin:
            lines.append(
                f"{name}: ± {short_margin(margin['least'])} to ± {short_margin(margin['most'])}, by grouping"
            )
        elif isinstance(margin, dict):
            cases = ", ".join(
                f"± {short_margin(each)} at {rows:,.0f} rows"
                for rows, each in zip(margin["at_rows"], margin["margin"], strict=True)
            )
            lines.append(f"{name}: {cases}")
        else:
            lines.append(f"{name}: ± {short_margin(margin)}")
    for each in quote.statistics:
        # several choices have several
        scale = f", scale {number(each['scale'])}" if each["scale"] is not None else ""
        steps = f", in steps of {number(each['step'])}" if each["step"] != 1 else ""
        free = "; free: measured before" if "charge" in each else ""
        lines.append(
            f"{each['name']}: {each['mechanism']}{scale}, l1 {number(each['l1'])}{steps}{free}"
        )
    lines += running_totals(quote.instead)
    lines += [shared_by(people) for people in quote.shared_by]
    lines += [*quote.unlisted, *quote.savings]
    return "\n".join([*lines, *left_out(quote.max_rows)])


def answer_html(answer: Answer, chart: str) -> str:
    """Write a table with margins, what stands under it, and a chart."""
    rows = _rows(answer.table)
    margins = _rows(answer.margins)
    cells = [
        [cell(value, margin) for value, margin in zip(row, half, strict=True)]
        for row, half in zip(rows, margins, strict=True)
    ]
    by_column = [
        with_ranks(answer, name, column)
        for name, column in zip(answer.table.column_names, zip(*cells, strict=True), strict=False)
    ]
    cells = [list(row) for row in zip(*by_column, strict=True)]
    below = "<br>".join(html.escape(note) for note in notes(answer))
    parts = [
        blocks.table(answer.table.column_names, cells),
        f'<p class="small soft">{below}</p>',
        chart,
    ]
    return blocks.fragment(parts)

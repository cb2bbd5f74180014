"""The questions of `init --ask`, column by column, with what each choice costs; a terminal or a
page puts them.

`question_about` says what to show and what Enter takes; `reply_to` reads what somebody wrote.
Neither looks at data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.engines.draft import ColumnDraft
from discreet.engines.suggest import HINTS
from discreet.errors import PolicyError
from discreet.policy.domain import Categories, Column, Decimals, Identifier, Integers, Texts
from discreet.policy.policy import Policy

LEAVE_OUT = "-"
_EPSILON = 0.1  # of the example by which a choice is explained


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about one column: its name, what is known, what may be written, and what
    nothing means.
    """

    column: str
    title: str
    told: tuple[str, ...]
    prompt: str
    suggestion: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an answer means: a declaration, None to leave the column out; or, where it is neither,
    why not.
    """

    declaration: str | None
    told: str
    settled: bool


def question_about(table: str, column: ColumnDraft) -> Question:
    """What to ask about a column of a table."""
    suggestion = None if column.suggestion is None else column.suggestion.declaration
    told: list[str] = []
    if suggestion is not None and column.suggestion is not None:
        told.append(f"suggested {column.suggestion.why.removesuffix(': check')}: {suggestion}")
        told.append(_cost(column.name, suggestion).told)
    elif column.suggestion is not None:
        told.append(f"better left out: {column.suggestion.why}")
    elif column.family in HINTS:
        told.append(f"could be {HINTS[column.family]}")
    return Question(
        column=column.name,
        title=f"{table}.{column.name}  ({column.type or 'text in a CSV file'})",
        told=tuple(told),
        prompt=f"Enter takes it, {LEAVE_OUT} leaves it out, or write another"
        if suggestion
        else "write one, or Enter to leave it out",
        suggestion=suggestion,
    )


def reply_to(question: Question, answer: str) -> Reply:
    """What an answer means: nothing takes the suggestion, - leaves the column out, anything else is
    a declaration.
    """
    answer = answer.strip()
    if answer == LEAVE_OUT or (not answer and question.suggestion is None):
        return Reply(declaration=None, told="", settled=True)
    if not answer:
        return Reply(declaration=question.suggestion, told="", settled=True)
    return _cost(question.column, answer)


def _cost(name: str, declaration: str) -> Reply:
    """What a declaration costs, or why it is none."""
    quoted = "'" + name.replace("'", "''") + "'"
    columns = f"    columns:\n      {quoted}: {declaration}\n"
    text = f"unit: person\nbudget: {{epsilon: 1}}\ntables:\n  t:\n    owner: o\n{columns}"
    try:
        column = Policy.parse(text, path="policy.yaml").tables["t"].columns[name]
    except PolicyError as error:
        return Reply(
            declaration=None, told="; ".join(each.message for each in error.problems), settled=False
        )
    return Reply(declaration=declaration, told=cost_of(column), settled=True)


def cost_of(column: Column) -> str:
    """What the choice of a domain costs, in one sentence."""
    domain = column.domain
    match domain:
        case Integers() | Decimals():
            largest = float(max(abs(domain.first), abs(domain.last)) * domain.step)
            margin = math.log(20) * largest / _EPSILON
            return f"A sum at ε = {_EPSILON} is right to ± {margin:,.0f}: half the range is half the noise."
        case Categories():
            margin = math.log(20) / _EPSILON
            return f"{domain.size:,} public groups; a count of each at ε = {_EPSILON} is right to ± {margin:,.0f}."
        case Texts():
            return (
                "Not public: only values that enough people share are shown, and that costs some δ."
            )
        case Identifier():
            return "Can be joined on and counted by person; never shown, summed or grouped by."
        case _:
            return f"{domain.size:,} possible values, all public: coarser groups are more precise."

"""The questions of `init --ask` and `init --page`, one by one, with what each choice costs.

`questions` lists what to ask about a draft, `reply_to` reads what somebody wrote, `apply_answer` puts it
into the draft. None of them looks at data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from discreet.engines.drafts.draft import ColumnDraft, Draft, TableDraft, yaml_name
from discreet.engines.drafts.suggest import HINTS, UNKNOWN, Suggestion, owner_among, words_of
from discreet.engines.duckdb.preparing import encode
from discreet.errors import PolicyError
from discreet.policy.document import PLACEHOLDER
from discreet.policy.domain import Categories, Column, Decimals, Identifier, Integers, Texts
from discreet.policy.policy import Policy

LEAVE_OUT = "-"
PUBLIC = "{public: true}"
_YOU = "you said so"
_EPSILON = 0.1  # of the example by which a choice is explained
_ROW = (
    "EACH ROW is taken to be one person: whoever is in k rows is protected k times less. "
    "For data without a column that tells people apart."
)
_COPIED = "The table is about nobody and known to all: it is copied as it is, and protects nobody."
_PLAIN = {  # declarations that need no numbers, by the kind of a column
    UNKNOWN: ("text", "boolean", "{identifier: true}"),
    encode.TEXT: ("text", "boolean", "{identifier: true}"),
    encode.WHOLE: ("boolean", "{identifier: true}"),
    encode.BOOLEAN: ("boolean",),
    encode.UUID: ("{identifier: true}",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyAnswer:
    """An answer that may be taken as it is, and what it costs."""

    answer: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a table or about one of its columns: what is known, and what may be
    answered.

    `suggestion` is what no answer means; None leaves a column out.
    """

    about: Literal["owner", "rows", "column"]
    table: str
    column: str | None
    title: str
    told: tuple[str, ...]
    prompt: str
    choices: tuple[ReadyAnswer, ...]
    example: str
    suggestion: str | None
    columns: tuple[str, ...] = ()  # of the table, where one of them is to be named


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A declaration, or None to leave the column out, with what it costs; not settled where it is
    neither.
    """

    declaration: str | None
    told: str
    settled: bool


def questions(draft: Draft) -> tuple[Question, ...]:
    """Return all that is to be asked: for each table whose its rows are, how many somebody may
    have, and its columns.
    """
    found = []
    for table in draft.tables:
        found.append(_about_owner(table))
        if table.public:
            continue
        if table.owner != "row":
            found.append(_about_rows(table))
        found += [question_about(table.name, column) for column in table.columns]
    return tuple(found)


def _about_owner(table: TableDraft) -> Question:
    names = [column.name for column in table.columns]
    if table.public:
        said = PUBLIC
    elif table.owner == PLACEHOLDER:
        said = None
    else:
        said = table.owner
    likely = [name for name in names if owner_among([name]) is not None or "id" in words_of(name)]
    own = [name for name in likely if yaml_name(name) != said]
    choices = [
        *([ReadyAnswer(answer=said, told=table.why)] if said not in (None, PUBLIC, "row") else []),
        *(
            ReadyAnswer(answer=yaml_name(name), told="Rows where it is missing are dropped.")
            for name in own
        ),
        ReadyAnswer(answer="row", told=_ROW),
        ReadyAnswer(answer=PUBLIC, told=_COPIED),
    ]
    return Question(
        about="owner",
        table=table.name,
        column=None,
        title=f"{table.name}: whose is a row?",
        told=(
            "Name the column that tells people apart. All rows with the same value in it are taken "
            "to be about the same person, who is protected as one.",
            f"The columns are {', '.join(names)}.",
        ),
        prompt=f"Enter takes {said}, or write another"
        if said
        else f"write a column, row, [a, b] or {PUBLIC}; Enter leaves it open",
        choices=tuple(choices),
        example="a column, [a, b], {through: table, on: column}",
        suggestion=said,
        columns=tuple(names),
    )


def _about_rows(table: TableDraft) -> Question:
    numbers = sorted({1, 10, 100, table.max_rows})
    return Question(
        about="rows",
        table=table.name,
        column=None,
        title=f"{table.name}: how many rows may one person have?",
        told=(
            "Rows beyond are dropped, a fair sample stays. Choose from what everybody knows about "
            "such data: each row more makes every count noisier.",
        ),
        prompt=f"Enter takes {table.max_rows}, or write another",
        choices=tuple(ReadyAnswer(answer=str(each), told=_cost_of_rows(each)) for each in numbers),
        example="a whole number",
        suggestion=str(table.max_rows),
    )


def question_about(table: str, column: ColumnDraft) -> Question:
    """Return what to ask about a column of a table."""
    suggestion = None if column.suggestion is None else column.suggestion.declaration
    told: list[str] = []
    if suggestion is not None and column.suggestion is not None:
        told.append(f"suggested {column.suggestion.why.removesuffix(': check')}: {suggestion}")
        told.append(_cost(column.name, suggestion).told)
    elif column.suggestion is not None:
        told.append(f"better left out: {column.suggestion.why}")
    elif column.family in HINTS:
        told.append(f"could be {HINTS[column.family]}")
    plain = dict.fromkeys((*([suggestion] if suggestion else []), *_PLAIN.get(column.family, ())))
    choices = [ReadyAnswer(answer=each, told=_cost(column.name, each).told) for each in plain]
    left_out = ReadyAnswer(
        answer=LEAVE_OUT, told="Left out: no question can use it. It costs nothing."
    )
    return Question(
        about="column",
        table=table,
        column=column.name,
        title=f"{table}.{column.name}  ({column.type or 'text in a CSV file'})",
        told=tuple(told),
        prompt=f"Enter takes it, {LEAVE_OUT} leaves it out, or write another"
        if suggestion
        else "write one, or Enter to leave it out",
        choices=(*choices, left_out),
        example=HINTS.get(column.family, "{values: [a, b]}"),
        suggestion=suggestion,
    )


def reply_to(question: Question, answer: str) -> Reply:
    """Read an answer: nothing takes the suggestion, - leaves a column out, anything else is a
    declaration.
    """
    answer = answer.strip()
    if not answer:
        return Reply(declaration=question.suggestion, told="", settled=True)
    if not answer.isprintable():
        return Reply(declaration=None, told="Write it in one line.", settled=False)
    match question.about:
        case "rows":
            return _rows(answer)
        case "owner":
            return _owner(answer, question.columns)
        case "column":
            if answer == LEAVE_OUT:
                return Reply(declaration=None, told="", settled=True)
            return _cost(str(question.column), answer)


def apply_answer(draft: Draft, question: Question, declaration: str | None) -> Draft:
    """Return the draft with an answer in it."""
    return replace(
        draft,
        tables=tuple(
            _with_answer(table, question, declaration) if table.name == question.table else table
            for table in draft.tables
        ),
    )


def _with_answer(table: TableDraft, question: Question, declaration: str | None) -> TableDraft:
    match question.about:
        case "owner" if declaration is None:
            return table
        case "owner" if declaration == PUBLIC:
            return replace(table, public=True)
        case "owner":
            return replace(table, public=False, owner=str(declaration), why=_YOU)
        case "rows":
            return replace(table, max_rows=int(str(declaration)))
        case _:
            said = Suggestion(declaration=declaration, why=_YOU)
            return replace(
                table,
                columns=tuple(
                    replace(column, suggestion=said) if column.name == question.column else column
                    for column in table.columns
                ),
            )


# --- what an answer means and costs ---------------------------------------------------------------


def _owner(answer: str, columns: Collection[str]) -> Reply:
    if answer == PUBLIC:
        return Reply(declaration=PUBLIC, told=_COPIED, settled=True)
    via = re.fullmatch(r"\{\s*through:\s*(.+?),\s*on:.*\}", answer)
    beside = f"  {via[1]}: {{owner: o}}\n" if via and via[1] != "t" else ""
    try:
        named = _policy(f"  t:\n    owner: {answer}\n{beside}").tables["t"].owner_columns
    except PolicyError as error:
        return _open_questions(error)
    there = {column.lower() for column in columns}
    missing = [name for name in named if name.lower() not in there]
    if missing:
        told = f"There is no column {missing[0]} here. There are {', '.join(columns)}."
        return Reply(declaration=None, told=told, settled=False)
    return Reply(declaration=answer, told=_ROW if answer == "row" else "", settled=True)


def _rows(answer: str) -> Reply:
    try:
        rows = _policy(f"  t:\n    owner: o\n    max_rows: {answer}\n").tables["t"].max_rows
    except PolicyError as error:
        return _open_questions(error)
    return Reply(declaration=str(rows), told=_cost_of_rows(rows), settled=True)


def _open_questions(error: PolicyError) -> Reply:
    told = "; ".join(each.message.removeprefix("t.") for each in error.problems)
    return Reply(declaration=None, told=told, settled=False)


def _policy(tables: str) -> Policy:
    text = f"unit: person\nbudget: {{epsilon: 1}}\ntables:\n{tables}"
    return Policy.parse(text, path="policy.yaml")


def _cost(name: str, declaration: str) -> Reply:
    """Return what a declaration costs, or why it is none."""
    quoted = "'" + name.replace("'", "''") + "'"
    try:
        policy = _policy(f"  t:\n    owner: o\n    columns:\n      {quoted}: {declaration}\n")
        column = policy.tables["t"].columns[name]
    except PolicyError as error:
        return _open_questions(error)
    return Reply(declaration=declaration, told=cost_of(column), settled=True)


def _cost_of_rows(rows: int) -> str:
    return f"A count at ε = {_EPSILON} is right to ± {rows * math.log(20) / _EPSILON:,.0f}."


def cost_of(column: Column) -> str:
    """Return what the choice of a domain costs, in one sentence."""
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

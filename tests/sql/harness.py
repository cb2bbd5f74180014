"""Pairs of questions and what they may cost, and the machinery to hold each against all small
databases.

plans.sql      a line of tags (aggregate / relation / clause: in words), a question, and the
               sensitivities it must have
rejected.sql   a question, and a part of the sentence with which it must be refused
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from discreet.algebra import Aggregate, owner_of
from discreet.asking.offer import offer
from discreet.engines.duckdb.workbench import WorkbenchSpelling
from discreet.engines.spelling import Spelling
from discreet.errors import EngineFailure
from discreet.policy.policy import Policy
from discreet.sql.analyze import plan
from discreet.sql.plan.block import Block, Shared
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan

from . import policies

HERE = Path(__file__).parent
NEIGHBORS = ("add_remove", "change_one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, where it stands in the matrix, and the sensitivities that are written under
    it.
    """

    policy: str
    aggregate: str
    relation: str
    clause: str
    words: str
    sql: str
    expected: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{self.policy}: {self.aggregate} / {self.relation} / {self.clause}"


_HEAD = re.compile(r"-- ([^/]+) / ([^/]+) / ([^:]+): (.+)")


def cases(file: Path = HERE / "plans.sql") -> tuple[Case, ...]:
    """The pairs of plans.sql."""
    found, policy, head, sql, expected = [], "", None, list[str](), list[str]()

    def finish() -> None:
        if head is not None:
            aggregate, relation, clause, words = (part.strip() for part in head.groups())
            found.append(
                Case(
                    policy=policy,
                    aggregate=aggregate,
                    relation=relation,
                    clause=clause,
                    words=words,
                    sql="\n".join(sql).rstrip().removesuffix(";"),
                    expected=tuple(expected),
                )
            )

    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("-- policy: "):
            finish()
            head, policy = None, line.removeprefix("-- policy: ").strip()
        elif line.startswith("-->"):
            expected.append(line.removeprefix("-->").strip())
        elif match := _HEAD.fullmatch(line):
            finish()
            head, sql, expected = match, [], []
        elif line.strip() and not line.startswith("--"):
            sql.append(line)
    finish()
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A question that must be refused, and what the refusal says."""

    policy: str
    words: str
    sql: str
    says: str


def refusals(file: Path = HERE / "rejected.sql") -> tuple[Refusal, ...]:
    """The pairs of rejected.sql: `-- words`, the question, `--> part of the refusal`."""
    found, policy, words, sql = [], "", "", list[str]()
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("-- policy: "):
            policy = line.removeprefix("-- policy: ").strip()
        elif line.startswith("-->"):
            says = line.removeprefix("-->").strip()
            found.append(Refusal(policy=policy, words=words, sql="\n".join(sql), says=says))
            words, sql = "", []
        elif line.startswith("-- ") and not sql:
            words = line.removeprefix("-- ")
        elif line.strip() or sql:
            sql.append(line)
    return tuple(found)


# --- planning -------------------------------------------------------------------------------------


@cache
def _public_database(name: str) -> Any:
    connection = duckdb.connect()
    for table, content in policies.public(name).items():
        connection.register(table, content)
    return connection


def planned(sql: str, policy: Policy, *, name: str) -> Plan:
    """The plan of a question, by the analysis alone."""

    def evaluate(text: str) -> pa.Table:
        try:
            return _public_database(name).sql(text).to_arrow_table()
        except duckdb.Error:
            raise EngineFailure from None

    return plan(sql, policy, policies.public(name), evaluate, spell=WorkbenchSpelling().numbers)


@cache
def plan_of(case: Case, neighbors: str = "add_remove") -> Plan:
    return planned(case.sql, policies.policy(case.policy, neighbors), name=case.policy)


def statistics(plan: Plan) -> list[tuple[str, str]]:
    """What a plan measures, with l1, l2 and linf; how far a person moves the ranks of a pick, or
    touches keys.
    """
    found = []
    for block in plan.blocks:
        if isinstance(block.kind, Shared):
            continue
        if block.unknown:
            touched = block.touched * (2 if block.neighbors == "change_one" else 1)
            found.append(("keys", str(touched)))
        shown = [each for each in block.statistics if each.tested and each.estimates]
        for each in (*shown, *block.own_statistics):
            sensitivity = each.sensitivity
            found.append(
                (each.name, f"{sensitivity.l1} {_root(sensitivity.l2_squared)} {sensitivity.linf}")
            )
        for pick in block.picks:
            found.append((pick.name, f"rank {_rank(pick)}"))
    return found


def _rank(pick: Pick) -> str:
    if pick.kind == "mode":
        return str(pick.rows)
    factor = 1 if pick.relation == "change_one" else max(max(q, 1 - q) for q in pick.quantiles)
    return str(pick.max_rows * factor)


def _root(square: int) -> str:
    root = math.isqrt(square)
    return str(root) if root * root == square else f"√{square}"


def expected(case: Case) -> tuple[str, ...]:
    """What stands under a question: `name: add_remove's sensitivities | change_one's`.

    Of several groupings, fewer may be measured under one relation than under the other: then a side
    is empty.
    """
    sides = [statistics(plan_of(case, neighbors)) for neighbors in NEIGHBORS]
    pairs = zip_longest(*sides, fillvalue=("", "–"))
    return tuple(f"{name or same}: {one} | {other}" for (name, one), (same, other) in pairs)


# --- from exact tables to vectors -----------------------------------------------------------------

Vector = dict[tuple[Any, ...], tuple[int, ...]]  # the sums of each group that exists


def forms_of(vector: Vector, forms: tuple[tuple[int, ...], ...]) -> dict[tuple[Any, ...], int]:
    """A measurement's numbers: one per group and form; those that are not there are zero."""
    return {
        (*key, index): sum(factor * value for factor, value in zip(form, sums, strict=True))
        for key, sums in vector.items()
        for index, form in enumerate(forms)
    }


def by_database(query: Aggregate, *, base: int) -> str:
    """A block's exact query for many databases at once: owners are numbered `database * base +
    person`.

    As long as rows of different people never meet, databases of different people do not meet
    either; a test compares this with the block's own query on single databases.
    """
    database = owner_of(query.source) // base
    known = (0, *(place + 1 for place in query.known))
    return spelled(replace(query, keys=(database, *query.keys), known=known))


def spelled(query: Aggregate) -> str:
    """A query as it runs."""
    return Spelling().aggregate(query)


def whole(value: Any) -> int:
    """A sum as an exact integer; the sum of no rows is 0."""
    return 0 if value is None else int(value)


def picks_of(case: Case, neighbors: str) -> Iterator[tuple[Block, Pick, tuple[Any, ...]]]:
    """Every pick with its mechanisms, at some epsilon."""
    from fractions import Fraction

    from discreet.binding import accountant_of, terms_of

    policy = policies.policy(case.policy, neighbors)
    offered = offer(
        plan_of(case, neighbors),
        accountant_of(policy),
        amount=Fraction(1),
        limit=terms_of(policy).limit,
    )
    for each in offered.blocks:
        for pick in each.block.picks:
            yield each.block, pick, each.chosen[pick.id]

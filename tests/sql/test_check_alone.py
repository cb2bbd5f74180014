"""Wrong claims planted all over the analysis: the checker alone must stop each (S24).

Every plant is a change of behaviour that makes some plan claim less than is true, or run something
that its claim does not hold for. None of the other walls is asked: plans are made and proved, and
nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from discreet.algebra import (
    Column,
    Constant,
    Distinct,
    Exists,
    Expression,
    Factor,
    Over,
    PublicJoin,
    Sum,
    UnionAll,
    with_stages,
)
from discreet.errors import DiscreetError, Unproved
from discreet.sql import analysis, blocks
from discreet.sql.analysis import Analysis
from discreet.sql.plan import prove as proof
from discreet.sql.plan import sensitivity
from discreet.sql.plan.block import Block
from discreet.sql.plan.prove import prove
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.requests.readings import RowsRead
from discreet.sql.rows import joins, persons, project, sets, windows
from discreet.sql.rows.public import PublicSide
from discreet.sql.rows.relation import Relation
from sql import harness, policies

Patch = Callable[[pytest.MonkeyPatch], None]
PLANTS: dict[str, Patch] = {}


def plant(name: str) -> Callable[[Patch], Patch]:
    def listed(patch: Patch) -> Patch:
        PLANTS[name] = patch
        return patch

    return listed


def smaller(function: str, **parts: Callable[[int], int]) -> Patch:
    """A sensitivity that is too small in some norms."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(sensitivity, function)

        def wrong(**given: Any) -> Sensitivity:
            found = original(**given)
            return replace(
                found, **{norm: change(getattr(found, norm)) for norm, change in parts.items()}
            )

        monkeypatch.setattr(sensitivity, function, wrong)

    return patch


for function in ("of_sum", "of_parts", "of_persons", "of_distinct"):
    for norm in ("l1", "l2_squared"):
        PLANTS[f"{function}: {norm} one too small"] = smaller(
            function, **{norm: lambda value: max(value - 1, 1)}
        )
    PLANTS[f"{function}: linf one too small"] = smaller(function, linf=lambda value: value - 1)


def given_less(function: str, **changed: Any) -> Patch:
    """A sensitivity of other facts than the plan's own."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(sensitivity, function)
        monkeypatch.setattr(sensitivity, function, lambda **given: original(**{**given, **changed}))

    return patch


PLANTS["sums of one row a person"] = given_less("of_sum", rows=1)
PLANTS["counts of one row a person"] = given_less("of_parts", rows=1)
PLANTS["sums as if nobody were replaced"] = given_less("of_sum", neighbors="add_remove")
PLANTS["counts as if nobody were replaced"] = given_less("of_parts", neighbors="add_remove")
PLANTS["people as if nobody were replaced"] = given_less("of_persons", neighbors="add_remove")
PLANTS["people in one group"] = given_less("of_persons", touched=1)
PLANTS["counts in one group"] = given_less("of_parts", groups=1)
PLANTS["parts of width one"] = given_less("of_parts", width=1)
PLANTS["two distinct values"] = given_less("of_distinct", values=2)


def relation_with(module: Any, function: str, **changed: Callable[[Any, Relation], Any]) -> Patch:
    """A relation whose facts are changed after it was made; the first argument is that of the
    function.
    """

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(module, function)

        def wrong(*arguments: Any) -> Any:
            found = original(*arguments)
            if not isinstance(found, Relation):
                return found
            return replace(
                found, **{name: change(arguments, found) for name, change in changed.items()}
            )

        monkeypatch.setattr(module, function, wrong)

    return patch


PLANTS["joins do not multiply"] = relation_with(analysis, "join", rows=lambda given, found: 1)
PLANTS["unions do not add"] = relation_with(sets, "_union", rows=lambda given, found: given[1].rows)
PLANTS["people have one group of keys"] = relation_with(
    persons, "group_rows_by_owner", rows=lambda given, found: 1
)
PLANTS["tables have one row a person"] = relation_with(
    analysis, "scan", rows=lambda given, found: 1
)


@plant("a value is one value")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "distinct_values", lambda origins, rows: 1)


@plant("a value is one value within a person")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persons, "distinct_values", lambda origins, rows: 1)


@plant("every comparison numbers rows")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "numbers_left", lambda part, scope: (Constant(1), 1))


@plant("every condition numbers rows of a join")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "_limit_rows", lambda side, parts, names: 1)


@plant("a column has one value less, where NULL is one")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    original = analysis.scan

    def narrow(*arguments: Any) -> Any:
        rows = original(*arguments)
        fields = []
        for field in rows.fields:
            fewer = ((*each[:3], each[3] - 1) for each in field.origins)
            fields.append(replace(field, origins=frozenset(fewer)))
        return replace(rows, fields=tuple(fields))

    monkeypatch.setattr(analysis, "scan", narrow)


@plant("equal rows in two orders")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "_number_rows", lambda scope, alias: scope)


@plant("numbers survive joins")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    original = windows.window

    def numbering(*arguments: Any) -> Any:
        return replace(original(*arguments), numbering=True)

    monkeypatch.setattr(windows, "window", numbering)


@plant("public rows are met once")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    original = joins._with_public

    def once(*arguments: Any) -> Relation:
        return replace(original(*arguments), rows=arguments[0].rows)

    monkeypatch.setattr(joins, "_with_public", once)


@plant("public rows are told as met once, and not held to it")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublicSide, "multiplicity", lambda self, columns: 1)
    original = joins.PublicJoin
    monkeypatch.setattr(
        joins, "PublicJoin", lambda left, right, meets, *rest: original(left, right, 5, *rest)
    )


@plant("keys a person may have are not limited")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    original = analysis.limit_groups

    def unlimited(*arguments: Any) -> tuple[Relation, list[Expression]]:
        relation, columns = original(*arguments)
        return replace(relation, conditions=()), columns

    monkeypatch.setattr(analysis, "limit_groups", unlimited)


@plant("keys are ranked by something else")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    original = analysis.limit_groups
    monkeypatch.setattr(
        analysis,
        "limit_groups",
        lambda relation, keys, unknown, alias: original(relation, keys, [relation.owner], alias),
    )


@plant("a WITH name is one stage wherever it is used")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Analysis, "reference", lambda self, relation, alias: relation.with_name(alias)
    )


def every_sum(change: Callable[[Sum], Sum]) -> Patch:
    """Sums that are planned otherwise."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = RowsRead.product
        monkeypatch.setattr(RowsRead, "product", lambda *given: change(original(*given)))

    return patch


def _factors(reading: Sum, change: Callable[[Factor], Factor]) -> Sum:
    return replace(reading, factors=tuple(map(change, reading.factors)))


PLANTS["all sums in 64 bits"] = every_sum(lambda each: replace(each, bits=64))
PLANTS["no sum is clamped"] = every_sum(
    lambda each: _factors(each, lambda factor: replace(factor, clamp=False))
)
PLANTS["sums of a wider range"] = every_sum(
    lambda each: _factors(each, lambda factor: replace(factor, hi=factor.hi + 1))
)
PLANTS["sums of a lower range"] = every_sum(
    lambda each: _factors(each, lambda factor: replace(factor, lo=min(factor.lo, -factor.hi) - 1))
)
PLANTS["squares"] = every_sum(
    lambda each: _factors(each, lambda factor: replace(factor, power=2 * factor.power, clamp=True))
)


def every_block(change: Callable[[Block], Block]) -> Patch:
    """Blocks that are changed when they are planned."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = blocks.Block
        monkeypatch.setattr(blocks, "Block", lambda **given: change(original(**given)))

    return patch


def _measured(block: Block, **changed: Callable[[Any], Any]) -> Block:
    parts = tuple(
        replace(each, **{name: change(getattr(each, name)) for name, change in changed.items()})
        for each in block.statistics
    )
    return replace(block, statistics=parts)


PLANTS["twice what is measured"] = every_block(
    lambda block: _measured(
        block, forms=lambda forms: tuple(tuple(2 * each for each in form) for form in forms)
    )
)
PLANTS["one more of every reading"] = every_block(
    lambda block: _measured(block, forms=lambda forms: (*forms, tuple(1 for _ in forms[0])))
)
PLANTS["thresholds on one key"] = every_block(
    lambda block: replace(block, touched=min(block.touched, 1))
)
PLANTS["choices of fewer rows"] = every_block(
    lambda block: replace(
        block, picks=tuple(replace(pick, rows=pick.rows - 1) for pick in block.picks)
    )
)
PLANTS["conditions that number rows are forgotten"] = every_block(
    lambda block: replace(block, conditions=())
)
PLANTS["distinct values without their ends"] = every_block(
    lambda block: _measured(
        block,
        reads=lambda reads: tuple(
            replace(each, ends=None) if isinstance(each, Distinct) else each for each in reads
        ),
    )
)


def _looking_at_others(block: Block) -> Block:
    """Windows and EXISTS whose owner is another column of the row."""

    def changed(node: Any) -> Any:
        if isinstance(node, Over | Exists):
            return replace(node, owner=Column(node.owner.stage, "age"))
        return node

    return _transformed(block, changed)


def _transformed(node: Any, change: Callable[[Any], Any]) -> Any:
    from dataclasses import fields, is_dataclass

    if isinstance(node, tuple):
        return tuple(_transformed(each, change) for each in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {
        each.name: _transformed(getattr(node, each.name), change)
        for each in fields(node)
        if each.init
    }
    return change(replace(node, **parts))


PLANTS["windows and EXISTS over others"] = every_block(_looking_at_others)
PLANTS["windows that leave ties"] = every_block(
    lambda block: _transformed(
        block, lambda node: replace(node, order=node.order[:1]) if isinstance(node, Over) else node
    )
)
PLANTS["public rows without a limit"] = every_block(
    lambda block: _transformed(
        block,
        lambda node: replace(node, meets=10 * node.meets) if isinstance(node, PublicJoin) else node,
    )
)
PLANTS["unions of one part more"] = every_block(
    lambda block: _transformed(
        block,
        lambda node: UnionAll((*node.parts, node.parts[0])) if isinstance(node, UnionAll) else node,
    )
)


def chosen(**changed: Any) -> Patch:
    """Choices that count on something else."""
    return every_block(
        lambda block: replace(block, picks=tuple(replace(pick, **changed) for pick in block.picks))
    )


PLANTS["choices in one group"] = chosen(groups=1)
PLANTS["choices as if nobody were replaced"] = chosen(neighbors="add_remove")


@plant("a plan as if nobody were replaced")
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it agrees with itself, and is made for another relation than the policy's."""
    for function in ("of_sum", "of_parts", "of_persons", "of_distinct"):
        given_less(function, neighbors="add_remove")(monkeypatch)
    every_block(lambda block: replace(block, neighbors="add_remove"))(monkeypatch)


PLANTS["EXISTS under the name of the rows"] = every_block(
    lambda block: _transformed(
        block,
        lambda node: (
            replace(
                node,
                source=with_stages(node.source, lambda _: node.owner.stage),
                where=(),
            )
            if isinstance(node, Exists)
            else node
        ),
    )
)
PLANTS["columns of another stage"] = every_block(
    lambda block: replace(block, places=with_stages(block.places, lambda stage: f"{stage}0"))
)


def stopped() -> Iterator[str]:
    """The questions of plans.sql that are not proved."""
    for case in harness.cases():
        for neighbors in harness.NEIGHBORS:
            policy = policies.policy(case.policy, neighbors)
            try:
                found = harness.planned(case.sql, policy, name=case.policy)
            except (DiscreetError, AssertionError):  # another wall
                continue
            try:
                prove(found, policy)
            except Unproved:
                yield f"{case.id}, {neighbors}"


@cache
def unplanted() -> tuple[str, ...]:
    return tuple(stopped())


def test_every_plan_is_proved() -> None:
    assert not unplanted()


@pytest.mark.parametrize("name", PLANTS)
def test_the_checker_alone_stops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "Checker", proof.Checker)  # the one that is asked is the real one
    PLANTS[name](monkeypatch)
    assert next(stopped(), None), "nothing was stopped"


def test_there_are_enough() -> None:
    assert len(PLANTS) >= 30

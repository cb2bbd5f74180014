"""`hierarchies` and `publications` of a policy: what they mean, and a sentence for whatever is
wrong with them.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from tiny_country import BLOCKS, opened, policy_text, tables

from discreet.binding import create_ledger, take_snapshot
from discreet.census import plan
from discreet.errors import DiscreetError, PolicyError, UsageError
from discreet.policy.policy import Policy
from discreet.policy.publication import Hierarchy
from discreet.upkeep import check

INVARIANT = "    invariants: [{level: state, values: known, because: the law}]\n"


def test_what_it_means() -> None:
    policy = Policy.parse(policy_text(more=INVARIANT), path="p.yaml")
    assert policy.hierarchies["geography"] == Hierarchy(
        name="geography", levels=("state", "tract", "block"), table="blocks"
    )
    terms = policy.publications["census"]
    assert [each.name for each in terms.tables] == ["total", "sex", "sex_age", "age_ill"]
    assert [each.weight for each in terms.tables] == [1, 1, 1, 2]
    assert terms.epsilon == Fraction(4)
    assert (terms.levels, terms.shares, terms.zeros) == (None, None, ())
    assert terms.invariants[0].because == "the law"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[state, tract, block], table", "[state, tract, tract], table", "names tract twice"),
        (
            "{levels: [state, tract, block], table: blocks}",
            "{table: blocks}",
            "needs levels, from coarse to fine",
        ),
        ("levels: [state, tract, block]", "levels: []", "has no levels"),
        (
            "levels: [state, tract, block]",
            "levels: [all, block]",
            "all is the level above the first",
        ),
        ("levels: [state, tract, block]", "levels: block", "must be columns from coarse to fine"),
        ("table: blocks}", "table: people}", "people is private"),
        (
            "table: blocks}",
            "table: block}",
            "block is not a table here. It must be a public table. Did you mean blocks?",
        ),
        ("hierarchy: geography", "hierarchy: geo", "geo is not a hierarchy of this policy"),
        ("    table: people\n", "    table: blocks\n", "blocks is public"),
        ("    table: people\n", "", "publications.census needs table."),
        ("[sex, age]", "[sex, ages]", "people declares no column ages. Did you mean age?"),
        ("[sex, age]", "[sex]", "has the table sex twice"),
        ("weight: 2", "weight: -2", "a weight must be a number above zero, not -2."),
        ("weight: 2", "weight: many", "a weight must be a number above zero, not many."),
        ("tables: [[],", "tables: [{weight: 1},", "a table needs columns"),
        ("epsilon: 4\n", "epsilon: 4000\n", "epsilon must be at most the budget's, 1000."),
        (
            "epsilon: 4\n",
            "epsilon: 4\n    split: {levels: {county: 1}}\n",
            "there is no county here",
        ),
        (
            "epsilon: 4\n",
            "epsilon: 4\n    split: {levels: {state: -1}}\n",
            "must be a number from zero, not -1.",
        ),
        ("epsilon: 4\n", "epsilon: 4\n    split: {levels: {state: 0}}\n", "every share is zero"),
        ("epsilon: 4\n", "epsilon: 4\n    split: {tables: {ages: 1}}\n", "there is no ages here"),
        ("epsilon: 4\n", "epsilon: 4\n    zeros: [{zip: 3}]\n", "zip is in none of the tables"),
        ("epsilon: 4\n", "epsilon: 4\n    zeros: {age: 3}\n", "must be a list of combinations"),
        ("because: the law", "because: ''", "must be the law or the reason, in words"),
        (", because: the law", "", "need `because`, the law or reason that makes them public."),
        ("level: state", "level: county", "there is no level county"),
        (
            "values: known",
            "values: people",
            "people is not a public table. What is exact comes from a table that is",
        ),
        ("epsilon: 4\n", "epsilon: 4\n    rounding: none\n", "has no key rounding"),
    ],
)
def test_every_mistake_gets_a_sentence_with_its_place(old: str, new: str, said: str) -> None:
    text = policy_text(more=INVARIANT)
    assert old in text
    with pytest.raises(PolicyError) as refused:
        Policy.parse(text.replace(old, new), path="p.yaml")
    assert said in str(refused.value)
    line = min(problem.line for problem in refused.value.problems)
    assert line >= text[: text.index("hierarchies:")].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "blocks", "said"),
    [
        (
            "",
            "",
            {**BLOCKS, "state": list("AAABBB")},
            "has the tract 2 in two places: in the state A and in B",
        ),
        (
            "",
            "",
            {"state": ["A", "B"], "tract": ["1", "1"], "block": ["a", "b"]},
            "tract 1 in two places: in the state A and in B. Give every tract a name that occurs once, such as A-1.",
        ),
        ("", "", {**BLOCKS, "tract": [None, *"12233"]}, "has rows without a tract"),
        ("", "", {key: [] for key in BLOCKS}, "is empty: list the places"),
        (
            "",
            "",
            {"state": ["A"], "block": ["a"]},
            "blocks has no column tract; it has state, block.",
        ),
        (", table: blocks}", "}", {"state": ["A"]}, "no public table has the column state"),
        (
            "[age, ill]",
            "[age, block]",
            None,
            "people.block cannot be in a table: its values are not declared",
        ),
        (
            "integer: [0, 3]",
            "integer: [0, 30000]",
            None,
            "it has 30,001 values, and 10,000 is the most",
        ),
        (
            "integer: [0, 3]",
            "integer: [0, 9999]",
            "memory",
            "cells at all levels, and limits.memory holds",
        ),
        (
            "epsilon: 4\n",
            "epsilon: 4\n    zeros: [{sex: X}]\n",
            None,
            "zeros: sex cannot be 'X': it is one of F, M.",
        ),
        (
            "epsilon: 4\n",
            "epsilon: 4\n    zeros: [{sex: [F, M]}]\n",
            None,
            "leave no cell that anybody can be in",
        ),
    ],
)
def test_what_public_tables_show(
    tmp_path: Path, old: str, new: str, blocks: object, said: str
) -> None:
    """A sentence at the hierarchy's or the publication's place, before anything is charged."""
    text = policy_text().replace(old, new) if old else policy_text()
    given = tables()
    if isinstance(blocks, dict):
        given["blocks"] = pa.table(
            {key: pa.array(values, pa.string()) for key, values in blocks.items()}
        )
    if blocks == "memory":
        text += "limits: {memory: 100MB}\n"
        given["blocks"] = pa.table(
            {
                "state": ["A"] * 200,
                "tract": ["1"] * 200,
                "block": [str(each) for each in range(200)],
            }
        )
    curator = opened(tmp_path, text, given)
    with pytest.raises(PolicyError) as refused:
        curator.publication("census")
    assert said in str(refused.value)
    assert curator.ledger() == ()


def test_what_could_not_be_stored_is_refused_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MOST_STORED", 100)
    curator = opened(tmp_path, policy_text())
    with pytest.raises(PolicyError, match="is the most that is stored as one answer"):
        curator.publication("census")
    assert curator.ledger() == ()


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"state": ["A"], "count": [1]}, "must list every state of the hierarchy once"),
        ({"state": ["A", "B"], "count": [1, -1]}, "must be whole numbers, none below zero"),
        ({"state": ["A", "B"]}, "it has no count"),
    ],
)
def test_invariants_are_looked_at_before_the_charge(
    tmp_path: Path, known: dict[str, list[object]], said: str
) -> None:
    curator = opened(tmp_path, policy_text(more=INVARIANT), {**tables(), "known": pa.table(known)})
    with pytest.raises(PolicyError, match=said):
        curator.publication("census")
    assert curator.ledger() == ()


def test_two_tables_with_the_same_columns(tmp_path: Path) -> None:
    text = policy_text().replace(", table: blocks}", "}")
    curator = opened(tmp_path, text, {**tables(), "known": pa.table(BLOCKS)})
    with pytest.raises(PolicyError, match="blocks and known both have these columns"):
        curator.publication("census")


@pytest.mark.parametrize("name", ["census_2030", 3])
def test_no_such_publication(tmp_path: Path, name: object) -> None:
    with pytest.raises(DiscreetError) as refused:
        opened(tmp_path, policy_text()).publication(name)  # type: ignore[arg-type]
    assert isinstance(refused.value, UsageError)


def test_check_looks_at_publications(tmp_path: Path) -> None:
    """Once there is a snapshot, what would stop a publication is found before anybody runs it."""
    path = tmp_path / "policy.yaml"
    path.write_text(f"source: data\n{policy_text()}", encoding="utf-8")
    policy = Policy.read(path)
    (tmp_path / "data").mkdir()
    for name, table in tables().items():
        pyarrow.parquet.write_table(table, tmp_path / "data" / f"{name}.parquet")
    (told,) = check(policy).groups["What is published"]
    assert told.startswith("census: not checked yet, they need a snapshot")
    create_ledger(policy)
    take_snapshot(policy)
    (told,) = check(policy).groups["What is published"]
    assert told == f"census: discreet publish quote {path} census tells what it costs."
    path.write_text(path.read_text().replace("[age, ill]", "[age, block]"))
    (problem,) = check(Policy.read(path)).problems
    assert "people.block cannot be in a table" in problem.message

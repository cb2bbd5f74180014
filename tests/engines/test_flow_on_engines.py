"""The flow on engines other than the embedded one: refusals, releases and publications go through
them, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from conformance import OTHERS, choice_of

from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.errors import Rejected, UsageError
from discreet.examples import country, town
from discreet.policy.policy import Policy
from sql import bounded, harness, policies


@pytest.fixture(params=OTHERS)
def curator_of(request: pytest.FixtureRequest) -> Callable[..., Curator]:
    def opened(policy: Policy, **tables: object) -> Curator:
        chosen = replace(policy, engine=choice_of(request.param, request))
        create_ledger(chosen)
        return Curator(chosen, tables=tables or None)

    return opened


def test_what_is_refused_is_refused_with_the_same_words(
    curator_of: Callable[..., Curator], tmp_path: Path
) -> None:
    """Of rejected.sql and of the engine's own; nothing is charged."""
    dice = random.Random("refusals")
    tables = {
        **bounded.dirty(policies.policy("hospital"), people=10, dice=dice),
        **policies.public("hospital"),
    }
    path = tmp_path / "hospital.yaml"
    path.write_text(policies.text("hospital"))
    curator = curator_of(Policy.read(path), **tables)
    refusals = [each for each in harness.refusals() if each.policy in ("", "hospital")]
    assert len(refusals) >= 100
    for refusal in refusals:
        with pytest.raises(Rejected) as caught:
            curator.ask(refusal.sql, analyst="ann", epsilon="1")
        assert refusal.says in f"{caught.value.reason} {caught.value.hint}"
    assert curator.ledger() == ()


def test_what_an_engine_cannot_compute_is_refused_by_name(
    curator_of: Callable[..., Curator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.engines.spelling import Spelling
    from discreet.engines.words import Unspelled

    curator = curator_of(Policy.read(town.build(tmp_path, people=50)))

    def refuse(*_: object) -> str:
        raise Unspelled("COUNT(*) by sex")

    monkeypatch.setattr(Spelling, "reading", refuse)
    with pytest.raises(
        Rejected, match=r"COUNT\(\*\) by sex cannot be computed by the engine of this policy"
    ):
        curator.ask("SELECT sex, COUNT(*) FROM people GROUP BY sex", analyst="bob", epsilon="0.1")
    assert curator.ledger() == ()


def test_a_release(curator_of: Callable[..., Curator], tmp_path: Path) -> None:
    curator = curator_of(Policy.read(town.build(tmp_path, people=50)))
    release = curator.release("visits_by_day")
    release.start()
    assert release.run(date(2024, 1, 8)) is not None
    assert [entry.text for entry in curator.ledger()]


def test_a_publication(curator_of: Callable[..., Curator], tmp_path: Path) -> None:
    curator = curator_of(Policy.read(country.build(tmp_path, people=300)))
    made = curator.publication("census_2030").run()
    assert curator.publication("census_2030").show().to_bytes() == made.to_bytes()


def test_a_description(curator_of: Callable[..., Curator], tmp_path: Path) -> None:
    """Its marginals are read by the engine; at a large epsilon they are those of the table."""
    policy = Policy.read(town.build(tmp_path, people=400))
    curator = curator_of(policy)
    made = curator.describe("people", epsilon="1", columns=["sex", "smoker"])
    rows = curator.generate(made.to_bytes(), rows=400)
    assert rows.num_rows == 400
    assert set(rows.column_names) == {"sex", "smoker"}
    (entry,) = curator.ledger()
    assert float(entry.cost.amount) <= 1


def test_an_audit_of_a_question_needs_the_embedded_engine(
    curator_of: Callable[..., Curator], tmp_path: Path
) -> None:
    from discreet.audit.neighbors import neighborhood

    curator = curator_of(Policy.read(town.build(tmp_path, people=50)))
    with (
        pytest.raises(UsageError, match="leave `engine` out"),
        neighborhood(curator.policy, 1, wanted=None),
    ):  # type: ignore[arg-type]
        pass


def test_a_description_of_two_tables(curator_of: Callable[..., Curator], tmp_path: Path) -> None:
    """Of the same people: one charge for both, and the same again is free."""
    curator = curator_of(Policy.read(town.build(tmp_path, people=200)))
    described = curator.describe_together(["people", "visits"], epsilon=1)
    again = curator.describe_together(["people", "visits"], epsilon=1)
    assert again.to_bytes() == described.to_bytes()
    assert [entry.cost.amount for entry in curator.ledger()] == [1]

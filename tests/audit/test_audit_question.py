"""`audit question`: what holds is found to hold, and a plan, a noise or an engine that is not what
it claims is not.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.asking.offer import Offer
from discreet.audit import question, replay, report, runs
from discreet.audit.question import Leavers, audit_question
from discreet.binding import create_ledger
from discreet.cli import run
from discreet.errors import DiscreetError, UsageError
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.policy.policy import Policy
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from small_town import POLICY, town

SURE = 1 - 1e-9


@pytest.fixture(scope="module", params=["add_remove sum", "change_one zcdp"])
def policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    neighbors, accountant = request.param.split()
    path = tmp_path_factory.mktemp("audit") / "policy.yaml"
    path.write_text(
        POLICY.replace("NEIGHBORS", neighbors).replace("ACCOUNTANT", accountant), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    discreet.open(path, tables=town(victim=True))
    return Policy.read(path)


def audit(
    policy: Policy, sql: str, *, runs: int = 20_000, epsilon: object = 4
) -> question.QuestionAudit:
    return audit_question(
        policy, sql, epsilon=epsilon, runs=runs, confidence=SURE, leavers=Leavers(most=3)
    )


SHAPES = (
    "SELECT sex, COUNT(*), COUNT(DISTINCT person_id) FROM visits JOIN people USING (person_id) GROUP BY sex",
    "SELECT AVG(income), MEDIAN(age) FROM people",
    "SELECT zip, COUNT(*) FROM people GROUP BY zip",
    "SELECT zip, sex, SUM(income) FROM people GROUP BY zip, sex",
)


@pytest.mark.parametrize("sql", SHAPES)
def test_what_holds(policy: Policy, sql: str) -> None:
    # so many that enough is proved
    found = audit(policy, sql, runs=20_000 if "MEDIAN" in sql else 60_000)
    assert found.sound
    assert max(each.share for each in found.changes) > 0.5, "no neighbor came near the claim"
    assert all(each.draws for each in found.replayed)
    assert (
        found.findings[-1].proved
        > (0.2 if policy.budget.accountant == "sum" else 0.05) * found.findings[-1].claimed
    )
    page = report.question_page(found)
    assert report.NOT_FOR_RELEASE in page
    assert "BROKEN" not in page
    assert page.count("<svg") >= 2


def test_the_neighbor_that_moves_most_is_run(policy: Policy) -> None:
    """Everybody is in as many groups as is claimed; only who moves the sum too tells anything."""
    found = audit(policy, "SELECT SUM(income) FROM people")
    moved = {each.pair: each.least for each in found.changes}
    assert moved[found.pair] > 0.5 * max(moved.values()) > 0.4


# about person 7 and nobody else
ALONE = "SELECT COUNT(*) FROM people WHERE zip = '9' AND income > 50000"


def moved(found: question.QuestionAudit, reason: str) -> float:
    """How far the neighbors chosen for a reason move it."""
    return max((each.share for each in found.changes if reason in each.pair[1]), default=-1.0)


def test_whoever_a_question_is_about_is_taken_away(policy: Policy) -> None:
    """By default, though nobody else changes its answer and they are one of 60."""
    most = 1 if policy.neighbors == "add_remove" else 0.5  # of what a change of one allows
    for sql in (ALONE, "SELECT COUNT(*) FILTER (WHERE zip = '9' AND income > 50000) FROM people"):
        found = audit_question(
            policy, sql, epsilon=4, runs=1_000, confidence=SURE, leavers=Leavers(most=1)
        )
        assert moved(found, "without person 1, moves it most") >= most
    found = audit_question(
        policy,
        "SELECT zip, COUNT(*) FROM people GROUP BY zip",
        epsilon=4,
        runs=1_000,
        confidence=SURE,
        leavers=Leavers(most=4),
    )
    assert any("rare key" in second for _, second in found.tried)
    found = audit_question(
        policy,
        "SELECT MAX(age) FROM people",
        epsilon=4,
        runs=1_000,
        confidence=SURE,
        leavers=Leavers(most=4),
    )
    assert any("largest" in second for _, second in found.tried)


@pytest.mark.parametrize(
    "chosen",
    [
        {"persons": ("7",)},
        {"where": "zip = '9'"},
        {"where": "income >= 200000 AND sex = 'M'"},
        {"where": "cost > 999"},
    ],
)
def test_people_are_named_or_chosen_by_a_condition(policy: Policy, chosen: dict[str, Any]) -> None:
    """A condition is written as analysts write it, on any table that has its columns."""
    # Person 7 does not move this count; whoever was chosen for that must not stand in their place.
    sql = "SELECT COUNT(*) FROM people WHERE zip = '1'"
    found = audit_question(
        policy, sql, epsilon=4, runs=1_000, confidence=SURE, leavers=Leavers(most=1, **chosen)
    )
    reason = "named" if "persons" in chosen else "chosen by --where"
    assert [second for _, second in found.tried if "without" in second] == [
        f"without person 1, {reason}"
    ]
    assert moved(found, reason) == 0
    found = audit_question(
        policy, ALONE, epsilon=4, runs=1_000, confidence=SURE, leavers=Leavers(most=1, **chosen)
    )
    assert moved(found, reason) > 0


def test_nobody_by_that_name(policy: Policy) -> None:
    def of(**chosen: Any) -> None:
        audit_question(
            policy, ALONE, epsilon=4, runs=1_000, confidence=SURE, leavers=Leavers(most=2, **chosen)
        )

    with pytest.raises(UsageError, match="identifier 4711"):
        of(persons=("4711",))
    with pytest.raises(UsageError, match="No row of the snapshot"):
        of(where="zip = 'nowhere'")
    with pytest.raises(UsageError, match="hair"):
        of(where="hair = 'red'")


def test_nothing_is_charged_or_written(policy: Policy) -> None:
    curator = discreet.open(policy.path)
    before = curator._ledger.spent(), curator._ledger.head()
    audit(policy, SHAPES[0], runs=1_000)
    assert (curator._ledger.spent(), curator._ledger.head()) == before


def test_too_little_noise_is_found_out(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the scale that the offer claims; the offer itself still claims all of it."""
    real = Allowance.measure

    def quiet(self: Any, mechanism: Any, *arguments: Any, **named: Any) -> Any:
        name = "scale" if isinstance(mechanism, DiscreteLaplace) else "sigma"
        less = replace(mechanism, **{name: getattr(mechanism, name) / 3})
        self._accountant = type("Free", (), {"price": lambda *_: self._paid})()
        return real(self, less, *arguments, **named)

    monkeypatch.setattr(Allowance, "measure", quiet)
    found = audit(policy, "SELECT COUNT(*) FROM people")
    assert not found.sound
    assert "BROKEN" in report.question_page(found)


def test_a_claim_that_is_too_small_is_found_out(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = question._offer

    def smaller(*arguments: Any) -> Offer:
        offered = real(*arguments)
        first = offered.blocks[0]
        claim = first.block.statistics[0]
        less = replace(claim, sensitivity=replace(claim.sensitivity, l1=1, l2_squared=1, linf=1))
        block = replace(first.block, statistics=(less,))
        return replace(offered, blocks=(replace(first, block=block),))

    monkeypatch.setattr(question, "_offer", smaller)
    found = audit(policy, "SELECT SUM(age) FROM people", runs=1_000)
    assert not found.sound
    assert not all(each.within for each in found.changes)


def test_draws_that_follow_the_data_are_found_out(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise of one more item where there are more groups: the same answer for all others, and a
    leak.
    """
    real = Allowance.measure

    def following(self: Any, mechanism: Any, exact: Any, **named: Any) -> Any:
        total = exact.unwrap().column("s0")[0].as_py()
        self._stream = self._stream.derive("rows", int(total))
        return real(self, mechanism, exact, **named)

    monkeypatch.setattr(Allowance, "measure", following)
    found = audit(policy, "SELECT COUNT(*) FROM people", runs=1_000)
    assert any(each.differences for each in found.replayed)
    assert not found.sound


def test_a_key_that_leaves_without_a_threshold_is_found_out(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    real = Allowance.threshold

    def open_door(self: Any, mechanism: Any, exact: Any, *, moved: Any, keys: int) -> Any:
        table = exact.unwrap()
        real(self, mechanism, Exact(table), moved=moved, keys=keys)
        return table.select([f"k{index}" for index in range(keys)]), np.asarray(table.column("s0"))

    monkeypatch.setattr(Allowance, "threshold", open_door)
    monkeypatch.setattr(
        question,
        "_telling",
        lambda changed, around, run: next(p for p in around.pairs if "low" in p[1]),
    )
    found = audit(policy, "SELECT zip, COUNT(*) FROM people GROUP BY zip", runs=1_000)
    assert not all(each.sound for each in found.support)


def test_shared_noise_is_found_out() -> None:
    with replay.recording() as tape:
        from discreet.noise import Items, Stream, discrete_laplace

        stream = Stream.fresh().derive("measurement", 0)
        for _ in range(2):
            discrete_laplace(stream, Items.positions(3), discreet.budget.Fraction(2))
    twice = replay.Transcript(
        tape=tape, steps=(replay.ReplayStep(name="measure", draws=tuple(tape.draws), left=None),)
    )
    assert replay.find_shared_noise(twice)


def test_the_command(policy: Policy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, asked = (
        tmp_path / "page.html",
        ["audit", "question", str(policy.path), "SELECT COUNT(*) FROM people"],
    )
    sure = ["--runs", "2000", "--confidence", str(SURE)]
    assert run([*asked, *sure, "--epsilon", "2", "--people", "2", "--out", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "NOT FOR RELEASE" in shown
    assert "Nothing was charged" in shown
    assert page.stat().st_mode & 0o077 == 0
    assert run([*asked, *sure, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sound"] is True
    assert told["charged"] is False
    named = ["--person", "7", "--person", "8", "--where", "zip = '9'", "--people", "3"]
    assert run([*asked, *sure, *named]) == 0
    shown = capsys.readouterr().out
    assert "NOT FOR RELEASE" in shown
    assert "without person 2, named: moves" in shown
    assert run([*asked, *sure, "--person", "nobody"]) == 2
    assert run([*asked[:3], "SELECT * FROM people"]) == 4
    assert run([*asked, "--epsilon", "-1"]) == 2
    assert run([*asked, "--people", "0"]) == 2
    assert run([*asked[:3], "SELECT 1"]) in (2, 4)


def test_refusals_before_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum"), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    with pytest.raises(UsageError, match="snapshot"):
        audit(Policy.read(path), "SELECT COUNT(*) FROM people", runs=1_000)
    with pytest.raises(DiscreetError):
        audit(Policy.read(path), "SELECT COUNT(*) FROM people", runs=10)


@pytest.mark.slow
def test_several_passes_one_by_one(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ONE_BY_ONE", 40)
    assert audit(policy, "SELECT MEDIAN(income) FROM people").sound

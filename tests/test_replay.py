"""Record and replay through every door (S14): the same draws on neighbors, the same scale and index
of the next.

Given that the same has left: unknown keys, several quantiles and adaptive synthesizers go where
that points, so it is put in the place of what would leave the neighbor. The machinery is that of
`discreet audit question`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import discreet
from discreet import door
from discreet.audit import replay
from discreet.audit.replay import Bits, Transcript, differences, find_shared_noise
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.local.protocols.protocol import PROTOCOLS
from discreet.mechanisms import nested, quantile
from discreet.noise.tape import recording
from discreet.synthetic.columns.axis import Intervals
from discreet.synthetic.synthesizers.family import SYNTHESIZERS
from discreet.vault.allowance import Allowance
from small_town import POLICY, town
from test_every_protocol import CASES

SHAPES = (
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*), COUNT(DISTINCT person_id) FROM visits",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex",
    "SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age",
    "SELECT SUM(income) FROM people",
    "SELECT AVG(income), COUNT(*) FROM people WHERE age > 30",
    "SELECT sex, STDDEV(income) FROM people GROUP BY sex",
    "SELECT CORR(age, income) FROM people",
    "SELECT MEDIAN(age) FROM people",
    "SELECT sex, QUANTILE_CONT(age, [0.25, 0.5, 0.75]) FROM people GROUP BY sex",
    "SELECT MEDIAN(income) FROM people",
    "SELECT MODE(sex), MAX(age) FROM people",
    "SELECT zip, COUNT(*) FROM people GROUP BY zip",
    "SELECT zip, COUNT(*), AVG(income) FROM people GROUP BY zip",
    "SELECT zip, sex, SUM(income) FROM people GROUP BY zip, sex",
    "SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)",
    "SELECT sex, COUNT(DISTINCT age) FROM people GROUP BY ROLLUP (sex)",
    "SELECT COUNT(*) FILTER (WHERE age > 50) / COUNT(*) FROM people",
    "SELECT COUNT(*) FROM (SELECT person_id, SUM(cost) AS c FROM visits GROUP BY person_id) AS t WHERE c > 10",
    "SELECT p.sex, SUM(v.cost) FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY p.sex",
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id",
    "SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits)",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 20 ORDER BY 2 LIMIT 1",
)
Pair = list[Curator]


@pytest.fixture(
    scope="module", params=[("add_remove", "sum"), ("change_one", "zcdp")], ids=lambda each: each[0]
)
def neighbors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    relation, accountant = request.param
    found = []
    for victim in (True, False):
        path = tmp_path_factory.mktemp("town") / "policy.yaml"
        path.write_text(
            POLICY.replace("NEIGHBORS", relation).replace("ACCOUNTANT", accountant),
            encoding="utf-8",
        )
        create_ledger(discreet.Policy.read(path))
        found.append(discreet.open(path, tables=town(victim=victim)))
    return found


def transcripts(
    neighbors: Pair, work: Callable[[Curator], Any], monkeypatch: pytest.MonkeyPatch
) -> list[Transcript]:
    """The same work for both, under the same draws; both left nothing but what its allowances
    released.
    """
    found: list[Transcript] = []
    for each in neighbors:
        each.snapshot()  # what was measured for another test is not recalled

        def witnessed(witness: Callable[[Allowance], Any], each: Curator = each) -> Any:
            monkeypatch.setattr(door, "Allowance", lambda **named: witness(Allowance(**named)))
            return work(each)

        found.append(replay.record(witnessed, replay=found[0] if found else None)[0])
    return found


def check(found: list[Transcript]) -> None:
    assert found[0].steps, "nothing left"
    assert found[0].draws, "nothing was drawn"
    assert not differences(*found)
    assert not find_shared_noise(found[0])
    assert not find_shared_noise(found[1])


@pytest.mark.parametrize("sql", SHAPES)
def test_ask(neighbors: Pair, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(
        transcripts(neighbors, lambda each: each.ask(sql, analyst="alice", epsilon=2), monkeypatch)
    )


@pytest.mark.parametrize(
    ("table", "column"), [("people", "age"), ("people", "income"), ("visits", "cost")]
)
def test_bounds(neighbors: Pair, table: str, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(transcripts(neighbors, lambda each: each.bounds(table, column, epsilon=1), monkeypatch))


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_describe(neighbors: Pair, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ["age", "income", "sex"]

    def work(each: Curator) -> object:
        intervals = Intervals(bins=8)
        return each.describe(
            "people", epsilon=1, synthesizer=name, columns=columns, intervals=intervals
        )

    check(transcripts(neighbors, work, monkeypatch))


def test_describe_pair_by_pair(neighbors: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise drowns the distances of so few rows, so `default` chooses one pair after another."""

    def work(each: Curator) -> object:
        return each.describe(
            "people",
            epsilon=12,
            synthesizer="default",
            columns=["age", "income", "sex"],
            intervals=Intervals(bins=8),
        )

    found = transcripts(neighbors, work, monkeypatch)
    names = [step.name for step in found[0].steps]
    assert names.count("farthest") == 2
    assert names.count("sums") == 1
    assert "distances" not in names
    check(found)


@pytest.mark.parametrize("name", ["independent", "default"])
def test_describe_together(neighbors: Pair, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(each: Curator) -> object:
        return each.describe_together(
            ["people", "visits"], epsilon=1, synthesizer=name, intervals=Intervals(bins=8)
        )

    check(transcripts(neighbors, work, monkeypatch))


def test_compare_together(neighbors: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against one description, which is public by then."""
    linked = neighbors[0].describe_together(
        ["people", "visits"], epsilon=1, synthesizer="independent"
    )
    check(
        transcripts(neighbors, lambda each: each.compare_together(linked, epsilon=1), monkeypatch)
    )


def test_compare(neighbors: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against one description, which is public by then."""
    described = neighbors[0].describe(
        "people", epsilon=1, synthesizer="independent", columns=["age", "sex"]
    )
    check(transcripts(neighbors, lambda each: each.compare(described, epsilon=1), monkeypatch))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_encoders(case: Any) -> None:
    """A respondent's device asks for as many bits, in the same portions, whatever the answer.

    `below` draws again when it falls in an incomplete last run: with the same bits, at the same
    places.
    """
    for _ in range(20):
        bits = Bits()
        case.protocol.respond(case.answers[0], bits)
        assert bits.asked
        for answer in case.answers[1:]:
            again = Bits(bits.drawn)
            case.protocol.respond(answer, again)
            assert again.asked == bits.asked


@pytest.mark.parametrize("kind", PROTOCOLS, ids=lambda kind: kind.__name__)
def test_encoders_of_many(kind: Any) -> None:
    case = next(case for case in CASES if type(case.protocol) is kind)
    asked, first = list[Any](), None
    for answer in case.answers:
        with recording(replay=first) as tape:
            case.protocol.encode([answer] * 10)
        first = first or tape
        asked.append([(each.path, each.round, each.ids.tolist()) for each in tape.asked])
    assert asked[0]
    assert all(each == asked[0] for each in asked)


def test_replay_is_a_replay(neighbors: Pair) -> None:
    """On the same data the same draws give the same answer, and another recording another one."""
    sql = "SELECT age, COUNT(*) FROM people GROUP BY age"
    tables = []
    with recording() as tape:
        tables.append(neighbors[0].ask(sql, analyst="alice", epsilon=2).table)
    with recording(replay=tape):
        tables.append(neighbors[0].ask(sql, analyst="alice", epsilon=2).table)  # recalled
    with recording(replay=tape):
        tables.append(neighbors[1].ask(sql, analyst="alice", epsilon=2).table)
    assert tables[0].equals(tables[1])
    first, second = (tables[place].column(1).to_pylist() for place in (0, 2))
    # only the victim's cell moved, by one
    assert sum(a != b for a, b in zip(first, second, strict=True)) == 1


def test_a_leak_is_found(neighbors: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: a scale that follows the data, and one more draw for one more row."""
    spend = Allowance._spend

    def wider(self: Any, mechanism: Any) -> Any:
        return spend(self, mechanism).derive("rows", leaks[-1])

    leaks: list[int] = []
    monkeypatch.setattr(Allowance, "_spend", wider)

    def work(each: Curator) -> Any:
        leaks.append(len(leaks))
        return each.ask("SELECT COUNT(*) FROM people WHERE age < 119", analyst="alice", epsilon=2)

    assert differences(*transcripts(neighbors, work, monkeypatch))


@pytest.mark.parametrize(
    "sql",
    ["SELECT MEDIAN(income + 1), COUNT(*) FROM people", "SELECT MAX(age), MIN(age) FROM people"],
)
def test_a_leak_after_the_first_release_is_found(
    neighbors: Pair, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second statistic whose noise follows the data when the first has left: a median's, and an
    extreme's.
    """
    spend, leaks = Allowance._spend, list[int]()

    def wider(self: Any, mechanism: Any) -> Any:
        later = bool(self.used)
        return spend(self, mechanism).derive("rows", leaks[-1] if later else 0)

    def work(each: Curator) -> Any:
        leaks.append(len(leaks))
        return each.ask(sql, analyst="alice", epsilon=2)

    monkeypatch.setattr(Allowance, "_spend", wider)
    assert "release 2" in differences(*transcripts(neighbors, work, monkeypatch))[0]


def test_a_leak_inside_a_choice_is_found(neighbors: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several quantiles those after the first: what is empty at the end of a part is no
    candidate any more.
    """
    cut = nested.cut

    def trimmed(pieces: Any, place: int) -> Any:
        below, above = cut(pieces, place)
        return below, above[..., : int(np.flatnonzero(above.any(axis=0)).max(initial=0)) + 1]

    monkeypatch.setattr(quantile, "cut", trimmed)
    sql = "SELECT QUANTILE_CONT(age + 0, [0.25, 0.5, 0.75]) FROM people"
    # At so large an epsilon the first quantile is never at the victim's end, beyond which nothing
    # could be left out.
    found = transcripts(
        neighbors, lambda each: each.ask(sql, analyst="alice", epsilon=50), monkeypatch
    )
    assert "the sampler of a draw" in differences(*found)[0]


def test_it_is_the_path_that_is_walked() -> None:
    """Every public entry point that releases anything is replayed above, or releases what is public
    or paid for.
    """
    replayed = {"ask", "bounds", "describe", "compare", "describe_together", "compare_together"}
    replayed |= {"release", "publication"}  # in tests/continual and tests/census
    free = {
        "quote",
        "explain",
        "ledger",
        "asked",
        "snapshot",
        "left",
        "shape",
        "public_columns",
        "reference",
    }
    # from a paid description, and from the ledger's own rows
    free |= {"generate", "spending", "certificate"}
    free |= {"tables"}  # what the policy tells
    assert {name for name in vars(Curator) if not name.startswith("_")} <= replayed | free

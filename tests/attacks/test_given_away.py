"""Whom published tables give away: on small tables by hand, on a generated country beside exact and
swapped ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import discreet
from discreet import cli
from discreet.attacks.given_away import Way, given_away
from discreet.binding import create_ledger
from discreet.errors import UsageError
from discreet.examples import country
from discreet.policy.policy import Policy


def table(*rows: str) -> pa.Table:
    """Each row is a place, a sex and an age, one letter each."""
    return pa.table(
        {name: [row[at] for row in rows] for at, name in enumerate(("block", "sex", "age"))}
    )


def test_by_hand() -> None:
    original = table("aF1", "aF1", "aM2", "bF1", "bF3")
    published = table("aF1", "aM3", "bF1", "bM3", "bM1")
    found = given_away(original, published, place="block", swap=0)
    by_name = {way.name: way for way in found.ways}
    assert by_name["exact"] == Way(
        name="exact", people=5, exact=5, partial=0, alone=3, found=3, claims=3, right=3
    )
    assert by_name["swapped 0%"].exact == 5
    # aF1 and bF1 are the same; aM2 is like aM3 but for the age, bF3 like bM3 but for the sex.
    assert by_name["published"] == Way(
        name="published", people=5, exact=2, partial=2, alone=3, found=1, claims=5, right=1
    )
    assert (found.finding.success, found.finding.n) == (1 / 3, 3)


def test_swapping_moves_people_and_keeps_places_as_large() -> None:
    original = table(*(f"{'abcd'[i % 4]}{'FM'[i % 3 % 2]}{i % 7}" for i in range(400)))
    way = given_away(original, original, place="block", swap=0.5).ways[1]
    assert way.people == 400
    assert 200 <= way.exact < 400


def test_refusals() -> None:
    with pytest.raises(UsageError, match="need the column tract"):
        given_away(table("aF1"), table("aF1"), place="tract")
    with pytest.raises(UsageError, match="nobody to give away"):
        given_away(table().cast(table("aF1").schema), table("aF1"), place="block")
    with pytest.raises(UsageError, match="share of people"):
        given_away(table("aF1"), table("aF1"), place="block", swap=2)


def test_a_publication_gives_away_no_more_than_chance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside exact tables, which give everybody away, and swapped ones."""
    path = country.build(tmp_path / "country", people=4000)
    create_ledger(Policy.read(path))
    discreet.open(path).publication("census_2030").run().save(tmp_path / "out")
    people = tmp_path / "country" / "data" / "people.parquet"
    asked = [
        "attack",
        "census",
        "--publication",
        str(tmp_path / "out"),
        "--against",
        f"{people}:block",
    ]
    assert cli.run([*asked, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    ways = {way["name"]: way for way in found["ways"]}
    assert ways["exact"]["exact"] == ways["exact"]["people"] == 4000
    assert ways["exact"]["right"] == ways["exact"]["claims"]
    assert ways["swapped 5%"]["exact"] > 3400
    assert ways["published"]["exact"] < ways["swapped 5%"]["exact"]
    assert ways["published"]["right"] < 0.5 * ways["published"]["claims"]
    assert abs(found["success"] - found["chance"]) < 0.4
    assert cli.run(asked) == 0
    assert "swapped 5%" in capsys.readouterr().out
    assert cli.run(asked[:4]) == 2

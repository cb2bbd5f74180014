"""Every command that takes `--format json` prints one JSON object on one line, and nothing beside
it on stdout.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer

from discreet import cli
from discreet.attacks.lessons.census import published
from discreet.binding import create_ledger
from discreet.examples import country, town
from discreet.policy.policy import Policy

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
FINDINGS = """\
study: Smokers
citation: nobody
table: people
findings:
  - {says: Few smoke., kind: descriptive, holds: AVG(age) > 10}
"""
SURVEY = """\
survey: test
epsilon: 2
questions:
  smokes: {ask: "Do you smoke?", values: [no, yes], protocol: two_coins}
"""
TABLES = "synthetic.parquet town/data/people.parquet"

# What stands behind each command, in this order: what one writes, a later one reads.
ARGUMENTS = {
    "check": "town/town.yaml",
    "tables": "town/town.yaml",
    "ask": "town/town.yaml COUNT --analyst bob --epsilon 0.1",
    "quote": "town/town.yaml COUNT --analyst bob --epsilon 0.1",
    "explain": "town/town.yaml COUNT --analyst bob --epsilon 0.1",
    "bounds": "town/town.yaml visits cost --epsilon 0.1",
    "describe": "town/town.yaml people --epsilon 0.5 --columns sex,age,smoker --out people.json "
    "--synthesizer independent",
    "inspect": "people.json --raw town/data/people.parquet",
    "compare": "town/town.yaml people.json --epsilon 0.1",
    "query": "town/data/people.parquet SUM --table people",
    "risk": "town/data/people.parquet --quasi sex,age",
    "anonymize": "town/data/people.parquet --quasi sex,age --k 2 --out anonymous.csv --drop name,"
    "person_id,born",
    "parity": "findings.yaml town/town.yaml people.json --repeats 2 --bootstrap 0 --epsilon 0.1",
    "respond": "survey.yaml --answer smokes=yes --state device --out reports.jsonl",
    "collect add": "survey.yaml reports.jsonl",
    "collect estimate": "survey.yaml",
    "collect status": "survey.yaml",
    "release quote": "town/town.yaml visits_by_day",
    "release start": "town/town.yaml visits_by_day",
    "release run": "town/town.yaml visits_by_day --as-of 2024-01-04",
    "release show": "town/town.yaml visits_by_day",
    "publish quote": "country/country.yaml census_2030",
    "publish run": "country/country.yaml census_2030",
    "publish show": "country/country.yaml census_2030",
    "ledger": "town/town.yaml",
    "attack link": f"{TABLES} --on sex --on age",
    "attack scoreboard": "ratings.csv known.csv",
    "attack difference": "log.sql --table people --data town/data/people.parquet --secret smoker",
    "attack reconstruct": "queries.npz",
    "attack census": "stats.json",
    "attack membership": f"{TABLES} town/data/people.parquet --trials 20",
    "attack linkability": f"{TABLES} --half sex --half age --trials 20",
    "attack inference": f"{TABLES} --secret smoker --trials 20",
    "attack single-out": f"{TABLES} --columns 2 --trials 20",
    "audit mechanism": "DiscreteLaplace --runs 2000",
    "audit question": "town/town.yaml SUM --runs 1000 --people 2",
    "audit ledger": "town/town.yaml",
    "user list": "town/town.yaml",
}
# What one command can do in several ways.
WAYS = {
    "ledger --create": "new/town.yaml",
    "ledger --verify": "town/town.yaml",
    "ledger --amend": "town/town.yaml",
    "ledger --export-head": "town/town.yaml",
    "ledger --certificate": "ANSWER town/town.yaml",
    "ledger --rotate-key": "town/town.yaml",
    "ledger --backup": "backup town/town.yaml",
    "ledger --setup": "shared/town.yaml",
    "anonymize --write-hierarchies": "hierarchies.yaml town/data/people.parquet --quasi age",
    "attack census --demo": "",
}
SQL = {"COUNT": COUNT, "SUM": "SELECT SUM(age) AS years FROM people"}


def with_format() -> set[str]:
    found = set()

    def look(group: object, verbs: tuple[str, ...]) -> None:
        for name, each in group.commands.items():  # type: ignore[attr-defined]
            if hasattr(each, "commands"):
                look(each, (*verbs, name))
            elif any("--format" in option.opts for option in each.params):
                found.add(" ".join((*verbs, name)))

    look(typer.main.get_command(cli.app()), ())
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("world")
    for policy in (
        town.build(place / "town", people=300),
        country.build(place / "country", people=500),
    ):
        create_ledger(Policy.read(policy))
    written = (place / "town" / "town.yaml").read_text(encoding="utf-8")
    shared = f"ledger: postgresql://curator@db/town\n{written.replace('data/', '../town/data/')}"
    for name, text in (("new", written.replace("data/", "../town/data/")), ("shared", shared)):
        (place / name).mkdir()
        (place / name / "town.yaml").write_text(text, encoding="utf-8")
    (place / "findings.yaml").write_text(FINDINGS, encoding="utf-8")
    (place / "survey.yaml").write_text(SURVEY, encoding="utf-8")
    (place / "stats.json").write_text(json.dumps(published()), encoding="utf-8")
    (place / "log.sql").write_text("SELECT COUNT(*) FROM people WHERE smoker", encoding="utf-8")
    ratings = "".join(
        f"{user},{item},{(user + item) % 5},{item}\n"
        for user in range(5)
        for item in range(user, 9)
    )
    for name, who in (("ratings", "user"), ("known", "target")):
        (place / f"{name}.csv").write_text(f"{who},item,value,day\n{ratings}", encoding="utf-8")
    bits = np.arange(8) % 2
    queries = (np.arange(64)[:, None] >> np.arange(8)) & 1
    np.savez(place / "queries.npz", queries=queries, answers=queries @ bits, bits=bits)
    return place


def object_printed(capsys: pytest.CaptureFixture[str], words: list[str]) -> dict[str, object]:
    code = cli.run([*words, "--format", "json"])
    printed = capsys.readouterr()
    assert code == 0, f"{words}: {printed.out} {printed.err}"
    assert printed.out.count("\n") == 1, words
    assert printed.out.removesuffix("\n").isprintable(), words
    found = json.loads(printed.out, parse_constant=lambda word: pytest.fail(f"{words}: {word}"))
    assert type(found) is dict, words
    return found


def test_every_command_prints_one_object(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert with_format() == set(ARGUMENTS)
    given = dict(SQL)
    for verbs, rest in ARGUMENTS.items():
        words = [given.get(word, word) for word in (*verbs.split(), *rest.split())]
        if verbs == "attack link":
            assert (
                cli.run(["generate", "people.json", "--rows", "300", "--out", "synthetic.parquet"])
                == 0
            )
            capsys.readouterr()
        found = object_printed(capsys, words)
        assert found
        if verbs == "ask":
            given["ANSWER"] = str(found["answer_id"])
    for verbs, rest in WAYS.items():
        words = [given.get(word, word) for word in (*verbs.split(), *rest.split())]
        assert object_printed(capsys, words)

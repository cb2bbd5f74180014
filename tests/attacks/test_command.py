"""`discreet attack`: the surface that scripts rely on."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from pyarrow import csv
from typer.testing import CliRunner

from discreet.attacks.lessons.census import published
from discreet.cli import attack
from discreet.examples import town

ALWAYS = {"attack", "success", "chance", "interval", "n"}


@pytest.fixture(scope="module")
def run():
    app = typer.Typer(pretty_exceptions_enable=False)
    attack.register(app)
    runner = CliRunner()

    def invoke(*arguments, json_wanted=True):
        wanted = ["--format", "json"] if json_wanted else []
        found = runner.invoke(app, ["attack", *map(str, arguments), *wanted])
        if found.exception and not isinstance(found.exception, SystemExit):
            raise found.exception
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout) if json_wanted else found.stdout

    return invoke


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("attack")


def test_census(run, folder):
    (folder / "stats.json").write_text(json.dumps(published()))
    found = run("census", folder / "stats.json")
    assert ALWAYS | {"worlds", "capped", "common", "certainty", "seconds"} <= found.keys()
    assert (found["worlds"], found["capped"], len(found["common"]), len(found["certainty"])) == (
        1,
        False,
        7,
        7,
    )
    assert {"age": 8, "sex": "F", "race": "B", "marital": "S"} in found["common"]
    assert 0 < found["seconds"] < 60  # how quick it is, test_census says
    assert "everybody is reconstructed" in run("census", folder / "stats.json", json_wanted=False)


def test_scoreboard(run, folder):
    rng = np.random.default_rng()
    ends = {"user": (0, 200), "item": (0, 400), "value": (1, 6), "day": (0, 900)}
    ratings = pa.table({name: rng.integers(low, high, 4000) for name, (low, high) in ends.items()})
    csv.write_csv(ratings, folder / "ratings.csv")
    mine = np.flatnonzero(ratings["user"].to_numpy() == 3)[:8]
    aux = (
        ratings.take(mine).drop_columns("user").append_column("target", pa.array(["x"] * len(mine)))
    )
    pq.write_table(aux, folder / "aux.parquet")
    found = run(
        "scoreboard", folder / "ratings.csv", folder / "aux.parquet", "--index", folder / "kept"
    )
    assert found.keys() >= ALWAYS
    [match] = found["matches"]
    assert {"target", "user", "score", "eccentricity"} <= match.keys()
    assert (match["target"], match["user"]) == ("x", 3)
    again = run(
        "scoreboard", folder / "ratings.csv", folder / "aux.parquet", "--index", folder / "kept"
    )
    assert again == found


@pytest.mark.parametrize("method", ["lp", "least-squares", "exhaustive"])
def test_reconstruct(run, folder, method):
    rng = np.random.default_rng()
    bits, queries = rng.integers(0, 2, 14), rng.integers(0, 2, (70, 14))
    np.savez(folder / "asked.npz", queries=queries, answers=queries @ bits)
    found = run("reconstruct", folder / "asked.npz", "--method", method)
    assert ALWAYS | {"bits", "method"} <= found.keys()
    assert (found["bits"], found["method"]) == (bits.tolist(), method)
    assert found["success"] > 0.9


def test_reconstruct_published_tables(run, folder):
    csv.write_csv(
        pa.table({"team": ["a", "a", "b"], "floor": ["1", "2", "1"]}), folder / "people.csv"
    )
    csv.write_csv(
        pa.table({"team": ["a", "b", ""], "floor": ["", "", "1"], "count": [1, 1, 2]}),
        folder / "tables.csv",
    )
    found = run(
        "reconstruct",
        folder / "tables.csv",
        "--people",
        folder / "people.csv",
        "--method",
        "exhaustive",
    )
    assert found["bits"] == [1, 0, 1]


def test_link(run, folder):
    people = town.tables(500)["people"]
    pq.write_table(people.select(["zip", "born", "sex", "diagnosis"]), folder / "release.parquet")
    pq.write_table(people.select(["name", "zip", "born", "sex"]), folder / "voters.parquet")
    files = folder / "release.parquet", folder / "voters.parquet"
    found = run("link", *files, "--on", "zip,born", "--on", "sex")
    assert ALWAYS | {"links", "uniqueness", "risks"} <= found.keys()
    assert found["success"] > 0.9
    assert town.GOVERNOR["name"] not in json.dumps(found)
    assert town.GOVERNOR["name"] in json.dumps(
        run("link", *files, "--on", "zip,born,sex", "--reveal")
    )
    plain = run("link", *files, "--on", "zip,born,sex", json_wanted=False)
    assert "unique by" in plain
    assert "\ufffd" not in plain  # its percentages have no-break spaces
    assert "\u00a0%" in plain
    assert "--reveal shows whose they are" in plain
    assert not any(name in plain for name in people.column("name").to_pylist())


@pytest.mark.parametrize("on", ["zip,born,sex", "zip,sex,born~0"])
def test_link_reveals_names_and_secrets(run, folder, on):
    """In the table as in JSON: who it is, and what the release says of them."""
    people = town.tables(30)["people"]
    pq.write_table(people.select(["zip", "born", "sex", "diagnosis"]), folder / "few.parquet")
    pq.write_table(
        people.select(["name", "zip", "born", "sex"]).slice(0, 25), folder / "names.parquet"
    )
    files = folder / "few.parquet", folder / "names.parquet"
    found = run("link", *files, "--on", on, "--reveal")
    shown = run("link", *files, "--on", on, "--reveal", json_wanted=False)
    hidden = run("link", *files, "--on", on, json_wanted=False)
    assert len(found["links"]) > 20
    for link in found["links"]:
        person = people.slice(link["release_row"], 1).to_pylist()[0]
        assert link["identity"] == {"name": person["name"]}
        assert link["released"] == {"diagnosis": person["diagnosis"]}
        line = next(line for line in shown.splitlines() if person["name"] in line)
        assert (person["diagnosis"] or "NULL") in line
        assert person["name"] not in hidden


def test_difference(run, folder):
    csv.write_csv(
        pa.table({"id": [1, 2, 3, 4], "ill": [True, False, True, True]}), folder / "staff.csv"
    )
    (folder / "log.sql").write_text(
        "SELECT COUNT(*) FROM staff WHERE ill; -- everybody\nSELECT COUNT(*) FROM staff WHERE ill AND id <> 3;\n"
    )
    # its file, or its name and the file beside the log
    for table in (folder / "staff.csv", "staff"):
        found = run("difference", folder / "log.sql", "--table", table, "--secret", "ill")
        assert found.keys() >= ALWAYS
        [person] = found["exposed"]
        assert (person["row"], person["questions"], person["weights"]) == (2, [1, 2], ["1", "-1"])
        assert "value" not in person
    assert (
        run("difference", folder / "log.sql", "--table", "staff", "--reveal")["exposed"][0]["value"]
        == 1
    )
    (folder / "safe.sql").write_text("SELECT COUNT(*) FROM staff WHERE ill")
    assert run("difference", folder / "safe.sql", "--table", "staff")["safe"]
    assert "nobody is exposed" in run(
        "difference", folder / "safe.sql", "--table", "staff", json_wanted=False
    )


def test_difference_says_safe_only_where_it_is_proved(run, folder):
    csv.write_csv(
        pa.table({"id": [1, 2, 3, 4], "ill": [True, True, False, True], "pay": [4, 4, 4, 9]}),
        folder / "s.csv",
    )
    (folder / "all.sql").write_text("SELECT COUNT(*) FROM s WHERE ill AND id < 3")
    found = run(
        "difference", folder / "all.sql", "--table", folder / "s.csv", "--secret", "ill", "--reveal"
    )
    assert (found["safe"], found["verdict"]) == (False, "exposed")
    assert [(e["row"], e["by"], e["questions"], e["value"]) for e in found["exposed"]] == [
        (0, "range", [1], 1),
        (1, "range", [1], 1),
    ]
    told = run(
        "difference",
        folder / "all.sql",
        "--table",
        folder / "s.csv",
        "--secret",
        "ill",
        json_wanted=False,
    )
    assert "2 people are exposed" in told
    (folder / "more.sql").write_text("SELECT COUNT(*) FROM s WHERE ill; SELECT MEDIAN(pay) FROM s")
    told = run("difference", folder / "more.sql", "--table", folder / "s.csv", json_wanted=False)
    assert "nobody who is exposed. That is not proved" in told
    assert "nobody is exposed." not in told
    (folder / "sum.sql").write_text("SELECT SUM(pay) FROM s WHERE id < 4")
    options = "--table", folder / "s.csv", "--secret", "pay"
    # nobody in the table has less
    assert len(run("difference", folder / "sum.sql", *options)["exposed"]) == 3
    assert run("difference", folder / "sum.sql", *options, "--range", "pay=0:10")["safe"]


def test_attacks_on_records(run, folder):
    people = town.tables(600)["people"].select(["age", "sex", "zip", "smoker", "state"])
    for name, start in (("in", 0), ("control", 300)):
        pq.write_table(people.slice(start, 300), folder / f"{name}.parquet")
    inside, control = folder / "in.parquet", folder / "control.parquet"
    for arguments in (
        ("single-out", inside, inside, "--control", control, "--trials", 100),
        (
            "linkability",
            inside,
            inside,
            "--control",
            control,
            "--half",
            "age,sex",
            "--half",
            "zip,state,smoker",
        ),
        ("inference", inside, inside, "--control", control, "--secret", "zip"),
    ):
        found = run(*arguments)
        assert ALWAYS | {"control", "risk"} <= found.keys()
        assert found["risk"]["value"] > 0.05
    assert run("membership", inside, inside, control)["auc"] > 0.6
    assert "Without --control" in run(
        "inference", inside, inside, "--secret", "sex", json_wanted=False
    )


def test_demo_as_json_and_as_a_page(run, folder):
    found = run("membership", "--demo", "--html", folder / "story.html")
    assert ALWAYS | {"with_noise"} <= found.keys()
    assert (folder / "story.html").read_text().startswith("<!doctype html>")
    assert "Were you counted?" in run("membership", "--demo", json_wanted=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("link", "nothing.csv", "nothing.csv", "--on", "zip"),
        ("census", "nothing.json"),
        ("reconstruct", "nothing.npz"),
        ("difference", "nothing.sql", "--table", "x"),
        ("scoreboard", "only-one.csv"),
        ("linkability", "a.csv", "b.csv"),
        ("inference", "a.csv", "b.csv"),
        ("membership", "--html", "x.html"),
    ],
)
def test_mistakes_are_one_sentence(run, arguments):
    from discreet.errors import UsageError

    with pytest.raises(UsageError) as caught:
        run(*arguments)
    assert str(caught.value).count("\n") == 0

"""The file between the verbs: what a person reads, what a hostile one gets, and what rows come of
it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet
from discreet.cli import run
from discreet.errors import UsageError
from discreet.synthetic.description import Description
from discreet.synthetic.generate import Places
from discreet.synthetic.report.inspect import as_json
from synthetic.small_table import curator


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> discreet.Curator:
    return curator(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def description(made: discreet.Curator) -> Description:
    return made.describe("people", epsilon=300)


def parts(description: Description) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(description.to_bytes())
    return loaded


def test_saved_and_loaded_it_is_the_same(description: Description, tmp_path: Path) -> None:
    description.save(tmp_path / "d.json")
    again = Description.load(tmp_path / "d.json")
    assert again.to_bytes() == Description.from_bytes(again.to_bytes()).to_bytes()
    assert again.axes == description.axes
    for pair in ((0, 2), (3, 4), (0, 1)):
        np.testing.assert_allclose(again.marginal(pair), description.marginal(pair), atol=1e-2)


def test_probabilities_near_the_smallest_number_come_back_too(description: Description) -> None:
    """exp(-740) has no seven digits left: written as a part of a row, it came back as another
    number.
    """
    tables = [table.copy() for table in description.model.tables]
    for table in tables:
        table.flat[table.argmin()] = 1.2345678e-317
    tiny = replace(description, model=replace(description.model, tables=tuple(tables)))
    again = Description.from_bytes(tiny.to_bytes())
    assert (
        again.to_bytes() == Description.from_bytes(again.to_bytes()).to_bytes() == tiny.to_bytes()
    )


def test_it_can_be_read_by_people(description: Description) -> None:
    text = description.to_bytes().decode()
    assert parts(description)["cost"]["epsilon"] <= 300
    assert {"unit", "neighbors", "snapshot", "policy", "charge"} <= set(
        parts(description)["certificate"]
    )
    assert all(each["noise"]["mechanism"] for each in parts(description)["measured"])
    assert '"name": "income"' in text
    assert text.count("\n") > 10


HOSTILE: dict[str, Any] = {
    "code": lambda d: (
        d["columns"][0].update(name="__import__('os').system('x')")
        or d["columns"][0].update(cells="1+1")
    ),
    "another version": lambda d: d.update(version=2),
    "no version": lambda d: d.pop("version"),
    "another format": lambda d: d.update(format="pickle"),
    "no model": lambda d: d.update(model=[]),
    "a missing column": lambda d: d["columns"].pop(),
    "a column twice": lambda d: d["columns"].append(d["columns"][0]),
    "a negative count": lambda d: d["model"][0]["expected_rows"].__setitem__(0, -1),
    "an infinite count": lambda d: d["columns"][0]["expected_rows"].__setitem__(0, 1e300),
    "text for a count": lambda d: d["model"][0]["expected_rows"].__setitem__(0, "1"),
    "a huge domain": lambda d: d["columns"][0]["domain"].update(integer=[0, 10**30]),
    "huge cells": lambda d: d["columns"][0].update(cells=10**12),
    "an unknown domain": lambda d: d["columns"][0].update(domain={"python": "os"}),
    "a group out of range": lambda d: d["columns"][0]["groups"].__setitem__(0, 10**9),
    "a parent that is no parent": lambda d: d["model"][-1].update(parent=len(d["model"])),
    "a fractional noisy count": lambda d: d["measured"][0]["noisy_counts"].__setitem__(0, 0.5),
    "an object for a list": lambda d: d.update(columns={"a": 1}),
    "nested nonsense": lambda d: d.update(certificate=[[[]]]),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_one_sentence(change: Any, description: Description) -> None:
    broken = parts(description)
    change(broken)
    with pytest.raises(UsageError, match=r"description|broken|version"):
        Description.from_bytes(json.dumps(broken).encode())


@pytest.mark.parametrize("size", [0, 5e-324, 1e-300, 1e-12, 1e-9, 1e17])
def test_a_file_of_tiny_or_huge_numbers_is_refused_or_serves(
    size: float, description: Description
) -> None:
    """Deviations of zero ended in a division by it, and tables of 5e-324 rows in shares that are no
    numbers.
    """
    tables = [
        ("columns", "expected_rows"),
        ("model", "expected_rows"),
        ("measured", "standard_deviation"),
    ]
    served = 0
    for part, field in (*tables, ("", "expected_rows")):
        crafted = parts(description)
        for entry in crafted[part] if part else [crafted]:
            entry[field] = [size] * len(entry[field]) if isinstance(entry[field], list) else size
        try:
            found = Description.from_bytes(json.dumps(crafted).encode())
        except UsageError:
            continue
        json.dumps(as_json(found), allow_nan=False)
        assert found.generate(rows=20, given={"sex": "F"}).column("sex").to_pylist() == ["F"] * 20
        assert Description.from_bytes(found.to_bytes()).to_bytes() == found.to_bytes()
        served += 1
    # columns without rows are as good as ones of unknown shape
    assert served == (4 if size >= 1e-9 else 1)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"format": NaN}', b"null", b"cos\nsystem\n"],
)
def test_what_is_no_json_is_refused(content: bytes) -> None:
    with pytest.raises(UsageError, match="not a description"):
        Description.from_bytes(content)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Description.load(tmp_path / "none.json")


def test_counts_keep_close_to_the_model(description: Description) -> None:
    """Counts of pairs in a clique err by a few rows, where independent draws would err by their
    square root.
    """
    table = description.generate(rows=description.rows)
    found = Counter(zip(table["ill"].to_pylist(), table["smoker"].to_pylist(), strict=True))
    expected = description.marginal((3, 4))
    labels = ["none", "flu", "cold", None]
    for code, ill in enumerate(labels):
        for smoker in (0, 1):
            assert abs(found[(ill, bool(smoker))] - expected[code, smoker]) < 15


def test_conditions_hold_and_the_rest_follows(description: Description) -> None:
    women = description.generate(rows=500, given={"sex": "F"}).to_pydict()
    assert set(women["sex"]) == {"F"}
    assert np.mean([age < 45 for age in women["age"]]) > 0.95
    ill = description.generate(rows=500, given={"ill": "NULL", "sex": "M"}).to_pydict()
    assert set(ill["ill"]) == {None}
    assert np.mean(ill["smoker"]) < 0.05
    assert np.mean([age > 45 for age in ill["age"]]) > 0.95


def test_any_number_of_rows_different_every_time(description: Description) -> None:
    assert description.generate(rows=0).num_rows == 0
    assert description.generate(rows=1).num_rows == 1
    assert description.generate(rows=150_000).num_rows == 150_000
    assert description.generate(rows=50).to_pydict() != description.generate(rows=50).to_pydict()


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (40, 7), (900, 31)])
def test_places_are_found_as_a_search_finds_them(shape: tuple[int, int]) -> None:
    """Also where most cells are empty, one is all but certain, or a number is an end itself."""
    rng = np.random.default_rng(7)
    table = rng.random(shape) ** 40 * (rng.random(shape) < 0.4)
    table[:, -1] += 1e-12
    places = Places(table)
    numbers = np.sort(
        np.concatenate([rng.random(20_000) * shape[0], places._ends, np.arange(shape[0] + 1)])
    )
    assert (places.at_most(numbers) == np.searchsorted(places._ends, numbers, side="right")).all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"height": "3"}, "no column height"),
        ({"sex": "Q"}, "one of F, M, X"),
        ({"age": "old"}, "from 0 to 99"),
    ],
)
def test_bad_conditions_say_what_is_allowed(
    given: dict[str, str], sentence: str, description: Description
) -> None:
    with pytest.raises(UsageError, match=sentence):
        description.generate(rows=1, given=given)


def test_rows_must_be_a_number(description: Description) -> None:
    for rows in (-1, 1.5, True, "9"):
        with pytest.raises(UsageError, match="rows must be"):
            description.generate(rows=rows)  # type: ignore[arg-type]


def test_expected_errors_cover_true_ones_without_data(made: discreet.Curator) -> None:
    """At a small epsilon: the expected error of a column is of the size of the true one, and falls
    as epsilon grows.
    """
    small = made.describe("people", epsilon="0.5", synthesizer="independent")
    large = made.describe("people", epsilon=50, synthesizer="independent")
    for name in ("age", "sex", "ill"):
        assert 0 < large.expected_error([name]) < small.expected_error([name]) <= 1
    assert small.expected_error(["age", "sex"]) >= small.expected_error(["age"])
    with pytest.raises(UsageError, match="no column"):
        small.expected_error(["height"])


def test_too_little_budget_is_a_warning_with_figures(
    made: discreet.Curator, description: Description
) -> None:
    poor = made.describe("people", epsilon="0.001")
    assert len(poor.warnings) == 1
    assert "Too little budget: single columns are expected to err by 0." in poor.warnings[0]
    assert description.warnings == ()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"table": "nobody"}, "not in the policy"),
        ({"table": "states"}, "is public"),
        ({"synthesizer": "gan"}, "there are random, independent"),
        ({"columns": ["height"]}, "no column height"),
        ({"columns": []}, "no columns to describe"),
        ({"epsilon": 0}, "greater than zero"),
        ({"epsilon": "nan"}, "finite"),
        ({"analyst": "mallory"}, "mallory"),
    ],
)
def test_bad_input_is_one_sentence_and_costs_nothing(
    arguments: dict[str, Any], sentence: str, made: discreet.Curator
) -> None:
    spent = made._ledger.spent()
    with pytest.raises(discreet.DiscreetError, match=sentence):
        made.describe(**{"table": "people", "epsilon": 1, **arguments})
    assert made._ledger.spent() == spent


def test_the_three_verbs(
    made: discreet.Curator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, file = str(made.policy.path), str(tmp_path / "d.json")
    assert (
        run(["describe", policy, "people", "--epsilon", "5", "--out", file, "--synthesizer", "mst"])
        == 0
    )
    for name in ("rows.parquet", "rows.csv"):
        assert (
            run(
                [
                    "generate",
                    file,
                    "--rows",
                    "700",
                    "--out",
                    str(tmp_path / name),
                    "--given",
                    "sex=F",
                ]
            )
            == 0
        )
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").num_rows == 700
    assert set(pyarrow.csv.read_csv(tmp_path / "rows.csv")["sex"].to_pylist()) == {"F"}
    assert run(["inspect", file, "--html", str(tmp_path / "d.html")]) == 0
    assert "expected error" in capsys.readouterr().out
    page = (tmp_path / "d.html").read_text()
    assert "<svg" in page
    assert "http:" not in page  # loads nothing
    assert "https:" not in page
    assert run(["inspect", file, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"][0]["name"] == "age"
    assert run(["generate", file, "--rows", "1", "--out", str(tmp_path / "rows.xls")]) == 2
    capsys.readouterr()
    assert run(["generate", file, "--rows", "9" * 20, "--out", str(tmp_path / "all.csv")]) == 2
    assert "at most 1,000,000,000" in capsys.readouterr().err
    assert not (tmp_path / "all.csv").exists()
    assert (
        run(["generate", file, "--rows", "1", "--out", str(tmp_path / "r.csv"), "--given", "sex"])
        == 2
    )
    assert (
        run(["describe", policy, "people", "--epsilon", "5", "--out", "/nowhere/at/all.json"]) == 2
    )

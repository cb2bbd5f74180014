"""Risk by its definitions, and population uniques against populations that are known."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from tables import patients, people

from discreet.anonymity import Demand, Tree, anonymize, measure, risk
from discreet.anonymity.population import estimate, pitman, zayatz
from discreet.errors import UsageError

QUASI = ("age", "zip", "job")


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=people(most=25))
def test_risk_is_what_counting_by_hand_gives(data: pa.Table) -> None:
    rows = data.to_pylist()
    found = risk(data, quasi=QUASI, sensitive="ill")
    sizes = Counter(tuple(row[name] for name in QUASI) for row in rows)
    assert found.k == min(sizes.values())
    assert found.classes == len(sizes)
    assert found.unique == sum(size == 1 for size in sizes.values())
    assert found.prosecutor.average == pytest.approx(len(sizes) / len(rows))
    assert found.prosecutor.highest == pytest.approx(1 / found.k)
    assert sum(found.sizes.values()) == len(rows)
    assert found.sensitive is not None
    assert found.sensitive.l == min(
        len({row["ill"] for row in rows if tuple(row[name] for name in QUASI) == key})
        for key in sizes
    )
    by_columns = {each.columns: each.unique for each in found.unique_by_columns}
    assert len(by_columns) == 7
    fewest: dict[int, int] = {}
    for size in (1, 2, 3):
        for columns in combinations(QUASI, size):
            seen = Counter(tuple(row[name] for name in columns) for row in rows)
            assert by_columns[columns] == sum(count == 1 for count in seen.values())
            for index, row in enumerate(rows):
                if seen[tuple(row[name] for name in columns)] == 1:
                    fewest.setdefault(index, size)
    assert found.exposed_by == {
        size: sum(each == size for each in fewest.values()) for size in (1, 2, 3)
    }


def test_json_has_the_agreed_names() -> None:
    told = risk(patients(), quasi=["race", "sex"], sensitive="health issue").as_json()
    assert {"k", "l", "t", "classes", "unique", "unique_by_columns"} <= set(told)
    assert told["k"] == 1
    assert "exposed" not in told  # nobody is named unless asked for
    assert "exposed" in risk(patients(), quasi=["race"]).as_json(reveal=True)
    assert risk(patients(), quasi=["race"]).as_json()["l"] is None


def test_hierarchical_closeness_needs_the_tree() -> None:
    tree = {
        "health issue": Tree(
            branches={"heart": ("hypertension", "chest-pain"), "other": {}}, closed=False
        )
    }
    kinds = risk(patients(), quasi=["sex"], sensitive="health issue", hierarchies=tree).as_json()[
        "sensitive"
    ]
    assert isinstance(kinds, dict)
    assert set(kinds["t"]) == {"equal", "ordered", "hierarchical"}
    assert kinds["t"]["hierarchical"] <= kinds["t"]["equal"]


def test_numbers_and_dates_are_ordered() -> None:
    table = pa.table({"q": ["a", "a", "b", "b"], "s": [1, 2, 3, 4]})
    found = risk(table, quasi=["q"], sensitive="s").sensitive
    assert found is not None
    assert found.t == found.t_by["ordered"] == pytest.approx(1 / 3)


def test_a_population_lowers_the_journalists_risk() -> None:
    sample = pa.table({"q": ["a", "a", "b", None]})
    everybody = pa.table({"q": ["a"] * 10 + ["b"] * 4 + [None] * 2 + ["c"]})
    found = risk(sample, quasi=["q"], population=everybody)
    assert found.journalist is not None
    assert found.journalist.highest == pytest.approx(1 / 2)
    assert found.journalist.average == pytest.approx((2 / 10 + 1 / 4 + 1 / 2) / 4)
    assert found.marketer == pytest.approx((2 / 10 + 1 / 4 + 1 / 2) / 4)


def test_many_columns_are_tried_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    # of five columns: those of one and none of two
    monkeypatch.setattr(measure, "MOST_SUBSETS", 11)
    table = pa.table({name: list(range(6)) for name in "abcde"})
    found = risk(table, quasi=list("abcde"))
    assert not found.every_subset
    assert Counter(len(each.columns) for each in found.unique_by_columns) == {1: 5, 4: 5, 5: 1}


def test_keys_wider_than_a_word_are_grouped_too() -> None:
    wide = pa.table({f"c{i}": [j * 7919 % 4001 for j in range(4001)] for i in range(8)})
    found = risk(wide, quasi=wide.column_names)
    assert found.unique == 4001


def test_zip_codes_keep_their_zeros(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("zip,age\n02139,30\n2139,31\n02139,30\n")
    found = risk(path, quasi=["zip"])
    assert found.classes == 2
    assert found.exposed[0][0] == {"zip": "2139"}


LATE = "a,b\n" + "1,2\n" * 50_000
RAGGED = {
    "wide rows": "a,b\n1,2\n2,3,4\n3,4,5\n4,5,6\n",
    "all wide": "a,b\n1,2,3\n4,5,6\n",
    "all narrow": "a,b,c\n1,2\n4,5\n",
    "a narrow row": "a,b,c\n1,2,3\n2,3\n3,4,5\n",
    "wide and late": LATE + "1,2,3\n",
    "narrow and late": LATE + "1\n",
    "a title": "People\na,b\n1,2\n",
    "a remark": "# people\na,b\n1,2\n",
    "an open quote": 'a,b\n1,"x\n',
    "not UTF-8": LATE + "1,\xff\n",
}


@pytest.mark.parametrize("name", RAGGED)
def test_rows_that_do_not_fit_the_header_are_refused(tmp_path: Path, name: str) -> None:
    path, whole = tmp_path / "t.csv", pa.table({"a": [1, 2]})
    path.write_text(RAGGED[name], encoding="latin-1")
    with pytest.raises(UsageError, match="Its first line must name the columns, and every other"):
        risk(path, quasi=["a"])
    with pytest.raises(UsageError, match="Its first line must name the columns, and every other"):
        risk(whole, quasi=["a"], population=path)
    with pytest.raises(UsageError, match="Its first line must name the columns, and every other"):
        anonymize(path, Demand(quasi=["a"], k=2))


@pytest.mark.parametrize("text", ["", "\n", "\na,b\n1,2\n"], ids=repr)
def test_a_first_line_that_is_empty_is_no_header(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match="has no header"):
        risk(path, quasi=["a"])


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"], ids=repr)
def test_the_header_says_how_fields_are_cut(tmp_path: Path, mark: str) -> None:
    """Not what rows hold: other marks, remarks, a byte order mark, line ends."""
    path = tmp_path / "t.csv"
    rows = [
        ("b", '"a;b,c|d"', "c"),
        ("#1", "x", "2"),
        ("'x", '"p,q;r|s\t"', "2"),
        ("#1", "x", "2"),
        ("#1", "x", ""),
    ]
    path.write_text(
        "\ufeff" + "".join(mark.join(row) + "\r\n" for row in rows), newline="", encoding="utf-8"
    )
    found = risk(path, quasi=["a;b,c|d", "b"])
    assert (found.rows, found.classes) == (4, 2)


def test_names_of_folders_are_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "year=2024" / "t.csv"
    path.parent.mkdir()
    path.write_text("a\n1\n1\n")
    made = anonymize(path, Demand(quasi=["a"], k=2)).table
    assert made is not None
    assert made.column_names == ["a"]


def test_a_table_is_written_and_measured_whatever_its_columns_are_called(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    table = pa.table({"a;b;c|d": [1, 1, 2, 2], "#b": ["x"] * 4})
    assert anonymize(table, Demand(quasi=["a;b;c|d"], k=2), out=out).k == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quasi": []}, "at least one quasi-identifier"),
        ({"quasi": ["rase"]}, "Did you mean race"),
        ({"quasi": ["race", "race"]}, "twice"),
        ({"quasi": ["race"], "sensitive": "nope"}, "does not have"),
        ({"quasi": ["race"], "fraction": 0.0}, "above 0"),
        ({"quasi": ["race"], "fraction": 0.5, "population": patients()}, "not both"),
        ({"quasi": ["race"], "population": pa.table({"x": [1]})}, "no column race"),
    ],
)
def test_bad_questions_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        risk(patients(), **arguments)  # type: ignore[arg-type]


def test_bad_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        risk(tmp_path / "none.csv", quasi=["a"])
    (tmp_path / "t.txt").write_text("a\n1\n")
    (tmp_path / "t.parquet").write_text("not parquet")
    with pytest.raises(UsageError, match=r"\.csv or \.parquet"):
        risk(tmp_path / "t.txt", quasi=["a"])
    with pytest.raises(UsageError, match="cannot be read"):
        risk(tmp_path / "t.parquet", quasi=["a"])
    with pytest.raises(UsageError, match="lists or structures"):
        risk(pa.table({"a": [[1], [2]]}), quasi=["a"])


def thin(population: dict[int, int], fraction: float) -> dict[int, int]:
    """The expected class sizes of a sample, when everybody is in it with the same probability."""
    expected: dict[int, float] = {}
    for size, classes in population.items():
        for kept in range(1, size + 1):
            chance = comb(size, kept) * fraction**kept * (1 - fraction) ** (size - kept)
            expected[kept] = expected.get(kept, 0.0) + classes * chance
    return {size: round(classes) for size, classes in expected.items() if round(classes)}


@pytest.mark.parametrize("fraction", [0.3, 0.6])
def test_zayatz_finds_the_uniques_of_a_large_sample(fraction: float) -> None:
    population = {1: 20_000, 2: 9_000, 3: 5_000, 5: 2_000, 10: 500}
    found = zayatz(thin(population, fraction), fraction)
    assert 0.4 < found / population[1] < 2.5
    assert zayatz({2: 10, 3: 5}, fraction) == 0
    assert zayatz({1: 10, 2: 3}, 1.0) == pytest.approx(10)


def test_pitman_finds_the_uniques_of_its_own_model() -> None:
    """Classes by Pitman's formula have sizes j with frequencies about alpha * G(j - alpha) / G(1 -
    alpha) / j!.
    """
    alpha, classes = 0.5, 200_000
    share, spectrum = alpha, {}
    for size in range(1, 60):
        spectrum[size] = round(classes * share)
        share *= (size - alpha) / (size + 1)
    rows = sum(size * count for size, count in spectrum.items())
    found = pitman({size: count for size, count in spectrum.items() if count}, rows)
    assert found is not None
    assert found == pytest.approx(spectrum[1], rel=0.25)
    assert pitman({1: 5}, 100) is None
    assert pitman({2: 5}, 100) is None


def test_estimates_are_never_more_than_everybody() -> None:
    found = estimate(np.array([1, 1, 1, 2, 3]), 0.05)
    assert 0 <= found.chosen <= found.population == 160

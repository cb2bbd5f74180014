"""Differencing against exact elimination and all tables that fit, and on planted pairs and chains
among many.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from discreet.attacks import difference
from discreet.attacks.experiment.dice import Dice
from discreet.attacks.inputs.questions import read_log
from discreet.attacks.solve import ranges
from discreet.attacks.solve.modular import factor, mod, prime, rational
from discreet.cli.start.demo import MALICIOUS, QUESTIONS
from discreet.errors import UsageError
from discreet.examples import town


def reduced(rows):
    """The reduced echelon form over the rationals, row by row: the definition that the attack must
    agree with.
    """
    rows = [[Fraction(int(v)) for v in row] for row in rows]
    done = 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(done, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        rows[done] = [v / rows[done][column] for v in rows[done]]
        for r in range(len(rows)):
            if r != done and rows[r][column]:
                rows[r] = [
                    a - rows[r][column] * b for a, b in zip(rows[r], rows[done], strict=True)
                ]
        done += 1
    return rows[:done]


def people(n, rng):
    return pa.table(
        {"id": np.arange(n), "sick": rng.random(n) < 0.5, "income": rng.integers(0, 100_000, n)}
    )


def asked(members, what="COUNT(*)", where="sick AND "):
    return f"SELECT {what} FROM people WHERE {where}id IN ({', '.join(map(str, np.flatnonzero(members)))})"


def test_exposed_people_are_those_in_the_row_space():
    rng = np.random.default_rng()
    for _ in range(40):
        n, m = int(rng.integers(3, 9)), int(rng.integers(2, 8))
        sets = [s for s in rng.random((m, n)) < 0.5 if s.any()] or [np.ones(n, dtype=bool)]
        found = difference(
            [asked(s) for s in sets], people(n, rng), name="people", secrets=["sick"]
        )
        units = {row.index(1) for row in reduced(sets) if sum(map(bool, row)) == 1}
        alone = [e for e in found.exposed if e.by == "combination"]
        assert {e.row for e in alone} == units
        for e in alone:  # the chain told is a proof
            total = sum(weight * sets[number - 1].astype(int) for number, weight in e.chain)
            assert [int(v) for v in total] == [int(i == e.row) for i in range(n)]
            assert e.right


def test_pairs_of_whom_a_sum_follows_are_told():
    rng = np.random.default_rng()
    mixed = people(5, rng).set_column(1, "sick", pa.array([True, False, True, False, True]))
    log = [asked([1, 1, 1, 1, 1]), asked([0, 0, 1, 1, 1])]
    found = difference(log, mixed, name="people", secrets=["sick"])
    assert found.safe
    assert (0, 1) in {g.rows for g in found.groups}
    log = [asked([1, 1, 0, 0, 0]), asked([0, 1, 1, 0, 0]), asked([1, 0, 0, 1, 1])]
    pair = mixed.set_column(1, "sick", pa.array([True, False, True, False, False]))
    found = difference(log, pair, name="people", secrets=["sick"])
    # whoever knows one of the three knows the others
    assert (0, 1, 2) in {g.rows for g in found.groups}


def test_exposed_people_are_those_with_no_other_value():
    """Against all tables of 0 and 1 that give the same answers; sums of a known column over the
    sick among them.
    """
    rng = np.random.default_rng()
    for _ in range(60):
        n, m = int(rng.integers(2, 8)), int(rng.integers(1, 5))
        sick = rng.random(n) < rng.choice([0.1, 0.5, 0.9])
        income = rng.integers(1, 5, n)
        table = pa.table({"id": np.arange(n), "sick": sick, "income": income})
        sets = [s if s.any() else ~s for s in rng.random((m, n)) < 0.6]
        weights = [income if rng.random() < 0.3 else np.ones(n, dtype=int) for _ in sets]
        log = [
            asked(s, "COUNT(*)" if (w == 1).all() else "SUM(income)")
            for s, w in zip(sets, weights, strict=True)
        ]
        worlds = np.array(list(product([0, 1], repeat=n)))
        fits = np.all(
            [(worlds @ (s * w)) == sick @ (s * w) for s, w in zip(sets, weights, strict=True)],
            axis=0,
        )
        fixed = (worlds[fits] == sick).all(axis=0) & np.any(sets, axis=0)
        found = difference(log, table, name="people", secrets=["sick"])
        assert {e.row for e in found.exposed} == set(np.flatnonzero(fixed).tolist())
        assert found.verdict == ("exposed" if fixed.any() else "safe")
        assert all(e.right for e in found.exposed)


def test_numbers_in_a_range_against_all_that_fit():
    rng = np.random.default_rng()
    for _ in range(40):
        n, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        stars = rng.choice([0, 0, 1, 2, 2], n)
        table = pa.table({"id": np.arange(n), "stars": stars})
        sets = [s if s.any() else ~s for s in rng.random((m, n)) < 0.6]
        worlds = np.array(list(product(range(3), repeat=n)))
        fits = np.all([(worlds @ s) == stars @ s for s in sets], axis=0)
        fixed = (worlds[fits] == stars).all(axis=0) & np.any(sets, axis=0)
        log = [asked(s, "SUM(stars)", "") for s in sets]
        found = difference(log, table, name="people", secrets=["stars"], ranges={"stars": (0, 2)})
        told = {e.row for e in found.exposed}
        assert told <= set(np.flatnonzero(fixed).tolist())
        if not found.unproved:
            assert told == set(np.flatnonzero(fixed).tolist())


EVERYBODY = {  # a question whose answer is at an end, and who is exposed by it
    "SELECT COUNT(*) FROM people WHERE ill AND team = 'a'": {0, 1, 2},
    "SELECT COUNT(*) FROM people WHERE NOT ill AND team = 'a'": {0, 1, 2},
    "SELECT COUNT(*) FILTER (WHERE ill) FROM people WHERE team = 'b'": {3, 4, 5},
    "SELECT SUM(flag) FROM people WHERE team = 'a'": {0, 1, 2},
    "SELECT AVG(flag) FROM people WHERE team = 'a'": {0, 1, 2},
    "SELECT SUM(CASE WHEN ill THEN 1 ELSE 0 END) FROM people WHERE team = 'a'": {0, 1, 2},
    "SELECT team, ill, COUNT(*) FROM people GROUP BY team, ill": {0, 1, 2, 3, 4, 5},
    "SELECT SUM(pay) FROM people WHERE team = 'a'": {0, 1, 2},
    "SELECT SUM(pay) FROM people WHERE id IN (4, 5)": {4, 5},
    "SELECT SUM(pay) FROM people WHERE ill AND id > 2": {3, 4, 5},
    "SELECT COUNT(*) FROM people WHERE pay > 8 AND id > 3": {4, 5},
    "SELECT COUNT(*) FROM people WHERE town = 'nowhere'": {0, 1, 2, 3, 4, 5},
    "SELECT SUM(one) FROM people": {0, 1, 2, 3, 4, 5},
    "SELECT COUNT(*) FROM people WHERE ill; SELECT COUNT(*) FROM people WHERE ill AND id <> 3 AND id <> 4": {
        3,
        4,
    },
    "SELECT COUNT(*) FROM people WHERE town = 'x' AND id < 3;SELECT COUNT(*) FROM people WHERE town = 'y' AND id < 5": {
        0,
        1,
        2,
        3,
        4,
    },
}


@pytest.mark.parametrize("log", EVERYBODY)
def test_sums_at_an_end_expose_everybody_in_them(log):
    table = pa.table(
        {
            "id": range(6),
            "team": [*"aaabbb"],
            "ill": [True] * 3 + [False] * 3,
            "flag": [1, 1, 1, 0, 1, 0],
            "pay": [0, 0, 0, 7, 9, 9],
            "town": [*"xxxyyz"],
            "one": [1] * 6,
        }
    )
    found = difference(log, table, name="people", secrets=["ill", "flag", "pay", "town", "one"])
    assert found.verdict == "exposed"
    assert not found.safe
    assert {e.row for e in found.exposed} >= EVERYBODY[log]


def test_what_is_not_proved_is_not_called_safe():
    table = pa.table({"id": range(6), "ill": [True, False] * 3, "pay": [5, 5, 5, 5, 5, 5]})
    count = "SELECT COUNT(*) FROM people WHERE ill"
    assert difference([count], table, name="people").verdict == "safe"
    for more in (
        "SELECT MEDIAN(pay) FROM people",
        "SELECT AVG(pay) FROM people WHERE ill",
        "SELECT SUM(pay) FROM people",
    ):
        found = difference([count, more], table, name="people")
        assert found.verdict == "not found", more
        assert found.unproved
        assert not found.as_json()["safe"]
    found = difference(
        ["SELECT SUM(pay) FROM people"], table, name="people", ranges={"pay": (0, 9)}
    )
    assert found.safe
    found = difference(
        ["SELECT SUM(pay) FROM people"], table, name="people", ranges={"pay": (0, 5)}
    )
    assert len(found.exposed) == 6


def test_very_many_sums_are_looked_at_one_by_one(monkeypatch):
    monkeypatch.setattr(ranges, "MOST_CELLS", 1)
    table = pa.table({"id": range(4), "ill": [True, True, False, True]})
    found = difference(
        ["SELECT COUNT(*) FROM people WHERE ill AND id < 2"], table, name="people", secrets=["ill"]
    )
    assert {e.row for e in found.exposed} == {0, 1}
    found = difference(
        ["SELECT COUNT(*) FROM people WHERE ill"], table, name="people", secrets=["ill"]
    )
    assert found.verdict == "not found"


def test_planted_pairs_and_chains_among_many_questions():
    """Ranges over two columns, and among them: everybody but one; a sum in four parts without one;
    and a mean.
    """
    # now and then a range holds the planted person alone, which is a shorter chain
    rng = np.random.default_rng(8)
    n, m = 3000, 400
    table = pa.table(
        {
            "id": np.arange(n),
            "age": rng.integers(0, 100, n),
            "zip": rng.integers(0, 300, n),
            "income": rng.integers(0, 100_000, n),
            "sick": rng.random(n) < 0.3,
        }
    )
    log = []
    for _ in range(m):
        a, b = sorted(rng.integers(0, 100, 2))
        z, y = sorted(rng.integers(0, 300, 2))
        log.append(
            f"SELECT COUNT(*) FROM people WHERE sick AND age BETWEEN {a} AND {b} AND zip BETWEEN {z} AND {y}"
        )
    log[40] = "SELECT COUNT(*) FROM people WHERE sick"
    log[350] = "SELECT COUNT(*) FROM people WHERE (id <> 1234) AND sick"
    log += [
        "SELECT SUM(income) FROM people WHERE id < 1000",
        "SELECT SUM(income) FROM people WHERE id < 250",
    ]
    log += ["SELECT SUM(income) FROM people WHERE id BETWEEN 250 AND 776"]
    log += ["SELECT AVG(income) AS mean FROM people WHERE id > 777 AND id < 1000"]
    log += [
        "SELECT COUNT(*) FROM people WHERE sick GROUP BY age",
        "SELECT MEDIAN(income) FROM people",
    ]
    found = difference(log, table, name="people", secrets=["sick", "income"])
    chains = {(e.row, e.secret): [number for number, _ in e.chain] for e in found.exposed}
    assert chains[1234, "sick"] == [41, 351]
    assert chains[777, "income"] == [401, 402, 403, 404]
    assert all(e.right for e in found.exposed)
    assert found.finding.success == 1.0
    assert found.finding.chance < 1
    assert [number for number, _ in found.skipped] == [405, 406]


def test_group_by_and_both_sides_of_a_secret():
    table = pa.table({"team": ["a", "a", "b"], "age": [1, 2, 3], "ill": [True, False, True]})
    log = ["SELECT team, COUNT(*) FROM people WHERE ill GROUP BY team"]
    found = difference(log, table, name="people", secrets=["ill"])
    assert [e.row for e in found.exposed] == [2]
    log = [
        "SELECT COUNT(*) FROM people WHERE ill",
        "SELECT COUNT(*) FROM people WHERE NOT ill AND age < 3",
    ]
    found = difference(log, table, name="people", secrets=["ill"])
    # counting those who are not ill counts those who are
    assert [e.row for e in found.exposed] == [2]
    hidden = ["SELECT ill, COUNT(*) FROM people WHERE age < 2 GROUP BY ill"]
    assert [e.row for e in difference(hidden, table, name="people", secrets=["ill"]).exposed] == [0]


def test_answers_from_a_function_and_with_noise():
    rng = np.random.default_rng()
    table = people(60, rng)
    truth = table["sick"].to_numpy()
    log = [asked(np.arange(60) != i) for i in range(60)] + [asked(np.ones(60))]

    def answering(noise):
        return lambda sql: _count(sql, table) + noise()

    exact = difference(log, table, name="people", secrets=["sick"], answers=answering(lambda: 0))
    assert len(exact.exposed) == 60
    assert exact.finding.success == 1.0
    noisy = difference(
        log, table, name="people", secrets=["sick"], answers=answering(lambda: rng.laplace(0, 100))
    )
    assert noisy.finding.success < 0.9  # 60 coins: all but six right has probability 1e-10
    assert noisy.finding.chance == pytest.approx(max(truth.mean(), 1 - truth.mean()), abs=0.51)


def _count(sql, table):
    ids = [int(i) for i in sql.split("(")[-1].strip(")").split(",")]
    return int(table["sick"].to_numpy()[ids].sum())


def test_the_demo_log_is_safe():
    """What `discreet demo` asks gives nobody away; with one more question it would."""
    log = [sql for _, sql, _ in QUESTIONS if "FROM people" in sql]
    residents = town.tables(2000)["people"]
    found = difference(log, residents, name="people")
    assert not found.exposed
    assert not found.skipped
    # mean incomes by age say something about ages that is not worked out
    assert found.verdict == "not found"
    assert not found.safe
    assert difference(log[:1], residents, name="people").safe
    # it asks about Karrie alone
    assert difference([*log, MALICIOUS], residents, name="people").exposed


def test_what_cannot_be_analyzed_is_listed():
    log = read_log(
        "SELECT MAX(age) FROM people; SELECT COUNT(*) FROM other; SELECT name FROM people; DELETE FROM people;"
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people); SELECT COUNT(*) FROM people",
        "people",
    )
    assert [number for number, _ in log.skipped] == [1, 2, 3, 4, 5]
    assert len(log.questions) == 1
    with pytest.raises(UsageError, match="does not fit the table"):
        difference(
            ["SELECT COUNT(*) FROM people WHERE nowhere = 1"],
            people(3, np.random.default_rng()),
            name="people",
        )


def test_the_log_cannot_read_files():
    with pytest.raises(UsageError):
        difference(
            [
                "SELECT COUNT(*) FROM people WHERE (SELECT COUNT(*) FROM 'pyproject.toml') > 0 AND sick"
            ]
            * 2
            + [
                "SELECT COUNT(*) FROM people WHERE read_text('pyproject.toml') IS NOT NULL AND sick"
            ],
            people(3, np.random.default_rng()),
            name="people",
        )


def test_modular_algebra_is_exact():
    rng = np.random.default_rng()
    p = prime(Dice())
    for m, width, rank in ((5, 7, 3), (150, 200, 100), (130, 90, 70)):
        left, right = (
            rng.integers(0, p, shape).astype(object) for shape in ((m, rank), (rank, width))
        )
        matrix = (left @ right % p).astype(float)
        found = factor(matrix, p)
        assert len(found.rows) == rank
        square = matrix[np.ix_(found.rows, found.columns)].astype(object)
        b = rng.integers(0, p, (rank, 3)).astype(float)
        assert (square @ found.solve(b).astype(object) % p == b).all()
        assert (found.solve_left(b.T).astype(object) @ square % p == b.T).all()
    values = rng.integers(0, 2**52, 1000)
    assert (mod(values.astype(float), p).astype(int) == values % p).all()
    for fraction in (Fraction(2, 3), Fraction(-1), Fraction(-7, 11)):
        residue = fraction.numerator * pow(fraction.denominator, -1, p) % p
        assert rational(residue, p) == fraction


@pytest.mark.slow
def test_thousands_of_questions():
    rng = np.random.default_rng()
    n, m = 10_000, 3000
    columns = {"id": np.arange(n), "age": rng.integers(0, 100, n), "zip": rng.integers(0, 500, n)}
    table = pa.table(columns | {"sick": rng.random(n) < 0.3})
    log = []
    for _ in range(m):
        a, b = sorted(rng.integers(0, 100, 2))
        z, y = sorted(rng.integers(0, 500, 2))
        log.append(
            f"SELECT COUNT(*) FROM people WHERE sick AND age BETWEEN {a} AND {b} AND zip BETWEEN {z} AND {y}"
        )
    planted = rng.choice(n, 50, replace=False)
    for k, person in enumerate(planted):
        crowd = f"(zip < {9 * k + 20} OR id = {person})"
        log.append(f"SELECT COUNT(*) FROM people WHERE sick AND {crowd}")
        log.append(
            f"SELECT COUNT(*) FROM people WHERE sick AND {crowd} AND id <> {person} AND age < 40"
        )
        log.append(
            f"SELECT COUNT(*) FROM people WHERE sick AND {crowd} AND id <> {person} AND age >= 40"
        )
    log = [log[i] for i in rng.permutation(len(log))]
    found = difference(log, table, name="people", secrets=["sick"])
    assert {int(p) for p in planted} <= {e.row for e in found.exposed}
    assert all(e.right for e in found.exposed)

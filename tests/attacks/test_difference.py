"""Differencing against exact elimination on small tables, and on planted pairs and chains among many questions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from discreet import town
from discreet.attacks import difference
from discreet.attacks.dice import Dice
from discreet.attacks.modular import factor, mod, prime, rational
from discreet.attacks.questions import read_log
from discreet.cli.demo import MALICIOUS, QUESTIONS
from discreet.errors import UsageError


def reduced(rows):
    """The reduced echelon form over the rationals, row by row: the definition that the attack must agree with."""
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
                rows[r] = [a - rows[r][column] * b for a, b in zip(rows[r], rows[done], strict=True)]
        done += 1
    return rows[:done]


def people(n, rng):
    return pa.table({"id": np.arange(n), "sick": rng.random(n) < 0.5, "income": rng.integers(0, 100_000, n)})


def asked(members, what="COUNT(*)", where="sick AND "):
    return f"SELECT {what} FROM people WHERE {where}id IN ({', '.join(map(str, np.flatnonzero(members)))})"


def test_exposed_people_are_those_in_the_row_space():
    rng = np.random.default_rng()
    for _ in range(40):
        n, m = int(rng.integers(3, 9)), int(rng.integers(2, 8))
        sets = [s for s in rng.random((m, n)) < 0.5 if s.any()] or [np.ones(n, dtype=bool)]
        found = difference([asked(s) for s in sets], people(n, rng), name="people", secrets=["sick"])
        units = {row.index(1) for row in reduced(sets) if sum(map(bool, row)) == 1}
        assert {e.row for e in found.exposed} == units
        assert found.safe == (not units)
        for e in found.exposed:  # the chain told is a proof
            total = sum(weight * sets[number - 1].astype(int) for number, weight in e.chain)
            assert [int(v) for v in total] == [int(i == e.row) for i in range(n)]
            assert e.right


def test_pairs_of_whom_a_sum_follows_are_told():
    rng = np.random.default_rng()
    log = [asked([1, 1, 1, 1, 1]), asked([0, 0, 1, 1, 1])]
    found = difference(log, people(5, rng), name="people", secrets=["sick"])
    assert found.safe
    assert (0, 1) in {g.rows for g in found.groups}
    log = [asked([1, 1, 0, 0, 0]), asked([0, 1, 1, 0, 0]), asked([1, 0, 0, 1, 1])]
    found = difference(log, people(5, rng), name="people", secrets=["sick"])
    assert (0, 1, 2) in {g.rows for g in found.groups}  # whoever knows one of the three knows the others


def test_planted_pairs_and_chains_among_many_questions():
    """Ranges over two columns, and among them: everybody but one; a sum in four parts without one; and a mean."""
    rng = np.random.default_rng(8)  # now and then a range holds the planted person alone, which is a shorter chain
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
        log.append(f"SELECT COUNT(*) FROM people WHERE sick AND age BETWEEN {a} AND {b} AND zip BETWEEN {z} AND {y}")
    log[40] = "SELECT COUNT(*) FROM people WHERE sick"
    log[350] = "SELECT COUNT(*) FROM people WHERE (id <> 1234) AND sick"
    log += ["SELECT SUM(income) FROM people WHERE id < 1000", "SELECT SUM(income) FROM people WHERE id < 250"]
    log += ["SELECT SUM(income) FROM people WHERE id BETWEEN 250 AND 776"]
    log += ["SELECT AVG(income) AS mean FROM people WHERE id > 777 AND id < 1000"]
    log += ["SELECT COUNT(*) FROM people WHERE sick GROUP BY age", "SELECT MEDIAN(income) FROM people"]
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
    log = ["SELECT COUNT(*) FROM people WHERE ill", "SELECT COUNT(*) FROM people WHERE NOT ill AND age < 3"]
    found = difference(log, table, name="people", secrets=["ill"])
    assert [e.row for e in found.exposed] == [2]  # counting those who are not ill counts those who are
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
    noisy = difference(log, table, name="people", secrets=["sick"], answers=answering(lambda: rng.laplace(0, 100)))
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
    assert found.safe
    assert not found.skipped
    assert not difference([*log, MALICIOUS], residents, name="people").safe  # it asks about Karrie alone


def test_what_cannot_be_analyzed_is_listed():
    log = read_log(
        "SELECT MAX(age) FROM people; SELECT COUNT(*) FROM other; SELECT name FROM people; DELETE FROM people;"
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people); SELECT COUNT(*) FROM people",
        "people",
    )
    assert [number for number, _ in log.skipped] == [1, 2, 3, 4, 5]
    assert len(log.questions) == 1
    with pytest.raises(UsageError, match="does not fit the table"):
        difference(["SELECT COUNT(*) FROM people WHERE nowhere = 1"], people(3, np.random.default_rng()), name="people")


def test_the_log_cannot_read_files():
    with pytest.raises(UsageError):
        difference(
            ["SELECT COUNT(*) FROM people WHERE (SELECT COUNT(*) FROM 'pyproject.toml') > 0 AND sick"] * 2
            + ["SELECT COUNT(*) FROM people WHERE read_text('pyproject.toml') IS NOT NULL AND sick"],
            people(3, np.random.default_rng()),
            name="people",
        )


def test_modular_algebra_is_exact():
    rng = np.random.default_rng()
    p = prime(Dice())
    for m, width, rank in ((5, 7, 3), (150, 200, 100), (130, 90, 70)):
        left, right = (rng.integers(0, p, shape).astype(object) for shape in ((m, rank), (rank, width)))
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
        log.append(f"SELECT COUNT(*) FROM people WHERE sick AND age BETWEEN {a} AND {b} AND zip BETWEEN {z} AND {y}")
    planted = rng.choice(n, 50, replace=False)
    for k, person in enumerate(planted):
        crowd = f"(zip < {9 * k + 20} OR id = {person})"
        log.append(f"SELECT COUNT(*) FROM people WHERE sick AND {crowd}")
        log.append(f"SELECT COUNT(*) FROM people WHERE sick AND {crowd} AND id <> {person} AND age < 40")
        log.append(f"SELECT COUNT(*) FROM people WHERE sick AND {crowd} AND id <> {person} AND age >= 40")
    log = [log[i] for i in rng.permutation(len(log))]
    found = difference(log, table, name="people", secrets=["sick"])
    assert {int(p) for p in planted} <= {e.row for e in found.exposed}
    assert all(e.right for e in found.exposed)

"""Linkage, exact and fuzzy, against brute force on small tables."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

from discreet.attacks import link
from discreet.errors import UsageError


def random_tables(rng):
    def table(rows, **more):
        return pa.table(
            {
                "zip": pa.array(
                    rng.choice([None, "01", "02", "03"], rows, p=[0.1, 0.3, 0.3, 0.3]), pa.string()
                ),
                "sex": pa.array([str(rng.choice(["F", "M"])) for _ in range(rows)]),
                "born": pa.array(rng.integers(0, 4, rows)),
            }
            | more
        )

    return table(int(rng.integers(1, 12))), table(int(rng.integers(1, 12)))


def test_exact_links_against_brute_force():
    rng = np.random.default_rng()
    for _ in range(200):
        release, listed = random_tables(rng)
        found = link(release, listed, on=["zip", "sex", "born"])
        left, right = ([tuple(r.values()) for r in t.to_pylist()] for t in (release, listed))
        expected = {
            (i, right.index(row))
            for i, row in enumerate(left)
            if None not in row and left.count(row) == 1 and right.count(row) == 1
        }
        assert {(x.release_row, x.identified_row) for x in found.links} == expected
        for each in found.links:  # the columns told are enough, and no fewer are
            for dropped in ((), *((c,) for c in each.columns)):
                chosen = [c for c in each.columns if c not in dropped]
                keys = [
                    [tuple(r[c] for c in chosen) for r in t.to_pylist()] for t in (release, listed)
                ]
                mine = keys[0][each.release_row]
                clean = [[k for k in side if None not in k] for side in keys]
                alone = (
                    bool(chosen)
                    and None not in mine
                    and clean[0].count(mine) == clean[1].count(mine) == 1
                )
                assert alone == (not dropped)
        for u in found.uniqueness:
            rows = [tuple(r[c] for c in u.columns) for r in release.to_pylist()]
            clean = [row for row in rows if None not in row]
            assert u.release == pytest.approx(
                sum(clean.count(row) == 1 for row in clean) / len(rows)
            )


def test_a_column_that_is_missing_everywhere_links_nobody():
    nobody = pa.table({"zip": pa.array([None], pa.string()), "sex": ["F"]})
    assert link(nobody, nobody, on=["zip", "sex"]).links == ()


def town(n, rng):
    return pa.table(
        {
            "id": np.arange(n),
            "name": [
                f"{a}{b} {c}"
                for a, b, c in zip(*(rng.choice(list("abcdefghij"), (3, n))), strict=True)
            ],
            "zip": [f"{z:05}" for z in rng.integers(0, 20, n)],
            "born": [date(1940, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 20_000, n)],
        }
    )


def test_dates_that_are_a_little_wrong_need_a_tolerance():
    people = town(1000, np.random.default_rng())
    later = pa.array([d + timedelta(days=2) for d in people.column("born").to_pylist()])
    release = people.select(["id", "zip"]).append_column("born", later)
    exact = link(release, people, on=["zip", "born"], truth="id")
    fuzzy = link(release, people, on=["zip", "born~2"], truth="id")
    assert exact.finding.success < 0.05
    assert fuzzy.finding.success > 0.9
    assert all(0.5 < each.confidence <= 1 for each in fuzzy.links)


def test_misspelt_names_are_found_by_similarity():
    people = pa.table(
        {"id": [1, 2, 3], "name": ["Catherine Meyer", "Jonathan Osterman", "Ursula Iguaran"]}
    )
    release = pa.table(
        {"id": [2, 3, 1], "name": ["Jonathon Ostermann", "Ursula Iguarán", "Katherine Meyer"]}
    )
    assert not link(release, people, on=["name"]).links
    found = link(release, people, on=["name~0.8"], truth="id")
    assert found.finding.success == 1.0


def test_a_list_that_covers_few_lowers_the_confidence():
    people = pa.table({"id": np.arange(100), "zip": [f"{i % 100:03}" for i in range(100)]})
    whole = link(people, people, on=["zip"])
    part = link(people, people, on=["zip"], coverage=0.4)
    assert {x.confidence for x in whole.links} == {1.0}
    assert part.links
    assert all(0.4 < x.confidence < 0.8 for x in part.links)


def test_nobody_is_named_unless_asked_for():
    people = town(50, np.random.default_rng())
    found = link(people.select(["zip", "born"]), people, on=["zip", "born"])
    assert found.links
    hidden, shown = found.as_json(), found.as_json(reveal=True)
    assert not any(name in str(hidden) for name in people["name"].to_pylist())
    assert "identified_row" not in hidden["links"][0]
    assert shown["links"][0]["identity"]["name"]
    assert {"prosecutor_highest", "journalist_highest", "marketer"} <= hidden["risks"].keys()


def test_types_may_differ_and_mistakes_are_told():
    release = pa.table({"zip": [2138, 2139]})
    listed = pa.table({"code": ["2138", "2140"], "name": ["a", "b"]})
    assert len(link(release, listed, on=["zip=code"]).links) == 1
    for on, message in (
        ([], "which columns"),
        (["zap"], "needs a column zap"),
        (["zip=code~x"], "comes a number"),
    ):
        with pytest.raises(UsageError, match=message):
            link(release, listed, on=on)
    with pytest.raises(UsageError, match="coverage"):
        link(release, listed, on=["zip=code"], coverage=2)

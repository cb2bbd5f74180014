"""The scoreboard against its formula, and its experiment on records where the outcome is known."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from discreet.attacks import scoreboard
from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.knowledge import Knowledge, curves, experiment
from discreet.attacks.inputs.ratings import Index, index
from discreet.attacks.lessons.scoreboard import film_club
from discreet.attacks.scoreboard import Clues, chances, scores
from discreet.errors import UsageError


def by_formula(rows, known):
    """score = sum of wt (exp(-|rating|/1.5) + exp(-|days|/30)), the best entry of each user and
    item.
    """
    users = sorted({r["user"] for r in rows})
    board = dict.fromkeys(users, 0.0)
    for item, value, day in known:
        holders = {r["user"] for r in rows if r["item"] == item}
        for user in users:
            fits = [
                (0 if value is None else math.exp(-abs(r["value"] - value) / 1.5))
                + (0 if day is None else math.exp(-abs(r["day"] - day) / 30))
                for r in rows
                if r["user"] == user and r["item"] == item
            ]
            if value is None and day is None:
                fits = [1.0 for _ in fits]
            board[user] += max(fits, default=0) / math.log(max(len(holders), 2))
    return board


def test_scores_are_the_formula():
    rng = np.random.default_rng()
    for _ in range(20):
        n = 60
        table = pa.table(
            {
                "user": rng.integers(0, 8, n) * 7,
                "item": [f"i{k}" for k in rng.integers(0, 10, n)],
                "value": rng.integers(2, 11, n) / 2,
                "day": rng.integers(100, 300, n),
            }
        )
        pairs = {(row["user"], row["item"]): k for k, row in enumerate(table.to_pylist())}
        table = table.take(sorted(pairs.values()))  # the support counts people, so one entry each
        where = index(table)
        known = [
            (
                str(rng.choice(table["item"].to_pylist())),
                float(rng.integers(1, 6)),
                int(rng.integers(100, 300)),
            ),
            (str(rng.choice(table["item"].to_pylist())), None, int(rng.integers(100, 300))),
            (str(rng.choice(table["item"].to_pylist())), 3.0, None),
            (str(rng.choice(table["item"].to_pylist())), None, None),
        ]
        codes = [where.items.to_pylist().index(item) for item, _, _ in known]
        facts = Clues(
            item=np.array(codes),
            value=np.array([np.nan if v is None else v for _, v, _ in known]),
            day=np.array([np.nan if d is None else d for _, _, d in known]),
        )
        board = scores(where, facts)
        expected = by_formula(table.to_pylist(), known)
        for code, user in enumerate(where.users.to_pylist()):
            assert board[code] == pytest.approx(expected[user], abs=1e-6)


def test_the_best_of_several_visits_counts():
    visits = pa.table(
        {"user": [1, 1, 2, 3], "item": ["a", "a", "a", "b"], "day": [10, 200, 100, 10]}
    )
    where = index(visits)
    board = scores(
        where, Clues(item=np.array([0]), value=np.array([np.nan]), day=np.array([200.0]))
    )
    assert board.argmax() == 0
    assert board[0] == pytest.approx(1 / math.log(3))


def test_from_files_with_dates_to_matches(tmp_path):
    club = film_club(400, 300, Dice())
    days = pa.array(club["day"].to_numpy().astype("datetime64[D]"))
    release = club.set_column(3, "day", days)
    pq.write_table(release, tmp_path / "release.parquet")
    rows = [np.flatnonzero(club["user"].to_numpy() == user)[:8] for user in (5, 17)]
    who = np.repeat([5, 17], [len(r) for r in rows])
    aux = release.take(np.concatenate(rows)).drop_columns("user")
    aux = aux.append_column("target", pa.array([f"t{user}" for user in who])).append_column(
        "who", pa.array(who)
    )
    csv.write_csv(aux, tmp_path / "aux.csv")
    found = scoreboard(tmp_path / "release.parquet", tmp_path / "aux.csv", truth="who")
    assert found.as_json()["matches"][0]["user"] == 5
    assert (found.named, found.right, found.finding.success) == (2, 2, 1.0)
    assert found.finding.chance == pytest.approx(1 / 400)
    plain = scoreboard(release, aux, method="plain")
    assert [m["user"] for m in plain.as_json()["matches"]] == [5, 17]
    made = index(release)
    made.save(tmp_path / "index")
    assert scoreboard(Index.open(tmp_path / "index"), aux, truth="who").as_json() == found.as_json()


def test_nobody_is_named_when_two_fit_alike():
    twins = pa.table({"user": [1, 2, 3, 4], "item": [7, 7, 8, 9], "value": [3, 3, 4, 5]})
    aux = pa.table({"target": ["x"], "item": [7], "value": [3]})
    match = scoreboard(twins, aux).as_json()["matches"][0]
    assert match["user"] is None
    assert match["eccentricity"] == 0
    likely = chances(np.array([2.0, 2.0, 0.0, 0.0]))
    assert likely.sum() == pytest.approx(1)
    assert likely[0] == likely[1] > likely[2]


def test_the_experiment_names_most_and_noise_in_what_is_known_costs():
    """Exact knowledge of eight entries names nearly everybody; of one popular entry without a date,
    hardly anybody.
    """
    where = index(film_club(1500, 500, Dice()))
    much = experiment(where, Knowledge(entries=8, wrong=2, days=14), targets=150)
    little = experiment(where, Knowledge(entries=1), targets=150)
    assert much.right.value > 0.75  # false alarm below 1e-9 if the true rate is 0.95
    assert little.right.value < 0.3
    assert much.finding.chance == pytest.approx(1 / 1500)
    thinned = experiment(where, Knowledge(entries=8, wrong=2, days=14), targets=150, released=0.3)
    assert thinned.right.value < much.right.value
    assert [len(curves(where, most=2, days=(3, None), targets=20))] == [4]


def test_obscure_items_and_short_records():
    where = index(film_club(200, 300, Dice()))
    assert experiment(where, Knowledge(entries=4, days=3, obscure=50), targets=30).right.n > 0
    with pytest.raises(UsageError, match="entries or more"):
        experiment(where, Knowledge(entries=10_000))


def test_types_are_as_small_as_they_can_be():
    where = index(
        pa.table({"user": ["a", "b"], "item": [1, 2], "value": [1, 5], "day": [10_000, 10_200]})
    )
    assert (where.value.dtype, where.day.dtype, where.first_day) == (np.uint8, np.uint8, 10_000)
    halves = index(pa.table({"user": ["a", "b"], "item": [1, 2], "value": [1.5, None]}))
    assert halves.value.dtype == np.float32
    assert halves.day is None


def test_mistakes_are_told(tmp_path):
    with pytest.raises(UsageError, match="columns user and item"):
        index(pa.table({"who": [1]}))
    with pytest.raises(UsageError, match="empty"):
        index(pa.table({"user": pa.array([], pa.int64()), "item": pa.array([], pa.int64())}))
    ratings = pa.table({"user": [1, 2], "item": [1, 2]})
    with pytest.raises(UsageError, match="target"):
        scoreboard(ratings, pa.table({"item": [1]}))
    with pytest.raises(UsageError, match='"rh" or "plain"'):
        scoreboard(ratings, pa.table({"item": [1], "target": ["x"]}), method="best")
    with pytest.raises(UsageError, match="no index"):
        Index.open(tmp_path)
    with pytest.raises(UsageError, match="no file"):
        scoreboard(tmp_path / "nothing.csv", pa.table({"item": [1], "target": ["x"]}))

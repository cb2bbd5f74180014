"""Census reconstruction against brute force, and the seven people of Garfinkel, Abowd and
Martindale.
"""

from __future__ import annotations

import copy
import itertools
import statistics as st
from collections import Counter
from fractions import Fraction
from time import process_time

import numpy as np
import pytest

from discreet.attacks.census import census, components
from discreet.attacks.inputs.published import read
from discreet.attacks.solve.cells import arrangements
from discreet.errors import UsageError

SEVEN = {
    "domain": {"age": [1, 125], "sex": ["F", "M"], "race": ["B", "W"], "marital": ["S", "M"]},
    "rules": [{"if": {"marital": "M"}, "then": {"age": [15, 125]}}],
    "statistics": [
        {"group": {}, "count": 7, "median": 30, "mean": 38},
        {"group": {"sex": "F"}, "count": 4, "median": 30, "mean": 33.5},
        {"group": {"sex": "M"}, "count": 3, "median": 30, "mean": 44},
        {"group": {"race": "B"}, "count": 4, "median": 51, "mean": 48.5},
        {"group": {"race": "W"}, "count": 3, "median": 24, "mean": 24},
        {"group": {"marital": "M"}, "count": 4, "median": 51, "mean": 54},
        {"group": {"race": "B", "sex": "F"}, "count": 3, "median": 36, "mean": 36.7},
        {"group": {"marital": "S", "age": {">=": 18}}, "suppressed": True},
        {"group": {"race": "B", "sex": "M"}, "suppressed": True},
        {"group": {"race": "W", "sex": "M"}, "suppressed": True},
        {"group": {"race": "W", "sex": "F"}, "suppressed": True},
        {"group": {"age": [1, 4]}, "suppressed": True},
        {"group": {"age": "< 18"}, "suppressed": True},
        {"group": {"age": {"at_least": 64}}, "suppressed": True},
    ],
}
PEOPLE = ["8FBS", "18MWS", "24FWS", "30MWM", "36FBM", "66FBM", "84MBM"]


def written(record):
    return f"{record['age']}{record['sex']}{record['race']}{record['marital']}"


def test_the_seven_people():
    found = census(SEVEN)
    assert (found.worlds, found.capped, found.verdict) == (1, False, "exact")
    assert sorted(map(written, found.common)) == sorted(PEOPLE)
    assert [share for _, share in found.certainty] == [1.0] * 7
    assert found.finding.success == 1.0
    assert found.finding.interval == (1.0, 1.0)
    assert found.finding.chance < 0.01
    started = process_time()  # other programs' share of the machine does not count
    census(SEVEN)
    assert process_time() - started < 1


def test_with_fewer_statistics_there_are_more_worlds():
    """The counts were found twice more, by programs over people and over single records."""
    for dropped, worlds in (([5], 22), ([6], 2), ([5, 6], 76), ([4, 6], 3), ([1, 2], 6)):
        fewer = dict(
            SEVEN, statistics=[s for i, s in enumerate(SEVEN["statistics"]) if i not in dropped]
        )
        assert census(fewer).worlds == worlds


def test_the_cap_is_told_and_common_records_are_still_certain():
    fewer = dict(SEVEN, statistics=[s for i, s in enumerate(SEVEN["statistics"]) if i != 5])
    whole, part = census(fewer), census(fewer, cap=2)
    assert part.capped
    assert part.worlds < whole.worlds
    assert whole.sampled is None
    assert 0 < part.as_json()["sampled"] <= 25
    assert part.common == whole.common  # the solver proves it beyond the cap


def test_noisy_tables_are_infeasible_and_with_margins_vague():
    noisy = copy.deepcopy(SEVEN)
    for statistic, noise in zip(noisy["statistics"], (2, -1, 1, 0, -2, 1, -1), strict=False):
        statistic["count"] += noise
    found = census(noisy)
    assert (found.worlds, found.verdict) == (0, "infeasible")
    assert found.finding.success == 0
    assert "contradict" in found.sentence
    for statistic in noisy["statistics"]:
        if "count" in statistic:
            statistic["count"] = {"value": statistic["count"], "margin": 3}
            statistic["mean"] = {"value": statistic["mean"], "margin": 20}
            del statistic["median"]
    found = census(noisy, cap=200)
    assert found.verdict == "vague"
    assert found.capped
    assert not found.common


# Brute force: every multiset of up to four people over a domain of a dozen records.

DOMAIN = {"age": [1, 4], "rooms": [1, 2], "sex": ["F", "M"]}
RULES = [{"if": {"sex": "M"}, "then": {"age": {">=": 2}}}]
RECORDS = [
    {"age": a, "rooms": r, "sex": s}
    for a in range(1, 5)
    for r in (1, 2)
    for s in "FM"
    if not (s == "M" and a < 2)
]
GROUPS = [
    {},
    {"sex": "F"},
    {"sex": "M"},
    {"age": [2, 3]},
    {"rooms": 2},
    {"sex": "F", "age": [1, 2]},
    {"age": {">": 2}},
]


def inside(person, group):
    for name, condition in group.items():
        if isinstance(condition, list):
            if not condition[0] <= person[name] <= condition[1]:
                return False
        elif isinstance(condition, dict):
            if not person[name] > condition[">"]:
                return False
        elif person[name] != condition:
            return False
    return True


def quantile(values, q):
    values = sorted(values)
    at = (len(values) - 1) * q
    low = values[int(at)]
    return low + (at - int(at)) * (values[min(int(at) + 1, len(values) - 1)] - low)


def published(world, group, keys):
    people = [p for p in world if inside(p, group)]
    row = {"group": group}
    if "suppressed" in keys:
        return dict(row, suppressed=True) if len(people) < 3 else dict(row, count=len(people))
    if "count" in keys:
        row["count"] = len(people)
    if "range" in keys:
        row["count"] = [max(len(people) - 1, 0), len(people) + 1]
    if people:
        of = "rooms" if "rooms" in keys else "age"
        values = [p[of] for p in people if of in p]
        numbers = {
            "mean": round(float(np.mean(values)), 1),
            "median": st.median(values),
            "min": min(values),
            "max": max(values),
            "sum": sum(values),
            "quantiles": {"0.25": round(quantile(values, 0.25), 1)},
        }
        row[of] = {key: numbers[key] for key in keys if key in numbers}
    return row


def fits(world, row):
    people = [p for p in world if inside(p, row["group"])]
    if row.get("suppressed"):
        return len(people) < 3
    if "count" in row:
        low, high = row["count"] if isinstance(row["count"], list) else (row["count"], row["count"])
        if not low <= len(people) <= high:
            return False
    for of in ("age", "rooms"):
        numbers = row.get(of, {})
        values = [p[of] for p in people if of in p]
        if set(numbers) - {"sum"} and not values:
            return False
        exact = {"sum": sum(values)}
        if values:
            exact |= {
                "mean": Fraction(sum(values), len(values)),
                "min": min(values),
                "max": max(values),
            }
            exact["median"] = quantile(values, Fraction(1, 2))
        for key, number in numbers.items():
            if key == "quantiles":
                pairs = [(quantile(values, Fraction(q)), v) for q, v in number.items()]
            else:
                pairs = [(exact[key], number)]
            slack = 0 if key == "sum" else Fraction(1, 20)
            if any(abs(Fraction(str(have)) - Fraction(str(want))) > slack for have, want in pairs):
                return False
    return True


def worlds_by_force(tables, most):
    for size in range(most + 1):
        for world in itertools.combinations_with_replacement(RECORDS, size):
            if all(fits(world, row) for row in tables["statistics"]):
                yield world


KEYS = ("count", "mean", "median", "min", "max", "sum", "quantiles", "suppressed", "range", "rooms")


def random_tables(rng):
    world = [RECORDS[i] for i in rng.integers(len(RECORDS), size=rng.integers(1, 5))]
    total = (
        {"group": {}, "count": len(world)} if rng.random() < 0.7 else {"group": {}, "count": [0, 4]}
    )
    rows = [total]
    for _ in range(rng.integers(1, 5)):
        keys = set(rng.choice(KEYS, size=rng.integers(1, 4), replace=False))
        rows.append(published(world, GROUPS[rng.integers(len(GROUPS))], keys))
    return {"domain": DOMAIN, "rules": RULES, "statistics": rows}


def key(record):
    return tuple(sorted(record.items()))


@pytest.mark.parametrize("part", range(4))
def test_worlds_certainty_and_common_records_against_brute_force(part):
    rng = np.random.default_rng()
    for _ in range(12):
        tables = random_tables(rng)
        truth = [Counter(map(key, world)) for world in worlds_by_force(tables, 4)]
        found = census(tables, cap=100_000)
        assert not found.capped
        assert found.worlds == len(truth) > 0, tables
        common = Counter(map(key, found.common))
        assert common == truth[0] if len(truth) == 1 else common == _shared(truth), tables
        shares = {key(record): share for record, share in found.certainty}
        expected = Counter(record for world in truth for record in world)
        assert shares.keys() == expected.keys()
        assert all(abs(shares[r] - expected[r] / len(truth)) < 1e-12 for r in shares), tables


def _shared(worlds):
    shared = worlds[0]
    for world in worlds[1:]:
        shared = shared & world
    return shared


def test_columns_that_nothing_tells_apart_multiply_the_worlds():
    """Three people, each any of 50 shirt sizes: 50 * 51 * 52 / 6 multisets, from one solution of
    the program.
    """
    tables = {"domain": {"shirt": [1, 50]}, "statistics": [{"group": {}, "count": 3}]}
    found = census(tables, cap=2)
    assert (found.worlds, found.capped) == (50 * 51 * 52 // 6, False)


def test_blocks_of_a_tract_fall_apart():
    rows = []
    for block, ages in (("north", (3, 5, 9)), ("south", (2, 2, 8))):
        group = {"block": block}
        rows.append(
            {"group": group, "count": 3, "mean": round(sum(ages) / 3, 1), "median": sorted(ages)[1]}
        )
    domain = {"age": [1, 10], "block": ["north", "south"]}
    apart = {"domain": domain, "statistics": rows}
    whole = {"domain": domain, "statistics": [*rows, {"group": {}, "count": 6, "sum": 29}]}
    assert len(components(read(apart))) == len(components(read(whole))) == 2
    alone = [
        census({"domain": {"age": [1, 10]}, "statistics": [dict(row, group={})]}).worlds
        for row in rows
    ]
    assert census(apart).worlds == census(whole).worlds == alone[0] * alone[1] > 1
    median = {"domain": domain, "statistics": [*rows, {"group": {}, "median": 4}]}
    assert len(components(read(median))) == 1  # a median of all ties the blocks together


def test_a_contradiction_between_totals_is_seen():
    rows = [
        {"group": {"sex": "F"}, "count": 2},
        {"group": {"sex": "M"}, "count": 2},
        {"group": {}, "count": 5},
    ]
    assert census({"domain": {"sex": ["F", "M"]}, "statistics": rows}).verdict == "infeasible"


def test_arrangements_count_multisets():
    for width, twins, n in itertools.product((1, 2, 3), (1, 2, 5), (1, 2, 3)):
        records = [(v, t) for v in range(width) for t in range(twins)]
        sums = Counter(
            sum(v for v, _ in s) for s in itertools.combinations_with_replacement(records, n)
        )
        assert {
            s: arrangements(width, twins, n, s)
            for s in range(n * width)
            if arrangements(width, twins, n, s)
        } == sums


@pytest.mark.slow
def test_blocks_of_thirty_people():
    """The same kind of tables for up to thirty people: the truth is always among the worlds."""
    rng = np.random.default_rng()
    for size in (10, 20, 30):
        people = [
            {"age": int(a), "sex": s, "race": r, "marital": "S" if a < 15 else m}
            for a, s, r, m in zip(
                rng.integers(1, 95, size),
                *(rng.choice(list(v), size) for v in ("FM", "BW", "SM")),
                strict=True,
            )
        ]
        groups = [{}, {"sex": "F"}, {"sex": "M"}, {"race": "B"}, {"race": "W"}, {"marital": "M"}]
        groups += [{"sex": s, "race": r, "marital": m} for s in "FM" for r in "BW" for m in "SM"]
        rows = []
        for group in groups:
            ages = [p["age"] for p in people if inside(p, group)]
            if len(ages) < 3:
                rows.append({"group": group, "suppressed": True})
                continue
            mean, median = round(float(np.mean(ages)), 1), st.median(ages)
            rows.append({"group": group, "count": len(ages), "mean": mean, "median": median})
        found = census(dict(SEVEN, statistics=rows), cap=300)
        assert found.worlds >= 1
        truth = Counter(map(key, people))
        assert not Counter(map(key, found.common)) - truth
        assert found.seconds < 60


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"statistics": [], "domain": {"age": "old"}}, "domain of age"),
        (
            {"domain": {"sex": ["F"]}, "statistics": [{"group": {"sex": "X"}, "count": 1}]},
            "not in the domain",
        ),
        ({"domain": {"sex": ["F"]}, "statistics": [{"group": {}, "counts": 1}]}, 'write "count"'),
        ({"domain": {"sex": ["F"]}, "statistics": [{"group": {}, "mean": 1}]}, '"of"'),
        (
            {"domain": {"age": [1, 9]}, "statistics": [{"group": {}, "mean": 1}]},
            "bounds the number of people",
        ),
        (
            {"domain": {"age": [1, 9]}, "statistics": [{"group": {"ages": 3}, "count": 1}]},
            "names the column",
        ),
        ("[1, 2", "not JSON"),
    ],
)
def test_refusals_say_what_to_write(tables, message):
    with pytest.raises(UsageError, match=message):
        census(tables)

"""A generated town to play with: people, their visits to clinics, the labs of those visits, and
public states.

Nothing here is about anybody: every value is a fixed hash of a number, so the town is the same
wherever it is built. It has believable shapes (incomes with a long tail, illnesses that depend on
age and smoking), and two residents whom the demonstrations go after: Karrie, whose income everybody
wonders about, and a governor who is the only one with that sex, ZIP code and date of birth.
"""

from __future__ import annotations

from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, np.dtype[Any]]

KARRIE: dict[str, Any] = {"name": "Karrie Ames", "income": 56274.00}
GOVERNOR: dict[str, Any] = {
    "name": "Walter Wells",
    "born": date(1944, 9, 17),
    "zip": "02138",
    "sex": "M",
}

POLICY = """\
source: data/                      # people, visits, labs and states as Parquet files
unit: person
neighbors: add_remove
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      name:      text              # an analyst may ask about Karrie; the answer drowns in noise
      zip:       text
      born:      {date: [1920-01-01, 2024-12-31]}
      age:       {integer: [0, 120]}
      sex:       {values: [F, M, X]}
      income:    {decimal: [0, 200000], step: 0.01}
      diagnosis: {values: [asthma, cancer, depression, diabetes, flu, hypertension], nullable: true}
      smoker:    {boolean: true}
      state:     {values: [STATES]}
  visits:
    owner: person_id
    max_rows: 10                   # a few people come more often; ten of their visits are kept
    columns:
      visit_id:  {identifier: true}
      person_id: {identifier: true}
      day:       {date: [2024-01-01, 2024-12-31]}
      seen:      {timestamp: [2024-01-01, 2025-01-01], step: 1s}
      cost:      {decimal: [0, 1000], step: 0.01}
      clinic:    {values: [Harbor, Hill, Market, Station]}
  labs:
    owner: {through: visits, on: visit_id}
    max_rows: 30
    columns:
      visit_id:  {identifier: true}
      test:      {values: [cholesterol, glucose, hemoglobin]}
      value:     {decimal: [0, 400], step: 0.1}
  states: {public: true}
budget: {epsilon: 4, delta: 1e-9}
limits: {epsilon: 1, seconds: 60, memory: 2GB}
analysts:
  alice: {epsilon: 2}
  bob:   {epsilon: 1}
releases:
  visits_by_day:                   # published every day of the year for one ε: discreet release start, then run
    question: SELECT COUNT(*) AS visits FROM visits
    time: day
    period: day
    from: 2024-01-01
    periods: 366
    publish: [daily, cumulative, 7, 30]
    per_person: {periods: 10}      # a person counts on ten days of the year at most
    epsilon: 1
"""

# Postal code, region, people in thousands (rounded, 2020).
_STATES = """
AL South 5024|AK West 733|AZ West 7152|AR South 3012|CA West 39538|CO West 5774|CT Northeast 3606|DE South 990
FL South 21538|GA South 10712|HI West 1455|ID West 1839|IL Midwest 12813|IN Midwest 6786|IA Midwest 3190
KS Midwest 2938|KY South 4506|LA South 4658|ME Northeast 1362|MD South 6177|MA Northeast 7030|MI Midwest 10077
MN Midwest 5706|MS South 2961|MO Midwest 6155|MT West 1084|NE Midwest 1962|NV West 3105|NH Northeast 1378
NJ Northeast 9289|NM West 2118|NY Northeast 20201|NC South 10439|ND Midwest 779|OH Midwest 11799|OK South 3959
OR West 4237|PA Northeast 13003|RI Northeast 1097|SC South 5118|SD Midwest 887|TN South 6911|TX South 29146
UT West 3272|VT Northeast 643|VA South 8631|WA West 7705|WV South 1794|WI Midwest 5894|WY West 577
"""
STATES = tuple(tuple(row.split()) for row in _STATES.strip().replace("\n", "|").split("|"))

_FIRST = {
    "F": "Ada Bea Carla Dora Edith Flora Grace Hanna Ines Jana Kira Lena Mara Nora Olga Petra Rosa Sara Tilda Vera",
    "M": "Adam Boris Carl David Emil Felix Georg Hugo Ivan Jonas Karl Leon Max Nils Otto Paul Remy Stefan Tom Victor",
    "X": "Alex Billie Casey Devon Eden Frankie Gray Indigo Jamie Kit Lane Morgan Noel Oak Quinn Robin Sky Tay Wren",
}
_LAST = (
    "Abbot Baker Carter Dyer Eaton Fisher Glover Hunter Irving Joyner Knight Lawson Mason Norris Osborn Porter "
    "Quincy Rider Sawyer Tanner Upton Vance Weaver Yates Archer Bishop Cooper Draper Emery Fowler Granger Harper"
)
_DIAGNOSES = ("asthma", "cancer", "depression", "diabetes", "flu", "hypertension")
_CLINICS = ("Harbor", "Hill", "Market", "Station")
_TESTS = {"cholesterol": (190.0, 35.0), "glucose": (100.0, 25.0), "hemoglobin": (14.0, 1.5)}
_DAYS = np.datetime64("2024-01-01")


def build(folder: str | Path, people: int = 10_000) -> Path:
    """Write the town's Parquet files and its policy to a folder; return the policy's path."""
    import pyarrow.parquet

    data = Path(folder) / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name, table in tables(people).items():
        pyarrow.parquet.write_table(table, data / f"{name}.parquet")
    policy = Path(folder) / "town.yaml"
    policy.write_text(
        POLICY.replace("STATES", ", ".join(f'"{code}"' for code, _, _ in STATES)), encoding="utf-8"
    )
    return policy


def tables(people: int) -> dict[str, pa.Table]:
    """Return the town as Arrow tables: people, visits, labs, states."""
    import pyarrow as pa

    residents = _people(people)
    visits = _visits(residents["age"])
    labs = _labs(visits["visit_id"])
    code, region, thousands = zip(*STATES, strict=True)
    states = {
        "state": code,
        "region": region,
        "population": [int(each) * 1000 for each in thousands],
    }
    return {
        "people": pa.table(residents),
        "visits": pa.table(visits),
        "labs": pa.table(labs),
        "states": pa.table(states),
    }


def _people(n: int) -> dict[str, Array]:
    who = np.arange(1, n + 1)
    sex = pick(even(who, "sex"), ("F", "M", "X"), (0.505, 0.485, 0.01))
    age = np.floor(95 * even(who, "age") ** 1.25).astype(np.int64)
    age[even(who, "old") < 0.01] += 8
    born = np.datetime64("2024-12-31") - (age * 365.25 + 365 * even(who, "birthday")).astype(
        np.int64
    )
    zips = [f"021{each}" for each in range(38, 60)]
    home = pick(even(who, "zip"), zips, [1 / (rank + 2) for rank in range(len(zips))])
    weights = [int(thousands) * (12 if code == "MA" else 1) for code, _, thousands in STATES]
    smoker = even(who, "smoker") < np.where((age > 17) & (age < 80), 0.16, 0.01)
    peak = np.clip(1 - ((age - 52) / 45.0) ** 2, 0.15, 1)
    income = np.where(age < 16, 0, np.round(52_000 * peak * np.exp(0.6 * bell(who, "income")), 2))
    residents: dict[str, Array] = {
        "person_id": who,
        "name": _names(who, sex),
        "zip": home,
        "born": born,
        "age": age,
        "sex": sex,
        "income": income,
        "diagnosis": _diagnoses(who, age, smoker),
        "smoker": smoker,
        "state": pick(even(who, "state"), [code for code, _, _ in STATES], weights),
    }
    _famous(residents)
    return residents


def _names(who: Array, sex: Array) -> Array:
    first = {each: np.array(names.split(), dtype=object) for each, names in _FIRST.items()}
    last = np.array(_LAST.split(), dtype=object)
    given = np.empty(len(who), dtype=object)
    for each, names in first.items():
        given[sex == each] = names[_word(who[sex == each], "first name") % len(names)]
    named: Array = given + " " + last[_word(who, "last name") % len(last)]
    return named


def _diagnoses(who: Array, age: Array, smoker: Array) -> Array:
    """Return illness by age and smoking; about half of the people have none, which is NULL."""
    ill = even(who, "ill") < np.clip(0.25 + age / 200 + 0.12 * smoker, 0, 0.85)
    old = age > 50
    young = pick(even(who, "which"), _DIAGNOSES, (0.3, 0.02, 0.2, 0.05, 0.38, 0.05))
    aged = pick(even(who, "which"), _DIAGNOSES, (0.08, 0.14, 0.1, 0.22, 0.1, 0.36))
    which = np.where(old, aged, young)
    which[~ill] = None
    return which


def _famous(residents: dict[str, Array]) -> None:
    """Make Karrie the third resident and the governor the fifth. Nobody else has his date of birth,
    ZIP code and sex.
    """
    n = len(residents["person_id"])
    same = (
        (residents["born"] == np.datetime64(GOVERNOR["born"]))
        & (residents["zip"] == GOVERNOR["zip"])
        & (residents["sex"] == GOVERNOR["sex"])
    )
    residents["born"][same] += 1
    karrie = {
        **KARRIE,
        "sex": "F",
        "age": 39,
        "born": np.datetime64("1985-05-04"),
        "zip": "02139",
        "smoker": False,
    }
    governor = {**GOVERNOR, "age": 80, "income": 151_800.0, "diagnosis": "cancer", "state": "MA"}
    for place, famous in ((2, karrie), (4, governor)):
        for column, value in famous.items() if place < n else ():
            residents[column][place] = value


def _visits(age: Array) -> dict[str, Array]:
    who = np.arange(1, len(age) + 1)
    often = 1 + age / 25
    times = np.minimum(np.floor(-np.log1p(-even(who, "visits")) * often), 25).astype(np.int64)
    person = np.repeat(who, times)
    visit = np.arange(1, len(person) + 1)
    day = _DAYS + (_word(visit, "day") % 366).astype(np.int64)
    seconds = 8 * 3600 + (_word(visit, "time") % (10 * 3600)).astype(np.int64)
    return {
        "visit_id": visit,
        "person_id": person,
        "day": day,
        "seen": day.astype("datetime64[s]") + seconds,
        "cost": np.round(40 * np.exp(0.9 * np.abs(bell(visit, "cost"))), 2),
        "clinic": pick(even(visit, "clinic"), _CLINICS, (0.4, 0.3, 0.2, 0.1)),
    }


def _labs(visits: Array) -> dict[str, Array]:
    times = (_word(visits, "labs") % 3).astype(np.int64)
    visit = np.repeat(visits, times)
    row = np.arange(1, len(visit) + 1)
    which = (_word(row, "test") % len(_TESTS)).astype(np.int64)
    center, spread = np.array(list(_TESTS.values())).T
    return {
        "visit_id": visit,
        "test": np.array(list(_TESTS), dtype=object)[which],
        "value": np.round(center[which] + spread[which] * bell(row, "value"), 1),
    }


# --- fixed hashes of numbers, so that the town is always the same ---------------------------------


def _word(items: Array, purpose: str) -> Array:
    """Return 64 well-mixed bits of each item (the finalizer of splitmix64), different for each
    purpose.
    """
    start = int.from_bytes(blake2b(purpose.encode(), digest_size=8).digest(), "little")
    x = items.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def even(items: Array, purpose: str) -> Array:
    """Return numbers that are uniform in [0, 1)."""
    return np.asarray(_word(items, purpose) >> np.uint64(11)) / 2.0**53


def bell(items: Array, purpose: str) -> Array:
    """Return numbers that are nearly normal, with deviation 1, from -6 to 6: sums of twelve uniform
    ones.
    """
    parts = np.stack([even(items, f"{purpose} {part}") for part in range(12)])
    return np.asarray(parts.sum(axis=0) - 6)


def pick(even: Array, choices: Any, weights: Any) -> Array:
    ends = np.cumsum(np.asarray(weights, dtype=float))
    places = np.searchsorted(ends[:-1] / ends[-1], even, side="right")
    return np.array(choices, dtype=object)[places]

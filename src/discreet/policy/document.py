"""A YAML document in which every value knows its place, so that a mistake can be shown where it was
made.

Plain scalars follow YAML 1.2: `no`, `off` and `2024-01-01` are strings, only `true` and `false` are
booleans. Anchors, aliases and tags are refused: a policy is to be read by people, top to bottom.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

import yaml

from discreet.budget import amount
from discreet.errors import NO_TEXT, Problem, UsageError
from discreet.policy.addresses import hide_passwords

PLACEHOLDER = "???"  # what `discreet init` writes where only the curator knows the answer
_DEPTH = 20
_QUOTED = 60
# ten times faster on long lists of values
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_SIZES = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_TIMES = {
    "": Fraction(1),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    line: int
    column: int
    text: str
    quoted: bool

    def __str__(self) -> str:
        """Return the beginning, without passwords, for messages: a table of people given as a
        policy must not be recited.
        """
        text = hide_passwords(self.text)
        if len(text) > _QUOTED:
            text = f"{text[:_QUOTED]}…"
        return text or "nothing"

    @property
    def value(self) -> str | int | Fraction | bool | None:
        """The value by YAML 1.2. Numbers with a leading zero stay strings: 02139 is a ZIP code, not
        2139.
        """
        if self.quoted:
            return self.text
        if self.text in ("true", "True", "TRUE", "false", "False", "FALSE"):
            return self.text.lower() == "true"
        if self.text in ("", "~", "null", "Null", "NULL"):
            return None
        if re.match(r"[-+]?0[0-9]", self.text):
            return self.text
        number = rational(self.text)
        whole = number is not None and re.fullmatch(r"[-+]?[0-9]+", self.text)
        if number is None:
            return self.text
        if whole:
            return int(number)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    line: int
    column: int
    items: tuple[Node, ...]

    def __str__(self) -> str:
        return "a list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    line: int
    column: int
    entries: Mapping[str, tuple[Scalar, Node]]

    def __str__(self) -> str:
        return "a mapping"


Node = Scalar | List | Map


def rational(text: str) -> Fraction | None:
    """Return the exact number that was written (0.01 is 1/100), or None; 1e999999999 is too
    large.
    """
    return Fraction(text) if len(text) <= 100 and _NUMBER.fullmatch(text) else None


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a sentence that helps whoever mistyped a word."""
    words = sorted(known)
    close = get_close_matches(word.lower(), [each.lower() for each in words], n=1)
    found = [each for each in words if close and each.lower() == close[0]]
    if not words:
        return "None is declared."
    return f"Did you mean {found[0]}?" if found else f"Known here: {', '.join(words)}."


def parse(text: str, *, file: str) -> tuple[Node | None, list[Problem]]:
    """Return the document's root, and what is wrong with the text as YAML, duplicate keys
    included.
    """
    tree = _Tree(file=file)
    try:
        return tree.document(yaml.parse(text, Loader=_LOADER)), tree.problems
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        what = " ".join(filter(None, (error.context, error.problem)))
        tree.note(line, column, f"This is not valid YAML: {what}. {_remedy(what)}".rstrip())
    except (yaml.YAMLError, UnicodeEncodeError):  # half a character is no UTF-8
        tree.note(1, 1, "This is not valid YAML: it holds a character that is not allowed.")
    return None, tree.problems


def _remedy(what: str) -> str:
    """Return what to look at, for the mistakes that are made most often."""
    if "tab" in what:
        return "Indent with blanks, not with tabs."
    if "start any token" in what:
        return "Indent with blanks, not with tabs, and write a text between quotes."
    if "quoted scalar" in what:
        return "A quotation mark is not closed."
    if "flow" in what:
        return "A bracket or a comma is missing: [a, b] or {a: 1, b: 2}."
    if "block mapping" in what or "mapping values" in what:
        return "Look at how this line and the one above are indented, and for a missing quote."
    return ""


class _Tree:
    """Builds nodes from the parser's events, and notes what a policy does not use."""

    def __init__(self, *, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def note(self, line: int, column: int, message: str) -> None:
        self.problems.append(Problem(file=self.file, line=line, column=column, message=message))

    def document(self, events: Iterator[Any]) -> Node | None:
        root = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    self.note(*_place(event), "A policy is one document: remove the second `---`.")
                    return root
                root = self.node(next(events), events, 0)
        return root

    def node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        line, column = _place(event)
        if depth > _DEPTH:
            raise yaml.MarkedYAMLError(
                problem="it is nested too deeply", problem_mark=event.start_mark
            )
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self.note(
                line,
                column,
                "Anchors and aliases (& and *) are not used in a policy: write the value out.",
            )
        elif event.tag is not None:
            self.note(
                line,
                column,
                "Tags such as !!str are not used in a policy: quote a value to make it a string.",
            )
        if isinstance(event, yaml.MappingStartEvent):
            return Map(line=line, column=column, entries=self.entries(events, depth))
        if isinstance(event, yaml.SequenceStartEvent):
            return List(line=line, column=column, items=tuple(self.items(events, depth)))
        text = getattr(event, "value", "")
        style = getattr(event, "style", None)
        if NO_TEXT.search(text):
            self.note(
                line,
                column,
                "This holds a control character, which a terminal would obey. Remove it.",
            )
            text = NO_TEXT.sub("\ufffd", text)  # messages repeat the text
        return Scalar(line=line, column=column, text=text, quoted=style in ("'", '"', "|", ">"))

    def items(self, events: Iterator[Any], depth: int) -> Iterator[Node]:
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            yield self.node(event, events, depth + 1)

    def entries(self, events: Iterator[Any], depth: int) -> Mapping[str, tuple[Scalar, Node]]:
        found: dict[str, tuple[Scalar, Node]] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self.node(event, events, depth + 1)
            value = self.node(next(events), events, depth + 1)
            if not isinstance(key, Scalar) or "\n" in key.text:
                self.note(key.line, key.column, "A key must be a name, on one line.")
            elif key.text in found:
                first = found[key.text][0].line
                self.note(
                    key.line, key.column, f"{key} is given twice; the first is on line {first}."
                )
            else:
                found[key.text] = (key, value)
        return found


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


class Reader:
    """Turns nodes into values. What cannot be read becomes a problem and None, so that reading goes
    on to the end.
    """

    def __init__(self, *, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems
        self.places: dict[tuple[str, ...], tuple[int, int]] = {}

    def problem(self, node: Node, message: str) -> None:
        self.problems.append(
            Problem(file=self.file, line=node.line, column=node.column, message=message)
        )

    def wrong(self, node: Node, what: str, expected: str) -> None:
        if isinstance(node, Scalar) and node.text == PLACEHOLDER:
            self.problem(node, f"{what} is still open: instead of {PLACEHOLDER} write {expected}.")
        else:
            self.problem(node, f"{what} must be {expected}, not {node}.")

    def empty(self, node: Node | None) -> bool:
        """Return True if nothing was written: `columns:` with no value is an empty mapping, not a
        mistake.
        """
        return node is None or (isinstance(node, Scalar) and node.value is None)

    def fields(
        self, node: Node | None, what: str, path: tuple[str, ...], known: Iterable[str] | None
    ) -> dict[str, Node]:
        """Return the entries of a mapping by key; `known` None allows any key."""
        if node is None or not isinstance(node, Map):
            if node is not None and not self.empty(node):
                self.wrong(
                    node, what, f"a mapping with {', '.join(known)}" if known else "a mapping"
                )
            return {}
        found: dict[str, Node] = {}
        for name, (key, value) in node.entries.items():
            self.places[(*path, name)] = (key.line, key.column)
            if known is not None and name not in known:
                self.problem(key, f"{what} has no key {key}. {nearest(name, known)}")
            else:
                found[name] = value
        return found

    # Each of these gives None for a key that is absent, and a problem and None for a value that
    # cannot be read.

    def string(self, node: Node | None, what: str, expected: str) -> str | None:
        if node is None:
            return None
        if not isinstance(node, Scalar) or not node.text.strip() or node.text == PLACEHOLDER:
            self.wrong(node, what, expected)
            return None
        if node.value is None:
            self.problem(
                node,
                f"{what} is {node}, which is nothing in YAML. Write {expected}; quote it if it is a name.",
            )
            return None
        return node.text

    def word(self, node: Node | None, what: str, allowed: tuple[str, ...]) -> str | None:
        if node is None or (isinstance(node, Scalar) and node.text in allowed):
            return None if node is None else node.text
        self.wrong(node, what, " or ".join(allowed))
        return None

    def flag(self, node: Node | None, what: str) -> bool | None:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or node is None:
            return value if isinstance(value, bool) else None
        self.wrong(node, what, "true or false")
        return None

    def number(self, node: Node | None, what: str) -> Fraction | None:
        value = rational(node.text) if isinstance(node, Scalar) else None
        if value is None and node is not None:
            self.wrong(node, what, "a number")
        return value

    def whole(self, node: Node | None, what: str) -> int | None:
        value = rational(node.text) if isinstance(node, Scalar) else None
        if value is not None and value.denominator == 1 and 1 <= value < 2**31:
            return int(value)
        if node is not None:
            self.wrong(node, what, "a whole number, 1 or more")
        return None

    def amount(
        self, node: Node | None, what: str, *, most: Fraction | None = None, zero: bool = False
    ) -> Fraction | None:
        """Read an amount of privacy, exactly as written; fractions such as 1/3 are understood."""
        if node is None:
            return None
        text = node.text if isinstance(node, Scalar) else ""
        if rational(text) is None and not re.fullmatch(r"[0-9]{1,40}/[0-9]{1,40}", text):
            self.wrong(node, what, "a finite number")
            return None
        try:
            return amount(text, name=what, most=most, zero=zero)
        except UsageError as error:
            self.problem(node, str(error))
            return None

    def size(self, node: Node | None, what: str) -> int | None:
        """Read bytes: 4GB is 4,000,000,000 and 4GiB is 4,294,967,296, as in DuckDB."""
        value = self._measure(node, what, _SIZES, "a size such as 64KB or 4GB")
        return None if value is None else int(value)

    def seconds(self, node: Node | None, what: str) -> Fraction | None:
        """Read a duration in seconds; a bare number is seconds."""
        return self._measure(node, what, _TIMES, "a duration such as 500ms, 0.5s or 2min")

    def _measure(
        self, node: Node | None, what: str, units: Mapping[str, Fraction | int], expected: str
    ) -> Fraction | None:
        match = (
            re.fullmatch(r"([0-9.]+)([A-Za-z]*)", node.text) if isinstance(node, Scalar) else None
        )
        number = rational(match[1]) if match else None
        unit = units.get(match[2]) if match else None
        if number and unit is not None:
            return number * unit
        if node is not None:
            self.wrong(node, what, expected)
        return None

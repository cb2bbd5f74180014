"""Hierarchies as a file that people read and edit, and as a first guess from the values that a
column has.

age: {bands: [5, 10, 20, 40]}
zip: {prefix: [4, 3, 2]}
born: {dates: [month, year, decade]}
workclass: {tree: {government: [State-gov, Federal-gov, Local-gov], private: [Private,
Self-emp-inc]}} sex: flat
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from discreet.anonymity.hierarchies import (
    FLAT,
    PARTS,
    Bands,
    Branches,
    Cuts,
    Dates,
    Prefix,
    Spec,
    Tree,
    leaf_paths,
    number_text,
    why_not_nested,
)
from discreet.anonymity.source import open_table, plain
from discreet.errors import PolicyError, UsageError
from discreet.policy.document import List, Map, Node, Reader, Scalar, parse

KINDS = ("bands", "cuts", "prefix", "dates", "tree")
_CODE_NAMES = re.compile(r"(^|[^a-z])(zip|postal|postcode|post_code|plz)", re.IGNORECASE)


def read(path: str | Path) -> dict[str, Spec]:
    """Read the hierarchies of a file; tell all its mistakes at once, each with its place."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{path} cannot be read as a hierarchy file.") from None
    root, problems = parse(text, file=str(path))
    reader = Reader(file=str(path), problems=problems)
    specs = {}
    for column, node in reader.fields(root, "A hierarchy file", (), None).items():
        spec = _spec(reader, column, node)
        wrong = None if spec is None else why_not_nested(spec)
        if wrong:
            reader.problem(node, f"{column}: {wrong}.")
        elif spec is not None:
            specs[column] = spec
    if reader.problems:
        raise PolicyError(*reader.problems)
    return specs


def _spec(reader: Reader, column: str, node: Node) -> Spec | None:
    if isinstance(node, Scalar) and node.text == "flat":
        return FLAT
    if not isinstance(node, Map):
        reader.wrong(node, column, "flat, or a mapping with bands, cuts, prefix, dates or tree")
        return None
    fields = reader.fields(node, column, (column,), (*KINDS, "from", "tight"))
    kinds = [kind for kind in KINDS if kind in fields]
    if len(kinds) != 1:
        reader.problem(node, f"{column} needs exactly one of {', '.join(KINDS)}.")
        return None
    kind = kinds[0]
    value = fields[kinds[0]]
    for extra, allowed in (("from", ("bands",)), ("tight", ("bands", "cuts"))):
        if extra in fields and kind not in allowed:
            reader.problem(fields[extra], f"{column}: `{extra}` goes with {' or '.join(allowed)}.")
    tight = reader.flag(fields.get("tight"), f"{column}.tight") or False
    match kind:
        case "bands":
            widths = _list(
                reader, column, value, lambda each: reader.number(each, f"a band of {column}")
            )
            start = reader.number(fields.get("from"), f"{column}.from") or Fraction(0)
            return None if widths is None else Bands(widths=tuple(widths), start=start, tight=tight)
        case "cuts":
            levels = _list(reader, column, value, lambda each: _points(reader, column, each))
            return None if levels is None else Cuts(levels=tuple(levels), tight=tight)
        case "prefix":
            lengths = _list(
                reader, column, value, lambda each: reader.whole(each, f"a length of {column}")
            )
            return None if lengths is None else Prefix(lengths=tuple(lengths))
        case "dates":
            parts = _list(
                reader, column, value, lambda each: reader.word(each, f"a part of {column}", PARTS)
            )
            return None if parts is None else Dates(parts=tuple(parts))
    return _tree(reader, column, value)


def _list(reader: Reader, column: str, node: Node, read_one: Any) -> list[Any] | None:
    if not isinstance(node, List) or not node.items:
        reader.wrong(node, column, "a list")
        return None
    found = [read_one(each) for each in node.items]
    return None if any(each is None for each in found) else found


def _points(reader: Reader, column: str, node: Node) -> tuple[Fraction, ...] | None:
    points = _list(
        reader, f"cuts of {column}", node, lambda each: reader.number(each, f"a cut of {column}")
    )
    return None if points is None else tuple(points)


def _tree(reader: Reader, column: str, node: Node) -> Tree | None:
    seen: dict[str, int] = {}
    branches = _branches(reader, column, node, seen)
    return None if branches is None else Tree(branches=branches)


def _branches(reader: Reader, column: str, node: Node, seen: dict[str, int]) -> Branches | None:
    if not isinstance(node, Map):
        reader.wrong(
            node,
            f"The tree of {column}",
            "groups with their values, such as {government: [State-gov]}",
        )
        return None
    found: dict[str, Branches | tuple[str, ...]] = {}
    for name, (key, below) in node.entries.items():
        _once(reader, column, key, name, seen)
        if isinstance(below, List):
            values = []
            for item in below.items:
                if not isinstance(item, Scalar):
                    reader.wrong(item, f"A value of {column}", "a word or a number")
                    continue
                _once(reader, column, item, item.text, seen)
                values.append(item.text)
            found[name] = tuple(values)
        elif isinstance(below, Map):
            found[name] = _branches(reader, column, below, seen) or {}
        elif reader.empty(below):
            found[name] = ()
        else:
            reader.wrong(
                below, f"{name} in the tree of {column}", "a list of values, or further groups"
            )
    return found


def _once(reader: Reader, column: str, node: Scalar, text: str, seen: dict[str, int]) -> None:
    """Refuse a value with two places in a tree, and two groups of one name: a label must mean one
    thing.
    """
    if text in seen:
        reader.problem(
            node, f"{text} stands twice in the tree of {column}; the first is on line {seen[text]}."
        )
    seen.setdefault(text, node.line)


# Writing.


def text_of(specs: Mapping[str, Spec]) -> str:
    """Write a hierarchy file."""
    lines = [
        "# How each column may be coarsened, step by step up to *. Edit, then: discreet anonymize --hierarchies FILE",
        "# bands: widths of numbers; cuts: lists of cut points; prefix: characters kept of a code; dates: parts kept;",
        "# tree: named groups, which may hold groups; flat: exact or *. docs/anonymity.md has the details.",
    ]
    for column, spec in specs.items():
        lines += _lines_of(column, spec)
    return "\n".join(lines) + "\n"


def _lines_of(column: str, spec: Spec) -> list[str]:
    name = _scalar(column)
    if isinstance(spec, Tree):
        if not spec.branches:
            return [f"{name}: flat"]
        return [f"{name}:", "  tree:", *_tree_lines(spec.branches, "    ")]
    return [f"{name}: {{{', '.join(_field(key, value) for key, value in _fields(spec).items())}}}"]


def _fields(spec: Bands | Cuts | Prefix | Dates) -> dict[str, object]:
    match spec:
        case Bands(widths=widths, start=start, tight=tight):
            extra = {"from": number_text(start)} if start else {}
            return {
                "bands": [number_text(width) for width in widths],
                **extra,
                **({"tight": "true"} if tight else {}),
            }
        case Cuts(levels=levels, tight=tight):
            cuts = ["[" + ", ".join(map(number_text, points)) + "]" for points in levels]
            return {"cuts": cuts, **({"tight": "true"} if tight else {})}
        case Prefix(lengths=lengths):
            return {"prefix": [str(length) for length in lengths]}
        case Dates(parts=parts):
            return {"dates": list(parts)}


def _field(key: str, value: object) -> str:
    return f"{key}: [{', '.join(value)}]" if isinstance(value, list) else f"{key}: {value}"


def _tree_lines(branches: Branches, indent: str) -> list[str]:
    lines = []
    for name, below in branches.items():
        if isinstance(below, Mapping):
            lines += [f"{indent}{_scalar(name)}:", *_tree_lines(below, indent + "  ")]
        else:
            lines.append(
                f"{indent}{_scalar(name)}:"
                + (f" [{', '.join(map(_scalar, below))}]" if below else "")
            )
    return lines


def _scalar(text: str) -> str:
    """Write a string as YAML does, quoted where it must be."""
    return str(
        yaml.safe_dump([text], default_flow_style=True, allow_unicode=True, width=10**6)
    ).strip()[1:-1]


# A first guess.


def automatic(column: str, values: pa.Array) -> Spec:
    """Guess a hierarchy from type, name and values: bands, prefixes, date parts, or groups that
    begin alike.
    """
    kind = values.type
    present = values.drop_null()
    if pa.types.is_date(kind):
        return Dates(parts=("month", "year", "decade"))
    if pa.types.is_timestamp(kind):
        return Dates(parts=("day", "month", "year", "decade"))
    if _is_code(column, present):
        width = max(len(plain(value) or "") for value in present.to_pylist())
        return Prefix(lengths=tuple(range(width - 1, 0, -1)))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _automatic_bands(present)
    if pa.types.is_boolean(kind):
        return FLAT
    return _automatic_tree([plain(value) or "" for value in present.to_pylist()])


def _is_code(column: str, values: pa.Array) -> bool:
    """Return True for ZIP codes and their kin: by name, or text of digits of one length."""
    if not len(values):
        return False
    if pa.types.is_integer(values.type):
        return bool(_CODE_NAMES.search(column)) and len(values) > 1
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return False
    lengths = pc.unique(pc.utf8_length(values))
    digits = pc.all(pc.utf8_is_digit(values)).as_py()
    return bool(digits) and len(lengths) == 1 and lengths[0].as_py() > 1


def _automatic_bands(values: pa.Array) -> Spec:
    """Return about sixteen bands of a round width (1, 2 or 5 times a power of ten), then wider
    ones.
    """
    if len(values) < 3:
        return FLAT
    ends = pc.min_max(values.cast(pa.float64(), safe=False)).as_py()
    spread = ends["max"] - ends["min"]
    if not 0 < spread < float("inf"):
        return FLAT
    power = Fraction(10) ** floor(log10(spread / 16))
    width = next(power * step for step in (1, 2, 5, 10) if power * step >= Fraction(spread) / 16)
    if pa.types.is_integer(values.type):
        width = max(Fraction(2), Fraction(ceil(width)))
    widths = [width * 2**step for step in range(4)]
    return Bands(widths=tuple(each for each in widths if each < Fraction(spread)) or (width,))


def _automatic_tree(texts: Iterable[str]) -> Tree:
    """Group values that begin with the same word (Self-emp-inc, Self-emp-not-inc); leave the others
    alone.
    """
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(re.split(r"[-_ /:.,(]", text, maxsplit=1)[0], []).append(text)
    shared = {word: values for word, values in groups.items() if len(values) > 1 and word}
    if not shared or len(groups) == 1:
        return FLAT
    branches: dict[str, Branches | tuple[str, ...]] = {}
    taken = {text for values in groups.values() for text in values}
    for word, values in groups.items():
        name = f"{word}..." if f"{word}..." not in taken else f"{word} (group)"
        branches.update({name: tuple(values)} if word in shared else dict.fromkeys(values, ()))
    return Tree(branches=branches)


def complete(spec: Spec, values: pa.Array) -> Spec:
    """Add the values that a tree does not list, under `unlisted`, for a person to sort; keep other
    hierarchies.
    """
    if not isinstance(spec, Tree) or not spec.closed:
        return spec
    known = leaf_paths(spec.branches)
    missing = [
        text
        for text in map(plain, values.drop_null().to_pylist())
        if text is not None and text not in known
    ]
    return Tree(branches={**spec.branches, "unlisted": tuple(missing)}) if missing else spec


def suggest(
    data: pa.Table | str | Path, quasi: Sequence[str], given: Mapping[str, Spec] | None
) -> dict[str, Spec]:
    """Return the hierarchies that a table's columns would get, those that were given first."""
    with open_table(data) as source:
        source.require(list(quasi), what="quasi")
        found = {}
        for name in quasi:
            values = source.groups([name]).values[0]
            found[name] = (
                complete(given[name], values)
                if given and name in given
                else automatic(name, values)
            )
        return found

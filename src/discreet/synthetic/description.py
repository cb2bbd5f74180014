"""The description: the JSON file that `describe` writes and `generate` reads. People can read it.

It has the public domains, the released noisy counts with their noise, the model that fits them, the
cost and the certificate. It has no executable parts. `load` checks every field and says what is
wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.files import write_file
from discreet.policy.domain import Column
from discreet.synthetic.columns.axes import domain_from, plain_domain
from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.marginals import SCALE, NoisyMarginal, Relations
from discreet.synthetic.synthesizers.graphical import Model, Tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FORMAT = "discreet description"
VERSION = 1
_MOST_BYTES = 512 * 2**20
_MOST_CELLS = 50_000_000
# Smaller numbers are written and read as 0, so that no quotient or square overflows.
_LEAST_ROWS = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Description:
    """A table's columns, the model of them, and what it cost."""

    table: str
    synthesizer: str
    axes: tuple[Axis, ...]
    groups: tuple[Integers, ...]  # for every column, the model's group of each cell
    counts: tuple[Floats, ...]  # for every column, the rows that we expect in each cell
    model: Model
    measured: tuple[NoisyMarginal, ...]
    related: tuple[Relations, ...] = ()
    warnings: tuple[str, ...]
    cost: dict[str, Any]
    certificate: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Return about how many rows the table has."""
        return max(0, round(self.model.total))

    @property
    def schema(self) -> pa.Schema:
        none = np.zeros(0, dtype=np.int64)
        return pa.schema([(axis.name, axis.decoded(none, np.zeros(0)).type) for axis in self.axes])

    def generate(self, *, rows: int, given: Mapping[str, str] | None = None) -> pa.Table:
        """Draw synthetic rows, for free and different each time; `given` fixes values: {"sex":
        "F"}.
        """
        return pa.Table.from_batches(list(self.batches(rows=rows, given=given)), schema=self.schema)

    def batches(
        self, *, rows: int, given: Mapping[str, str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `generate` in parts, for more rows than fit in memory."""
        from discreet.synthetic.generate import batches

        return batches(self, rows=rows, given={} if given is None else given)

    def expected_error(self, columns: Sequence[str]) -> float:
        """Return the expected distance of the model's table of some columns from the true one:
        total variation, 0 to 1.
        """
        from discreet.synthetic.report.errors import expected_error

        return expected_error(self, self.places(columns))

    def places(self, columns: Sequence[str]) -> tuple[int, ...]:
        names = [axis.name for axis in self.axes]
        for name in columns:
            if name not in names:
                raise UsageError(
                    f"The description has no column {name}; it has {', '.join(names)}."
                )
        return tuple(sorted({names.index(name) for name in columns}))

    def marginal(self, columns: tuple[int, ...]) -> Floats:
        """Return the expected rows in every cell of some columns."""
        table = self.model.marginal(columns) * self.model.total
        for place, column in enumerate(columns):
            groups = self.groups[column]
            counts = self.counts[column]
            # the share of each cell in its group; equal shares in a group without rows
            sums = np.bincount(groups, weights=counts)[groups]
            size = np.bincount(groups)[groups]
            within = np.where(sums > 0, counts / np.maximum(sums, 1e-300), 1 / size)
            shape = [-1 if axis == place else 1 for axis in range(len(columns))]
            table = np.take(table, groups, axis=place) * within.reshape(shape)
        return table

    # --- the file ---------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        write_file(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Description:
        """Read a description; raise UsageError for any other file, also a broken or hostile one.

        Nothing in the file runs.
        """
        try:
            if Path(path).stat().st_size > _MOST_BYTES:
                raise UsageError(f"{path} is larger than any description.")
            content = Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
        return cls.from_bytes(content, name=str(path))

    def to_bytes(self) -> bytes:
        names = [axis.name for axis in self.axes]
        columns = [
            {
                "name": axis.name,
                "domain": plain_domain(axis.column.domain),
                "nullable": axis.column.nullable,
                "cells": axis.bins,
                **({} if axis.cuts is None else {"cuts": list(axis.cuts)}),
                "groups": groups.tolist(),
                "expected_rows": _short(counts),
            }
            for axis, groups, counts in zip(self.axes, self.groups, self.counts, strict=True)
        ]
        tree = self.model.tree
        cliques = [
            {
                "columns": [names[c] for c in clique],
                "parent": parent,
                "expected_rows": _short(table.ravel() * self.model.total),
            }
            for clique, parent, table in zip(
                tree.cliques, tree.parents, self.model.tables, strict=True
            )
        ]
        measured = [
            {
                "columns": [names[c] for c in marginal.columns],
                "groups": [groups.tolist() for groups in marginal.partition],
                "noise": marginal.noise,
                "standard_deviation": float(f"{marginal.std:.6g}"),
                "noisy_counts": marginal.counts.tolist(),
            }
            for marginal in self.measured
        ]
        related = [
            {
                "scores": [
                    {"column": names[column], "points": line.tolist()}
                    for column, line in relations.scores
                ],
                "pairs": [list(pair) for pair in relations.pairs],
                "noise": relations.noise,
                "standard_deviation": float(f"{relations.std:.6g}"),
                "noisy_sums": relations.sums.tolist(),
            }
            for relations in self.related
        ]
        parts: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "table": self.table,
            "synthesizer": self.synthesizer,
            "expected_rows": float(f"{self.model.total:.9g}"),
            "cost": self.cost,
            "warnings": list(self.warnings),
            "certificate": self.certificate,
            "columns": columns,
            "model": cliques,
            "measured": measured,
            "related": related,
        }
        lines = [f" {json.dumps(key)}: {_lines(value)}" for key, value in parts.items()]
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "The description") -> Description:
        try:
            # Parsed as data: nothing in the file is looked up, imported or run.
            parts = json.loads(content.decode("utf-8"), parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise UsageError(f"{name} is not a description: it is not valid JSON.") from None
        if not isinstance(parts, dict) or parts.get("format") != FORMAT:
            raise UsageError(f'{name} is not a description: it does not say "format": "{FORMAT}".')
        if parts.get("version") != VERSION:
            raise UsageError(
                f"{name} has version {str(parts.get('version'))[:20]}; this program reads version {VERSION}."
            )
        try:
            return _describe(parts)
        except _Broken as error:
            raise UsageError(f"{name} is broken: {error}.") from None
        except (
            KeyError,
            TypeError,
            ValueError,
            IndexError,
            OverflowError,
            AttributeError,
            ZeroDivisionError,
        ) as error:
            raise UsageError(
                f"{name} is broken: a field is missing or of the wrong kind ({type(error).__name__})."
            ) from None


class _Broken(Exception):
    pass


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Broken(otherwise)


def _short(values: Floats) -> list[float]:
    """Round to seven digits, and to 0 below a billionth of a row: this is far finer than any noise.

    The smallest floats lose digits when they are divided by the number of rows.
    """
    return [float(f"{value:.7g}") if value >= _LEAST_ROWS else 0.0 for value in values.tolist()]


def _lines(value: Any) -> str:
    """Write JSON with one line for every entry of a list."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        entries = [json.dumps(entry, ensure_ascii=False) for entry in value]
        return "[\n  " + ",\n  ".join(entries) + "\n ]"
    return json.dumps(value, ensure_ascii=False)


def _describe(parts: dict[str, Any]) -> Description:
    axes = tuple(_axis(entry) for entry in _list(parts["columns"], "columns"))
    names = [axis.name for axis in axes]
    _require(0 < len(axes) == len(set(names)), "columns must have different names")
    groups = []
    counts = []
    for axis, entry in zip(axes, parts["columns"], strict=True):
        place = _integers(entry["groups"], axis.size)
        rows = _numbers(entry["expected_rows"], axis.size)
        _require(
            set(place.tolist()) == set(range(int(place.max()) + 1)),
            f"the groups of {axis.name} have gaps",
        )
        groups.append(place)
        counts.append(rows)
    total = _number(parts["expected_rows"])
    _require(total >= _LEAST_ROWS, "expected_rows must be positive")
    sizes = tuple(int(own.max()) + 1 for own in groups)
    return Description(
        table=_text(parts["table"]),
        synthesizer=_text(parts["synthesizer"]),
        axes=axes,
        groups=tuple(groups),
        counts=tuple(counts),
        model=_model(_list(parts["model"], "model"), names, sizes, total),
        measured=tuple(
            _measured(entry, names, axes) for entry in _list(parts["measured"], "measured")
        ),
        related=tuple(
            _relations(entry, names, axes) for entry in _list(parts.get("related", []), "related")
        ),
        warnings=tuple(_text(warning) for warning in _list(parts["warnings"], "warnings")),
        cost=_mapping(parts["cost"]),
        certificate=_mapping(parts["certificate"]),
    )


def _axis(entry: Any) -> Axis:
    _require(isinstance(entry.get("nullable"), bool), "nullable is true or false")
    column = Column(
        name=_text(entry["name"]), domain=domain_from(entry["domain"]), nullable=entry["nullable"]
    )
    bins = entry["cells"]
    size = column.domain.size
    _require(
        type(bins) is int and size is not None and 0 < bins <= min(size, _MOST_CELLS),
        "cells do not fit the domain",
    )
    cuts = entry.get("cuts")
    if cuts is not None:
        _require(
            isinstance(cuts, list)
            and len(cuts) == bins + 1
            and all(type(cut) is int for cut in cuts)
            and (cuts[0], cuts[-1]) == (0, size)
            and all(a < b for a, b in pairwise(cuts)),
            "cuts do not cover the domain",
        )
        cuts = tuple(cuts)
    return Axis(column=column, bins=bins, cuts=cuts)


def _model(entries: list[Any], names: list[str], sizes: tuple[int, ...], total: float) -> Model:
    cliques: list[tuple[int, ...]] = []
    parents: list[int] = []
    tables: list[Floats] = []
    for number, entry in enumerate(entries):
        clique = tuple(names.index(_text(name)) for name in _list(entry["columns"], "columns"))
        parent = entry["parent"]
        _require(
            list(clique) == sorted(set(clique)) and len(clique) > 0,
            "a clique's columns are out of order",
        )
        _require(
            type(parent) is int and (parent == -1 if number == 0 else 0 <= parent < number),
            "a parent is out of order",
        )
        cells = math.prod(sizes[column] for column in clique)
        _require(cells <= _MOST_CELLS, "the model is too large")
        rows = _numbers(entry["expected_rows"], cells)
        _require(float(rows.sum()) > 0, "a table of the model is empty")
        before = {column for other in cliques for column in other}
        _require(
            number == 0 or set(clique) & before <= set(cliques[parent]),
            "the model is not a junction tree",
        )
        cliques.append(clique)
        parents.append(parent)
        tables.append((rows / total).reshape([sizes[column] for column in clique]))
    _require(
        {column for clique in cliques for column in clique} == set(range(len(sizes))),
        "a column is not in the model",
    )
    return Model(
        tree=Tree(sizes=sizes, cliques=tuple(cliques), parents=tuple(parents)),
        tables=tuple(tables),
        total=total,
    )


def _relations(entry: Any, names: list[str], axes: tuple[Axis, ...]) -> Relations:
    scores = []
    for score in _list(entry["scores"], "scores"):
        column = names.index(_text(score["column"]))
        points = _list(score["points"], "points")
        fits = all(type(point) is int and abs(point) <= SCALE for point in points)
        _require(
            fits and len(points) == axes[column].size,
            f"the points of {names[column]} do not fit its cells",
        )
        scores.append((column, np.array(points, dtype=np.int64)))
    pairs = [tuple(_list(pair, "pairs")) for pair in _list(entry["pairs"], "pairs")]
    for pair in pairs:
        fits = len(pair) == 2 and all(type(n) is int and 0 <= n < len(scores) for n in pair)
        _require(fits and scores[pair[0]][0] < scores[pair[1]][0], "a pair has no two scores")
    sums = _list(entry["noisy_sums"], "noisy_sums")
    are_numbers = all(type(total) in (int, float) and abs(total) < 1e18 for total in sums)
    _require(are_numbers and len(sums) == len(pairs), "a pair has no sum")
    noise = _mapping(entry["noise"])
    std = _number(entry["standard_deviation"])
    _require(
        all(isinstance(value, str) for value in noise.values()), "noise is a mechanism's fields"
    )
    _require(std >= _LEAST_ROWS, "a standard deviation must be positive")
    return Relations(
        scores=tuple(scores),
        pairs=tuple((a, b) for a, b in pairs),
        sums=np.array(sums, dtype=np.float64),
        std=std,
        noise=noise,
    )


def _measured(entry: Any, names: list[str], axes: tuple[Axis, ...]) -> NoisyMarginal:
    columns = tuple(names.index(_text(name)) for name in _list(entry["columns"], "columns"))
    partition = tuple(
        _integers(groups, axes[column].size)
        for column, groups in zip(columns, _list(entry["groups"], "groups"), strict=True)
    )
    cells = math.prod(int(groups.max()) + 1 for groups in partition)
    counts = entry["noisy_counts"]
    _require(
        isinstance(counts, list) and len(counts) == cells, "noisy counts do not fit their columns"
    )
    _require(
        all(type(count) is int and abs(count) < 2**62 for count in counts),
        "a noisy count is not a whole number",
    )
    noise = _mapping(entry["noise"])
    _require(
        all(isinstance(value, str) for value in noise.values()), "noise is a mechanism's fields"
    )
    std = _number(entry["standard_deviation"])
    _require(std >= _LEAST_ROWS, "a standard deviation must be positive")
    return NoisyMarginal(
        columns=columns,
        partition=partition,
        counts=np.array(counts, dtype=np.int64),
        std=std,
        noise=noise,
    )


def _list(value: Any, name: str) -> list[Any]:
    _require(isinstance(value, list), f"{name} must be a list")
    return list(value)


def _mapping(value: Any) -> dict[str, Any]:
    _require(isinstance(value, dict), "cost, noise and certificate must be objects")
    return dict(value)


def _text(value: Any) -> str:
    _require(isinstance(value, str) and len(value) <= 10_000, "a name must be text")
    return str(value)


def _number(value: Any) -> float:
    _require(
        type(value) in (int, float) and 0 <= value < 1e18,
        "a number is missing, negative or too large",
    )
    return float(value)


def _numbers(values: Any, size: int) -> Floats:
    _require(
        isinstance(values, list) and len(values) == size,
        "a table does not have the size of its columns",
    )
    _require(
        all(type(value) in (int, float) and 0 <= value < 1e18 for value in values),
        "an expected count is no number",
    )
    rows = np.array(values, dtype=np.float64)
    return np.where(rows >= _LEAST_ROWS, rows, 0.0)


def _integers(values: Any, size: int) -> Integers:
    _require(
        isinstance(values, list) and len(values) == size,
        "groups do not have the size of their column",
    )
    _require(
        all(type(value) is int and 0 <= value < size for value in values), "a group is out of range"
    )
    return np.array(values, dtype=np.int64)

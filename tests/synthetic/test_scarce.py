"""Pairs chosen one by one: how far one person moves a score, what is paid, and tables with next to
nothing in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet import door
from discreet.audit import replay
from discreet.audit.replay import Transcript
from discreet.binding import create_ledger
from discreet.mechanisms import from_row
from discreet.policy.policy import Policy
from discreet.synthetic.description import Description
from discreet.synthetic.marginals import SCALE
from discreet.synthetic.synthesizers import default
from discreet.vault import allowance
from discreet.vault.allowance import Allowance

Row = tuple[bool, str]
VALUES: list[Row] = list(product((True, False), ("x", "y", "z")))


def opened(
    folder: Path,
    columns: Mapping[str, tuple[str, Sequence[Any]]],
    owners: Sequence[int],
    *,
    neighbors: str = "add_remove",
    max_rows: int = 1,
    budget: str = "delta: 1e-6, accountant: zcdp",
) -> discreet.Curator:
    """A curator of a table; each column has its domain and its values."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "unit: person",
        f"neighbors: {neighbors}",
        "tables:",
        "  t:",
        "    owner: o",
        f"    max_rows: {max_rows}",
        "    columns:",
        "      o: {identifier: true}",
        *(f"      {name}: {{{domain}}}" for name, (domain, _) in columns.items()),
        f"budget: {{epsilon: 1000, {budget}}}",
        "limits: {epsilon: 1000}",
    ]
    path = folder / "policy.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    create_ledger(Policy.read(path))
    kinds = {"boolean": pa.bool_(), "integer": pa.int64(), "values": pa.string()}
    values = {
        name: pa.array(list(given), kinds[domain.split(":")[0]])
        for name, (domain, given) in columns.items()
    }
    table = pa.table({"o": pa.array(list(owners), pa.int64()), **values})
    return discreet.open(path, tables={"t": table})


@dataclass(kw_only=True)
class Seen:
    """What the choices of one description were made from."""

    choices: list[dict[str, Any]] = field(default_factory=list)
    apart: list[np.ndarray] = field(default_factory=list)
    sums: list[dict[str, Any]] = field(default_factory=list)
    points: list[int] = field(default_factory=list)


@contextmanager
def watching() -> Iterator[Seen]:
    """Note every choice of the farthest and every vector of sums, and what is exact behind them."""
    seen = Seen()
    measured, chosen = allowance._distances, Allowance.farthest
    pointed, summed = allowance._sum_of_points, Allowance.sums

    def apart(*given: Any) -> Any:
        seen.apart.append(measured(*given))
        return seen.apart[-1]

    def farthest(self: Allowance, mechanism: Any, exact: Any, **named: Any) -> int:
        seen.choices.append({"mechanism": mechanism, **named})
        return chosen(self, mechanism, exact, **named)

    def points(*given: Any) -> int:
        seen.points.append(pointed(*given))
        return seen.points[-1]

    def sums(self: Allowance, mechanism: Any, exact: Any, **named: Any) -> Any:
        seen.sums.append({"mechanism": mechanism, **named})
        return summed(self, mechanism, exact, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allowance, "_distances", apart)
        patch.setattr(Allowance, "farthest", farthest)
        patch.setattr(allowance, "_sum_of_points", points)
        patch.setattr(Allowance, "sums", sums)
        yield seen


def scarce_only(work: Callable[[], Description]) -> tuple[Description, Seen]:
    """A description, which must have taken the way of this module."""
    taken: list[bool] = []
    real = default.pair_by_pair

    def noted(*given: Any, **named: Any) -> Any:
        taken.append(True)
        return real(*given, **named)

    with pytest.MonkeyPatch.context() as patch, watching() as seen:
        patch.setattr(default, "pair_by_pair", noted)
        made = work()
    assert taken, "noise did not drown the distances"
    return made, seen


def paid(curator: discreet.Curator) -> tuple[Fraction, Fraction]:
    """The lump, and what the mechanisms that ran cost together."""
    post = next(row for row in curator._ledger.rows() if row["kind"] == "post")
    losses = [from_row(row).loss() for row in post["mechanisms"]]
    zcdp = curator.policy.budget.accountant == "zcdp"
    spent = sum((each.rho if zcdp else each.epsilon for each in losses), Fraction(0))
    return Fraction(post["meta"]["amount"]), spent


# --- brute force ----------------------------------------------------------------------------------


def pairs_of_neighbors(neighbors: str, most: int) -> tuple[list[tuple[Row, ...]], int]:
    """Everything that one person may have, and how far one of these moves a distance from another.

    Under add_remove only the person who is not there is a neighbor of the others.
    """
    every = [
        rows for count in range(most + 1) for rows in combinations_with_replacement(VALUES, count)
    ]
    return every, most if neighbors == "add_remove" else 2 * most


@pytest.mark.parametrize("max_rows", [1, 2])
@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_one_person_moves_a_score_by_what_is_paid_for(
    neighbors: str, max_rows: int, tmp_path: Path
) -> None:
    """All that one person may have, among others that stay: no distance moves by more, and some by
    as much. The same has left before, by replay.
    """
    every, moved = pairs_of_neighbors(neighbors, max_rows)
    others = [VALUES[i * i % 6] for i in range(30)] + [VALUES[0]] * 20
    found: list[np.ndarray] = []
    related: list[np.ndarray] = []
    first: Transcript | None = None
    for number, own in enumerate(every):
        rows = [*own, *others]
        curator = opened(
            tmp_path / str(number),
            {
                "a": ("boolean: true", [a for a, _ in rows]),
                "b": ("values: [x, y, z]", [b for _, b in rows]),
            },
            [0] * len(own) + list(range(1, len(others) + 1)),
            neighbors=neighbors,
            max_rows=max_rows,
        )

        def work(
            witness: Callable[[Allowance], Any], curator: discreet.Curator = curator
        ) -> tuple[Description, Seen]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(door, "Allowance", lambda **named: witness(Allowance(**named)))
                return scarce_only(lambda: curator.describe("t", epsilon=8))

        transcript, (_, seen) = replay.record(work, replay=first)
        first = first or transcript
        assert not replay.differences(first, transcript)
        for choice in seen.choices:
            assert choice["moved"] == moved
            assert choice["mechanism"].linf >= max(choice["factors"]) * moved
            assert not choice["mechanism"].monotone
            assert all(isinstance(each, int) for each in (*choice["factors"], *choice["expected"]))
            assert all(model.dtype == np.int64 for model in choice["models"])
        found.append(np.concatenate(seen.apart))
        (vector,) = seen.sums
        related.append(np.array(seen.points, dtype=object))
        count, largest = len(seen.points), SCALE**2
        assert vector["moved"].l1 == count * moved * largest
        assert vector["mechanism"].l2_squared >= count * (moved * largest) ** 2
    assert len(found[0]) > 1
    assert len(related[0]) > 0
    for exact, most in ((found, moved), (related, moved * SCALE**2)):
        compared = (
            [(exact[0], each) for each in exact[1:]]
            if neighbors == "add_remove"
            else list(combinations(exact, 2))
        )
        assert max(int(np.abs(a - b).max()) for a, b in compared) == most


# --- what is chosen, and what is paid -------------------------------------------------------------


def test_the_pair_that_matters_is_chosen_first(tmp_path: Path) -> None:
    """Of 28 pairs one is no chance, and its score leads by so much that no other can come first.

    It neither rises nor falls, so that sums of products have not told of it before.
    """
    count = 400
    columns = {}
    for i in range(8):
        bits = [bool(row * 37 % 257 >> i & 1) for row in range(count)]
        columns[f"c{i}"] = ("boolean: true", bits)
    thirds = [row * 37 % 257 % 3 for row in range(count)]
    columns["c2"] = ("integer: [0, 2]", thirds)
    columns["c5"] = ("boolean: true", [third == 1 for third in thirds])
    curator = opened(tmp_path, columns, range(count))
    made, seen = scarce_only(lambda: curator.describe("t", epsilon=20))
    scores = seen.apart[0] - np.array(seen.choices[0]["expected"])
    lead = np.diff(np.sort(scores))[-1]
    mechanism = seen.choices[0]["mechanism"]
    assert 28 * math.exp(-float(mechanism.epsilon) * lead / 2 / mechanism.linf) < 1e-9
    assert next(each.columns for each in made.measured if len(each.columns) > 1) == (2, 5)
    both = made.marginal((2, 5)) / made.model.total
    assert both[0, 0] + both[1, 1] + both[2, 0] > 0.9


@pytest.mark.parametrize("budget", ["delta: 1e-6, accountant: zcdp", "accountant: sum"])
@pytest.mark.parametrize(("neighbors", "max_rows"), [("add_remove", 1), ("change_one", 2)])
@pytest.mark.parametrize("count", [0, 1, 5, 200])
def test_no_more_than_the_lump_is_used(
    count: int, neighbors: str, max_rows: int, budget: str, tmp_path: Path
) -> None:
    columns = {
        "a": ("boolean: true", [bool(row % 2) for row in range(count)]),
        "b": ("values: [x, y, z]", ["xyz"[row % 3] for row in range(count)]),
        "n": ("integer: [0, 40]", [row % 41 for row in range(count)]),
        "one": ("values: [only]", ["only"] * count),
    }
    curator = opened(
        tmp_path, columns, range(count), neighbors=neighbors, max_rows=max_rows, budget=budget
    )
    made, _ = scarce_only(lambda: curator.describe("t", epsilon=1))
    lump, used = paid(curator)
    assert 0 < used <= lump
    assert made.generate(rows=10).num_rows == 10
    assert made.generate(rows=made.rows).num_rows == made.rows
    assert Description.from_bytes(made.to_bytes()).measured[-1].columns == made.measured[-1].columns


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("domain", ["integer: [0, 5]", "values: [only]", "boolean: true"])
def test_tables_with_next_to_nothing(domain: str, width: int, count: int, tmp_path: Path) -> None:
    value = {"integer": 3, "values": "only", "boolean": True}[domain.split(":")[0]]
    columns = {f"c{i}": (domain, [value] * count) for i in range(width)}
    for epsilon in ("0.1", "50"):
        curator = opened(tmp_path / epsilon, columns, range(count))
        made = curator.describe("t", epsilon=epsilon)
        assert made.generate(rows=3).num_rows == 3
        lump, used = paid(curator)
        assert used <= lump


def test_what_is_asked_for_counts_for_more(tmp_path: Path) -> None:
    """Only sets that are asked for are candidates; the weight of the least asked one is still a
    whole number.
    """
    count = 300
    columns = {}
    for i in range(5):
        bits = [bool(row * 37 % 257 >> i & 1) for row in range(count)]
        columns[f"c{i}"] = ("boolean: true", bits)
    asked = ["SELECT c0, c1, COUNT(*) FROM t GROUP BY c0, c1"] * 99
    asked += ["SELECT c2, c3, c4, COUNT(*) FROM t GROUP BY c2, c3, c4"]
    curator = opened(tmp_path, columns, range(count))
    made, seen = scarce_only(lambda: curator.describe("t", epsilon=5, workload=asked))
    together = {each.columns for each in made.measured if len(each.columns) > 1}
    assert together <= {(0, 1), (2, 3), (2, 4), (3, 4), (2, 3, 4)}
    assert sorted(seen.choices[0]["factors"]) == [1, 1, 1, 1, 20]
    assert seen.choices[0]["mechanism"].linf == 20
    lump, used = paid(curator)
    assert lump * Fraction(99, 100) < used <= lump


def test_many_columns(tmp_path: Path) -> None:
    """At least as many rounds as a tree has edges, and a model that stays small."""
    count, width = 100, 14
    draws = np.random.default_rng(27)
    hidden = draws.integers(0, 4, count)
    columns = {}
    for i in range(width):
        own = np.where(draws.random(count) < 0.7, hidden, draws.integers(0, 4, count))
        columns[f"c{i}"] = ("values: [p, q, r, s]", ["pqrs"[each] for each in own])
    curator = opened(tmp_path, columns, range(count))
    made, seen = scarce_only(lambda: curator.describe("t", epsilon=10))
    assert len(seen.choices) == width - 1
    assert made.model.tree.cells <= 400_000
    lump, used = paid(curator)
    assert lump * Fraction(99, 100) < used <= lump

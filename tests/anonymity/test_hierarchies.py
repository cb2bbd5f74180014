"""Hierarchies: each level is coarser than the one before, labels say what is inside, and files tell
what is wrong.
"""

from __future__ import annotations

import datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.anonymity.hierarchies import (
    FLAT,
    Bands,
    Cuts,
    Dates,
    Hierarchy,
    Prefix,
    Spec,
    Tree,
    build,
    interval_text,
)
from discreet.anonymity.hierarchy_file import automatic, complete, read, text_of
from discreet.anonymity.information_loss import less_one
from discreet.anonymity.source import encode
from discreet.errors import PolicyError, UsageError

TREE = Tree(branches={"gov": ("state", "local"), "own": {"inc": ("a", "b"), "alone": ()}, "?": ()})


def coarsens(hierarchy: Hierarchy) -> None:
    """What every hierarchy promises."""
    assert hierarchy.names[0] == "exact"
    assert hierarchy.names[-1] == "*"
    assert hierarchy.labels[-1] == ("*",)
    costs = [spans[nodes] for spans, nodes in zip(hierarchy.spans, hierarchy.nodes, strict=True)]
    assert not costs[0].any()
    for fine, coarse in pairwise(hierarchy.nodes):
        pairs = set(zip(fine.tolist(), coarse.tolist(), strict=True))
        assert len(pairs) == len(set(fine.tolist())), "a group of the finer level is torn apart"
    for fine, coarse in pairwise(costs):
        assert (coarse >= fine - 1e-12).all()
    for nodes, labels in zip(hierarchy.nodes, hierarchy.labels, strict=True):
        assert set(nodes.tolist()) <= set(range(len(labels)))


def values_of(items: list[object], kind: pa.DataType) -> pa.Array:
    return encode(pa.array(items, kind))[0]


@given(
    st.lists(st.one_of(st.none(), st.integers(-500, 500)), min_size=1, max_size=30),
    st.integers(1, 7),
)
def test_bands_of_whole_numbers_hold_their_numbers(numbers: list[int | None], width: int) -> None:
    values = values_of(numbers, pa.int64())
    spec = Bands(
        widths=(Fraction(width), Fraction(3 * width), Fraction(12 * width)), start=Fraction(1)
    )
    hierarchy = build(spec, "x", values)
    coarsens(hierarchy)
    for code, number in enumerate(values.to_pylist()):
        for level in (1, 2, 3):
            label = hierarchy.labels[level][hierarchy.nodes[level][code]]
            if number is None:
                assert label is None
            elif label is not None and label.startswith("["):
                low, high = label[1:-1].split(", ")
                assert int(low) <= number < int(high)
            elif label is not None:
                low, _, high = label.partition("-")
                assert int(low) <= number <= int(high or low)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_bands_of_other_numbers_are_nested(numbers: list[float]) -> None:
    spec = Bands(widths=(Fraction(1, 10), Fraction(1, 5), Fraction(100)))
    values = values_of([x / 1000 for x in numbers], pa.float64())
    hierarchy = build(spec, "x", values)
    coarsens(hierarchy)
    for code, number in enumerate(values.to_pylist()):
        low, high = (hierarchy.labels[1][hierarchy.nodes[1][code]] or "")[1:-1].split(", ")
        assert float(low) <= number < float(high)


@pytest.mark.parametrize(
    ("spec", "items", "kind"),
    [
        (
            Cuts(levels=((Fraction(0), Fraction(18), Fraction(65)), (Fraction(18),))),
            [-4, 3, 18, 64, 65, 90],
            pa.int64(),
        ),
        (Prefix(lengths=(4, 2)), ["02139", "02138", "10001", None], pa.string()),
        (Prefix(lengths=(4, 2)), [2139, 2138, 10001], pa.int64()),
        (
            Dates(parts=("month", "quarter", "year", "decade", "century")),
            ["1999-12-31", "2000-01-01"],
            pa.date32(),
        ),
        (TREE, ["state", "local", "a", "b", "alone", "?"], pa.string()),
        (FLAT, ["x", "y", None], pa.string()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_coarsens(spec: Spec, items: list[object], kind: pa.DataType) -> None:
    made = (
        [datetime.date.fromisoformat(str(item)) for item in items] if kind == pa.date32() else items
    )
    coarsens(build(spec, "x", values_of(made, kind)))


def test_spans_are_shares_of_the_domain() -> None:
    ages = build(Bands(widths=(Fraction(5), Fraction(20))), "age", pa.array(range(17, 91)))
    by_label = dict(zip(ages.labels[1], ages.spans[1].tolist(), strict=True))
    assert by_label["20-24"] == 5 / 74
    assert by_label["15-19"] == 3 / 74  # 17, 18 and 19: nobody is younger
    assert by_label["90-94"] == 0  # 90 alone
    tree = build(TREE, "job", pa.array(["state", "a"]))
    assert dict(zip(tree.labels[2], tree.spans[2].tolist(), strict=True)) == {
        "gov": 2 / 6,
        "own": 3 / 6,
    }
    dates = build(
        Dates(parts=("month",)),
        "d",
        pa.array([datetime.date(2000, 1, 1), datetime.date(2000, 12, 31)]),
    )
    assert dates.spans[1].tolist() == [31 / 366, 31 / 366]
    assert (ages.domain, tree.domain, dates.domain) == (74, 6, 366)
    assert build(Bands(widths=(Fraction(1),)), "x", pa.array([0.5, 7.0])).domain == float("inf")


def test_the_loss_metric_starts_from_nothing() -> None:
    """20-24 of 17 to 90: five of 74 values by ncp, and (24 - 20) / (90 - 17) by the loss metric."""
    assert less_one(np.array([0.0, 5 / 74, 1.0]), 74) == pytest.approx([0, 4 / 73, 1])
    assert less_one(np.array([0.0, 0.25, 1.0]), float("inf")) == pytest.approx([0, 0.25, 1])
    assert less_one(np.array([0.0]), 1) == [0]
    assert less_one(np.array([0.0]), 0) == [0]


def test_a_band_edge_belongs_to_the_band_it_starts() -> None:
    tenth = build(Bands(widths=(Fraction(1, 10),)), "x", pa.array([0.1, 0.2, 0.3, 0.7]))
    assert tenth.labels[1] == ("[0.1, 0.2)", "[0.2, 0.3)", "[0.3, 0.4)", "[0.7, 0.8)")


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30),
    st.integers(1, 40),
    st.integers(-50, 50),
)
def test_a_number_at_an_edge_starts_its_band(steps: list[int], width: int, start: int) -> None:
    """Bands of 0.07 from 0.3: each number is the float next to an edge, and lies in the band that
    the edge starts.
    """
    spec = Bands(widths=(Fraction(width, 100),), start=Fraction(start, 10))
    edges = sorted({spec.start + step * spec.widths[0] for step in steps})
    built = build(spec, "x", pa.array([float(edge) for edge in edges]))
    expected = tuple(interval_text(edge, edge + spec.widths[0], whole=False) for edge in edges)
    assert tuple(built.labels[1][node] for node in built.nodes[1]) == expected


def test_bands_that_floating_point_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(UsageError, match="too narrow"):
        build(Bands(widths=(Fraction(1, 10),)), "x", pa.array([1e17, 2e17]))


def test_labels_are_what_people_write() -> None:
    born = build(
        Dates(parts=("month", "quarter", "year", "decade")),
        "d",
        pa.array([datetime.date(1999, 12, 31)]),
    )
    assert [labels[0] for labels in born.labels] == [
        "1999-12-31",
        "1999-12",
        "1999-Q4",
        "1999",
        "1990s",
        "*",
    ]
    assert build(Prefix(lengths=(3,)), "zip", pa.array([2139, 10001])).labels[1] == (
        "021**",
        "100**",
    )


def test_a_value_that_the_tree_lacks_is_an_error_with_the_column_and_not_the_value() -> None:
    with pytest.raises(
        UsageError, match="job has 1 different value that its tree does not list"
    ) as error:
        build(TREE, "job", pa.array(["state", "astronaut"]))
    assert "astronaut" not in str(error.value)
    mended = complete(TREE, pa.array(["state", "astronaut"]))
    coarsens(build(mended, "job", pa.array(["state", "astronaut"])))


@pytest.mark.parametrize(
    ("spec", "items"),
    [
        (Bands(widths=(Fraction(5),)), ["a"]),
        (Dates(parts=("year",)), [1, 2]),
        (Bands(widths=(Fraction(5),)), [np.inf]),
    ],
)
def test_the_wrong_kind_for_a_column_is_refused(spec: Spec, items: list[object]) -> None:
    with pytest.raises(UsageError, match="x "):
        build(spec, "x", pa.array(items))


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("age", pa.array(range(17, 91)), Bands(widths=tuple(map(Fraction, (5, 10, 20, 40))))),
        ("born", pa.array([datetime.date(2000, 1, 1)]), Dates(parts=("month", "year", "decade"))),
        ("zip", pa.array(["02139", "10001"]), Prefix(lengths=(4, 3, 2, 1))),
        ("zip_code", pa.array([2139, 10001]), Prefix(lengths=(4, 3, 2, 1))),
        ("sex", pa.array(["F", "M"]), FLAT),
        ("smoker", pa.array([True, False]), FLAT),
        (
            "job",
            pa.array(["Self-emp-inc", "Self-emp-not-inc", "Private"]),
            Tree(branches={"Self...": ("Self-emp-inc", "Self-emp-not-inc"), "Private": ()}),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_first_guesses(column: str, values: pa.Array, expected: Spec) -> None:
    assert automatic(column, values) == expected
    coarsens(build(expected, column, encode(values)[0]))


def test_a_file_comes_back_as_it_went(tmp_path: Path) -> None:
    specs: dict[str, Spec] = {
        "age": Bands(widths=(Fraction(5), Fraction(10)), start=Fraction(1), tight=True),
        "income": Cuts(levels=((Fraction(0), Fraction(1, 2)), (Fraction(1, 2),))),
        "zip": Prefix(lengths=(4, 3)),
        "born": Dates(parts=("month", "year")),
        "job: old": TREE,
        "sex": FLAT,
    }
    path = tmp_path / "h.yaml"
    path.write_text(text_of(specs))
    assert read(path) == specs


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("age: {bands: [5, 12]}", "1:6", "12 is none of 5"),
        ("age: {bands: []}", "1:14", "a list"),
        ("zip: {prefix: [2, 3]}", "1:6", "lengths must fall"),
        ("born: {dates: [year, month]}", "1:7", "from fine to coarse"),
        ("born: {dates: [moon]}", "1:16", "day or month"),
        ("job: {tree: {a: [x], b: [x]}}", "1:26", "x stands twice"),
        ("job: {tree: [x]}", "1:13", "groups with their values"),
        ("age: {bands: [5], prefix: [1]}", "1:6", "exactly one of"),
        ("age: {band: [5]}", "1:7", "Did you mean bands?"),
        ("age: 5", "1:6", "flat, or a mapping"),
        ("zip: {prefix: [4], tight: true}", "1:27", "goes with bands or cuts"),
        ("income: {cuts: [[0, 1], [0, 2]]}", "1:9", "add none"),
    ],
)
def test_a_wrong_file_is_told_with_the_place(
    tmp_path: Path, text: str, place: str, message: str
) -> None:
    path = tmp_path / "h.yaml"
    path.write_text(text)
    with pytest.raises(PolicyError, match=message.replace("?", r"\?")) as error:
        read(path)
    assert f"h.yaml:{place}:" in str(error.value)

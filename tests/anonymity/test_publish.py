"""From a table to a published one: the promise on what is written, nothing half-written, nothing
telling left.
"""

from __future__ import annotations

import datetime
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyarrow import csv
from tables import patients, people

from discreet.anonymity import Bands, Demand, Tree, anonymize, publish, risk
from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.hierarchies import FLAT
from discreet.anonymity.output import PromiseBroken
from discreet.errors import UsageError

QUASI = ["age", "zip", "job"]


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    data=people(most=20),
    k=st.integers(1, 4),
    local=st.booleans(),
    share=st.sampled_from([0.0, 0.2]),
)
def test_what_is_published_has_what_is_claimed(
    data: pa.Table, k: int, local: bool, share: float
) -> None:
    assume(k <= data.num_rows)
    made = anonymize(
        data,
        Demand(
            quasi=QUASI,
            k=k,
            sensitive="ill",
            suppress=share,
            recoding="local" if local else "global",
        ),
    )
    assert made.table is not None
    if made.rows:
        found = risk(made.table, quasi=QUASI, sensitive="ill")
        assert found.sensitive is not None
        assert found.k == made.k >= k
        assert (found.sensitive.l, found.sensitive.t) == (made.l, made.t)
    assert made.suppressed == data.num_rows - made.table.num_rows <= share * data.num_rows
    assert made.table.column_names == data.column_names
    if not share:
        assert Counter(made.table["ill"].to_pylist()) == Counter(data["ill"].to_pylist())
    assert 0 <= made.loss.ncp <= 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_in_and_out(tmp_path: Path, suffix: str) -> None:
    source, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    (pq.write_table if suffix == ".parquet" else csv.write_csv)(patients(), source)
    made = anonymize(source, Demand(quasi=["race", "born", "sex"], k=2), out=out)
    assert made.table is None
    assert (made.k, made.suppressed) == (2, 0)
    assert risk(out, quasi=["race", "born", "sex"]).k == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, out.name])


def test_the_lectures_patients() -> None:
    made = anonymize(patients(), Demand(quasi=["race", "born", "sex"], k=2))
    assert made.table is not None
    assert made.suppressed == 0
    assert Counter(
        zip(*(made.table[name].to_pylist() for name in ("race", "born", "sex")), strict=True)
    ) == {
        ("asian", "2000-04", "male"): 2,
        ("asian", "2000-09", "female"): 2,
        ("black", "1999-03", "male"): 2,
        ("black", "2000-09", "female"): 2,
        ("white", "2001", "*"): 3,
    }


def test_rows_do_not_keep_their_order() -> None:
    table = pa.table({"q": ["b", "a"] * 3, "s": [6, 5, 4, 3, 2, 1]})
    made = anonymize(table, Demand(quasi=["q"], k=3))
    assert made.table is not None
    assert made.table.to_pydict() == {"q": ["a"] * 3 + ["b"] * 3, "s": [1, 3, 5, 2, 4, 6]}


def test_columns_that_stay_exact_keep_their_type() -> None:
    table = pa.table({"born": [datetime.date(2000, 1, 1)] * 4, "age": [1, 2, 3, 4]})
    made = anonymize(table, Demand(quasi=["born", "age"], k=2))
    assert made.table is not None
    assert made.table.schema.field("born").type == pa.date32()
    assert made.table.schema.field("age").type == pa.string()


def test_tight_intervals_lose_less_and_hold_their_class() -> None:
    ages = pa.table({"age": [20, 21, 24, 31, 38, 39], "n": [1, 2, 3, 4, 5, 6]})
    loose = anonymize(
        ages, Demand(quasi=["age"], k=3), hierarchies={"age": Bands(widths=(Fraction(10),))}
    )
    tight = anonymize(
        ages,
        Demand(quasi=["age"], k=3),
        hierarchies={"age": Bands(widths=(Fraction(10),), tight=True)},
    )
    assert loose.table is not None
    assert tight.table is not None
    assert set(loose.table["age"].to_pylist()) == {"20-29", "30-39"}
    assert set(tight.table["age"].to_pylist()) == {"20-24", "31-39"}
    assert tight.loss.ncp == pytest.approx((5 + 9) / 2 / 20)
    assert loose.loss.ncp == pytest.approx((10 + 10) / 2 / 20)


def test_missing_values_are_a_value() -> None:
    table = pa.table(
        {"age": pa.array([1, 2, None, None], pa.int64()), "job": ["a", "a", None, None]}
    )
    made = anonymize(
        table, Demand(quasi=["age", "job"], k=2), hierarchies={"age": Bands(widths=(Fraction(5),))}
    )
    assert made.table is not None
    assert made.table["age"].to_pylist() == ["0-4", "0-4", None, None]
    assert made.table["job"].to_pylist() == ["a", "a", None, None]


def test_weights_say_what_to_spare() -> None:
    table = pa.table({"a": ["x", "x", "y", "y"] * 2, "b": ["x", "y", "x", "y"] * 2})
    for heavy, light in (("a", "b"), ("b", "a")):
        made = anonymize(table, Demand(quasi=["a", "b"], k=4), weights={heavy: 5})
        assert made.loss.columns == {heavy: 0, light: 1}


def test_suppression_is_used_where_it_is_cheaper() -> None:
    table = pa.table({"a": ["x"] * 9 + ["y"], "b": ["x"] * 9 + ["z"]})
    assert anonymize(table, Demand(quasi=["a", "b"], k=3, suppress=0.1)).suppressed == 1
    assert anonymize(table, Demand(quasi=["a", "b"], k=3)).suppressed == 0
    both = anonymize(table, Demand(quasi=["a", "b"], k=3, suppress=0.1, recoding="global"))
    assert (both.suppressed, both.transformation) == (1, {"a": "exact", "b": "exact"})


def test_a_broken_promise_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If recoding ever went wrong, the look at the finished table would stop it."""

    def careless(table: Any, *_: Any, **__: Any) -> Any:
        import numpy as np

        from discreet.anonymity.recoding.lattice import Recoding

        zeros = np.zeros(len(table), dtype=np.int64)
        return Recoding(
            levels=(zeros,) * len(table.codes), classes=zeros, optimal=False, searched=0
        )

    monkeypatch.setattr(publish.recode_local, "recode", careless)
    out = tmp_path / "out.csv"
    out.write_text("what was there before")
    with pytest.raises(PromiseBroken):
        anonymize(patients(), Demand(quasi=["race", "born"], k=2), out=out)
    assert out.read_text() == "what was there before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_an_interrupted_check_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Guarantee, "kept", interrupted)
    with pytest.raises(KeyboardInterrupt):
        anonymize(patients(), Demand(quasi=["race"], k=2), out=tmp_path / "out.parquet")
    assert not list(tmp_path.iterdir())


def test_columns_that_undo_the_work_are_named() -> None:
    table = pa.table(
        {
            "name": [f"person {i}" for i in range(40)],
            "education": ["school", "college"] * 20,
            "years": [10, 16] * 20,
            "wage": [1, 2, 3, 4] * 10,
            "age": list(range(20, 60)),
        }
    )
    made = anonymize(table, Demand(quasi=["education", "age"], k=5, sensitive="wage"))
    assert [warning.split()[0] for warning in made.warnings] == ["name", "years", "wage"]
    dropped = anonymize(
        table, Demand(quasi=["education", "age"], k=5), drop=["name", "years", "wage"]
    )
    assert dropped.warnings == ()
    assert dropped.table is not None
    assert dropped.table.column_names == ["education", "age"]


def test_hierarchies_of_other_tables_are_allowed_and_told() -> None:
    made = anonymize(
        patients(),
        Demand(quasi=["race"], k=2),
        hierarchies={"rice": FLAT, "sex": FLAT, "fnlwgt": FLAT},
    )
    assert [each for each in made.warnings if "hierarchy" in each] == [
        "There is a hierarchy for rice, which the table does not have. Did you mean race?"
    ]


def test_large_tables_are_looked_at_in_part_and_then_in_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from discreet.anonymity.recoding import suppress

    monkeypatch.setattr(suppress, "_LOOKED_AT", 10)
    table = pa.table({"q": ["a", "b"] * 20, "same": [1, 2] * 20, "almost": [1, 2] * 19 + [1, 1]})
    assert [each.split()[0] for each in anonymize(table, Demand(quasi=["q"], k=2)).warnings] == [
        "same"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 12}, "larger than the table"),
        ({"k": 0}, "k must be a whole number"),
        ({"k": True}, "k must be a whole number"),
        ({"k": 2, "quasi": ["rice"]}, "Did you mean race"),
        ({"k": 2, "quasi": []}, "at least one"),
        ({"k": 2, "l": 2}, "l is about a sensitive column"),
        ({"k": 2, "t": 0.1}, "t is about a sensitive column"),
        ({"k": 2, "sensitive": "race"}, "cannot be sensitive too"),
        ({"k": 2, "l": 9, "sensitive": "health issue"}, "more than the whole table has"),
        ({"k": 2, "l": 0.5, "sensitive": "health issue"}, "l must be 1 or more"),
        ({"k": 2, "l": float("nan"), "sensitive": "health issue"}, "l must be 1 or more"),
        ({"k": 2, "t": 1.5, "sensitive": "health issue"}, "t must lie between"),
        ({"k": 2, "t": float("nan"), "sensitive": "health issue"}, "t must lie between"),
        ({"k": 2, "l": 2, "sensitive": "health issue", "diversity": "recursive"}, "needs c"),
        (
            {"k": 2, "t": 0.5, "sensitive": "health issue", "closeness": "hierarchical"},
            "needs a hierarchy",
        ),
        ({"k": 2, "suppress": 2}, "share between 0 and 1"),
        ({"k": 2, "loss": "discernibility"}, "which local recoding does not weigh"),
        ({"k": 2, "loss": "regret"}, "loss must be one of"),
        ({"k": 2, "weights": {"race": -1}}, "zero or more"),
        ({"k": 2, "weights": {"marital status": 1}}, "not a quasi-identifier"),
        ({"k": 2, "drop": ["race"]}, "cannot be dropped"),
        ({"k": 2, "drop": ["nobody"]}, "does not have"),
        (
            {"k": 2, "hierarchies": {"race": Tree(branches={"a": ("asian",)})}},
            "race has 2 different values",
        ),
        ({"k": 2, "out": "table.xlsx"}, "should end in"),
        ({"k": 2, "out": "no/such/folder/t.csv"}, "not a folder"),
    ],
    ids=str,
)
def test_bad_questions_are_refused(arguments: dict[str, Any], message: str) -> None:
    asked = {"quasi": ["race", "sex"], **arguments}
    beside = {
        name: asked.pop(name) for name in ("weights", "drop", "hierarchies", "out") if name in asked
    }
    with pytest.raises(UsageError, match=message):
        anonymize(patients(), Demand(**asked), **beside)


def test_empty_tables_and_the_table_itself_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="empty"):
        anonymize(patients().slice(0, 0), Demand(quasi=["race"], k=2))
    path = tmp_path / "t.parquet"
    pq.write_table(patients(), path)
    with pytest.raises(UsageError, match="the table itself"):
        anonymize(path, Demand(quasi=["race"], k=2), out=path)
    assert pq.read_table(path).equals(patients())
